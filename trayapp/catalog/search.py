"""The index of all tools that a search may find: kept up to date server by server, asked with words or a pattern.

Never here: which tools a session may see (only those are handed in, or named as `allowed`), texts for people, I/O.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trayapp.catalog.names import Key
from trayapp.model.errors import MultiMcpError

LIMIT = 8  # hits when nobody says how many


class EmptyQueryError(MultiMcpError):
    """A search without a word and without a server."""

    code = "empty_query"

    def __init__(self) -> None:
        super().__init__("The search is empty", "Say in a few words what the tool should do")


class InvalidPatternError(MultiMcpError):
    """A regular expression that cannot be read, or that could take for ever."""

    code = "invalid_pattern"

    def __init__(self, pattern: str, why: str) -> None:
        super().__init__(f"The pattern {pattern} cannot be used: {why}", "Search with plain words, without regex")


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool (or a resource as a callable entry): `tool` as its server sent it."""

    server: str
    name: str
    exposed_name: str
    tool: Mapping[str, Any]

    @property
    def key(self) -> Key:
        return self.server, self.name


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that was found. `score` is larger for the better; `missed` are the words of the query that it lacks."""

    server: str
    name: str
    score: float
    exposed_name: str = ""
    missed: tuple[str, ...] = ()


class SearchIndex:
    """Finds tools. `synonyms`: a word to words that mean the same; or `SERVER/TOOL-GLOB` to words for those tools."""

    def __init__(self, synonyms: Mapping[str, Sequence[str]] | None = None) -> None:
        self._entries: dict[str, dict[Key, Entry]] = {}

    def set_synonyms(self, synonyms: Mapping[str, Sequence[str]]) -> None:
        """Use other synonyms from now on."""

    def update(self, server: str, entries: Sequence[Entry]) -> None:
        """Replace all that is known of `server` by `entries`."""
        self._entries[server] = {entry.key: entry for entry in entries}

    def remove(self, server: str) -> None:
        """Forget `server`; one that is not known is no error."""
        self._entries.pop(server, None)

    def search(
        self,
        words: str,
        *,
        server: str | None = None,
        limit: int = LIMIT,
        regex: bool = False,
        allowed: Container[Key] | None = None,
    ) -> list[Hit]:
        """The best matches, best first, of all servers or one; `allowed` narrows them to these (server, name) keys.

        No words, but a server: all of its tools by exposed name. Raises EmptyQueryError, InvalidPatternError.
        """
        if not words.strip() and server is None:
            raise EmptyQueryError
        entries = [e for s, found in self._entries.items() if server in (None, s) for e in found.values()]
        entries = [entry for entry in entries if allowed is None or entry.key in allowed]
        if regex:
            try:
                pattern = re.compile(words, re.IGNORECASE)
            except re.error as error:
                raise InvalidPatternError(words, str(error)) from None
            entries = [e for e in entries if pattern.search(e.exposed_name)]
            found = [(1.0, e) for e in entries]
        else:
            asked = words.lower().split()
            found = [(float(sum(w in f"{e.exposed_name} {e.tool}".lower() for w in asked)), e) for e in entries]
        found = sorted(
            (pair for pair in found if pair[0] or not words.strip()), key=lambda p: (-p[0], p[1].exposed_name)
        )
        return [Hit(e.server, e.name, score, e.exposed_name) for score, e in found[:limit]]
