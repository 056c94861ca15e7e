"""Words of a text, as a search compares them: split, in lower case, without accents and stop words.

Never here: synonyms, ranking, indexes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

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
})  # fmt: skip  # Latin letters that are no letter and an accent
_PAIR = 2  # characters: scripts without spaces are searched by pairs

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


def split(text: str) -> list[str]:
    """Return the words of `text` in lower case: `getForecast` is get, forecast; `HTMLParser` is html, parser.

    A run of a script without spaces stays whole up to two characters; a longer one becomes its pairs of neighbors.
    """
    if text.isascii():
        return [word[:LONGEST].lower() for word in _WORD.findall(text)]
    return list(_split(_plain(text)))


def joined(text: str) -> list[str]:
    """Return camel-case words, whole and in lower case: `GitHub` is also searched as github."""
    return [word.lower()[:LONGEST] for word in _HUMPED.findall(text)]


def meaningful(words: list[str]) -> list[str]:
    """Return `words` without stop words, or all of them if there are no others."""
    return [word for word in words if word not in STOP_WORDS] or words


def _split(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        if word.isascii():
            yield word.lower()[:LONGEST]
        else:
            yield from _pieces(word.lower())


def _plain(text: str) -> str:
    """Return a text in plain form, without accents: wide letters become ASCII, `é` becomes `e`, `ß` becomes `ss`."""
    parts = unicodedata.normalize("NFKD", text).translate(_LETTERS)
    return unicodedata.normalize("NFC", "".join(c for c in parts if not "\u0300" <= c <= "\u036f"))


def _pieces(word: str) -> Iterator[str]:
    """Yield runs of unspaced scripts as pairs, and the parts between them whole."""
    end = 0
    for run in _UNSPACED.finditer(word):
        yield from filter(None, [word[end : run.start()][:LONGEST]])
        found, end = run[0], run.end()
        yield from [found] if len(found) <= _PAIR else (found[i : i + _PAIR] for i in range(len(found) - 1))
    yield from filter(None, [word[end:][:LONGEST]])
