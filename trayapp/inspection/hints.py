"""Fast choice of the rules that may apply to a sentence, by their hints: few sentences hold any.

Never here: the rules themselves (rules).
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from trayapp.inspection.rules import RULES, Rule

WORDS_KEPT = 4096  # words whose hints are cached: texts repeat most of their words
WORD_LONGEST = 40  # characters of a cached word
START = 3  # characters of a hint that are compared first; most absent hints fail there

# Rules are bits of a number: several are joined in one step.
_ALL = [(1 << at, rule) for at, rule in enumerate(RULES)]
_BITS: dict[str, int] = {}  # of the rules with a hint
for _bit, _rule in _ALL:
    for _hint in _rule.hints:
        _BITS[_hint] = _BITS.get(_hint, 0) | _bit
# One-word hints by their first three characters, shorter ones, and hints of several words by their first word
_WORDS_BY_START: dict[tuple[str, ...], list[str]] = {}
_SHORT_WORDS: list[str] = []
_PHRASES: dict[str, list[str]] = {}
for _hint in _BITS:
    if " " in _hint:
        _PHRASES.setdefault(_hint.partition(" ")[0], []).append(_hint)
    elif len(_hint) < START:
        _SHORT_WORDS.append(_hint)
    else:
        _WORDS_BY_START.setdefault(tuple(_hint[:START]), []).append(_hint)
_STARTS = frozenset(_WORDS_BY_START)
_ENDINGS = sorted({len(word) for word in _PHRASES})

Hints = tuple[int, tuple[tuple[str, int], ...]]
_KNOWN: dict[str, Hints] = {}


def hopeful_rules(low: str, wanted: int) -> list[tuple[int, Rule]]:
    """Return those of the rules with these bits that may match a lower-case sentence: it holds a hint of theirs."""
    missing = wanted
    for word in set(low.split()):
        others, phrases = _KNOWN.get(word) or _known(word)
        missing &= others
        for phrase, hinted in phrases:
            if hinted & missing and phrase in low:
                missing &= ~hinted
    found = wanted & ~missing
    return [one for one in _ALL if found & one[0]] if found else []


def bits_of(codes: str | tuple[str, ...]) -> int:
    """Return the bits of the rules whose codes begin so."""
    return sum(bit for bit, rule in _ALL if rule.code.startswith(codes))


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
    starts = _STARTS.intersection(zip(word, word[1:], word[2:], strict=False))
    whole = [hint for start in starts for hint in _WORDS_BY_START[start] if hint in word]
    whole += [hint for hint in _SHORT_WORDS if hint in word]
    begun = [hint for length in _ENDINGS for hint in _PHRASES.get(word[-length:], ())]
    there = reduce(or_, (_BITS[hint] for hint in whole), 0)
    return ~there, tuple((hint, _BITS[hint]) for hint in begun)
