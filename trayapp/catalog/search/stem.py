"""The stem of an English word, so that `merging` finds `merge` and `repositories` finds `repository`.

The rules are M. F. Porter's ("An algorithm for suffix stripping", 1980), with four of our own:
- `-us` and `-is` are not plurals;
- `-logy` becomes `-log`;
- `-ater` counts as `-ator`, which people mix up;
- a `reader` can `read`: Porter's rules leave `-er` after a short verb.
By hand: a library has Porter's rules without these four.
Never here: texts, anything but one word.
"""

from __future__ import annotations

import re
from functools import lru_cache

SHORTEST = 3  # letters; shorter words are their own stems

_ENGLISH = re.compile(r"[a-z]+")
# A word as its shape: v for each vowel, c for each consonant; y is a vowel after a consonant.
_VOWELS = str.maketrans("abcdefghijklmnopqrstuvwxyz", "vcccvcccvcccccvcccccvcccyc")
_VOWEL_Y = re.compile(r"(?<=c)y")
_SYLLABLE = re.compile("v+c")
_SHORT_END = re.compile("cvc$")

_SECOND = (
    ("ational", "ate"), ("ization", "ize"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"),
    ("tional", "tion"), ("biliti", "ble"), ("entli", "ent"), ("ousli", "ous"), ("ation", "ate"), ("alism", "al"),
    ("aliti", "al"), ("iviti", "ive"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("abli", "able"),
    ("alli", "al"), ("ator", "ate"), ("ater", "ate"), ("logi", "log"), ("eli", "e"),
)  # fmt: skip
_THIRD = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ness", ""), ("ful", ""),
)  # fmt: skip
_FOURTH = (
    "ement", "ance", "ence", "able", "ible", "ment", "sion", "tion", "ant", "ent", "ism", "ate", "iti", "ous", "ive",
    "ize", "al", "er", "ic",
)  # fmt: skip
# Verbs whose `-er` or `-or` form names the doer. Not: order, number, user, server, folder, player, worker.
_VERBS = frozenset(
    """
    build check clean code copy crawl create debug draw edit fetch find format grab index link lint load make map merge
    open parse paint pick plan plot print read record render scan scrape search select send sort split test track trade
    train update verify view watch write
    """.split()  # noqa: SIM905
)
_KEPT = {"sion": "s", "tion": "t"}  # the part of such an ending that stays


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """Return the stem of `word` (in lower case); a word with other than English letters is its own stem."""
    if len(word) < SHORTEST or not _ENGLISH.fullmatch(word):
        return word
    word = _participle(_doing(_singular(word)))
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(_replaced(word, _SECOND), _THIRD)
    return _tail(_shorter(word))


def _shape(word: str) -> str:
    shape = word.translate(_VOWELS)
    return _VOWEL_Y.sub("v", shape).replace("y", "c")


def _measure(word: str) -> int:
    """Return how many times vowels are followed by consonants: Porter's `m`."""
    return len(_SYLLABLE.findall(_shape(word)))


def _is_short(word: str) -> bool:
    return bool(_SHORT_END.search(_shape(word))) and word[-1] not in "wxy"


def _singular(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _doing(word: str) -> str:
    """Return the verb of a doer: `read` for `reader`, `scan` for `scanner`, `write` for `writer`."""
    if not word.endswith(("er", "or")):
        return word
    root = word[:-2]
    doubled = root[:-1] if len(root) > 1 and root[-1] == root[-2] else root
    return next((verb for verb in (root, f"{root}e", doubled) if verb in _VERBS), word)


def _participle(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for ending in ("ed", "ing"):
        root = word.removesuffix(ending)
        if root != word and "v" in _shape(root):
            return _mended(root)
    return word


def _mended(root: str) -> str:
    """Return the verb before `-ed` or `-ing`: `creat` is `create`, `runn` is `run`, `fil` is `file`."""
    if root.endswith(("at", "bl", "iz")):
        return root + "e"
    if len(root) > 1 and root[-1] == root[-2] and root[-1] not in "aeioulsz":
        return root[:-1]
    return root + "e" if _measure(root) == 1 and _is_short(root) else root


def _replaced(word: str, endings: tuple[tuple[str, str], ...]) -> str:
    for ending, other in endings:
        if word.endswith(ending):
            root = word.removesuffix(ending)
            return root + other if _measure(root) else word
    return word


def _shorter(word: str) -> str:
    for ending in _FOURTH:
        if word.endswith(ending):
            root = word.removesuffix(ending) + _KEPT.get(ending, "")
            return root if _measure(root) > 1 else word
    return word


def _tail(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _is_short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word
