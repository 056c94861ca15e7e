"""Inspection of the definitions and other texts of a server, for hidden content and for orders to a model.

The search for hidden content runs before a tool is served. The search for orders takes longer and may run later. The
same text always gives the same findings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from trayapp.inspection import hidden
from trayapp.inspection.finding import Finding, finding
from trayapp.inspection.text import READ_MOST, Sentence, lowered, passages, sentences, texts_of, together
from trayapp.model.late import late
from trayapp.model.offer import Item

if TYPE_CHECKING:
    from trayapp.inspection.rules import Rule

# Limit on the work of a search: the characters that all rules together search. The longest legitimate texts need two
# thirds of the limit. Texts stuffed with words from orders need six times the limit.
LOOKED_LEAST = 10_000
LOOKED_EACH = 1  # added to the limit for each character of a definition
UNREAD = "size.orders"
UNREAD_ORDERS = "that reads like instructions than can be checked"
LOOKED_CONCEALED = 3_000  # limit of the search in decoded and transformed texts
LOOKED_BESIDE = 40  # cost of one search in addition to the sentence's length
QUOTED_MOST = 8  # quoted or forbidden matches of one rule that are ignored in a sentence. The next match counts
QUOTE_NEAR = 50  # characters before a quotation in which a word like `example` may introduce it
_QUOTED = late(
    r"\b(?:e\.g\.|(?:such as|like|example|for instance|phrases?|patterns?|attempts?|detects?|injections?|"
    r"jailbreaks?|contain(?:s|ing)?|flags?|strings?|finds?|blocks?|matches|says?)\b)[^\n]*[\"'`“‘(][^\"'`”’)]*$"
)
_REST_OF_WORD = late(r"\w*")
_FORBIDDEN = late(r"\b(?:never|not|don't|cannot|avoid)\b[^\n]*$")


def inspect_tool(item: Item) -> tuple[Finding, ...]:
    """Return the findings of a tool's definition: each code once, findings that withhold the tool first."""
    from trayapp.inspection.screening import may_conceal  # imported at the first check: a cached list needs none

    texts, name = texts_of(item), str(item.get("name", ""))
    concealed = find_concealed(texts, name) if may_conceal(item) else ()
    return merged(concealed, find_orders(texts))


def inspect_text(text: str, where: str) -> tuple[Finding, ...]:
    """Return the findings of one text, such as a server's instructions."""
    texts = [(where, text)]
    return merged(find_concealed(texts), find_orders(texts))


def find_concealed(texts: list[tuple[str, str]], name: str = "") -> tuple[Finding, ...]:
    """Return the findings of hidden content in (place, text) pairs and in a tool's name."""
    found = list(_concealed(texts))
    if (twin := hidden.ascii_twin(name)) is not None:
        said = f"Its name has letters that look like those of {twin}"
        found.insert(0, finding("name.look-alike", "high", "name", said, name))
    return _sorted(found)


def find_orders(texts: list[tuple[str, str]]) -> tuple[Finding, ...]:
    """Return the findings of orders in (place, text) pairs."""
    bare = [(place, hidden.bared(text[:READ_MOST])) for place, text in texts]
    return _sorted(_Search(LOOKED_LEAST + LOOKED_EACH * sum(len(text) for _, text in texts)).orders(bare))


def free_memory() -> None:
    """Free the memory that searches keep between definitions. The next search builds it again."""
    from trayapp.inspection import rules, screening

    rules.release()
    screening.release()


def merged(*found: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return all findings: each code once, findings that withhold a definition first."""
    return _sorted([one for some in found for one in some])


def _sorted(found: Sequence[Finding] | Iterator[Finding]) -> tuple[Finding, ...]:
    first: dict[str, Finding] = {}
    for one in sorted(found, key=lambda one: one.severity):
        first.setdefault(one.code, one)
    return tuple(sorted(first.values(), key=lambda one: (one.severity, one.code)))


def _concealed(texts: list[tuple[str, str]]) -> Iterator[Finding]:
    for place, text in texts:
        for found in hidden.hidden_in(text):
            yield finding(found.code, "high" if found.serious else "medium", place, found.evidence, text)
    search = _Search(LOOKED_CONCEALED)
    order = _decoded(texts, search) or (_turned(texts, search) if search.left >= 0 else None)
    if order is not None:
        yield order
    if search.left < 0:
        yield finding(UNREAD, "high", texts[-1][0], f"It has more hidden text {UNREAD_ORDERS}")
    if sum(len(text) for _, text in texts) > READ_MOST:
        yield finding("size.unread", "medium", texts[-1][0], "It has more text than can be checked")


class _Search:
    """The search for orders. Its work is limited: texts stuffed with words from orders are not searched to the end.

    Decoded and transformed texts share the limit of their definition, and are searched one after another.
    """

    def __init__(self, most: int) -> None:
        self.left = most
        self.wanted = 0  # bits of the rules that have not matched yet

    def orders(self, texts: Iterable[tuple[str, str]], known: Container[str] = ()) -> Iterator[Finding]:
        """Yield the first finding of each rule in (place, text) pairs. The texts come from `hidden.bared`.

        Repeated sentences and those in `known` are skipped. If the limit is reached, the last finding is UNREAD.
        """
        from trayapp.inspection import rules  # imported at the first search: a cached list needs none

        self.wanted, seen = rules.EVERY, set[str]()
        for place, sentence, bits in _hopeful_sentences(texts, lambda: self.wanted):
            left = bits & self.wanted
            if not left or sentence.low in seen or sentence.low in known:
                continue
            seen.add(sentence.low)
            for bit, rule in rules.rules_of(left):
                self.left -= len(sentence.low) + LOOKED_BESIDE
                if self.left < 0:
                    yield finding(UNREAD, "medium", place, f"It has more text {UNREAD_ORDERS}")
                    return
                if (match := _found(rule.pattern, f" {sentence.low}")) is not None:
                    self.wanted &= ~bit
                    yield _order(rule, place, sentence, match)


def _hopeful_sentences(
    texts: Iterable[tuple[str, str]], wanted: Callable[[], int]
) -> Iterator[tuple[str, Sentence, int]]:
    """Yield (place, sentence, bits of the rules that may match it), for the rules in `wanted()` at that moment."""
    from trayapp.inspection.rules import hopeful_bits

    for place, passage in ((place, passage) for place, text in texts for passage in passages(text)):
        hopeful = hopeful_bits(lowered(f" {passage}"), wanted())
        found = sentences(passage) if hopeful else []
        for sentence in found:
            rules = hopeful if len(found) == 1 else hopeful_bits(f" {sentence.low}", hopeful)
            if rules:
                yield place, sentence, rules


def _order(rule: Rule, place: str, sentence: Sentence, match: re.Match[str]) -> Finding:
    said, low = sentence
    begin, end = max(_start(match) - 1, 0), match.end() - 1  # the searched text began with a space
    end += len(_REST_OF_WORD.match(low, end)[0])  # type: ignore[index]  # it also matches an empty text
    marked = (said if len(low) == len(said) else low)[begin:end]
    return finding(rule.code, "medium", place, f"It {rule.reason}", said, marked)


def _start(match: re.Match[str]) -> int:
    """Return the start of a match, without the character that a pattern consumes before a word (rules._at_words)."""
    return match.start(match.lastindex or 0)


def _found(pattern: re.Pattern[str], low: str) -> re.Match[str] | None:
    """Return the first match that is neither quoted as an example nor forbidden by its sentence, or None.

    After QUOTED_MOST quoted or forbidden matches, the next match is returned in any case.
    """
    for at, match in enumerate(pattern.finditer(low)):
        start = _start(match)
        before = low[max(0, start - QUOTE_NEAR) : start]
        forbidden = low.startswith("without", start) and _FORBIDDEN.search(before) is not None
        if at == QUOTED_MOST or (not forbidden and _QUOTED.search(before) is None):
            return match
    return None


def _decoded(texts: list[tuple[str, str]], search: _Search) -> Finding | None:
    """Return a finding for the first text that decodes to an order, or None if there is none."""
    from trayapp.inspection import encoded

    for place, text in _suspected(texts, encoded.may_be_coded, encoded.RUN_SHORTEST):
        words = (hidden.bared(some) for some in encoded.decoded_in(text))
        orders = (one for some in words for one in _orders_in(some, search))
        if (order := next(orders, None)) is not None:
            return finding("encoded.payload", "high", place, f"Decoded, it says: {order.evidence}", text)
    return None


def _turned(texts: list[tuple[str, str]], search: _Search) -> Finding | None:
    """Return a finding for the first text that contains an order in a transformed form, or None if there is none."""
    from trayapp.inspection import encoded

    for place, text in _suspected(texts, encoded.may_be_turned, encoded.TURNED_SHORTEST):
        if (order := _turned_order(text, search)) is not None:
            return finding("encoded.turned", "high", place, f"Reversed or decoded, it says: {order.evidence}", text)
    return None


def _suspected(
    texts: list[tuple[str, str]], suspects: Callable[[bytes], bool], shortest: int
) -> Iterator[tuple[str, str]]:
    """Yield the texts of at least `shortest` characters that may be suspicious.

    Short texts are pre-checked in groups (`together`). A text that forms a group by itself is yielded unchecked.
    """
    for some in together(part for part in texts if len(part[1]) >= shortest):
        if len(some) == 1:
            yield from some
        elif suspects(_as_bytes("\n\n".join([text for _, text in some]))):
            yield from (part for part in some if suspects(_as_bytes(part[1])))


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _turned_order(text: str, search: _Search) -> Finding | None:
    """Return the first order that a text contains only in a transformed form, or None if there is none."""
    from trayapp.inspection import encoded

    bare = hidden.bared(text)
    if not (ways := list(encoded.turned(bare))):
        return None
    said = {sentence.low for passage in passages(bare) for sentence in sentences(passage)}
    plain = cache(lambda: {order.code for order in _Search(LOOKED_LEAST).orders([("", bare)])})
    orders = (order for words in ways for order in _orders_in(words, search, said))
    return next((order for order in orders if order.code not in plain()), None)


def _orders_in(text: str, search: _Search, known: Container[str] = ()) -> Iterator[Finding]:
    return (one for one in search.orders([("", text)], known) if one.code != UNREAD)
