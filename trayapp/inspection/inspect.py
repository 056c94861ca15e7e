"""Inspect a definition, or any text of a server: what hides from people is held back, what reads like orders is told.

The same text always gives the same findings.
Never here: what becomes of the tool (gateway/approvals), other servers' tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from trayapp.inspection import hidden
from trayapp.inspection.finding import Finding, finding
from trayapp.inspection.text import READ_MOST, Sentence, sentences, texts_of
from trayapp.model.late import late, late_module
from trayapp.model.offer import Item

if TYPE_CHECKING:
    from trayapp.inspection import encoded, rules
else:
    encoded, rules = late_module("trayapp.inspection.encoded"), late_module("trayapp.inspection.rules")

QUOTE_NEAR = 50  # characters before a quotation in which an honest text says that it quotes
_QUOTED = late(
    r"\b(?:such as|like|e\.g\.|example|for instance|phrases?|patterns?|attempts?|detects?|contain(?:s|ing)?|flags?|"
    r"strings?|finds?|blocks?|matches|says?)\b[^\n]*[\"'`“‘(][^\"'`”’)]*$"
)
_FORBIDDEN = late(r"\b(?:never|not|don't|cannot|avoid)\b[^\n]*$")
_TURNED = ("orders.override.", "orders.conceal.")  # nobody takes the trouble to write anything else backwards


def inspect_tool(item: Item) -> tuple[Finding, ...]:
    """Return what is found in a definition: each code once, what is held back first."""
    name = str(item.get("name", ""))
    return _sorted([*_in_name(name), *_in_texts(texts_of(item))])


def inspect_text(text: str, where: str) -> tuple[Finding, ...]:
    """Return what is found in one text, such as a server's instructions."""
    return _sorted(_in_texts([(where, text)]))


def _sorted(found: Sequence[Finding] | Iterator[Finding]) -> tuple[Finding, ...]:
    first: dict[str, Finding] = {}
    for one in sorted(found, key=lambda one: one.severity):
        first.setdefault(one.code, one)
    return tuple(sorted(first.values(), key=lambda one: (one.severity, one.code)))


def _in_name(name: str) -> Iterator[Finding]:
    twin = hidden.ascii_twin(name)
    if twin is not None:
        yield finding("name.look-alike", "high", "name", f"Its name has letters that look like those of {twin}", name)


def _in_texts(texts: list[tuple[str, str]]) -> Iterator[Finding]:
    whole = "\n\n".join(text for _, text in texts)
    if not hidden.is_plain(whole):
        for place, text in texts:
            for found in hidden.hidden_in(text):
                yield finding(found.code, "high" if found.serious else "medium", place, found.evidence, text)
    if encoded.may_be_coded(whole) or encoded.may_be_turned(whole):
        yield from _decoded(texts)
    hopeful = _hopeful(hidden.bared(whole).lower())
    for place, text in texts if hopeful else ():
        for said in sentences(text):
            yield from _orders(hopeful, place, said)
    if len(whole) > READ_MOST:
        yield finding("size.unread", "medium", texts[-1][0], "It holds more text than can be looked over")


def _hopeful(low: str) -> list[tuple[rules.Rule, list[str]]]:
    """Return the rules that may find something in a lower-case text, each with its hints that stand there."""
    present = {hint for hint in rules.HINTS if hint in low}
    there = [(rule, [hint for hint in rule.hints if hint in present]) for rule in rules.RULES if present]
    return [(rule, hints) for rule, hints in there if hints]


def _orders(hopeful: list[tuple[rules.Rule, list[str]]], place: str, sentence: Sentence) -> Iterator[Finding]:
    low = sentence.low
    for rule, hints in hopeful:
        for hint in hints:
            if hint in low:
                if (match := _found(rule.pattern, low)) is not None:
                    marked = sentence.said[match.start() : match.end()] if len(low) == len(sentence.said) else match[0]
                    yield finding(rule.code, "medium", place, f"It {rule.reason}", sentence.said, marked)
                break


def _found(pattern: re.Pattern[str], low: str) -> re.Match[str] | None:
    """Return the first match that is no quotation in a text about such texts, and not forbidden itself."""
    for match in pattern.finditer(low):
        before = low[max(0, match.start() - QUOTE_NEAR) : match.start()]
        forbidden = match[0].startswith("without") and _FORBIDDEN.search(before) is not None
        if not forbidden and _QUOTED.search(before) is None:
            return match
    return None


def _decoded(texts: list[tuple[str, str]]) -> Iterator[Finding]:
    """Find text that is an order once it is decoded."""
    for place, text in texts:
        for words in encoded.decoded_in(text):
            if (order := _first_order(words)) is not None:
                yield finding("encoded.payload", "high", place, f"It says when decoded: {order.evidence}", text)
        if encoded.may_be_turned(text):
            bare = hidden.bared(text)
            for words in encoded.turned(bare):
                plain = {one.code for one in _orders_in(bare)}
                for order in _orders_in(words):
                    if order.code.startswith(_TURNED) and order.code not in plain:
                        yield finding(
                            "encoded.turned", "high", place, f"It says when turned round: {order.evidence}", text
                        )


def _orders_in(text: str) -> list[Finding]:
    hopeful = _hopeful(text.lower())
    return [one for sentence in sentences(text) for one in _orders(hopeful, "", sentence)] if hopeful else []


def _first_order(text: str) -> Finding | None:
    return next(iter(_orders_in(text)), None)
