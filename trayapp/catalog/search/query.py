"""A query as terms (each word with the stems that may stand for it, and their worth), and the action it requests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, count, pairwise
from pathlib import Path

from trayapp.catalog.search.documents import is_pattern
from trayapp.catalog.search.vocabulary import Vocabulary
from trayapp.catalog.search.words import STOP_WORDS, meaningful, split, stem
from trayapp.model.late import late

CHARS_MOST = 4_000  # characters of a query that count: keeps the work bounded
WORDS_MOST = 48  # words of a query that count: keeps the work bounded
GUESSED_MOST = 4  # unknown words whose meaning is guessed: in a long question, the known words suffice
JOINED_SHORTEST = 6  # characters of two words joined into one
SYNONYM_WORTH = 0.75  # of a synonym, relative to the word itself
USERS_WORTH = 0.95  # relative to the word itself, for a synonym from the settings
GUESS_WORTH = 0.7  # relative to the word itself, for the likely meaning of a misspelled word
# The word after one of these is a verb.
BEFORE_VERB = frozenset(
    "to and or then please you i we me us just also lets can could will would should must".split()  # noqa: SIM905
)
_CLAUSE_END = late(r"[,;:!?()\n]|\.(?:\s|$)")

# The actions of verbs. A word that is as often a noun (check, draw) has none.
READ, WRITE, DELETE = "read", "write", "delete"

_VERBS = {
    READ: """
        get list search find show read fetch query describe view look lookup count retrieve browse explain inspect
        analyze analyse summarize compare see display download export discover locate enumerate monitor watch preview
        identify select pull print tell know open examine audit diagnose
    """,
    WRITE: """
        create add new make insert generate build write save store upload append post send register import draft start
        launch deploy install submit publish compose record schedule book attach commit push clone copy fork duplicate
        update edit modify change set rename move configure enable disable replace patch put alter assign merge transfer
        adjust turn switch mark toggle convert close resolve
    """,
    DELETE: """
        delete remove drop clear purge revoke forget destroy erase wipe cancel uninstall detach discard trash clean stop
        kill terminate unsubscribe
    """,
}
_ACTIONS = {stem(verb): action for action, verbs in _VERBS.items() for verb in verbs.split()}
# A clause that begins with one of these is a question, which asks to read something.
_QUESTIONS = frozenset(
    "what which who whom whose how where when why is are was were does did do has have can".split()  # noqa: SIM905
)


@dataclass(slots=True)
class Term:
    """One word of a query."""

    word: str
    stems: dict[str, float]  # stem that may stand for the word -> its worth (0 to 1)
    own: frozenset[str]  # the word's own stem, the user's synonyms, guesses for a misspelled word; no general synonyms
    extra: bool = False  # two words joined into one, or the kind of a literal: a match counts, a miss does not
    gains: dict[str, float] = field(default_factory=dict)  # stem -> gain of a document that contains it
    rarity: float = 0.0  # loss of a document that contains none of the stems

    def weigh(self, vocabulary: Vocabulary) -> None:
        """Fill in `gains` and `rarity`. A synonym that is rarer than the word itself must not count for more."""
        known = [stemmed for stemmed in self.stems if stemmed in vocabulary]
        own = [stemmed for stemmed in known if stemmed in self.own] or known
        self.rarity = max(map(vocabulary.rarity, own)) if own else vocabulary.rarity("")
        self.gains = {known: self.stems[known] * min(vocabulary.rarity(known), self.rarity) for known in known}


@dataclass(slots=True)
class Query:
    """A search query, as terms. The last three fields are computed once for all documents."""

    terms: list[Term]
    pairs: set[tuple[str, str]]  # adjacent stems
    action: str  # "" if unclear
    sites: Sequence[str] = ()  # stems of sites in its URLs, which are not searched for but may name a server
    servers: Mapping[str, float] = field(default_factory=dict)  # stem -> how clearly it names a server (0 to 1)
    gains: dict[str, list[tuple[int, float]]] = field(init=False, default_factory=dict)  # stem -> (index of term, gain)
    worths: dict[str, float] = field(init=False, default_factory=dict)  # stem -> its best worth for a term
    rarity: float = field(init=False, default=0.0)  # sum over all terms, except `extra` ones

    def __post_init__(self) -> None:
        for place, term in enumerate(self.terms):
            self.rarity += 0.0 if term.extra else term.rarity
            for known, gain in term.gains.items():
                self.gains.setdefault(known, []).append((place, gain))
                self.worths[known] = max(term.stems[known], self.worths.get(known, 0.0))


class UserSynonyms:
    """The word synonyms of `settings.synonyms`: words and phrases that mean the same, in both directions."""

    def __init__(self, synonyms: Mapping[str, Sequence[str]]) -> None:
        phrases = [
            (_phrase(key), _phrase(other))
            for key, others in synonyms.items()
            if not is_pattern(key)
            for other in others
        ]
        self._pairs = [pair for one, two in phrases if one and two for pair in ((one, two), (two, one))]

    def of(self, stems: Sequence[str]) -> dict[str, set[str]]:
        """Return each of `stems` that has synonyms in the settings, with the other stems that may stand for it."""
        known = set(stems)
        found: dict[str, set[str]] = {}
        for phrase, others in self._pairs:
            if known.issuperset(phrase):
                for stemmed in phrase:
                    found.setdefault(stemmed, set()).update(others)
        return found


def read_query(words: str, vocabulary: Vocabulary, users: UserSynonyms) -> Query:
    """Return `words` as a query. It has no terms if the text contains no words."""
    clauses = clauses_of(words)
    written = list(chain(*clauses))
    # Words used as verbs: the first of each clause, and any after `to`, `and`, `please`, `you` ...
    verbs = {word for clause in clauses for before, word in pairwise(("to", *clause)) if before in BEFORE_VERB}
    chosen = list(dict.fromkeys(meaningful(written)))
    by_users = users.of([stem(word) for word in written])
    terms: dict[str, Term] = {}
    guesses = GUESSED_MOST
    for word in chosen:
        stemmed = stem(word)
        given = by_users.get(stemmed, set())
        worths = dict.fromkeys(synonyms(stemmed, is_verb=word in verbs), SYNONYM_WORTH)
        worths |= dict.fromkeys(given, USERS_WORTH) | {stemmed: 1.0}
        term = Term(word, worths, frozenset({stemmed, *given}))
        if not any(one in vocabulary for one in term.stems) and guesses:
            guesses -= 1
            guessed = vocabulary.halves(word) or vocabulary.near(word)
            term.stems.update(dict.fromkeys(guessed, GUESS_WORTH))
            term.own |= set(guessed)
        terms.setdefault(stemmed, term)
    for word in (left + right for left, right in pairwise(written)):
        if len(word) >= JOINED_SHORTEST and word in vocabulary:  # documents may write `mind map` as mindmap
            terms.setdefault(word, Term(word, {word: 1.0}, frozenset({word}), extra=True))
    for kind in kinds_of_literals(words[:CHARS_MOST]):
        terms.setdefault(stem(kind), Term(kind, {stem(kind): 1.0}, frozenset({stem(kind)}), extra=True))
    for term in terms.values():
        term.weigh(vocabulary)
    stems = [stem(word) for word in meaningful(written)]
    sites = [stem(site) for site in sites_of_literals(words[:CHARS_MOST])]
    return Query(list(terms.values()), set(pairwise(stems)), action_of_query(clauses, verbs), sites)


def clauses_of(query: str) -> list[list[str]]:
    """Return the words to search for, by clause: without literal content, unless there is nothing else."""
    clauses = _split(without_literals(query[:CHARS_MOST]))
    if STOP_WORDS.issuperset(chain(*clauses)):
        clauses = _split(query[:CHARS_MOST])
    left = count(WORDS_MOST, -1)
    return [[word for word in clause if next(left) > 0] for clause in clauses]


def _split(query: str) -> list[list[str]]:
    return [split(clause) for clause in _CLAUSE_END.split(query)]


def _phrase(text: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in meaningful(split(text)))


# --- literals, which do not describe what a tool should do: URLs, paths, file names, e-mail addresses, quoted text

# A quotation mark opens before a word and closes after one; the mark in `user's` is an apostrophe.
_QUOTED = late(
    r"""`[^`\n]+`|"[^"\n]+"|“[^”\n]+”|„[^“”\n]+[“”]|«[^»\n]+»|(?<![\w'])'[^'\n]+'(?![\w'])|‘[^’\n]+’(?!\w)"""
)
_LITERAL = late(
    r"(?:[a-z][a-z0-9+.-]*://|www\.|mailto:).+"  # a URL
    r"|[\w-]+(?:\.[\w-]+)+(?::\d+)?/.*"  # a URL without its scheme
    r"|localhost(?::\d+)?(?:/.*)?"
    r"|[^@\s]+@[^@\s]+\.\w+"  # an e-mail address
    r"|(?:~|\.{1,2})?/.+|~|[a-z]:[\\/].*|\\\\.+"  # an absolute path, or one from home or from the current folder
    r"|(?:[^/\\]+[/\\])+(?:[^/\\]*\.\w{1,5})?"  # a relative path, which ends with a file or a separator
    r"|[\w.-]*\w\.(?:"
    r"txt|md|rst|log|csv|tsv|jsonl?|ya?ml|toml|xml|html?|ini|cfg|conf|env|lock|pdf|docx?|xlsx?|pptx?|odt|ods|odp|rtf|"
    r"epub|ipynb|py|tsx?|jsx|mjs|css|scss|java|kt|go|rs|c|h|cpp|hpp|cs|rb|php|swift|sh|ps1|bat|sql|db|sqlite3?|parquet|"
    r"png|jpe?g|gif|svg|webp|bmp|tiff?|ico|heic|psd|mp3|wav|flac|ogg|m4a|mp4|mov|mkv|avi|webm|zip|tar|gz|tgz|7z|rar|"
    r"exe|dmg|iso|bak|tmp|pem|key|crt|tf|proto|stl|glb|obj|ttf|eml|ics|vcf)"  # a file name
)


_ADDRESS = late(r"(?:mailto:)?[^@\s/]+@[^@\s/]+\.\w+")
_URL = late(r"(?:[a-z][a-z0-9+.-]*://|www\.|localhost\b|[\w-]+(?:\.[\w-]+)+(?::\d+)?/).*")
_SITE = late(r"(?:[a-z][a-z0-9+.-]*://)?(?:[\w-]+\.)*([\w-]+)\.[a-z]{2,}(?:[:/?#].*)?")  # figma in www.figma.com


def without_literals(query: str) -> str:
    """Return `query` without its literal content."""
    return " ".join(word for word in _without_quotes(query).split() if not _is_literal(word))


def kinds_of_literals(query: str) -> list[str]:
    """Return the kinds of literals in `query`, each kind once: `url`, `file`."""
    return list(dict.fromkeys("url" if _URL.fullmatch(literal) else "file" for literal in _literals(query)))


def sites_of_literals(query: str) -> list[str]:
    """Return the names of the sites that the URLs of `query` lead to: `figma` for `https://www.figma.com/file`."""
    found = (_SITE.fullmatch(literal) for literal in _literals(query) if _URL.fullmatch(literal))
    return [site[1] for site in found if site]


def _literals(query: str) -> list[str]:
    """Return the literals of `query`, quoted or not, but neither quoted prose nor e-mail addresses."""
    pieces = [*(found[0][1:-1] for found in _QUOTED.finditer(query)), *_without_quotes(query).split()]
    return [piece for piece in map(_bare, filter(_is_literal, pieces)) if not _ADDRESS.fullmatch(piece)]


def _without_quotes(query: str) -> str:
    return _QUOTED.sub(" , ", query)


def _is_literal(piece: str) -> bool:
    return _LITERAL.fullmatch(_bare(piece)) is not None


def _bare(piece: str) -> str:
    return piece.strip("()[]{}<>,;:!?\"'*").rstrip(".").lower()


# --- synonyms, as stems: the general English of synonyms.txt

WORDS = Path(__file__).with_name("synonyms.txt")
VERBS = "[verbs]"  # the section of groups that apply to a word used as a verb

Groups = dict[str, dict[str, None]]  # stem -> the stems that may stand for it


def synonyms(word: str, *, is_verb: bool) -> tuple[str, ...]:
    """Return the stems of the synonyms of `word`, a stem: those of the noun and, with `is_verb`, those of the verb.

    A word that is never a noun always counts as a verb.
    """
    verbs, others = _groups()
    as_verb = verbs.get(word, {}) if is_verb or word not in others else {}
    return tuple(as_verb | others.get(word, {}))


@lru_cache(maxsize=1)
def _groups() -> tuple[Groups, Groups]:
    """Return the groups of verbs and of other words. Raises OSError if the file is missing."""
    verbs, others = Groups(), Groups()
    section = others
    for line in WORDS.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = verbs if line == VERBS else others
        elif line and not line.startswith("#"):
            group = [stem(word) for word in line.split()]
            for word in group:
                section.setdefault(word, {}).update(dict.fromkeys(other for other in group if other != word))
    return verbs, others


def action_of_query(clauses: Iterable[Sequence[str]], verbs: Collection[str]) -> str:
    """Return the action of the first question or known verb of a query, or ""."""
    for clause in clauses:
        for place, word in enumerate(clause):
            if not place and word in _QUESTIONS:
                return READ
            if word in verbs and (action := _ACTIONS.get(stem(word))):
                return action
    return ""


def action_of_tool(name: Iterable[str], head: Sequence[str]) -> str:
    """Return the action of a tool by the stems of its name, or else by the first stem of `head`, or ""."""
    return next((_ACTIONS[known] for known in (*name, *head[:1]) if known in _ACTIONS), "")
