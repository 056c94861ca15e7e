"""Suggestions for an unknown name: the nearest known names, by words in common, then by typing errors."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

MOST = 5  # suggestions
WORDS_NEEDED = 0.5  # more than this share of the asked words must match: the server's name alone is not enough
NEAR_BEST = 0.7  # share of the best score: weaker suggestions only distract
PREFIX_WORTH = 0.8  # relative to a full match: "repo" for "repositories"
TYPO_WORTH = 0.75
PREFIX_SHORTEST = 3  # characters
EDITS_MOST = 3  # edits between the whole asked name and a known name
WORDS_MOST = 16  # asked words that count
ASKED_LONGEST = 256  # characters of the asked name that count: keeps the work bounded

# Candidates whose edits are counted, the likeliest first. This bounds the work, which delays other messages.
NAMES_COMPARED = 100
WORDS_COMPARED = 240  # for all asked words together

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BREAKS = str.maketrans("-. /:", "_____")


def nearest(asked: str, names: Iterable[str], limit: int = MOST) -> list[str]:
    """Return at most `limit` of `names`, best first. The order of `names` does not matter."""
    return _index_of(tuple(names)).nearest(_plain(asked[:ASKED_LONGEST]), limit)


class _NameIndex:
    """An index of known names, by their words and by their lengths."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = list(dict.fromkeys(names))
        self._plain = [_plain(name) for name in self._names]
        self._places: dict[str, list[int]] = {}
        for index, name in enumerate(self._plain):
            for word in name.split("_"):
                self._places.setdefault(word, []).append(index)
        self._words, self._wholes = _by_length(self._places), _by_length(self._plain)

    def nearest(self, asked: str, limit: int) -> list[str]:
        """Return the nearest names, best first. `asked` is in plain form."""
        scores = self._by_edits(asked)
        for index, score in self._by_words(asked).items():
            scores[index] = max(score, scores.get(index, 0.0))

        def rank(index: int) -> tuple[float, int, str]:
            return -scores[index], abs(len(self._plain[index]) - len(asked)), self._names[index]

        enough = max(scores.values(), default=0.0) * NEAR_BEST
        near = (index for index, score in scores.items() if score >= enough)
        return [self._names[index] for index in heapq.nsmallest(limit, near, key=rank)]

    def _by_words(self, asked: str) -> dict[int, float]:
        """Map the index of each name to the share of the asked words that it matches (0 to 1), above WORDS_NEEDED."""
        wanted = list(dict.fromkeys(word for word in asked.split("_") if word))[:WORDS_MOST]
        scores: dict[int, float] = {}
        for word in wanted:
            for index, worth in self._places_met(word, WORDS_COMPARED // len(wanted)).items():
                scores[index] = scores.get(index, 0.0) + worth / len(wanted)
        return {index: score for index, score in scores.items() if score > WORDS_NEEDED}

    def _places_met(self, asked: str, compared: int) -> dict[int, float]:
        """Map the index of each name with a word near enough to `asked` to the score of its nearest word."""
        prefixed = [word for word in self._places if word.startswith(asked)] if len(asked) >= PREFIX_SHORTEST else []
        allowed = 2 if len(asked) > 6 else 1 if len(asked) > 3 else 0
        meant = _close(asked, self._words, allowed, compared) if allowed else {}
        worths = dict.fromkeys(meant, TYPO_WORTH) | dict.fromkeys(prefixed, PREFIX_WORTH) | {asked: 1.0}
        met: dict[int, float] = {}
        for word, worth in sorted(worths.items(), key=lambda pair: pair[1]):
            met.update(dict.fromkeys(self._places.get(word, ()), worth))
        return met

    def _by_edits(self, asked: str) -> dict[int, float]:
        """Map the index of each name a few typing errors away to the share of `asked` that is correct (0 to 1)."""
        allowed = min(EDITS_MOST, len(asked) // 3)
        edits = _close(asked, self._wholes, allowed, NAMES_COMPARED) if allowed else {}
        if not edits:
            return {}
        return {index: 1 - edits[name] / len(asked) for index, name in enumerate(self._plain) if name in edits}


_index_of = lru_cache(maxsize=4)(_NameIndex)  # indexing 2,000 names costs more than a search


def _plain(name: str) -> str:
    if not name.islower():
        name = _HUMP.sub("_", name).lower()
    return name.translate(_BREAKS)


def _by_length(words: Iterable[str]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for word in words:
        found.setdefault(len(word), []).append(word)
    return found


def _close(asked: str, words: Mapping[int, list[str]], allowed: int, compared: int) -> dict[str, int]:
    """Return the words at most `allowed` edits away from `asked`, with the number of edits.

    Words that differ too much in length or letters are skipped first: the exact count costs a hundred times as much. At
    most `compared` words are counted exactly.
    """
    letters = set(asked)
    lengths = range(len(asked) - allowed, len(asked) + allowed + 1)
    likely = [
        (unlike, word)
        for length in lengths
        for word in words.get(length, ())
        if (unlike := len(letters.symmetric_difference(word))) <= 2 * allowed
    ]
    if len(likely) > compared:
        likely = heapq.nsmallest(compared, likely)
    counted = ((word, edits_between(asked, word, allowed)) for _, word in likely)
    return {word: edits for word, edits in counted if edits <= allowed}


def edits_between(left: str, right: str, allowed: int) -> int:
    """Return the number of insertions, deletions, replacements and swaps of neighbors from `left` to `right`.

    If there are more than `allowed`, return any number above it. Only the cells within `allowed` of the diagonal are
    computed (Ukkonen).
    """
    start = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    left, right = left[start:], right[start:]
    while left and right and left[-1] == right[-1]:
        left, right = left[:-1], right[:-1]
    if abs(len(left) - len(right)) > allowed:
        return allowed + 1
    far = allowed + 1
    before: list[int] = []
    last = [min(j, far) for j in range(len(right) + 1)]
    for i, a in enumerate(left, 1):
        low, high = max(1, i - allowed), min(len(right), i + allowed)
        row = [far] * (len(right) + 1)
        row[0] = min(i, far)
        for j in range(low, high + 1):
            b = right[j - 1]
            edits = last[j - 1] if a == b else 1 + min(last[j], row[j - 1], last[j - 1])
            if i > 1 and j > 1 and a == right[j - 2] and b == left[i - 2]:
                edits = min(edits, before[j - 2] + 1)
            row[j] = edits
        if min(row) > allowed and min(last) > allowed:
            return far
        before, last = last, row
    return last[-1]
