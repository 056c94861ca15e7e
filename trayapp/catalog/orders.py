"""Orders to a model in a tool's text: signs of them, weighed together; no one sign condemns an honest description.

Pure; no model, no network. Never here: the signs (signs), hidden characters (hidden), encodings (encoded), what becomes
of a tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trayapp.catalog.signs import ADDRESSES, SIGNS, SINKS, Sign
from trayapp.model.late import late

SERIOUS = 3  # weight from which a text counts as an order
SURE = 6  # from which even a text about programs is one
NOTED = 2  # from which it is worth a word to whoever looks
READ_MOST = 100_000  # characters of one text; the longest honest definition that we know of has 7,000
TOGETHER = 2_000  # characters of a long text that are read together
OVERLAP = 400  # of which the next part begins with so many
CONTEXT = 120  # characters on each side of a sign that tell what is meant by it
NEAR = 160  # characters before a sign in which it may be negated

_NEGATION = (
    r"\b(?:do not|don't|never|not|must not|should not|shouldn't|avoid|without|no|cannot|can't|"
    r"doesn't|does not|refrain from)"
)
_NEGATED = late(_NEGATION + r"(?: [\w'-]+){0,4} ?$")
_NEGATED_BEFORE = late(_NEGATION + r"\b[^\n]*$")
_QUOTED = late(
    r"\b(?:such as|like|e\.g\.,?|for example:?|for instance,?|phrases?|patterns?|attempts?|detects?|containing|"
    r"contains?|says?) ?[\"'`“(]+$"
)
_CONCEAL = "orders.conceal"
_GROWING = frozenset({"orders.tools", "orders.secrets", "orders.override"})
_SURE = frozenset({"orders.override", "orders.conceal", "orders.markup"})
_BLANKS = late(r"[^\S\n]+")
_WRAPPED = late(r"(?<=[a-z,]) ?\n ?(?=[a-z'`]+(?: [a-z(]|[.,!?\n]|$))")  # a line that goes on; `name: ...` begins one


@dataclass(frozen=True, slots=True)
class Order:
    """What a text was found to order."""

    code: str
    weight: int
    evidence: str
    context: str  # the words around it
    sure: bool  # one sign is enough by itself, and of a kind that texts about programs hardly hold


class _Table:
    """Signs, and the cheap parts of all their hints: each is looked for once, though many signs have it."""

    def __init__(self, signs: tuple[Sign, ...]) -> None:
        self.signs = [(sign, frozenset(sign.hint.split("|")) if sign.hint else None) for sign in signs]
        self.parts = sorted({part for _, parts in self.signs for part in parts or ()})


_SIGNS, _ADDRESSES, _SINKS = _Table(SIGNS), _Table(ADDRESSES), _Table(SINKS)


def orders_in(low: str) -> Order | None:
    """What a `lined` text orders a model to do, by the weightiest sign; None when it is a description."""
    found = [order for part in _parts(low) if (order := _order_of(part)) is not None]
    return max(found, key=lambda order: (order.sure, order.weight), default=None)


def _parts(low: str) -> Iterator[str]:
    """What is read together: a long text says much that has nothing to do with each other."""
    yield low[:TOGETHER]
    for start in range(TOGETHER - OVERLAP, len(low) - OVERLAP, TOGETHER - OVERLAP):
        yield low[start : start + TOGETHER]


def _order_of(low: str) -> Order | None:
    heavy = _all_found(_SIGNS, low)
    if not heavy:
        return None
    found = [*heavy, *_all_found(_ADDRESSES, low)]
    weight = sum(
        _weight(code, [sign.weight for sign, _ in found if sign.code == code]) for code in {s.code for s, _ in found}
    )
    if weight < NOTED:
        return None
    sign, match = max(heavy, key=lambda pair: pair[0].weight)
    sure = (sign.weight >= SERIOUS and sign.code in _SURE) or weight >= SURE
    return Order(sign.code, weight, _around(low, match), _around(low, match, CONTEXT), sure)


def asked_for(low: str) -> Order | None:
    """What parameters with such names and descriptions, `lined`, ask for that no honest one does."""
    found = _all_found(_SINKS, low)
    if not found:
        return None
    sign, match = found[0]
    return Order(sign.code, sign.weight, _around(low, match), _around(low, match, CONTEXT), sure=True)


def lined(text: str) -> str:
    """In lower case, a line a sentence: what the signs look for."""
    low = text[:READ_MOST].lower()
    if "’" in low:
        low = low.replace("’", "'")
    if "  " in low or "\t" in low or "\r" in low or not low.isascii():
        low = _BLANKS.sub(" ", low)
    if "\n" in low.replace("\n\n", ""):
        low = _WRAPPED.sub(" ", low)
    return low.replace(". ", ".\n").replace("! ", "!\n").replace("? ", "?\n")


def _weight(code: str, weights: list[int]) -> int:
    """Of signs of one kind: the heaviest, and for some kinds one more where several are more than a hint."""
    return max(weights) + (code in _GROWING and sum(weight > 1 for weight in weights) > 1)


def _all_found(table: _Table, low: str) -> list[tuple[Sign, re.Match[str]]]:
    present = set(filter(low.__contains__, table.parts))
    hopeful = (sign for sign, parts in table.signs if not (parts and present.isdisjoint(parts)))
    return [(sign, match) for sign in hopeful if (match := _found(sign, low)) is not None]


def _found(sign: Sign, low: str) -> re.Match[str] | None:
    if sign.needs is not None and sign.needs.search(low) is None:
        return None
    return next((match for match in sign.pattern.finditer(low) if not _is_negated(sign, low, match)), None)


def _is_negated(sign: Sign, low: str, match: re.Match[str]) -> bool:
    """Whether the words before say that it is not to be done, or an example: most honest warnings are about what
    poison asks for."""
    before = low[max(0, match.start() - NEAR) : match.start()]
    if _QUOTED.search(before) is not None:
        return True
    if sign.code != _CONCEAL:
        return _NEGATED.search(before) is not None
    return match[0].startswith("without") and _NEGATED_BEFORE.search(before) is not None


def _around(text: str, match: re.Match[str], most: int = 20) -> str:
    start = max(0, match.start() - most)
    return text[start : match.end() + most].strip()
