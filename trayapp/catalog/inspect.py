"""A tool's definition, or any text of a server, looked over for what hides from people or orders a model about.

One pass over the words weighs each sentence (wording); only doubtful ones are read for patterns (orders). No model, no
network: the same text always gives the same findings. Never here: what becomes of the tool (pins), other tools, texts
for people beyond one line of evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from trayapp.catalog import hidden
from trayapp.model.late import late_module
from trayapp.model.offer import Item
from trayapp.model.text import one_line, shortened

if TYPE_CHECKING:
    from trayapp.catalog import encoded, orders, wording
else:
    encoded, orders = late_module("trayapp.catalog.encoded"), late_module("trayapp.catalog.orders")
    wording = late_module("trayapp.catalog.wording")

Severity = Literal["high", "medium"]

EVIDENCE_LONGEST = 160  # columns
TEXTS_MOST = 2_000  # of one definition: no honest one has more
PLACE_LONGEST = 80
SURE_LEAST = -0.1  # score of the words around a sign that is enough by itself
RESULT_SURE = 1.5  # score from which what a tool returned counts as an order: it may be anything, a handbook too
PLACE_SURE = 30  # characters of a sentence by which its place is found
NO_WORDS = frozenset({"string", "object", "number", "integer", "boolean", "array", "null"}) | {
    f"http{s}://json-schema.org/{dialect}/schema{end}"
    for s in ("", "s")
    for dialect in ("draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12")
    for end in ("", "#")
}
ASKED = "inputSchema"  # where a place begins that the model fills in
TURNED = frozenset({"orders.override", "orders.conceal"})  # nobody takes the trouble to turn round anything else
IN_FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `code` is stable; `where`: the place in the definition; `evidence`: cleaned, one line."""

    code: str
    severity: Severity
    where: str
    evidence: str


def inspect_tool(item: Item) -> tuple[Finding, ...]:
    """What is found in a definition, each code once, the serious first."""
    places = _places(item)
    texts = _told(places)
    found = list(_in_texts(texts))
    found += _name(str(item.get("name", "")))
    found += _ordered(texts)
    found += _unread(places)
    return _sorted(found)


def hides(item: Item) -> bool:
    """Whether something serious is found by other means than what the words say."""
    return any(found.severity == "high" and not found.code.startswith("orders.") for found in inspect_tool(item))


def signs_of(item: Item) -> tuple[str, ...]:
    """The signs of an order that a definition has, by name, however harmless its words are."""
    places = _told(_places(item))
    said, asked = _said(places), _asked(places)
    return _signs(orders.orders_in(f"{said}\n{asked}"), orders.asked_for(asked))


def sentences_of(item: Item) -> Iterator[wording.Sentence]:
    """How the texts of a definition are weighed."""
    places = _told(_places(item))
    return _sentences(_said(places), _asked(places))


def _places(item: Item) -> list[tuple[str, str]]:
    beside = sorted(item.keys() - set(IN_FIELDS)) if len(item) > 2 else ()
    fields = (field for field in (*IN_FIELDS, *beside) if field in item)
    found = (told for field in fields for told in _texts(item[field], field))
    return [(place, text) for place, text in found if not (place.startswith("icons") and text.startswith("data:"))]


def _told(places: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What is worth looking at: each text where it is said first, and those that say something."""
    first = {(text, place.startswith(ASKED)): place for place, text in reversed(places[:TEXTS_MOST])}
    return [(place, text) for (text, _), place in reversed(first.items()) if text not in NO_WORDS]


def inspect_text(text: str, where: str) -> tuple[Finding, ...]:
    """The same for one text: instructions, a prompt."""
    return _sorted([*_in_one(where, text), *_ordered([(where, text)]), *_unread([(where, text)])])


def inspect_result(text: str) -> tuple[Finding, ...]:
    """The same for what a tool returned. That may be anything, a handbook too: of orders only plain ones count."""
    return _sorted([*_in_one("result", text), *_ordered([("result", text)], RESULT_SURE)])


def is_serious(findings: tuple[Finding, ...]) -> bool:
    """Whether a tool with these is held back until the user approves it."""
    return any(finding.severity == "high" for finding in findings)


def _sorted(found: list[Finding]) -> tuple[Finding, ...]:
    first = {finding.code: finding for finding in reversed(found)}
    first |= {finding.code: finding for finding in reversed(found) if finding.severity == "high"}
    return tuple(sorted(first.values(), key=lambda finding: (finding.severity, finding.code)))


def _in_texts(texts: list[tuple[str, str]]) -> Iterator[Finding]:
    """What each text shows by itself; most definitions are plain, which is seen at once for all of it."""
    plain = hidden.is_plain("\n\n".join(text for _, text in texts))
    for place, text in texts:
        yield from _in_one(place, text, plain=plain)


def _in_one(place: str, text: str, *, plain: bool = False) -> Iterator[Finding]:
    """What one text shows by itself. `plain`: it is known to hide nothing."""
    for found in () if plain else hidden.hidden_in(text):
        yield finding(found.code, found.serious, place, found.evidence)
    for words in encoded.decoded_in(text) if encoded.may_be_coded(text) else ():
        order = orders.orders_in(orders.lined(words))
        yield finding("encoded.payload", order is not None, place, f"says when decoded: {words}")


def _sentences(said: str, asked: str) -> Iterator[wording.Sentence]:
    yield from wording.sentences(said)
    yield from wording.sentences(asked, asked=True)


def _said(places: list[tuple[str, str]]) -> str:
    return _as_lines(text for place, text in places if not place.startswith(ASKED))


def _asked(places: list[tuple[str, str]]) -> str:
    """What parameters ask for: of each its name and description together."""
    return _as_lines(_named(place, text) for place, text in places if place.startswith(ASKED))


def _as_lines(texts: Iterable[str]) -> str:
    return orders.lined(hidden.bared("\n\n".join(dict.fromkeys(texts))))


def _named(place: str, text: str) -> str:
    if place.endswith(".description"):
        return f"{place.rsplit('.', 2)[-2].replace('_', ' ')} {text}"
    return text.replace("_", " ") if _is_key(place) else text


class _Read(NamedTuple):
    """What the words of a definition come to, and the signs in those that are doubtful."""

    texts: tuple[str, str]  # what is said, and what parameters ask for
    likely: wording.Likely
    order: orders.Order | None  # of what is said and asked for
    asked: orders.Order | None  # of what parameters ask for alone

    @property
    def score(self) -> float:
        """From 0 it is an order, more likely than not."""
        return self.likely.score + sum(map(wording.sign_weight, _signs(self.order, self.asked)))

    @property
    def is_sure(self) -> bool:
        """Whether one sign is enough, where the words around it do not say that it is harmless, such as an example."""
        if self.order is None or not self.order.sure:
            return False
        around = wording.likeliest(wording.sentences(self.order.context))
        return around.score + sum(map(wording.sign_weight, _signs(self.order, None))) >= SURE_LEAST


def _signs(order: orders.Order | None, asked: orders.Order | None) -> tuple[str, ...]:
    """The names of signs, as they are weighed."""
    names = ["asked"] if asked is not None else []
    if order is not None and order.weight < orders.SERIOUS:
        names.append("noted")
    elif order is not None:
        names += [order.code, "sure"] if order.sure else [order.code]
    return tuple(names)


def _read(places: list[tuple[str, str]]) -> _Read:
    """Only sentences whose wording makes them doubtful are looked through for signs, which costs more."""
    texts = _said(places), _asked(places)
    likely = wording.likeliest(_sentences(*texts))
    doubtful = "\n".join(filter(None, (likely.said, likely.asked)))
    return _Read(
        texts,
        likely,
        orders.orders_in(doubtful) if doubtful else None,
        orders.asked_for(likely.asked) if likely.asked else None,
    )


def _ordered(places: list[tuple[str, str]], enough: float = 0.0) -> Iterator[Finding]:
    """Orders. `enough`: the score from which they are serious."""
    read = _read(places)
    serious = read.score >= enough or read.is_sure
    for order in filter(None, (read.order, read.asked)):
        yield finding(order.code, serious, _place_of(places, order.evidence), order.evidence)
    if read.order is None and read.asked is None and read.likely.worded >= enough:
        yield finding("orders.wording", True, _place_of(places, read.likely.text), read.likely.text)
    if any(map(encoded.may_be_turned, read.texts)):
        yield from _turned(places)


def _place_of(places: list[tuple[str, str]], said: str) -> str:
    """The place of words that were found in lower case."""
    bare = [(place, orders.lined(hidden.bared(text))) for place, text in places]
    parts = (part for length in (PLACE_SURE, PLACE_SURE // 3) for part in (said[-length:], said[:length]))
    return next((place for part in parts for place, text in bare if part in text), places[0][0])


def _whole(places: list[tuple[str, str]]) -> str:
    return hidden.bared("\n\n".join(text.replace("_", " ") if _is_key(place) else text for place, text in places))


def _turned(places: list[tuple[str, str]]) -> Iterator[Finding]:
    """Orders in a text that reads as none: backwards, with digits as letters, and the like."""
    whole = _whole(places)
    for said in encoded.turned(whole):
        other = orders.orders_in(orders.lined(said))
        if other is not None and other.code in TURNED and other.weight >= orders.SERIOUS:
            order = orders.orders_in(orders.lined(whole))
            if order is None or order.weight < other.weight:
                yield finding("encoded.turned", True, places[0][0], f"says when turned round: {other.evidence}")


def _unread(places: list[tuple[str, str]]) -> Iterator[Finding]:
    """Nobody hides behind length: what is not looked at is a finding."""
    if len(places) > TEXTS_MOST or sum(len(text) for _, text in places) > orders.READ_MOST:
        yield finding("size.unread", True, places[-1][0], "holds more text than can be looked over")


def _name(name: str) -> Iterator[Finding]:
    twin = hidden.ascii_twin(name)
    if twin is not None:
        yield finding("name.look-alike", True, "name", f"is written with letters that look like those of {twin}")


def finding(code: str, serious: bool, where: str, evidence: str) -> Finding:
    """One finding, its foreign words cleaned and cut."""
    words = shortened(_plain(evidence), EVIDENCE_LONGEST)
    return Finding(code, "high" if serious else "medium", _plain(where)[:PLACE_LONGEST], words)


def _plain(text: str) -> str:
    return "".join(filter(str.isprintable, one_line(text)))


def _is_key(place: str) -> bool:
    return place.endswith(("'s name", ".required"))


def _texts(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Every text of a value with its place, names of parameters included; whatever the depth."""
    todo: list[tuple[str, Any]] = [(place, value)]
    while todo:
        place, value = todo.pop()
        if isinstance(value, str):
            yield place, value
        elif isinstance(value, dict):
            yield from ((f"{place}.{key}'s name", str(key)) for key in value if place.endswith("properties"))
            todo += [(f"{place}.{key}", inner) for key, inner in reversed(value.items())]
        elif isinstance(value, list):
            todo += [(place, inner) for inner in reversed(value)]
