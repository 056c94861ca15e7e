"""Words of a text as a search compares them (in lower case, without accents or stop words), and their stems."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from trayapp.model.late import late

LONGEST = 64  # characters of one word that count: longer ones are keys or checksums

# The plural of an abbreviation (PDFs), an abbreviation before the next capitalized word (HTML|Parser), a capitalized
# word, digits with their suffix (3d, 10th), or letters of any other script.
_WORD = late(
    r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*"
    r"|[0-9]+(?:[A-Z]+(?![a-z])|[a-z]*)|[^\W\d_a-zA-Z]+"
)
_HUMPED = late(r"[A-Za-z]+[a-z][A-Z][A-Za-z]*|[a-z][A-Z]{2,}[a-z]*")
_UNSPACED = late("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af]+")
_LETTERS = str.maketrans({
    "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L",
    "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "TH", "ı": "i",
})  # fmt: skip # Latin letters that do not decompose into a letter and an accent
_PAIR = 2  # characters; scripts without spaces are searched by pairs

STOP_WORDS = frozenset(
    """
    a about all also am an and any are as at be been but by can could did do does each either for from had has have he
    her here his how i if in into is it its just let lets like me mcp might must my need no not of on or our please s
    shall she should so some such t than that the their them then there these they this those to too tool tools two us
    use used uses using via want wants was we were what when where which while who whom whose why will with within
    would you your given one now
    something anything everything nothing someone anyone everyone somebody anybody everybody
    """.split()  # noqa: SIM905 - forty words a line are easier to read than a list of them
)


SHORTEST = 3  # letters; shorter words are their own stems

_ENGLISH = re.compile(r"[a-z]+")
# A word as its shape: v for each vowel, c for each consonant; y is a vowel after a consonant.
_VOWELS = str.maketrans("abcdefghijklmnopqrstuvwxyz", "vcccvcccvcccccvcccccvcccyc")
_VOWEL_Y = re.compile(r"(?<=c)y")
_SYLLABLE = re.compile("v+c")
_SHORT_END = re.compile("cvc$")

# The endings of M. F. Porter's steps ("An algorithm for suffix stripping", 1980). Written by hand, because no library
# has our four changes: `-us` and `-is` are not plurals; `-logy` becomes `-log`; `-ater` counts as `-ator`, since people
# mix them up; and `reader` has the stem of `read`, while Porter keeps `-er` after a short verb.
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
# Verbs whose `-er` or `-or` form is an agent noun. Left out: order, number, user, server, folder, player, worker.
_DOERS = frozenset(
    """
    build check clean code copy crawl create debug draw edit fetch find format grab index link lint load make map merge
    open parse paint pick plan plot print read record render scan scrape search select send sort split test track trade
    train update verify view watch write
    """.split()  # noqa: SIM905
)
_KEPT = {"sion": "s", "tion": "t"}  # ending of _FOURTH -> the part of it that stays


def split(text: str) -> list[str]:
    """Return the words of `text` in lower case: `getForecast` is get, forecast; `HTMLParser` is html, parser.

    In scripts without spaces, a run of up to two characters stays whole. A longer one becomes overlapping pairs.
    """
    if text.isascii():
        return [word[:LONGEST].lower() for word in _WORD.findall(text)]
    parts = unicodedata.normalize("NFKD", text).translate(_LETTERS)  # wide letters become ASCII, `ß` becomes `ss`
    plain = unicodedata.normalize("NFC", "".join(c for c in parts if not "\u0300" <= c <= "\u036f"))  # `é`: `e`
    found = list[str]()
    for word in _WORD.findall(plain):
        found += [word.lower()[:LONGEST]] if word.isascii() else _pieces(word.lower())
    return found


def joined(text: str) -> list[str]:
    """Return camel-case words, whole and in lower case: `GitHub` is also searched as github."""
    return [word.lower()[:LONGEST] for word in _HUMPED.findall(text)]


def meaningful(words: list[str]) -> list[str]:
    """Return `words` without stop words, or all of them if there are no others."""
    return [word for word in words if word not in STOP_WORDS] or words


def _pieces(word: str) -> Iterator[str]:
    """Yield runs of scripts without spaces as pairs of characters, and the parts between them whole."""
    end = 0
    for run in _UNSPACED.finditer(word):
        yield from filter(None, [word[end : run.start()][:LONGEST]])
        found, end = run[0], run.end()
        yield from [found] if len(found) <= _PAIR else (found[i : i + _PAIR] for i in range(len(found) - 1))
    yield from filter(None, [word[end:][:LONGEST]])


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """Return the stem of `word` (in lower case): `merg` for `merging`. Words shorter than SHORTEST stay whole."""
    if len(word) < SHORTEST or not _ENGLISH.fullmatch(word):
        return word
    word = _participle(_doing(_singular(word)))
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    return _tail(_shorter(_replaced(_replaced(word, _SECOND), _THIRD)))


def _shape(word: str) -> str:
    return _VOWEL_Y.sub("v", word.translate(_VOWELS)).replace("y", "c")


def _measure(word: str) -> int:
    """Return how many times a consonant sequence follows a vowel sequence: Porter's `m`."""
    return len(_SYLLABLE.findall(_shape(word)))


def _is_short(word: str) -> bool:
    return bool(_SHORT_END.search(_shape(word))) and word[-1] not in "wxy"


def _singular(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _doing(word: str) -> str:
    """Return the verb of an agent noun (`read` for `reader`, `scan` for `scanner`), or any other word unchanged."""
    if not word.endswith(("er", "or")):
        return word
    root = word[:-2]
    doubled = root[:-1] if len(root) > 1 and root[-1] == root[-2] else root
    return next((verb for verb in (root, f"{root}e", doubled) if verb in _DOERS), word)


def _participle(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for ending in ("ed", "ing"):
        root = word.removesuffix(ending)
        if root != word and "v" in _shape(root):
            return _mended(root)
    return word


def _mended(root: str) -> str:
    """Restore a verb after its `-ed` or `-ing` was removed: `create` from `creat`, `run` from `runn`."""
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
