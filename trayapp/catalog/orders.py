"""Orders to a model in a tool's text: signs of them, weighed together; no one sign condemns an honest description.

Pure; no model, no network. Never here: the signs (signs), hidden characters (hidden), encodings (encoded), what becomes
of a tool.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from trayapp.catalog.signs import ADDRESSES, SIGNS, SINKS, Sign
from trayapp.model.late import late

SERIOUS = 3  # weight from which a text counts as an order
NOTED = 2  # from which it is worth a word to whoever looks
READ_MOST = 100_000  # characters of one text; the longest honest definition that we know of has 7,000
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
_BLANKS = late(r"[^\S\n]+")
_WRAPPED = late(r"(?<=[a-z,]) ?\n ?(?=[a-z'`]+(?: [a-z(]|[.,!?\n]|$))")  # a line that goes on; `name: ...` begins one
_SENTENCE = late(r"(?<=[.!?]) +")


@dataclass(frozen=True, slots=True)
class Order:
    """What a text was found to order."""

    code: str
    weight: int
    evidence: str


def orders_in(text: str) -> Order | None:
    """What the text orders a model to do, by the weightiest sign; None when it is a description."""
    low = _lined(text)
    heavy = _all_found(SIGNS, low)
    if not heavy:
        return None
    found = [*heavy, *_all_found(ADDRESSES, low)]
    weight = sum(
        _weight(code, [sign.weight for sign, _ in found if sign.code == code]) for code in {s.code for s, _ in found}
    )
    if weight < NOTED:
        return None
    sign, match = max(heavy, key=lambda pair: pair[0].weight)
    return Order(sign.code, weight, _around(low, match))


def asked_for(text: str) -> Order | None:
    """What a parameter with that name or description asks for that no honest one does."""
    low = _lined(text)
    found = _all_found(SINKS, low)
    return Order(found[0][0].code, found[0][0].weight, _around(low, found[0][1])) if found else None


def _lined(text: str) -> str:
    """In lower case, a line a sentence: what the signs look for."""
    low = _BLANKS.sub(" ", text[:READ_MOST]).lower().replace("’", "'")
    return _SENTENCE.sub("\n", _WRAPPED.sub(" ", low))


def _weight(code: str, weights: list[int]) -> int:
    """Of signs of one kind: the heaviest, and for some kinds one more where several are more than a hint."""
    return max(weights) + (code in _GROWING and sum(weight > 1 for weight in weights) > 1)


def _all_found(signs: tuple[Sign, ...], low: str) -> list[tuple[Sign, re.Match[str]]]:
    return [(sign, match) for sign in signs if (match := _found(sign, low)) is not None]


def _found(sign: Sign, low: str) -> re.Match[str] | None:
    if sign.hint and not any(part in low for part in _parts(sign.hint)):
        return None
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


@lru_cache(maxsize=256)
def _parts(hint: str) -> tuple[str, ...]:
    return tuple(hint.split("|"))


def _around(text: str, match: re.Match[str]) -> str:
    start = max(0, match.start() - 20)
    return text[start : match.end() + 20].strip()
