"""Find tools whose names imitate other servers' tools, by similar letters or by another server's prefix."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from trayapp.catalog.names import call_spelling, clean, fold, server_prefix
from trayapp.inspection.finding import Finding, finding
from trayapp.inspection.hidden import bared, folded
from trayapp.model.config import PREFIX_MODES

# Two servers count as one program if they share this many tool names, and these are at least half of the inspected
# server's names.
SIBLING_TOOLS = 3

LookAlike = tuple[str, frozenset[str], str]  # another server, the names of all its tools, the name of the similar tool


class OtherTools:
    """The tools of other servers, indexed by how their names look. `others`: each server with all its tools' names."""

    def __init__(self, others: Iterable[tuple[str, frozenset[str]]]) -> None:
        self._servers = [_looks_of(server, tools) for server, tools in others]
        self._looks = set[str]().union(*(server.tools for server in self._servers))
        self._starts: dict[str, list[_ServerLooks]] = {}
        for server in self._servers:
            for start in server.starts:
                self._starts.setdefault(start, []).append(server)
        self._any_start = tuple(self._starts)
        self._any_called = tuple(server.called for server in self._servers)

    def alike(self, name: str) -> list[LookAlike]:
        """Return the tools of other servers whose own names look like `name`, or []."""
        look = _squeezed(_letters(name))
        return [found for server in self._servers for found in server.alike(look)] if look in self._looks else []

    def read_as(self, name: str) -> Iterator[LookAlike]:
        """Yield the tools of other servers whose prefixed names, in any prefix mode, look like `name`."""
        letters = _letters(name)
        if letters == _squeezed(letters) and not letters.startswith(self._any_start):
            return  # the usual case
        for end in range(1, len(letters)):
            for server in self._starts.get(_squeezed(letters[:end]), ()):
                yield from server.alike(_squeezed(letters[end:]))

    def addressed(self, name: str) -> str | None:
        """Return the server whose prefix `mcp__SERVER__` `name` begins with, even if that server has no such tool.

        Return None if the name begins with no server's prefix.
        """
        loose = _loose(name)
        if not loose.startswith(self._any_called):
            return None  # the usual case
        return next((server.name for server in self._servers if loose.startswith(server.called)), None)


class _ServerLooks(NamedTuple):
    """The names of one server and its tools, unchanged and in a comparable form, which is the same for look-alikes."""

    name: str
    called: str  # the comparable form of `mcp__SERVER__`
    starts: frozenset[str]  # comparable forms of its tools' prefixes, one per mode
    names: frozenset[str]  # the names of its tools, unchanged
    tools: dict[str, list[str]]  # comparable form -> the tools that have it

    def alike(self, look: str) -> Iterator[LookAlike]:
        """Yield the tools whose names have that comparable form."""
        return ((self.name, self.names, tool) for tool in self.tools.get(look, ()))


@lru_cache(maxsize=256)  # more than the number of servers that users have: each is compared with every other server
def _looks_of(server: str, tools: frozenset[str]) -> _ServerLooks:
    prefixes = filter(None, (server_prefix(server, mode) for mode in PREFIX_MODES))
    starts = frozenset(_squeezed(_letters(prefix)) for prefix in prefixes)
    looks: dict[str, list[str]] = {}
    for tool in tools:
        looks.setdefault(_squeezed(_letters(tool)), []).append(tool)
    return _ServerLooks(server, _loose(call_spelling(server, "")), starts, tools, looks)


def shadowed(name: str, listed: frozenset[str], others: OtherTools, *, late: bool) -> Finding | None:
    """Return a finding if a tool's name imitates a tool of another server, otherwise None.

    `listed`: the names of all tools of its server. `late`: the tool appeared after the server's other tools were known.
    Servers that share many of their tools (SIBLING_TOOLS) count as the same program, so neither imitates the other.
    """
    if (addressed := others.addressed(name)) is not None:
        return finding("name.shadows", "high", "name", f"Its name calls it a tool of {addressed}", name)
    for other, tools, alike in others.alike(name):
        if _are_siblings(listed - {name}, tools):
            continue
        if _comparable(alike) != _comparable(name):
            if clean(name) == name and clean(alike) != alike:
                continue  # `alike` has the unusual spelling, so it is the imitation, whichever tool came first
            return finding("name.look-alike", "high", "name", f"Its name imitates {other}'s {alike}", name)
        if late:
            reason = f"It appeared later, under the same name as {other}'s {alike}"
            return finding("name.shadows", "high", "name", reason, name)
    for other, tools, alike in others.read_as(name):
        if not _are_siblings(listed - {name}, tools):
            return finding("name.shadows", "high", "name", f"Its name reads as {other}'s {alike}", name)
    return None


def _are_siblings(own: frozenset[str], others: frozenset[str]) -> bool:
    """Return True if two servers share so many tool names that they count as one program."""
    common = len(own & others)
    return common >= SIBLING_TOOLS and common * 2 >= len(own)


_BETWEEN = "-_./: "  # separators between the words of a name
_WITHOUT_BETWEEN = str.maketrans("", "", _BETWEEN)
_ALIKE_IN_ASCII = str.maketrans("01i5", "olls", _BETWEEN)
# The same table for ASCII names as bytes, which also lowers the case. Translating bytes takes a third of the time.
_ASCII_LETTERS = bytes(ord(chr(byte).lower().translate(_ALIKE_IN_ASCII) or "-") for byte in range(128)) + bytes(128)


def _loose(name: str) -> str:
    return fold(name).casefold()


def _comparable(name: str) -> str:
    """Return a form of the name that is the same for all names that people and models confuse."""
    return name.casefold().translate(_WITHOUT_BETWEEN)


@lru_cache(maxsize=8192)  # more than the number of tools that users have: each name is used in many comparisons
def _letters(name: str) -> str:
    """Return the letters that people see in a name, in lower case, without separators and invisible characters.

    Letters that look like ASCII letters are replaced by them, and accents are removed.
    """
    if name.isascii():
        return name.encode().translate(_ASCII_LETTERS, _BETWEEN.encode()).decode()
    plain = unicodedata.normalize("NFKD", bared(name))
    name = folded("".join(letter for letter in plain if unicodedata.category(letter)[0] not in "MC"))
    return name.casefold().translate(_ALIKE_IN_ASCII)


def _squeezed(letters: str) -> str:
    """Return the text with "m" for "rn" and "w" for "vv", which look the same in many screen fonts."""
    return letters.replace("rn", "m").replace("vv", "w")
