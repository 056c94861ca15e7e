"""How much a text is worded like orders to a model: classes of words, and which stand near each other, weighed by a
table that was learned (signs/weights). One pass over the words: what it finds harmless, no pattern has to read.

Pure; no model, no network. Never here: the classes (signs/lexicon), the weights, patterns (signs), learning.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from trayapp.catalog.signs import weights, weights_against
from trayapp.catalog.signs.lexicon import UNSPACED, WORDS
from trayapp.catalog.signs.weights import BIAS
from trayapp.catalog.signs.words import SECRET_PLACE
from trayapp.model.late import late

NEAR = 5  # words with a class, within which two of them have to do with each other
WORDS_MOST = 24  # with a class, of one sentence; the rest is read as a sentence of its own
TOKENS_MOST = 4 * WORDS_MOST
USUAL = 30  # features of a sentence; longer ones hold more of everything
TOKEN_LONGEST = 64  # characters that are looked at
ASKED = "asked"  # the class that begins a sentence on a parameter

KINDS_LEAST = 4  # classes of words in an order
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
DOUBTFUL = -1.2  # score from which a text is looked through for signs
LIKELY_WITH_SIGNS = 1.2  # score from which a weak sign is enough
LIKELY = 1.8  # score from which the wording is enough

_TOKEN = re.compile(r"https?://\S+|[`'\"][\w.-]+[`'\"]|[~.$/]*\w[\w'@/\\:.-]*|<[/!|]?[a-z]|[\[(|#*=>-]{2,}|[<>{}|&]")
_UNSPACED = late("|".join(sorted(map(re.escape, UNSPACED), key=len, reverse=True)))
_HAS_UNSPACED = late("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
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


class Sentence(NamedTuple):
    """A sentence as it is weighed: the classes of its words in their order, its words, the lines that it is made of."""

    kinds: list[str]
    tokens: list[str]
    lines: tuple[str, ...]


def sentences(low: str, *, asked: bool = False) -> Iterator[Sentence]:
    """Of a lower-case text, a line each; then each with the one before. `asked`: of parameters, which stand alone."""
    before: Sentence | None = None
    for line in low.split("\n"):
        if " " not in line and line.isascii():
            continue  # a name, and no order by itself
        for one in _read(line):
            if len(one.kinds) >= KINDS_LEAST or is_suspect(one):
                yield one._replace(kinds=[ASKED, *one.kinds]) if asked else one
            if before is not None and KINDS_LEAST <= len(before.kinds) + len(one.kinds) <= WORDS_MOST:
                both = [*before.kinds, "|", *one.kinds]
                yield Sentence(both, before.tokens + one.tokens, before.lines + one.lines)
            before = None if asked else one


def is_suspect(sentence: Sentence) -> bool:
    """Whether its words are ones that many an order is made of."""
    kinds = frozenset(sentence.kinds)
    return any(others <= kinds for first in kinds & SUSPECTS.keys() for others in SUSPECTS[first])


def _read(line: str) -> Iterator[Sentence]:
    tokens = _TOKEN.findall(line)
    for start in range(0, len(tokens), TOKENS_MOST):
        part = tokens[start : start + TOKENS_MOST]
        text = line if len(part) == len(tokens) else " ".join(part)
        kinds = _kinds(part, text)
        for at in range(0, len(kinds), WORDS_MOST):
            yield Sentence(kinds[at : at + WORDS_MOST], part, (text,))


def features(sentence: Sentence) -> frozenset[str]:
    """What is weighed: classes, two near each other, two side by side, words, two words in a row."""
    kinds, stems = sentence.kinds, [known(token)[1] for token in sentence.tokens]
    found = {*kinds, *map("w:".__add__, stems)}
    found.update([f"{first}_{second}" for first, second in pairwise(stems)])
    found.update([f"{first}>{second}" for first, second in pairwise(kinds)])
    for at in range(1, NEAR):
        found.update([f"{first}~{second}" for first, second in zip(kinds, kinds[at:], strict=False)])
    if kinds and kinds[0] == ASKED:
        found.update(map(ASKED.__add__, kinds))
    return frozenset(found)


def _kinds(tokens: list[str], line: str) -> list[str]:
    """The classes of a sentence's words in their order; of the same in a row one."""
    kinds: list[str] = []
    for token in tokens:
        kind = known(token)[0]
        if kind and (not kinds or kinds[-1] != kind):
            kinds.append(kind)
    if not line.isascii() and _HAS_UNSPACED.search(line):
        kinds += [UNSPACED[word] for word in _UNSPACED.findall(line)]
    return kinds


@lru_cache(maxsize=16_384)  # of as many words as the tools of a hundred servers have
def known(token: str) -> tuple[str, str]:
    """The class of one word, "" of most, and its stem."""
    token = token[:TOKEN_LONGEST]
    for ending, instead in _STEMS:
        if token.endswith(ending) and len(token) > len(ending) + 2:
            return _kind_of(token), token[: -len(ending)] + instead
    return _kind_of(token), token


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


class Likely(NamedTuple):
    """The sentence that looks most like an order, and all lines that might: above a score of 0 it is one, more likely
    than not."""

    score: float
    text: str
    doubtful: str


def likeliest(found: Iterable[Sentence]) -> Likely:
    """What of sentences looks like an order."""
    best, text, doubtful = BIAS, "", dict[str, None]()
    by_feature = _weights()
    for sentence in found:
        parts = features(sentence)
        score = BIAS + sum([by_feature[part] for part in parts & by_feature.keys()]) / spread(len(parts))
        if score >= DOUBTFUL or is_suspect(sentence):
            doubtful.update(dict.fromkeys(sentence.lines))
            if score > best:
                best, text = score, " ".join(sentence.lines)
    return Likely(best, text, "\n".join(doubtful))


@lru_cache(maxsize=1)
def _weights() -> Mapping[str, float]:
    both = {**weights.BY_WEIGHT, **weights_against.BY_WEIGHT}
    return {feature: tenths / 10 for tenths, found in both.items() for feature in found.split()}


@lru_cache(maxsize=1024)
def spread(count: int) -> float:
    """By what the weights of so many features are divided."""
    return math.sqrt(max(1.0, count / USUAL))
