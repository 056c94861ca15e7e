"""Fast selection of the rules that may apply to a sentence, by their hints: few sentences contain any.

Never here: the rules themselves (rules).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, reduce
from operator import or_
from typing import Any

from trayapp.inspection.rules import RULES, Rule
from trayapp.model.late import late

WORDS_KEPT = 4096  # words whose hints are cached: texts repeat most of their words
WORD_LONGEST = 40  # characters of a cached word
END = "\n"  # end of a word, after which a hint of several words continues

# Rules are bits of a number, so that several are combined in one step. The upper half is for the words beside the
# hints.
_HALF = len(RULES)
EVERY = (1 << _HALF) - 1
_BITS: dict[str, int] = {}  # of the rules with a hint
_ALONE = 0  # rules without words beside their hints
for _at, _rule in enumerate(RULES):
    _bit = 1 << _at
    for _hint in _rule.hints:
        _BITS[_hint] = _BITS.get(_hint, 0) | _bit
    for _hint in _rule.beside:
        _BITS[_hint] = _BITS.get(_hint, 0) | _bit << _HALF
    if not _rule.beside:
        _ALONE |= _bit
_PHRASES: dict[str, list[tuple[str, int]]] = {}  # hints of several words, by their first word and END
for _hint in _BITS:
    if " " in _hint:
        _PHRASES.setdefault(_hint.partition(" ")[0] + END, []).append((_hint, _BITS[_hint]))
_WORDS = [hint for hint in _BITS if " " not in hint]


def _one_of(words: Iterable[str]) -> str:
    """Return a pattern for the longest of these words, which visits each character once."""
    tree: dict[str, Any] = {}
    for word in words:
        node = tree
        for letter in word:
            node = node.setdefault(letter, {})
        node[""] = {}
    return _branches(tree)


def _branches(node: dict[str, Any]) -> str:
    ways = [re.escape(letter) + _branches(below) for letter, below in node.items() if letter]
    if not ways:
        return ""
    return f"(?:{'|'.join(ways)})" + ("?" if "" in node else "")


_FIRST_WORDS = late(f"(?=({_one_of((*_WORDS, *_PHRASES))}))")
Hints = tuple[int, tuple[tuple[str, int], ...]]
_KNOWN: dict[str, Hints] = {}


def hopeful_rules(low: str, wanted: int = EVERY) -> list[tuple[int, Rule]]:
    """Return the rules with these bits that may match a lower-case text, because it contains their hints."""
    missing = wanted | wanted << _HALF
    for word in set(low.split()):
        others, phrases = _KNOWN.get(word) or _known(word)
        missing &= others
        for phrase, hinted in phrases:
            if hinted & missing and phrase in low:
                missing &= ~hinted
    found = wanted & ~missing & (~missing >> _HALF | _ALONE)
    hopeful = []
    while found:
        bit = found & -found
        hopeful.append((bit, RULES[bit.bit_length() - 1]))
        found ^= bit
    return hopeful


def _known(word: str) -> Hints:
    """Return the hints in a word, and cache those of a short one."""
    found = _hints_in(word)
    if len(word) <= WORD_LONGEST:
        if len(_KNOWN) >= WORDS_KEPT:
            _KNOWN.clear()
        _KNOWN[word] = found
    return found


def _hints_in(word: str) -> Hints:
    """Return the rules without a hint inside a word, and each phrase that begins there with its rules."""
    others, phrases = ~0, tuple[tuple[str, int], ...]()
    for part in _FIRST_WORDS.findall(word + END):
        without, begun = _within(part)
        others &= without
        phrases += begun
    return others, phrases


@cache
def _within(part: str) -> Hints:
    """Return the same for the longest hint or first word at one place, which shorter ones begin."""
    beginnings = [part[:end] for end in range(1, len(part) + 1)]
    there = reduce(or_, (_BITS.get(hint, 0) for hint in beginnings))
    return ~there, tuple(phrase for first in beginnings for phrase in _PHRASES.get(first, ()))
