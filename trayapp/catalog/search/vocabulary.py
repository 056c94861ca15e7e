"""The words of all documents and of servers' names, their rarity, and the known words that an unknown one may mean."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from trayapp.catalog.search.words import stem
from trayapp.catalog.suggest import edits_between

NEAR_MOST = 4  # limit on the known words that one misspelled word may mean
PREFIX_SHORTEST = 4  # characters of a query word that may be the start of known words
EDIT_SHORTEST = 4  # characters; too many shorter words are one edit apart
TWO_EDITS_SHORTEST = 8  # characters of a word that may have two typos
HALF_SHORTEST = 3  # characters of each part of a compound


def rarity(count: int, among: int) -> float:
    """Return BM25's inverse document frequency of a word in `count` of `among` documents, never below 0."""
    return math.log(1 + (among - count + 0.5) / (count + 0.5))


class Vocabulary:
    """Counts of stems, and the words as written."""

    def __init__(self) -> None:
        self.documents = 0
        self._count: Counter[str] = Counter()
        self._rarities: dict[str, float] = {}  # valid until the next change
        self._spellings: defaultdict[tuple[str, int], set[str]] = defaultdict(set)  # by first letter and length

    def __contains__(self, stemmed: str) -> bool:
        return self._count[stemmed] > 0

    def add(self, stems: Iterable[str], spellings: Iterable[str]) -> None:
        """Count one more document: its stems, each once, and its words as written."""
        self.documents += 1
        self._rarities.clear()
        self._count.update(stems)
        for word in spellings:
            self._spellings[word[0], len(word)].add(word)

    def remove(self, stems: Iterable[str]) -> None:
        """Remove one document from the counts. Its spellings stay, but `near` uses only those with a counted stem."""
        self.documents -= 1
        self._rarities.clear()
        for stemmed in stems:
            self._count[stemmed] -= 1
            if not self._count[stemmed]:
                del self._count[stemmed]

    def count(self, stemmed: str) -> int:
        """Return how many documents have a stem."""
        return self._count[stemmed]

    def rarity(self, stemmed: str) -> float:
        """Return the rarity of a stem, that is, how informative it is."""
        known = self._rarities.get(stemmed)
        if known is None:
            known = self._rarities[stemmed] = rarity(self._count[stemmed], self.documents)
        return known

    def halves(self, word: str) -> list[str]:
        """Return the stems of the two known words that `word` is made of, or an empty list."""
        for place in range(len(word) - HALF_SHORTEST, HALF_SHORTEST - 1, -1):
            both = [stem(word[:place]), stem(word[place:])]
            if all(half in self for half in both):
                return both
        return []

    def near(self, word: str) -> list[str]:
        """Return at most NEAR_MOST stems that `word` may mean: of similar words, then of words that begin with it."""
        begun = (known for (first, length), words in self._spellings.items() if first == word[0] and length > len(word)
                 for known in words if known.startswith(word))  # fmt: skip
        found = self._misspelt(word)
        if len(word) >= PREFIX_SHORTEST:
            found += sorted(begun, key=lambda known: (len(known), known))
        return list(dict.fromkeys(stemmed for known in found if (stemmed := stem(known)) in self))[:NEAR_MOST]

    def _misspelt(self, word: str) -> list[str]:
        if len(word) < EDIT_SHORTEST or not word.isalpha():
            return []
        allowed = 2 if len(word) >= TWO_EDITS_SHORTEST else 1
        counted = sorted(
            (edits_between(word, known, allowed), known)
            for first in dict.fromkeys(word[:2])  # first letters are rarely wrong, at most swapped
            for length in range(len(word) - allowed, len(word) + allowed + 1)
            for known in self._spellings.get((first, length), ())
        )
        return [known for edits, known in counted if edits <= allowed]


class ServerNames:
    """The stems of each server's name, and how clearly each of them names the server."""

    def __init__(self) -> None:
        self._stems: dict[str, frozenset[str]] = {}
        self._shares: dict[str, float] = {}  # valid until the next change

    def add(self, server: str, stems: Iterable[str]) -> None:
        """Add a server's name. Call this also if only its tools have changed, since the shares depend on them."""
        self._stems[server] = frozenset(stems)
        self._shares.clear()

    def remove(self, server: str) -> None:
        """Remove a server, if it is known."""
        self._stems.pop(server, None)
        self._shares.clear()

    def shares(self, asked: Iterable[str], having: Callable[[str], int]) -> dict[str, float]:
        """Map each stem in `asked` that is in a server's name to how clearly it names that server (0 to 1).

        A stem that no other server's tools contain gets 1. `having` counts the servers whose tools have a stem.
        """
        named = [one for one in asked if any(one in stems for stems in self._stems.values())]
        for one in named:
            if one not in self._shares:
                most = rarity(1, len(self._stems))
                self._shares[one] = min(1.0, rarity(having(one), len(self._stems)) / most)
        return {one: self._shares[one] for one in named}
