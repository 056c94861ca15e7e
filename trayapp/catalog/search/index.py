"""The index of all searchable tools, updated server by server, and the search for tools by words or a pattern."""

from __future__ import annotations

import re
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Any

from trayapp.catalog.names import Key
from trayapp.catalog.search.documents import document, keywords_of, raw_words, server_stems, text
from trayapp.catalog.search.query import UserSynonyms, clauses_of, read_query
from trayapp.catalog.search.ranking import only_own, score
from trayapp.catalog.search.store import Store
from trayapp.catalog.search.vocabulary import ServerNames
from trayapp.catalog.search.words import split
from trayapp.model.errors import ExitCode, MultiMcpError

STEP = 25  # tools that are indexed at a time: about 5 ms
LIMIT = 8  # default number of hits
SURE = 5  # hits that are returned however weak they are
RELEVANT = 0.04  # share of the best score: further hits below it only cost tokens
FIRST_CHARS = 200  # characters of a description in which word forms are compared; patterns match its first line
REFINED = 12  # best hits that are reordered by exact word forms
SCORE_DIGITS = 6  # further digits depend on the order in which sets are summed, which differs at each start
WRITTEN_MET = 0.15  # raises the score by 15% if the tool has all words of the query as written, by less for some
ALIKE = 0.5  # the least share of words that two descriptions of the same tool have in common


class EmptyQueryError(MultiMcpError):
    """Raised for a search without words and without a server."""

    code = "empty_query"
    exit_code = ExitCode.USAGE

    def __init__(self) -> None:
        super().__init__("The search is empty", "Describe in a few words what the tool should do")


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool, or a resource as a callable entry. `tool` is its definition as the server sent it."""

    server: str
    name: str
    exposed_name: str
    tool: Mapping[str, Any]
    server_title: str = ""  # the title that the server gives itself

    @property
    def key(self) -> Key:
        return self.server, self.name


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result: one tool."""

    server: str
    name: str
    score: float  # larger for better hits
    exposed_name: str = ""
    missed: tuple[str, ...] = ()  # words of the query that it lacks
    also: tuple[Key, ...] = ()  # the same tool on other servers, best first

    @property
    def key(self) -> Key:
        return self.server, self.name


class SearchIndex:
    """An index for finding tools by words.

    `synonyms`, as in the settings, maps a word to its synonyms. A key may also be a tool's name, or a pattern such as
    `search_*` or `SERVER/GLOB`. Its words then describe those tools.
    """

    def __init__(self, synonyms: Mapping[str, Sequence[str]] | None = None) -> None:
        self._synonyms = dict(synonyms or {})
        self._users = UserSynonyms(self._synonyms)
        self._store = Store()
        self._names = ServerNames()
        self._numbers: dict[str, range] = {}
        self._entries: dict[int, Entry] = {}
        self._next = 1

    @property
    def servers(self) -> frozenset[str]:
        """Return the servers that are indexed, completely or in part."""
        return frozenset(self._numbers)

    def take_synonyms(self, synonyms: Mapping[str, Sequence[str]]) -> list[str]:
        """Replace the synonyms. Return the servers to update, since the keywords of their tools changed."""
        before, self._synonyms = self._synonyms, dict(synonyms)
        self._users = UserSynonyms(self._synonyms)

        def differs(number: int) -> bool:
            key = self._entries[number].key
            return keywords_of(*key, before) != keywords_of(*key, self._synonyms)

        return [server for server, numbers in self._numbers.items() if any(map(differs, numbers))]

    def update(self, server: str, entries: Sequence[Entry]) -> None:
        """Replace all entries of `server` with `entries`. No other server changes."""
        for _ in self.updating(server, entries):
            pass

    def updating(self, server: str, entries: Sequence[Entry]) -> Iterator[None]:
        """Update, yielding every few milliseconds. In between, the index can be searched, and other servers updated."""
        self.remove(server)
        first = self._next
        self._next += len(entries)  # a server's numbers are consecutive, whatever happens between steps
        for place in range(0, len(entries), STEP):
            some = entries[place : place + STEP]
            documents = [document(e.server, e.server_title, e.tool, keywords_of(*e.key, self._synonyms)) for e in some]
            self._store.add(first + place, documents, [raw_words(entry.server, entry.tool) for entry in some])
            self._numbers[server] = numbers = range(first, first + place + len(some))
            self._entries.update(zip(numbers[place:], some, strict=True))
            self._names.add(server, server_stems(server, some[0].server_title))
            yield

    def remove(self, server: str) -> None:
        """Remove `server`, if it is known."""
        numbers = self._numbers.pop(server, None)
        if numbers is not None:
            self._store.remove(numbers)
            self._names.remove(server)
            for number in numbers:
                del self._entries[number]

    def search(
        self, words: str, *, server: str | None = None, limit: int = LIMIT, allowed: Container[Key] | None = None
    ) -> list[Hit]:
        """Return the best matches of all servers or one, best first, among the (server, name) keys in `allowed`.

        A smaller `limit` returns the first of the same hits. The same tool of several servers is one hit. Without
        words, return the server's tools by exposed name. Raises EmptyQueryError without words and `server`.
        """
        among = range(1, self._next) if server is None else self._numbers.get(server, range(0))
        if not words.strip():
            if server is None:
                raise EmptyQueryError
            return [_hit(entry, 1.0) for entry in self.listed(server, allowed)][:limit]
        return self._ranked(words, among, allowed)[:limit]

    def listed(self, server: str | None = None, allowed: Container[Key] | None = None) -> list[Entry]:
        """Return all `allowed` entries, or those of one server, sorted by exposed name."""
        among = range(1, self._next) if server is None else self._numbers.get(server, range(0))
        known = (entry for number in among if (entry := self._entries.get(number)) is not None)
        return sorted((e for e in known if allowed is None or e.key in allowed), key=lambda e: (e.exposed_name, e.key))

    def _ranked(self, words: str, among: range, allowed: Container[Key] | None) -> list[Hit]:
        query = read_query(words, self._store.vocabulary, self._users)

        def servers_having(stem: str) -> int:
            return len({self._entries[number].server for number in self._store.having(stem)})

        query.servers = self._names.shares(chain(*(term.own for term in query.terms), query.sites), servers_having)

        def wanted(number: int) -> bool:
            return allowed is None or self._entries[number].key in allowed

        found = [(number, self._store.view(number)) for number in self._store.candidates(query, among, wanted)]
        found = only_own(query, found)
        scored = [(*score(query, seen, self._store.vocabulary), self._entries[number]) for number, seen in found]
        scored.sort(key=lambda one: (-round(one[0], SCORE_DIGITS), one[2].exposed_name, one[2].key))
        asked = frozenset(chain(*clauses_of(words))) or frozenset({""})
        best = [(worth * _as_written(asked, entry), missed, entry) for worth, missed, entry in scored[:REFINED]]
        hits = [_hit(entry, worth, missed) for worth, missed, entry in [*best, *scored[REFINED:]] if worth]
        hits.sort(key=lambda hit: (-hit.score, hit.exposed_name, hit.server, hit.name))
        least = hits[0].score * RELEVANT if hits else 0.0
        return united(hits, {entry.key: entry.tool for _, _, entry in scored}, least)


# --- patterns: regular expressions, matched by RE2 in bounded time and without blocking other threads. Python's own
# engine backtracks: a pattern like `(a+)+b`, which any client may send, would block the gateway forever. Patterns that
# need back references or lookaround, which RE2 does not have, are refused.

PATTERN_LONGEST = 500  # characters of a pattern
LONGEST_TEXT = 2_000  # characters of a text that are searched; names and titles are far shorter
PATTERN_MEMORY_MOST = 1 << 20  # bytes of a compiled pattern: `(\pL\pM*){500}` is refused
WORK_MOST_S = 1.0  # processor time for all texts; an ordinary pattern needs microseconds for each

# Python syntax that RE2 does not support: \Z, \u0041, \U00000041, a{,3}. The `.` skips every other escape.
_PYTHON_ONLY = re.compile(r"\\(?:(Z)|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|.)|\{,(\d+)\}", re.DOTALL)


class InvalidPatternError(MultiMcpError):
    """Raised for a regular expression that is invalid, too long or too slow, or that has syntax unknown to RE2."""

    code = "invalid_pattern"
    exit_code = ExitCode.USAGE

    def __init__(self, pattern: str, why: str) -> None:
        super().__init__(
            f"The pattern {pattern[:PATTERN_LONGEST]} cannot be used: {why}",
            "Use RE2 syntax (no lookaround, no back references), or search with plain words",
        )


class Pattern:
    """A compiled, case-insensitive pattern. Raises InvalidPatternError."""

    def __init__(self, pattern: str) -> None:
        import re2  # loaded at the first search by pattern

        if len(pattern) > PATTERN_LONGEST:
            raise InvalidPatternError(pattern, "it is too long")
        options = re2.Options()
        options.case_sensitive = options.log_errors = False
        options.max_mem = PATTERN_MEMORY_MOST
        self._written = pattern
        self._work_s = 0.0
        try:
            self._compiled = re2.compile(_as_re2(pattern).encode(errors="replace"), options)
        except re2.error as error:
            raise InvalidPatternError(pattern, error.args[0].decode(errors="replace")) from None
        re2.purge()  # its cache would keep the last 128 patterns

    def matches(self, text: str) -> bool:
        """Return True if the pattern is found anywhere in the first LONGEST_TEXT characters of `text`.

        Raises InvalidPatternError once the texts so far have taken more than WORK_MOST_S.
        """
        if self._work_s > WORK_MOST_S:
            raise InvalidPatternError(self._written, "it takes too long on this text")
        began = time.thread_time()
        found = self._compiled.search(text[:LONGEST_TEXT].encode(errors="replace"))
        self._work_s += time.thread_time() - began
        return found is not None


def _as_re2(pattern: str) -> str:
    def respelled(found: re.Match[str]) -> str:
        end, short, long, most = found.groups()
        if short or long:
            return f"\\x{{{short or long}}}"
        return r"\z" if end else f"{{0,{most}}}" if most else found[0]

    return _PYTHON_ONLY.sub(respelled, pattern)


def matching(pattern: Pattern, entries: Iterable[Entry], limit: int) -> list[Hit]:
    """Return hits for the `entries` that match a pattern, in their order, at most `limit`.

    The same tool of several servers is one hit. Thread-safe: no index is used. Raises InvalidPatternError for a pattern
    that takes too long.
    """
    fitting = {entry.key: entry for entry in entries if any(map(pattern.matches, _written(entry)))}
    return united([_hit(entry, 1.0) for entry in fitting.values()], {key: e.tool for key, e in fitting.items()})[:limit]


def united(hits: Iterable[Hit], tools: Mapping[Key, Mapping[str, Any]], least: float = 0.0) -> list[Hit]:
    """Return the hits, given best first, with the same tool of several servers merged into its best hit.

    After the first SURE tools, a tool is left out if its best hit has a lower score than `least`.
    """
    found: dict[str, list[list[Hit]]] = {}  # by name
    alike: list[list[Hit]] = []
    for hit in hits:
        tool, namesakes = tools[hit.key], found.setdefault(hit.name, [])
        group = next((known for known in namesakes if is_same(tools[known[0].key], tool)), None)
        if group is None:
            if len(alike) >= SURE and hit.score < least:
                continue
            group = list[Hit]()
            namesakes.append(group)
            alike.append(group)
        group.append(hit)
    return [replace(best, also=tuple(hit.key for hit in others)) if others else best for best, *others in alike]


def is_same(tool: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return True if two tools with the same name do the same thing.

    They do if their descriptions are equal, or if their parameters are equal and their descriptions share enough words
    (ALIKE). Parameters alone say little: many servers have `search(query)`.
    """
    one, two = text(tool, "description"), text(other, "description")
    if one and one == two:
        return True
    schema = tool.get("inputSchema")
    if schema != other.get("inputSchema") or not (isinstance(schema, Mapping) and schema.get("properties")):
        return False
    words, others = _words(one), _words(two)
    return len(words & others) >= len(words | others) * ALIKE


@lru_cache(maxsize=512)  # each query compares the same tools of several servers
def _words(description: str) -> frozenset[str]:
    return frozenset(description.split())


def _as_written(asked: frozenset[str], entry: Entry) -> float:
    """Return a factor from 1 to 1 + WRITTEN_MET, by the share of `asked` words that the tool has exactly as written."""
    words = {*split(entry.exposed_name), *split(text(entry.tool, "description")[:FIRST_CHARS])}
    return 1 + WRITTEN_MET * len(asked & words) / len(asked)


def _hit(entry: Entry, worth: float, missed: tuple[str, ...] = ()) -> Hit:
    return Hit(entry.server, entry.name, round(worth, SCORE_DIGITS), entry.exposed_name, missed)


def _written(entry: Entry) -> Iterator[str]:
    """Yield the texts that a pattern may match: each name, the title, the first line of the description."""
    yield from (entry.exposed_name, entry.name, text(entry.tool, "title"))
    yield from text(entry.tool, "description").strip()[:FIRST_CHARS].splitlines()[:1]
