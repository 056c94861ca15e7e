"""The known names nearest to one that nobody has: by words in common, then by typing errors.

Never here: finding tools by what they do (search), I/O, state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST = 5  # suggestions
WORDS_NEEDED = 0.5  # of the asked words, more than this much must be met: the server's name alone says nothing
PREFIX_WORTH = 0.8  # of a word met whole: "repo" for "repositories"
TYPO_WORTH = 0.75
PREFIX_SHORTEST = 3  # characters
EDITS_MOST = 3  # in a whole name
ASKED_LONGEST = 256  # characters of the asked name that count: the work stays bounded

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BREAKS = str.maketrans("-. /:", "_____")


def nearest(asked: str, names: Iterable[str], limit: int = MOST) -> list[str]:
    """At most `limit` of `names`, best first; the same for the same set of names, whatever their order."""
    asked = _plain(asked[:ASKED_LONGEST])
    known = {name: _plain(name) for name in names}
    scores = _by_edits(asked, known)
    for name, score in _by_words(asked, known).items():
        scores[name] = max(score, scores.get(name, 0.0))
    return sorted(scores, key=lambda name: (-scores[name], abs(len(name) - len(asked)), name))[:limit]


def _plain(name: str) -> str:
    if not name.islower():
        name = _HUMP.sub("_", name).lower()
    return name.translate(_BREAKS)


def _by_words(asked: str, known: dict[str, str]) -> dict[str, float]:
    """For each name that meets enough of the asked words, the share of them that it meets (0 to 1)."""
    wanted = [word for word in asked.split("_") if word]
    words_of = {name: plain.split("_") for name, plain in known.items()}
    vocabulary = set().union(*words_of.values())
    worths = [{w: worth for w in vocabulary if (worth := _word_worth(word, w))} for word in wanted]
    met = set().union(*worths)
    scores: dict[str, float] = {}
    for name, words in words_of.items():
        if met.isdisjoint(words):
            continue
        score = sum(max([worth.get(word, 0.0) for word in words]) for worth in worths) / len(wanted)
        if score > WORDS_NEEDED:
            scores[name] = score
    return scores


def _word_worth(asked: str, word: str) -> float:
    if asked == word:
        return 1.0
    if word.startswith(asked) and len(asked) >= PREFIX_SHORTEST:
        return PREFIX_WORTH
    allowed = 2 if len(asked) > 6 else 1 if len(asked) > 3 else 0
    return TYPO_WORTH if allowed and _edits(asked, word, allowed) <= allowed else 0.0


def _by_edits(asked: str, known: dict[str, str]) -> dict[str, float]:
    """For each name that a few typing errors lead to, how much of it is right (0 to 1)."""
    allowed = min(EDITS_MOST, len(asked) // 3)
    if not allowed:
        return {}
    scores: dict[str, float] = {}
    for name, plain in known.items():
        if (edits := _edits(asked, plain, allowed)) <= allowed:
            scores[name] = 1 - edits / len(asked)
    return scores


def _edits(left: str, right: str, allowed: int) -> int:
    """Insertions, deletions, replacements and swaps of neighbours from `left` to `right`.

    Past `allowed`, only some larger number.
    """
    if abs(len(left) - len(right)) > allowed or len(set(left) ^ set(right)) > 2 * allowed:
        return allowed + 1
    start = _common_start(left, right)
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


def _common_start(left: str, right: str) -> int:
    for index, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return index
    return min(len(left), len(right))
