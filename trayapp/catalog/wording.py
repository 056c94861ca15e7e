"""How much a text is worded like orders to a model: its words, what they stand for, and which stand side by side or
near each other, weighed by a table that was learned (signs/weights).

Each of these is a place in a table of two bytes each, found by a checksum: a table of words would take ten times the
memory. Pure but for that table's file; no model, no network. Never here: the classes of words (signs/lexicon), the
weights, patterns (signs), learning.
"""

from __future__ import annotations

import math
import re
import sys
from array import array
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from trayapp.catalog.signs import weights
from trayapp.catalog.signs.lexicon import UNSPACED, WORDS
from trayapp.catalog.signs.words import SECRET_PLACE
from trayapp.model.late import late

TOGETHER = 100  # words that are weighed together: more, and a short order drowns in them
OVERLAP = 10  # words of a longer sentence that its next part begins with
NEAR = 5  # words with a class, within which two of them have to do with each other
HEAD = 5  # letters of a longer word that it shares with those of its family
TOKEN_LONGEST = 64  # characters that are looked at
ASKED = "asked"  # the class that begins a sentence on a parameter

KINDS_LEAST = 4  # classes of words in an order
KINDS_MOST = 24  # of two sentences that are looked at as one
# Together in a sentence they make it doubtful, however short it is and whatever it weighs.
SUSPECTS = {
    first: tuple(frozenset(others.split()) for others in sets)
    for first, sets in {
        "neg": (
            "tell user",
            "show user",
            "know user",
            "tell they",
            "consent",
            "tell answer",
            "show answer",
            "follow other",
        ),
        "hide": ("user", "tell", "put", "give"),
        "ignore": ("instr", "prev", "system", "user"),
        "place": ("put", "give", "read", "content"),
        "shell": ("url", "place", "mark", "put"),
        "call": ("shell",),
        "secret": ("give url", "user put", "user give", "read give"),
        "system": ("mark", "talk you", "instr"),
        "instr": ("mark", "neg", "follow", "prev"),
        "auto": ("put", "change", "system"),
        "lie": ("",),
        "consent": ("user prev", "user must", "instr"),
        "tool": ("danger",),
        "ident": ("danger",),
        "other": ("danger",),
        "asked": ("you tool", "you talk", "secret talk", "secret every", "talk full", "system talk"),
        "mail": ("give", "put"),
        "mode": ("you",),
        "confid": ("tell",),
        "money": ("number",),
        "tell": ("user must", "user when"),
        "mark": ("url", "path"),
        "give": ("excuse full",),
    }.items()
}
BY_CHANCE = 0.06  # how much likelier the likeliest of twice as many windows is, though all are honest
WORDS_LEAST = 6  # different ones, without addresses: "Docs: https://...", "GET /users", "Says hello" order nothing
ADDRESSES = frozenset({"url", "path"})
DOUBTFUL = -0.8  # score from which a text is looked through for signs: more than all of them together weigh

_TOKEN = re.compile(
    r"https?://\S+|[`'\"][\w.-]+[`'\"]|[~.$/]{0,3}\w[\w'@/\\:.-]*|<[/!|]?[a-z]|[\[(|#*=>-]{2,}|[<>{}|&]"
)
_LETTERS = "[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]"  # of scripts without blanks between words
_HAS_UNSPACED = late(_LETTERS)
_UNSPACED = late(
    "|".join([*sorted(map(re.escape, UNSPACED), key=len, reverse=True), _LETTERS, rf"(?:(?!{_LETTERS}).)+"])
)
_PLACE = late(SECRET_PLACE)
_ENDINGS = (
    ("'s", ""),
    ("ies", "y"),
    ("s", ""),
    ("es", ""),
    ("ed", ""),
    ("d", ""),
    ("ing", ""),
    ("ing", "e"),
    ("ly", ""),
)
_STEMS = (("'s", ""), ("ies", "y"), ("s", ""), ("ing", ""), ("ed", ""), ("e", ""))
_LONG_NUMBER = 6  # digits
ZERO = 128  # a weight of nothing
TAG_FROM = 20  # bit of a feature's checksum, behind those of its place
_BREAK = 1  # between sentences
_TABLE = Path(__file__).parent / "signs" / "weights.bin"


class Word(NamedTuple):
    """The checksums of one word: of its stem; of its class or else stem; of its class (0: it has none); of its first
    letters (0: of a short one)."""

    said: int
    meant: int
    kind: int
    head: int


class Sentence(NamedTuple):
    """A sentence as it is weighed: its words, the line, whether a parameter's."""

    words: list[Word]
    text: str
    asked: bool

    @property
    def kinds(self) -> list[str]:
        """The classes of its words in their order; of the same in a row one."""
        kinds = [KINDS[word.kind] for word in self.words if word.kind]
        first = [ASKED] if self.asked else []
        return first + [kind for at, kind in enumerate(kinds) if not at or kinds[at - 1] != kind]


def sentences(low: str, *, asked: bool = False) -> Iterator[Sentence]:
    """Of a lower-case text, a line each. `asked`: of parameters."""
    for line in low.split("\n"):
        tokens = _tokens(line)
        if not tokens:
            continue
        if len(tokens) <= TOGETHER:
            yield Sentence(list(map(known, tokens)), line, asked)
            continue
        for start in range(0, len(tokens) - OVERLAP, TOGETHER - OVERLAP):
            part = tokens[start : start + TOGETHER]
            yield Sentence(list(map(known, part)), " ".join(part), asked)


def _tokens(line: str) -> list[str]:
    tokens: list[str] = _TOKEN.findall(line)
    if line.isascii() or _HAS_UNSPACED.search(line) is None:
        return tokens
    return [part for token in tokens for part in _UNSPACED.findall(token)]


def windows(found: Iterable[Sentence], most: int = TOGETHER) -> Iterator[list[Sentence]]:
    """Neighbours that are weighed together, `most` words; each window but the first begins with the last sentence of
    the one before, where there is room for it."""
    window: list[Sentence] = []
    count = 0
    for sentence in found:
        length = len(sentence.words)
        if window and count + length > most:
            yield window
            last = window[-1]
            window = [last] if len(last.words) + length <= most else []
            count = len(last.words) if window else 0
        window = [*window, sentence]
        count += length
    if window:
        yield window


def features(window: Iterable[Sentence]) -> frozenset[int]:
    """What is weighed, by checksums: words, two and three in a row, two with one between; classes, two near each
    other, three in a row; what parameters are about."""
    said: list[int] = []
    meant, kinds, asked, heads = [_BREAK], said[:], said[:], said[:]
    for sentence in window:
        stems, meanings, classes, beginnings = zip(*sentence.words, strict=True)
        said += stems
        meant += meanings
        meant.append(_BREAK)
        kinds += filter(None, classes)
        heads += filter(None, beginnings)
        if sentence.asked:
            asked += meanings
    return frozenset(
        [
            *said,
            *heads,
            *[a * 31 + b * 7 + 3 for a, b in pairwise(meant)],
            *[a * 37 + b * 11 + 5 for a, b in zip(meant, meant[2:], strict=False)],
            *[a * 41 + b * 13 + c * 3 + 7 for a, b, c in zip(meant, meant[1:], meant[2:], strict=False)],
            *[a * 3 + 1 for a in kinds],
            *[a * 43 + b * 17 + 11 for a, b in pairwise(kinds)],
            *[a * 43 + b * 17 + 12 for at in range(2, NEAR) for a, b in zip(kinds, kinds[at:], strict=False)],
            *[a * 47 + b * 19 + c * 5 + 13 for a, b, c in zip(kinds, kinds[1:], kinds[2:], strict=False)],
            *[a * 5 + 2 for a in asked],
        ]
    )


class Likely(NamedTuple):
    """How much the likeliest window looks like an order (from 0 it is one, more likely than not), the same of windows
    that say more than a few words, the sentence in those that does most, and all lines that might, of descriptions and
    of parameters."""

    score: float
    worded: float
    text: str
    said: str
    asked: str


def likeliest(found: Iterable[Sentence]) -> Likely:
    """What of sentences looks like an order."""
    doubtful: dict[int, Sentence] = {}
    best, worded, worst = -math.inf, weights.BIAS, list[Sentence]()
    count = 0
    for window in windows(found):
        count += 1
        score = scored(features(window))
        suspects = window if score >= DOUBTFUL else _suspects(window)
        doubtful.update((id(sentence), sentence) for sentence in suspects)
        best = max(best, score)
        if score > worded and not _says_little(window):
            worded, worst = score, window
    chance = BY_CHANCE * math.log2(max(1, count))
    best, worded = (best if count else weights.BIAS) - chance, worded - chance
    text = max(worst, key=lambda one: _sum(features([one]))).text if worst and worded >= 0 else ""
    lines = [list(dict.fromkeys(one.text for one in doubtful.values() if one.asked is side)) for side in (False, True)]
    return Likely(best, worded, text, "\n".join(lines[0]), "\n".join(lines[1]))


def _says_little(window: list[Sentence]) -> bool:
    """Whether there are hardly any words: each of so few features weighs much, and nobody is told what to do."""
    said = {word.said for sentence in window for word in sentence.words if KINDS.get(word.kind) not in ADDRESSES}
    return len(said) < WORDS_LEAST


def scored(places: frozenset[int]) -> float:
    """The score of features together."""
    return weights.BIAS + _sum(places) * weights.SCALE / math.sqrt(max(1, len(places)))


def sign_weight(name: str) -> float:
    """What a sign adds to the score of the words."""
    return weights.BY_SIGN.get(name, 0.0)


def _sum(places: Iterable[int]) -> int:
    table, mask = _table(), weights.MASK
    there = [(entry, place) for place in places if (entry := table[place & mask])]
    return sum([(entry & 255) - ZERO for entry, place in there if entry >> 8 == place >> TAG_FROM & 127 | 128])


def tag(place: int) -> int:
    """What tells a feature from others of the same place in the table; 0 is nobody's."""
    return place >> TAG_FROM & 127 | 128


@lru_cache(maxsize=1)
def _table() -> array[int]:
    """A feature's tag and its weight, more by ZERO. Raises OSError when the program's own file is gone."""
    found = array("H")
    with _TABLE.open("rb") as file:
        found.fromfile(file, weights.MASK + 1)
    if sys.byteorder == "big":
        found.byteswap()
    return found


def _suspects(window: list[Sentence]) -> Iterator[Sentence]:
    """The sentences of a window that are to be looked through for signs, whatever it weighs."""
    kinds = [sentence.kinds for sentence in window]
    for at, sentence in enumerate(window):
        if is_suspect(kinds[at]):
            yield sentence
        elif at and not sentence.asked and is_suspect(_together(kinds[at - 1], kinds[at])):
            yield from (window[at - 1], sentence)


def _together(before: list[str], kinds: list[str]) -> list[str]:
    both = [*before, *kinds]
    return both if KINDS_LEAST <= len(both) <= KINDS_MOST else []


def is_suspect(kinds: Iterable[str]) -> bool:
    """Whether words of these classes are ones that many an order is made of."""
    there = frozenset(kinds)
    return any(others <= there for first in there & SUSPECTS.keys() for others in SUSPECTS[first])


@lru_cache(maxsize=512)  # of the commonest words: each takes 350 bytes
def known(token: str) -> Word:
    """One word."""
    token = token[:TOKEN_LONGEST]
    stem = next(
        (token[: -len(end)] + instead for end, instead in _STEMS if token.endswith(end) and len(token) > len(end) + 2),
        token,
    )
    said, kind = _checksum(stem), _checksum_of_class(kind_of(token))
    return Word(said, kind or said, kind, _checksum("p:" + stem[:HEAD]) if len(stem) > HEAD else 0)


KINDS: dict[int, str] = {}  # by checksum, those that were met


def _checksum_of_class(kind: str) -> int:
    if not kind:
        return 0
    checksum = _checksum(kind.upper())
    KINDS[checksum] = kind
    return checksum


def _checksum(text: str) -> int:
    return crc32(text.encode("utf-8", "replace"))


def kind_of(token: str) -> str:
    """The class of a word, "" of most."""
    return UNSPACED.get(token) or _kind_of(token)


def _kind_of(token: str) -> str:
    kind = WORDS.get(token)
    if kind is not None:
        return kind
    if not token[-1].isalnum() or not token[0].isalnum() or "." in token or "/" in token or "@" in token:
        return _kind_of_odd(token)
    return _kind_of_word(token)


def _kind_of_odd(token: str) -> str:
    first = token[0]
    if first in "<[{(|#*=>-&}":
        return "mark"
    if "://" in token:
        return "url"
    if _PLACE.search(token) is not None:
        return "place"
    if first in "`'\"":
        return _kind_of_word(token[1:-1]) if "_" not in token and len(token) < 4 else "quoted"
    if "@" in token:
        return "mail"
    if first in "~/$":
        return "path"
    bare = token.strip(".':-/\\")
    return _kind_of(bare) if bare and bare != token else ""


def _kind_of_word(token: str) -> str:
    for ending, instead in _ENDINGS:
        if token.endswith(ending) and (kind := WORDS.get(token[: -len(ending)] + instead)) is not None:
            return kind
    if "_" in token or "-" in token:
        last = WORDS.get(re.split("[_-]", token)[-1], "")
        return "secret" if last in ("key", "secret") else "ident"
    if token.endswith("ing") and token[-4:-3] == token[-5:-4]:
        return WORDS.get(token[:-4], "")
    if sum(map(str.isdigit, token)) >= _LONG_NUMBER:
        return "number"
    return ""
