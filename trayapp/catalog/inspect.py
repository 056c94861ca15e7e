"""A tool's definition, or any text of a server, looked over for what hides from people or orders a model about.

No model, no network: the same text always gives the same findings. Never here: what becomes of the tool (pins), other
tools, texts for people beyond one line of evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from trayapp.catalog import hidden
from trayapp.model.late import late_module
from trayapp.model.offer import Item
from trayapp.model.text import one_line, shortened

if TYPE_CHECKING:
    from trayapp.catalog import encoded, orders
else:
    encoded, orders = late_module("trayapp.catalog.encoded"), late_module("trayapp.catalog.orders")

Severity = Literal["high", "medium"]

EVIDENCE_LONGEST = 160  # columns
TEXTS_MOST = 2_000  # of one definition: no honest one has more
PLACE_LONGEST = 80
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
    places = [(place, text) for field in IN_FIELDS if field in item for place, text in _texts(item[field], field)]
    found = [finding for place, text in places[:TEXTS_MOST] for finding in _in_one(place, text)]
    found += _name(str(item.get("name", "")))
    found += _ordered(places[:TEXTS_MOST])
    found += _asked_for(places[:TEXTS_MOST])
    found += _unread(places)
    return _sorted(found)


def inspect_text(text: str, where: str) -> tuple[Finding, ...]:
    """The same for one text: instructions, a prompt."""
    return _sorted([*_in_one(where, text), *_ordered([(where, text)]), *_unread([(where, text)])])


def inspect_result(text: str) -> tuple[Finding, ...]:
    """The same for what a tool returned. That may be anything, a handbook too: of orders only plain ones count."""
    return _sorted([*_in_one("result", text), *_ordered([("result", text)], lambda order: order.sure)])


def is_serious(findings: tuple[Finding, ...]) -> bool:
    """Whether a tool with these is held back until the user approves it."""
    return any(finding.severity == "high" for finding in findings)


def _sorted(found: list[Finding]) -> tuple[Finding, ...]:
    first = {finding.code: finding for finding in reversed(found)}
    first |= {finding.code: finding for finding in reversed(found) if finding.severity == "high"}
    return tuple(sorted(first.values(), key=lambda finding: (finding.severity, finding.code)))


def _in_one(place: str, text: str) -> Iterator[Finding]:
    """What one text shows by itself."""
    for found in hidden.hidden_in(text):
        yield finding(found.code, found.serious, place, found.evidence)
    for words in encoded.decoded_in(text) if len(text) >= encoded.RUN_SHORTEST else ():
        order = orders.orders_in(words)
        yield finding("encoded.payload", order is not None, place, f"says when decoded: {words}")


def _is_order(order: orders.Order) -> bool:
    return order.weight >= orders.SERIOUS


def _ordered(
    places: list[tuple[str, str]], is_serious_one: Callable[[orders.Order], bool] = _is_order
) -> Iterator[Finding]:
    """Orders: in the texts together, since poison may be spread; the place is the first that holds one."""
    whole = hidden.bared("\n\n".join(text.replace("_", " ") if _is_key(place) else text for place, text in places))
    order = orders.orders_in(whole)
    if order is not None:
        alone = ((place, orders.orders_in(hidden.bared(text))) for place, text in places)
        place, part = next(((place, part) for place, part in alone if part is not None), (places[0][0], order))
        yield finding(order.code, is_serious_one(order), place, part.evidence)
    for said in encoded.turned(whole):
        other = orders.orders_in(said)
        plainly = order is not None and order.weight >= other.weight if other is not None else True
        if other is not None and other.code in TURNED and other.weight >= orders.SERIOUS and not plainly:
            yield finding("encoded.turned", True, places[0][0], f"says when turned round: {other.evidence}")


def _asked_for(places: list[tuple[str, str]]) -> Iterator[Finding]:
    """What parameters ask for, by their descriptions and names."""
    asked = [
        (place, hidden.bared(text.replace("_", " ") if _is_key(place) else text).replace("\n", " "))
        for place, text in places
        if place.startswith("inputSchema")
    ]
    order = orders.asked_for("\n".join(text for _, text in asked))
    if order is not None:
        place = next((place for place, text in asked if orders.asked_for(text) is not None), asked[0][0])
        yield finding(order.code, True, place, order.evidence)


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
