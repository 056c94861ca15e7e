"""The most common words of a server's tools: a summary in a handful of words.

Pure. Never here: which tools count, how the words are used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from trayapp.catalog.search.stem import stem
from trayapp.catalog.search.words import STOP_WORDS, split
from trayapp.model.offer import Item

READ_MOST = 160  # characters of a description: usually its first sentence
NAME_WEIGHT = 2  # a word of a tool's name says more than one of its description
SHORTEST = 3  # characters
TOGETHER = 0.75  # if this share of the tools with either word has both side by side, they are one term
UNTELLING = frozenset(
    """
    able all allow allows another available based between both call calls complete contain contains current data
    detailed details enable etc existing following get given include includes including information item items
    list make makes more multiple name names new only optional optionally other perform performs provide
    provided provides result results return returns run runs same server servers set shows single specific
    specified support supports take takes than type types value values without
    """.split()  # noqa: SIM905 - as catalog/search/words
)


def gist(tools: Iterable[Item], known: Iterable[str], most: int) -> list[str]:
    """Return up to `most` words or word pairs, the most common first, without `known` ones, which are already shown."""
    scores: Counter[str] = Counter()  # by stem, in the order of appearance
    having: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    spellings: dict[str, str] = {}
    for item in tools:
        name, said = (_stems(item.get(member), spellings) for member in ("name", "description"))
        weights = {**dict.fromkeys(said, 1), **dict.fromkeys(name, NAME_WEIGHT)}
        scores.update({word: weight for word, weight in weights.items() if word})
        having.update(dict.fromkeys(weights, 1))
        pairs.update(dict.fromkeys((pair for pair in (*pairwise(name), *pairwise(said)) if all(pair)), 1))
    passed = {stem(word) for text in known for word in split(text)}
    found: list[str] = []
    for word, _ in scores.most_common():
        if len(found) == most:
            break
        if word not in passed:
            terms = (pair for pair, count in pairs.items() if word in pair and _is_term(pair, count, having))
            term = max((pair for pair in terms if passed.isdisjoint(pair)), key=pairs.__getitem__, default=(word,))
            found.append(" ".join(spellings[part] for part in term))
            passed.update(term)
    return found


def _is_term(pair: tuple[str, str], count: int, having: Counter[str]) -> bool:
    first, second = pair
    return count > 1 and first != second and count >= TOGETHER * max(having[first], having[second])


def _stems(text: object, spellings: dict[str, str]) -> list[str]:
    """Return the stems of a text's words, "" for a stop word; `spellings` records the first spelling of each stem."""
    stems = []
    for word in split(text[:READ_MOST]) if isinstance(text, str) else ():
        tells = len(word) >= SHORTEST and word not in STOP_WORDS and word not in UNTELLING
        stems.append(stem(word) if tells else "")
        if tells:
            spellings.setdefault(stems[-1], word)
    return stems
