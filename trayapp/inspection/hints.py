"""Fast selection of the rules that may apply to a text, by their hints: few sentences contain a hint.

RE2 searches for all hints at once and reads each character once, whatever a text holds.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator

from trayapp.inspection.rules import RULES, Rule

MEMORY_MOST = 1 << 23  # bytes for the search's states; with half of it, texts full of hints take three times as long

# Each rule is one bit of a number, so that many rules are combined in one step. The upper half of the bits stands for
# the words of `Rule.beside`.
_HALF = len(RULES)
EVERY = (1 << _HALF) - 1
_BITS: dict[str, int] = {}  # hint -> the bits of the rules that have it
_ALONE = 0  # rules without words beside their hints
for _at, _rule in enumerate(RULES):
    _bit = 1 << _at
    for _hint in _rule.hints:
        _BITS[_hint] = _BITS.get(_hint, 0) | _bit
    for _hint in _rule.beside:
        _BITS[_hint] = _BITS.get(_hint, 0) | _bit << _HALF
    if not _rule.beside:
        _ALONE |= _bit
_HINTS = list(_BITS.items())  # an index is the hint's number in the search
# For each length of a text: the rules whose shortest match fits in the text. Many names and values are too short for
# most rules.
_FITTING = tuple(
    sum(1 << at for at, rule in enumerate(RULES) if rule.least <= length)
    for length in range(max(rule.least for rule in RULES) + 1)
)


def hopeful_bits(low: str, wanted: int = EVERY) -> int:
    """Return the bits of the `wanted` rules that may match a lower-case text because it contains their hints."""
    found = 0
    for number in _search()(low.encode("utf-8", "replace")) or ():
        found |= _HINTS[number][1]
    return found & (found >> _HALF | _ALONE) & wanted & _FITTING[min(len(low), len(_FITTING) - 1)]


def hopeful_lines(low: str, wanted: int) -> list[tuple[int, int]]:
    """Return (line number from 0, bits of rules) for each line of a lower-case text that some of the `wanted` rules may
    match.

    Several short texts cost less as lines of one text than one by one.
    """
    if "\n" not in low:
        return [(0, rules)] if (rules := hopeful_bits(low, wanted)) else []
    numbers = _search()(low.encode("utf-8", "replace"))
    if not numbers:
        return []
    fitting = [_FITTING[min(length, len(_FITTING) - 1)] & wanted for length in map(len, low.split("\n"))]
    wanted = functools.reduce(operator.or_, fitting)
    wanted |= wanted << _HALF
    found = [0] * len(fitting)
    for number in numbers:
        hint, bits = _HINTS[number]
        if bits & wanted:
            at = low.find(hint)
            while at >= 0:
                found[low.count("\n", 0, at)] |= bits
                at = low.find(hint, at + 1)
    each = ((line, bits & (bits >> _HALF | _ALONE) & fitting[line]) for line, bits in enumerate(found))
    return [(line, rules) for line, rules in each if rules]


def rules_of(bits: int) -> Iterator[tuple[int, Rule]]:
    """Yield (bit, rule) for each rule whose bit is set."""
    while bits:
        bit = bits & -bits
        yield bit, RULES[bit.bit_length() - 1]
        bits ^= bit


def bit_of(code: str) -> int:
    """Return the bit of the rule with this code."""
    return next(1 << at for at, rule in enumerate(RULES) if rule.code == code)


def release() -> None:
    """Free the memory of the search for hints. The next search builds it again, in 2 ms."""
    _search.cache_clear()


@functools.cache
def _search() -> Callable[[bytes], list[int] | None]:
    """Return the search for all hints: a function from a UTF-8 text to the numbers of the hints that it contains."""
    import re2  # takes 3 MB and 3 ms; not needed for cached lists

    options = re2.Options()
    options.literal, options.max_mem = True, MEMORY_MOST
    hints = re2.Set.SearchSet(options)
    for hint in _BITS:
        hints.Add(hint.encode())
    hints.Compile()
    search: Callable[[bytes], list[int] | None] = hints.Match
    return search
