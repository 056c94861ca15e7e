"""What somebody searches for, as terms: each word with the stems that will do in its place, and what they are worth.

Never here: documents, scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from trayapp.catalog.documents import is_pattern
from trayapp.catalog.literals import without_literals
from trayapp.catalog.stem import stem
from trayapp.catalog.synonyms import CHINESE, GROUPS, HINTS
from trayapp.catalog.vocabulary import Vocabulary
from trayapp.catalog.words import STOP_WORDS, meaningful, split

CHARS_MOST = 4_000  # of a query, and
WORDS_MOST = 48  # so many words of it count: the work stays bounded
GUESSED_MOST = 4  # unknown words that are guessed at: in a long question the known ones suffice
JOINED_SHORTEST = 6  # characters of two words written as one
SYNONYM_WORTH = 0.75  # of the word itself
USERS_WORTH = 0.95  # of a synonym out of the settings
GUESS_WORTH = 0.7  # of what a misspelt word probably means


@dataclass(slots=True)
class Term:
    """One word of a query. `stems` maps what may stand for it to its worth (0 to 1); `own` of them are no synonyms.

    `gains` are what a document gets that has the stem; `rarity` is what it loses that has none of them.
    """

    word: str
    stems: dict[str, float]
    own: frozenset[str]
    extra: bool = False  # two words written as one: good to meet, no loss to miss
    gains: dict[str, float] = field(default_factory=dict)
    rarity: float = 0.0

    def weigh(self, vocabulary: Vocabulary) -> None:
        """Fill in `gains` and `rarity`. A synonym that is rarer than the word itself must not count for more."""
        known = [stemmed for stemmed in self.stems if stemmed in vocabulary]
        own = [stemmed for stemmed in known if stemmed in self.own] or known
        self.rarity = max(map(vocabulary.rarity, own)) if own else vocabulary.rarity("")
        self.gains = {known: self.stems[known] * min(vocabulary.rarity(known), self.rarity) for known in known}


@dataclass(slots=True)
class Query:
    """All terms, and the stems that follow each other."""

    terms: list[Term] = field(default_factory=list)
    pairs: set[tuple[str, str]] = field(default_factory=set)

    @property
    def rarity(self) -> float:
        """What a document that meets every word covers."""
        return sum(term.rarity for term in self.terms if not term.extra)


class UserSynonyms:
    """`settings.synonyms` without the keys that stand for tools: words and phrases that mean the same, both ways."""

    def __init__(self, synonyms: Mapping[str, Sequence[str]]) -> None:
        phrases = [
            (_phrase(key), _phrase(other))
            for key, others in synonyms.items()
            if not is_pattern(key)
            for other in others
        ]
        self._pairs = [pair for one, two in phrases if one and two for pair in ((one, two), (two, one))]

    def of(self, stems: Sequence[str]) -> dict[str, set[str]]:
        """For stems of a query, the further stems that settings let stand for them."""
        known = set(stems)
        found: dict[str, set[str]] = {}
        for phrase, others in self._pairs:
            if known.issuperset(phrase):
                for stemmed in phrase:
                    found.setdefault(stemmed, set()).update(others)
        return found


def read_query(words: str, vocabulary: Vocabulary, users: UserSynonyms) -> Query:
    """Return the query that `words` are; no terms when there is no word in them."""
    written = words_of(words)
    chosen = list(dict.fromkeys(meaningful(written)))
    by_users = users.of([stem(word) for word in written])
    terms: dict[str, Term] = {}
    guesses = GUESSED_MOST
    for word in chosen:
        term = _term(word, by_users)
        if not any(stemmed in vocabulary for stemmed in term.stems) and guesses:
            guesses -= 1
            _guess(term, vocabulary)
        terms.setdefault(stem(word), term)
    for word in _joined(written, vocabulary):
        terms.setdefault(word, Term(word, {word: 1.0}, frozenset({word}), extra=True))
    for term in terms.values():
        term.weigh(vocabulary)
    stems = [stem(word) for word in meaningful(written)]
    return Query(list(terms.values()), set(pairwise(stems)))


def words_of(query: str) -> list[str]:
    """Return the words to search for: not of literal content, unless there is nothing else."""
    written = split(without_literals(query[:CHARS_MOST]))
    if STOP_WORDS.issuperset(written):
        written = split(query[:CHARS_MOST])
    return written[:WORDS_MOST]


def _term(word: str, by_users: Mapping[str, set[str]]) -> Term:
    stemmed = stem(word)
    given = by_users.get(stemmed, set())
    worths = dict.fromkeys(synonyms().get(stemmed, ()), SYNONYM_WORTH) | dict.fromkeys(given, USERS_WORTH)
    return Term(word, worths | {stemmed: 1.0}, frozenset({stemmed, *given}))


def _guess(term: Term, vocabulary: Vocabulary) -> None:
    guessed = vocabulary.halves(term.word) or vocabulary.near(term.word)
    term.stems.update(dict.fromkeys(guessed, GUESS_WORTH))
    term.own |= set(guessed)


def _joined(written: Iterable[str], vocabulary: Vocabulary) -> list[str]:
    """Neighbours that documents write as one word: `mind map` for mindmap."""
    both = (left + right for left, right in pairwise(written))
    return [word for word in both if len(word) >= JOINED_SHORTEST and word in vocabulary]


@lru_cache(maxsize=1)
def synonyms() -> dict[str, tuple[str, ...]]:
    """For a stem, those of general language that will do in its place."""
    found: dict[str, dict[str, None]] = {}
    for line in filter(None, f"{GROUPS}\n{CHINESE}".splitlines()):
        group = [stem(word) for word in line.split()]
        for word in group:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in group if other != word))
    for line in filter(None, HINTS.splitlines()):
        word, _, others = line.partition(":")
        found.setdefault(stem(word), {}).update(dict.fromkeys(map(stem, others.split())))
    return {word: tuple(others) for word, others in found.items()}


def _phrase(text: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in meaningful(split(text)))
