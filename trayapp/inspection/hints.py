"""Fast choice of the rules that may apply to a sentence, by their hints: few sentences hold any.

Never here: the rules themselves (rules).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from trayapp.inspection.rules import RULES, Rule

WORDS_KEPT = 4096  # words whose hints are cached: texts repeat most of their words
WORD_LONGEST = 40  # characters of a cached word
START = 3  # characters of a hint that are compared first; most absent hints fail there

# One-word hints by their first three characters, shorter ones, and hints of several words by their first word
_RULES_BY_HINT: dict[str, list[Rule]] = {}
for _each in RULES:
    for _hint in _each.hints:
        _RULES_BY_HINT.setdefault(_hint, []).append(_each)
_WORDS_BY_START: dict[tuple[str, ...], list[str]] = {}
_SHORT_WORDS: list[str] = []
_PHRASES: dict[str, list[str]] = {}
for _hint in _RULES_BY_HINT:
    if " " in _hint:
        _PHRASES.setdefault(_hint.partition(" ")[0], []).append(_hint)
    elif len(_hint) < START:
        _SHORT_WORDS.append(_hint)
    else:
        _WORDS_BY_START.setdefault(tuple(_hint[:START]), []).append(_hint)
_STARTS = frozenset(_WORDS_BY_START)
_ENDINGS = sorted({len(word) for word in _PHRASES})


def hopeful_rules(low: str) -> Iterable[Rule]:
    """Return the rules that may match a lower-case sentence: those with a hint in it."""
    found: dict[str, Rule] = {}
    for word in dict.fromkeys(low.split()):
        for hint, hinted in _known_hints_in(word) if len(word) <= WORD_LONGEST else _hints_in(word):
            if hint is None or hint in low:
                found.update(hinted)
    return found.values()


def _hints_in(word: str) -> tuple[tuple[str | None, dict[str, Rule]], ...]:
    """Return the rules with a hint inside a word (under None), or with a phrase that begins there (under it)."""
    starts = _STARTS.intersection(zip(word, word[1:], word[2:], strict=False))
    whole = [hint for start in starts for hint in _WORDS_BY_START[start] if hint in word]
    whole += [hint for hint in _SHORT_WORDS if hint in word]
    begun = [hint for length in _ENDINGS for hint in _PHRASES.get(word[-length:], ())]
    there = {rule.code: rule for hint in whole for rule in _RULES_BY_HINT[hint]}
    later = [(hint, {rule.code: rule for rule in _RULES_BY_HINT[hint]}) for hint in begun]
    return ((None, there), *later) if there else tuple(later)


_known_hints_in = lru_cache(WORDS_KEPT)(_hints_in)
