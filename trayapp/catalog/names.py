"""Exposed names of tools: at most 64 safe characters, unique, independent of the order of servers."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import NamedTuple

from trayapp.model.config import PREFIX_MODES, PrefixMode
from trayapp.model.text import escaped

Key = tuple[str, str]  # server, and the original name (or URI) on that server
Wish = tuple[str, bool]  # the wanted name, and whether it is the original spelling, with nothing replaced

NAME_LENGTH = 64  # characters; every model provider accepts names of this length
SUFFIX_LENGTH = 6  # base32 characters: two of 1,000 clashing tools share a suffix in one catalog out of 2,000
CLASH_SHOWN = 5  # tools that the reason for a name clash lists; the others are only counted
UNNAMED = "tool"  # replaces an empty name
SUFFIX_LONGEST = 32  # base32 characters of a digest of 20 bytes

_OUTSIDE = re.compile(r"[^A-Za-z0-9_-]")
_MCP_SUFFIX = re.compile(r"-?mcp\Z", re.IGNORECASE)


class NameClash(NamedTuple):
    """A tool that could not get the name it would have without other tools. `reason` is one line for people."""

    server: str
    tool: str
    exposed: str
    reason: str


@dataclass(frozen=True, eq=False, slots=True)
class SeenNames:
    """Names that clients have seen before, each with its tool. Instances compare by identity."""

    names: Mapping[str, Key] = field(default_factory=dict)


NONE_GIVEN = SeenNames()


@dataclass(frozen=True, slots=True)
class Exposed:
    """The names of one catalog's tools, in both directions."""

    mode: PrefixMode
    by_name: dict[str, Key] = field(default_factory=dict)
    by_key: dict[Key, str] = field(default_factory=dict)
    shared: dict[str, tuple[Key, ...]] = field(default_factory=dict)  # wanted by these tools, and given to none
    clashes: tuple[NameClash, ...] = ()


def clean(tool: str) -> str:
    """Return the tool's name in safe characters: any other character becomes `_`."""
    return _OUTSIDE.sub("_", tool)


def fold(name: str) -> str:
    """Return the name with hyphens as underscores: models mix them up."""
    return name.replace("-", "_")


def caseless(name: str) -> str:
    """Return the name with hyphens as underscores and in lower case: models mix up case, too."""
    return fold(name).lower()


@lru_cache(maxsize=4096)
def server_prefix(server: str, mode: PrefixMode) -> str:
    """Return the prefix of a server's exposed names, without the `_` that follows it, or "" in mode none."""
    if mode == "none":
        return ""
    if mode == "short":
        return escaped(_MCP_SUFFIX.sub("", server)) or "mcp"
    return ("mcp__" if mode == "mcp" else "") + escaped(server)


def spelled(server: str, tool: str, mode: PrefixMode) -> str:
    """Return the tool's name in `mode`, as it would be without other tools. It may be too long.

    A tool whose name already starts with its server's (codegraph, codegraph_explore) is not prefixed again.
    """
    name = clean(tool)
    if mode == "none":
        return name or UNNAMED
    prefix = server_prefix(server, mode) + "_"
    return name if name.startswith(prefix) and len(name) > len(prefix) else prefix + name


def call_spelling(server: str, tool: str) -> str:
    """Return `mcp__SERVER__TOOL`, the form that clients are used to and that is understood in every mode."""
    return f"mcp__{escaped(server)}__{clean(tool)}"


def expose_names(
    entries: Iterable[Key],
    mode: PrefixMode,
    taken: Set[str] = frozenset(),
    given: SeenNames = NONE_GIVEN,
    held: Set[Key] = frozenset(),
    servers: Iterable[str] = (),
) -> Exposed:
    """Return the exposed name of each (server, tool). Names in `taken` are not given.

    Pass every known tool, enabled or not, so that enabling a tool renames no other. `given`: names that clients
    have seen. `held`: the tools that wait for an approval. `servers`: all servers, even if their tools are not known.
    """
    wishes: dict[Key, Wish] = {}
    for server, tool in entries:
        name = spelled(server, tool, mode)
        raw = f"mcp__{server}_{tool}" if mode == "mcp" else f"{server}_{tool}"
        wishes[server, tool] = name, name in (tool, raw)
    return expose(wishes, mode, taken, given, held, _others_of(list(wishes), mode, servers))


def expose(
    wishes: Mapping[Key, Wish],
    mode: PrefixMode,
    taken: Set[str] = frozenset(),
    given: SeenNames = NONE_GIVEN,
    held: Set[Key] = frozenset(),
    others: Callable[[Key, str], Key | None] = lambda key, wish: None,
) -> Exposed:
    """Return the exposed names: each wanted name that is short enough and unambiguous, or else the name with a hash.

    - A name in `taken` is never given.
    - A name that was `given` stays with its tool or, while that tool is gone, with its server.
    - A name by which `others` finds another server's tool is not given, unless it was `given` before.
    - A tool that is `held` back gets no name that is also wanted for a tool that is not.
    - A name that is wanted for several tools goes to the one whose original spelling it is (`a_b` rather than `a.b`).
      If there is not exactly one such tool, none gets the name: a call must never reach the wrong tool.
    """
    groups: dict[str, list[Key]] = {}
    for key, (wish, _) in wishes.items():
        groups.setdefault(wish, []).append(key)
    names: dict[Key, str] = {}
    rivals = dict[str, list[Key]]()  # wish -> all tools that the name could mean
    for wish, keys in groups.items():
        first = given.names.get(wish)
        alike = [first] if first is not None and first not in keys else []
        alike += [found for key in keys if first is None and (found := others(key, wish)) is not None]
        if (holder := _holder(wish, keys, alike, wishes, first, held)) is not None and wish not in taken:
            names[holder] = wish
        rivals[wish] = list(dict.fromkeys((*keys, *alike)))
    losers = {key: wish for key, (wish, _) in wishes.items() if key not in names}
    shared = {w: tuple(sorted(ks)) for w, ks in groups.items() if len(ks) > 1 and names.keys().isdisjoint(ks)}
    names |= _suffixed(losers, {*groups, *taken}, given.names)
    clashes = _clashes(names, {wish: rivals[wish] for wish in losers.values() if len(wish) <= NAME_LENGTH}, wishes)
    return Exposed(mode, {name: key for key, name in names.items()}, names, shared, clashes)


def _holder(
    wish: str, keys: list[Key], alike: list[Key], wishes: Mapping[Key, Wish], first: Key | None, held: Set[Key]
) -> Key | None:
    """Return the one of `keys` that gets the name `wish`, or None. The name is wanted for all of them.

    `alike`: other tools that the name could mean. `first`: the tool that had the name before.
    """
    if len(wish) > NAME_LENGTH:
        return None
    if first in keys:
        return first
    if alike:
        keys = [key for key in keys if first is not None and key[0] == first[0]]
    keys = [key for key in keys if key not in held] or keys
    own = keys if len(keys) == 1 else [key for key in keys if wishes[key][1]]
    return own[0] if len(own) == 1 else None


class Spellings:
    """An index of tools by spelling: the name alone, or after one of the server prefixes that `starts` returns."""

    def __init__(self, keys: Collection[Key], starts: Callable[[str], Iterable[str]]) -> None:
        self._tools: dict[str, list[Key]] = {}
        self._starts: dict[str, set[str]] = {}
        for key in keys:
            for form in {caseless(key[1]), caseless(clean(key[1]) or UNNAMED)}:
                self._tools.setdefault(form, []).append(key)
        for server in {server for server, _ in keys}:
            for start in starts(server):
                self._starts.setdefault(caseless(start), set()).add(server)

    def bare(self, name: str) -> list[Key]:
        """Return the tools with this original or cleaned name. Case is ignored, and hyphens equal underscores."""
        return self._tools.get(caseless(name), [])

    def behind(self, name: str) -> Iterator[Key]:
        """Yield the tools whose server prefix and name form this name, compared as in `bare`."""
        loose = caseless(name)
        for end in (at + 1 for at, letter in enumerate(loose) if letter in "_/"):
            if (servers := self._starts.get(loose[:end])) is not None:
                yield from (key for key in self._tools.get(loose[end:], ()) if key[0] in servers)


def _others_of(keys: Collection[Key], mode: PrefixMode, servers: Iterable[str]) -> Callable[[Key, str], Key | None]:
    """Return a function (key, name) -> the tool of another server that the name could also mean, or None.

    `mcp__SERVER__TOOL` is understood in every mode and belongs to that server, whatever tools it has. Spellings that
    begin with just a server's name count only in mode none, where names have no prefix.
    """

    def starts(server: str) -> set[str]:
        called = server_prefix(server, "mcp")
        alone = {f"{server_prefix(server, other)}_" for other in PREFIX_MODES if other != "none"}
        return {f"{called}__", f"{called}_"} | (alone if mode == "none" else set())

    @cache
    def spellings() -> Spellings:
        return Spellings(keys, starts)  # rarely needed: in most modes only for names that begin with mcp

    @cache
    def addresses() -> dict[str, str]:
        return {caseless(call_spelling(server, "")): server for server in servers}

    def others(key: Key, wish: str) -> Key | None:
        if mode != "none" and wish[:3].lower() != "mcp":
            return None
        loose = caseless(wish)
        found = [other for other in spellings().behind(wish) if other[0] != key[0]]
        for end in (at + 2 for at in range(5, len(loose)) if loose.startswith("__", at)):
            if (server := addresses().get(loose[:end], key[0])) != key[0]:
                found.append((server, wish[end:]))
        return min(found, default=None)  # the order of the tools must not matter

    return others


def _suffixed(wishes: Mapping[Key, str], used: set[str], given: Mapping[str, Key]) -> dict[Key, str]:
    """Return a distinct name with a hash suffix for each tool, and add the names to `used`.

    No name is in `used` or given to another tool. Names that collide all try a longer or another hash, so the order
    does not matter.
    """
    names: dict[Key, str] = {}
    attempt = 0
    while len(names) < len(wishes):
        tries = {key: _with_hash(key, wish, attempt) for key, wish in wishes.items() if key not in names}
        counts = Counter(tries.values())
        fits = {
            key: name
            for key, name in tries.items()
            if given.get(name) == key or (counts[name] == 1 and name not in used and name not in given)
        }
        names |= fits
        used |= set(fits.values())
        attempt += 1
    return names


def _with_hash(key: Key, wish: str, attempt: int) -> str:
    server, name = key
    text = f"{attempt}:{len(server)}:{server}{name}".encode("utf-8", "surrogatepass")
    digest = base64.b32encode(hashlib.blake2b(text, digest_size=20).digest()).decode().lower()
    suffix = digest[: min(SUFFIX_LENGTH + 2 * attempt, SUFFIX_LONGEST)]
    return f"{wish[: NAME_LENGTH - len(suffix) - 1]}_{suffix}"


def _clashes(
    names: Mapping[Key, str], rivals: Mapping[str, list[Key]], wishes: Mapping[Key, Wish]
) -> tuple[NameClash, ...]:
    clashes = []
    for wish, keys in rivals.items():
        who = sorted(f"{server}/{name}" for server, name in keys)
        more = f" and {len(who) - CLASH_SHOWN} more" if len(who) > CLASH_SHOWN else ""
        reason = f"more than one tool would be named {wish}: {', '.join(who[:CLASH_SHOWN])}{more}"
        losers = (key for key in keys if key in wishes and wishes[key][0] == wish and names[key] != wish)
        clashes += [NameClash(*key, names[key], reason) for key in losers]
    return tuple(sorted(clashes, key=lambda clash: (clash.server, clash.tool)))
