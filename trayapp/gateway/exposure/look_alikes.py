"""Find tools whose names imitate those of other servers: by similar letters, or by another server's prefix."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from trayapp.catalog.lookup import fold
from trayapp.catalog.names import call_spelling, clean, server_prefix
from trayapp.inspection.finding import Finding, finding
from trayapp.inspection.hidden import bared, folded
from trayapp.model.settings import PREFIX_MODES

SIBLING_TOOLS = 3  # names that two servers of one program share, and at least half of all


class OtherTools:
    """Tools of other servers by how their names look. `others`: each server with the names of all its tools."""

    def __init__(self, others: Iterable[tuple[str, frozenset[str]]]) -> None:
        self._tools: dict[str, list[LookAlike]] = {}
        self._starts: dict[str, set[str]] = {}  # by look: the servers with that prefix to their tools' names
        self._called: dict[str, str] = {}  # by the prefix of their tools' names in calls: the server
        for server, tools in others:
            called, starts = _starts(server)
            self._called[called] = server
            for start in starts:
                self._starts.setdefault(start, set()).add(server)
            for tool in tools:
                self._tools.setdefault(_shape(tool), []).append(LookAlike(server, tools, tool))

    def alike(self, name: str) -> list[LookAlike]:
        """Return the tools whose own names look like `name`."""
        return self._tools.get(_shape(name), [])

    def read_as(self, name: str) -> Iterator[LookAlike]:
        """Yield the tools that `name` reads as, behind their servers' names, in any prefix mode."""
        letters = _letters(name)
        for end in range(1, len(letters)):
            servers = self._starts.get(_squeezed(letters[:end]))
            for found in self._tools.get(_squeezed(letters[end:]), ()) if servers else ():
                if found.server in (servers or ()):
                    yield found

    def addressed(self, name: str) -> str | None:
        """Return the server that `name` addresses by `mcp__SERVER__`, whatever its tools are."""
        loose = fold(name).casefold()
        return next((server for start, server in self._called.items() if loose.startswith(start)), None)


class LookAlike(NamedTuple):
    """Tool of another server, with the names of all tools of that server."""

    server: str
    tools: frozenset[str]
    tool: str


def shadowed(name: str, siblings: frozenset[str], others: OtherTools, *, late: bool) -> Finding | None:
    """Return the finding about a tool whose name imitates another server's, None if it does not.

    `siblings`: the other tools of its server. Two servers that share most of their tools are the same program. `late`:
    the tool appeared after the server's other tools were known.
    """
    if (addressed := others.addressed(name)) is not None:
        return finding("name.shadows", "high", "name", f"Its name calls it a tool of {addressed}", name)
    for other, tools, alike in others.alike(name):
        if _are_siblings(siblings, tools):
            continue
        if _comparable(alike) != _comparable(name):
            if clean(name) == name and clean(alike) != alike:
                continue  # the odd spelling is the imitation, whichever came first
            return finding("name.look-alike", "high", "name", f"Its name imitates {other}'s {alike}", name)
        if late:
            return finding(
                "name.shadows", "high", "name", f"It appeared later with the name of {other}'s {alike}", name
            )
    for other, tools, alike in others.read_as(name):
        if not _are_siblings(siblings, tools):
            return finding("name.shadows", "high", "name", f"Its name reads as {other}'s {alike}", name)
    return None


def _are_siblings(own: frozenset[str], others: frozenset[str]) -> bool:
    """Return True if the two servers' tools belong to one program."""
    common = len(own & others)
    return common >= SIBLING_TOOLS and common * 2 >= len(own)


_BETWEEN = re.compile(r"[-_./: ]")  # separators between the words of a name


def _comparable(name: str) -> str:
    """Return equal texts for names that people and models confuse."""
    return _BETWEEN.sub("", name.casefold())


_ALIKE_IN_ASCII = str.maketrans("01i5", "olls")


def _letters(name: str) -> str:
    """Return the letters that people see in a name: ASCII where they look like it, no marks, nothing invisible."""
    if not name.isascii():
        plain = unicodedata.normalize("NFKD", bared(name))
        name = folded("".join(letter for letter in plain if unicodedata.category(letter)[0] not in "MC"))
    return _comparable(name).translate(_ALIKE_IN_ASCII)


def _squeezed(letters: str) -> str:
    return letters.replace("rn", "m").replace("vv", "w")


@lru_cache(maxsize=1024)
def _starts(server: str) -> tuple[str, frozenset[str]]:
    """Return the comparable form of `mcp__SERVER__`, and the look of its tools' prefixes in each mode."""
    prefixes = (server_prefix(server, mode) for mode in PREFIX_MODES)
    return fold(call_spelling(server, "")).casefold(), frozenset(map(_shape, filter(None, prefixes)))


@lru_cache(maxsize=8192)  # more tools than users have; each is compared with those of all other servers
def _shape(name: str) -> str:
    """Return equal texts for names that look the same in many screen fonts."""
    return _squeezed(_letters(name))
