"""The names under which clients see tools: at most 64 safe characters, unique, the same in whatever order servers come.

Never here: finding the tool that a name means (lookup does), I/O, state.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache

from trayapp.model.settings import PrefixMode

Key = tuple[str, str]  # server, and the name (or URI) that the server itself uses
Wish = tuple[str, bool]  # the wanted name, and whether it is the thing's own spelling, with nothing replaced

NAME_LENGTH = 64  # characters; what every model provider accepts
SUFFIX_LENGTH = 6  # base32 characters: two of 1,000 clashing tools share it once in 2,000 catalogs
CLASH_SHOWN = 5  # tools of one clash that its reason names
SUFFIX_LONGEST = 32  # base32 characters of a 20 byte digest

_OUTSIDE = re.compile(r"[^A-Za-z0-9_-]")
_MCP_SUFFIX = re.compile(r"-?mcp\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clash:
    """A tool that could not keep the name it would have alone. `reason` is one line for people."""

    server: str
    tool: str
    exposed: str
    reason: str


@dataclass(frozen=True, slots=True)
class Exposed:
    """The names of one catalog, both ways.

    `shared` holds the names that several things wanted and none got, with all of them, sorted.
    """

    mode: PrefixMode
    by_name: dict[str, Key] = field(default_factory=dict)
    by_key: dict[Key, str] = field(default_factory=dict)
    shared: dict[str, tuple[Key, ...]] = field(default_factory=dict)
    clashes: tuple[Clash, ...] = ()


def escaped_server(server: str) -> str:
    """The server's name in safe characters: any other becomes `_HEX_`, so `my server` is not `my_server`."""
    return _OUTSIDE.sub(lambda found: f"_{ord(found[0]):x}_", server)


def clean(tool: str) -> str:
    """The tool's name in safe characters: any other becomes `_`."""
    return _OUTSIDE.sub("_", tool)


@lru_cache(maxsize=4096)
def server_prefix(server: str, mode: PrefixMode) -> str:
    """What stands before the `_` and the tool's name; "" in mode none."""
    if mode == "none":
        return ""
    if mode == "short":
        return escaped_server(_MCP_SUFFIX.sub("", server)) or "mcp"
    return ("mcp__" if mode == "mcp" else "") + escaped_server(server)


def spelled(server: str, tool: str, mode: PrefixMode) -> str:
    """The tool's name in `mode`, as it would be without neighbours; may be too long.

    A tool that names its server already (codegraph, codegraph_explore) is not prefixed again.
    """
    name = clean(tool)
    if mode == "none":
        return name or "tool"
    prefix = server_prefix(server, mode) + "_"
    return name if name.startswith(prefix) and len(name) > len(prefix) else prefix + name


def call_spelling(server: str, tool: str) -> str:
    """`mcp__SERVER__TOOL`, which clients are used to and which is understood in every mode."""
    return f"mcp__{escaped_server(server)}__{clean(tool)}"


def expose_names(entries: Iterable[Key], mode: PrefixMode, taken: Set[str] = frozenset()) -> Exposed:
    """The exposed name of each (server, tool); those in `taken` are nobody's.

    Pass every tool that is known, switched on or not: then no switch renames another tool.
    """
    return expose({key: _wish(key, mode) for key in entries}, mode, taken)


def expose(wishes: Mapping[Key, Wish], mode: PrefixMode, taken: Set[str] = frozenset()) -> Exposed:
    """Fulfil the wishes where they are short and nobody else's, and put a hash behind the others.

    Of several with one wish, the only one whose own spelling it is keeps it (`a_b` against `a.b`); where there is no
    such one, nobody gets it: none may be called for another. Names in `taken` belong to somebody else.
    """
    groups: dict[str, list[Key]] = {}
    for key, (wish, _) in wishes.items():
        groups.setdefault(wish, []).append(key)
    names = {holder: wish for wish, keys in groups.items() if (holder := _holder(wish, keys, wishes, taken))}
    losers = {key: wish for key, (wish, _) in wishes.items() if key not in names}
    nobodys = {wish: keys for wish, keys in groups.items() if len(keys) > 1 and names.keys().isdisjoint(keys)}
    shared = {wish: tuple(sorted(keys)) for wish, keys in nobodys.items()}
    names |= _suffixed(losers, {*groups, *taken})
    clashes = _clashes(names, {wish: groups[wish] for wish in losers.values() if len(wish) <= NAME_LENGTH})
    return Exposed(mode, {name: key for key, name in names.items()}, names, shared, clashes)


def _wish(key: Key, mode: PrefixMode) -> Wish:
    server, tool = key
    name = spelled(server, tool, mode)
    raw = f"mcp__{server}_{tool}" if mode == "mcp" else f"{server}_{tool}"
    return name, name in (tool, raw)


def _holder(wish: str, keys: list[Key], wishes: Mapping[Key, Wish], taken: Set[str]) -> Key | None:
    if len(wish) > NAME_LENGTH or wish in taken:
        return None
    own = keys if len(keys) == 1 else [key for key in keys if wishes[key][1]]
    return own[0] if len(own) == 1 else None


def _suffixed(wishes: Mapping[Key, str], used: set[str]) -> dict[Key, str]:
    """Distinct names, none in `used`. All that meet at one length try the next: the order does not matter."""
    names: dict[Key, str] = {}
    attempt = 0
    while len(names) < len(wishes):
        tries = {key: _with_hash(key, wish, attempt) for key, wish in wishes.items() if key not in names}
        counts = Counter(tries.values())
        fits = {key: name for key, name in tries.items() if counts[name] == 1 and name not in used}
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


def _clashes(names: Mapping[Key, str], groups: Mapping[str, list[Key]]) -> tuple[Clash, ...]:
    clashes = []
    for wish, keys in groups.items():
        who = sorted(f"{server}/{name}" for server, name in keys)
        more = f" and {len(who) - CLASH_SHOWN} more" if len(who) > CLASH_SHOWN else ""
        reason = f"more than one tool would be called {wish}: {', '.join(who[:CLASH_SHOWN])}{more}"
        clashes += [Clash(*key, names[key], reason) for key in keys if names[key] != wish]
    return tuple(sorted(clashes, key=lambda clash: (clash.server, clash.tool)))
