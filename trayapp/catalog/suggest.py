"""The known names nearest to one that nobody has: by words in common, then by typing errors.

Never here: finding tools by what they do (search), I/O, state.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable

MOST = 5  # suggestions
WORDS_NEEDED = 0.5  # of the asked words, more than this much must be met: the server's name alone says nothing
NEAR_BEST = 0.7  # of the best one's score: what is much further off only distracts
PREFIX_WORTH = 0.8  # of a word met whole: "repo" for "repositories"
TYPO_WORTH = 0.75
PREFIX_SHORTEST = 3  # characters
EDITS_MOST = 3  # in a whole name
WORDS_MOST = 16  # asked words that count
ASKED_LONGEST = 256  # characters of the asked name that count: the work stays bounded

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BREAKS = str.maketrans("-. /:", "_____")


def nearest(asked: str, names: Iterable[str], limit: int = MOST) -> list[str]:
    """At most `limit` of `names`, best first; the same for the same set of names, whatever their order."""
    asked = _plain(asked[:ASKED_LONGEST])
    known = list(dict.fromkeys(names))
    plain = [_plain(name) for name in known]
    scores = _by_edits(asked, plain)
    for index, score in _by_words(asked, plain).items():
        scores[index] = max(score, scores.get(index, 0.0))

    def rank(index: int) -> tuple[float, int, str]:
        return -scores[index], abs(len(plain[index]) - len(asked)), known[index]

    enough = max(scores.values(), default=0.0) * NEAR_BEST
    near = (index for index, score in scores.items() if score >= enough)
    return [known[index] for index in heapq.nsmallest(limit, near, key=rank)]


def _plain(name: str) -> str:
    if not name.islower():
        name = _HUMP.sub("_", name).lower()
    return name.translate(_BREAKS)


def _by_words(asked: str, names: list[str]) -> dict[int, float]:
    """For each name (its index) that meets enough of the asked words, the share of them that it meets (0 to 1)."""
    wanted = list(dict.fromkeys(word for word in asked.split("_") if word))[:WORDS_MOST]
    places: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        for word in name.split("_"):
            places.setdefault(word, []).append(index)
    scores = [0.0] * len(names)
    for word in wanted:
        for index, worth in _places_met(word, places).items():
            scores[index] += worth / len(wanted)
    return {index: score for index, score in enumerate(scores) if score > WORDS_NEEDED}


def _places_met(asked: str, places: dict[str, list[int]]) -> dict[int, float]:
    """The names that have a word like `asked`, with the worth of the best one."""
    prefixed = [word for word in places if word.startswith(asked)] if len(asked) >= PREFIX_SHORTEST else []
    allowed = 2 if len(asked) > 6 else 1 if len(asked) > 3 else 0
    meant = _close(asked, places, allowed) if allowed else {}
    worths = dict.fromkeys(meant, TYPO_WORTH) | dict.fromkeys(prefixed, PREFIX_WORTH) | {asked: 1.0}
    met: dict[int, float] = {}
    for word, worth in sorted(worths.items(), key=lambda pair: pair[1]):
        met.update(dict.fromkeys(places.get(word, ()), worth))
    return met


def _by_edits(asked: str, names: list[str]) -> dict[int, float]:
    """For each name (its index) that a few typing errors lead to, how much of it is right (0 to 1)."""
    allowed = min(EDITS_MOST, len(asked) // 3)
    edits = _close(asked, names, allowed) if allowed else {}
    return {index: 1 - edits[name] / len(asked) for index, name in enumerate(names) if name in edits}


def _close(asked: str, words: Iterable[str], allowed: int) -> dict[str, int]:
    """The words that at most `allowed` edits make of `asked`, with their number. What differs in length or letters
    is passed over first: the exact count costs a hundred times as much."""
    shortest, longest, letters = len(asked) - allowed, len(asked) + allowed, set(asked)
    likely = (word for word in words if shortest <= len(word) <= longest)
    likely = (word for word in likely if len(letters.symmetric_difference(word)) <= 2 * allowed)
    counted = ((word, edits_between(asked, word, allowed)) for word in likely)
    return {word: edits for word, edits in counted if edits <= allowed}


def edits_between(left: str, right: str, allowed: int) -> int:
    """Insertions, deletions, replacements and swaps of neighbours that lead from `left` to `right`.

    Past `allowed`, only some larger number.
    """
    start = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), 0)
    left, right = left[start:], right[start:]
    before: list[int] = []
    last = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        row = [i]
        for j, b in enumerate(right, 1):
            edits = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and b == left[i - 2]:
                edits = min(edits, before[j - 2] + 1)
            row.append(edits)
        if min(row) > allowed and min(last) > allowed:
            return allowed + 1
        before, last = last, row
    return last[-1]
