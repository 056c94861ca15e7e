"""Lookup of the tool that a client names, in an index that is built once per change of the catalog."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

from trayapp.catalog.names import (
    SUFFIX_LENGTH,
    UNNAMED,
    Exposed,
    Key,
    Spellings,
    caseless,
    clean,
    expose_names,
    fold,
    server_prefix,
    spelled,
)
from trayapp.catalog.suggest import nearest
from trayapp.model.config import PREFIX_MODES, PrefixMode
from trayapp.model.errors import LEAVE_IT, AmbiguousToolError, ApprovalRequiredError, ToolNotFoundError


class HiddenReason(NamedTuple):
    """The reason why a tool may not be called: for people, with the remedy, and for models, without it."""

    person: str
    model: str


_HASHED = re.compile(rf"_[a-z2-7]{{{SUFFIX_LENGTH},}}\Z", re.IGNORECASE)


class Lookup:
    """An index that finds tools by name.

    `hidden` holds the known tools that may not be called, each with its reason. `waits(key)` is True if an approval
    would make the hidden tool callable. `servers` are all servers, even if their tools are not known. None
    means those in `exposed`.
    """

    def __init__(
        self,
        exposed: Exposed,
        hidden: Mapping[Key, HiddenReason] | None = None,
        waits: Callable[[Key], bool] = lambda key: False,
        servers: Iterable[str] | None = None,
    ) -> None:
        self._exposed = exposed
        self._hidden = hidden or {}
        self._waits = waits
        self._servers = dict.fromkeys(server for server, _ in exposed.by_key) if servers is None else servers
        self._open = exposed.by_name
        if self._hidden:
            self._open = {name: key for name, key in exposed.by_name.items() if key not in self._hidden}

    def find(self, asked: str, server: str | None = None) -> Key:
        """Return the (server, tool) that `asked` means, on `server` if given. Takes one dict lookup for a listed name.

        An unlisted name that could mean tools of two servers is refused: a server can choose tool names that read like
        those of another server.

        Raises AmbiguousToolError. Raises ToolNotFoundError with suggestions, or with the reason if the tool is hidden.
        """
        key = self._open.get(asked)
        if key is not None and (server is None or key[0] == server):
            return key
        listed = self._exposed.by_name.get(asked)
        if listed is not None and server in (None, listed[0]):
            raise self._hidden_error(asked, listed)
        if server is not None:
            readings = [[key for key in keys if key[0] == server] for keys in self._stages(asked)]
        else:
            starts = ((name, start) for name in self._servers for start in _addresses(name))
            named = {name for name, start in starts if caseless(asked).startswith(caseless(start))}
            readings = [
                [key for key in keys if not named or key[0] in named or not _is_bare(asked, key)]
                for keys in self._stages(asked)
            ]
        first = next((keys for keys in readings if keys), None)
        if first is None:
            listed_names = [name for name, key in self._open.items() if server is None or key[0] == server]
            raise ToolNotFoundError(asked, nearest(asked, listed_names))
        every = list(dict.fromkeys(chain(*readings)))
        return self._settle(asked, first if len({key[0] for key in every}) == 1 else every)

    def _stages(self, asked: str) -> Iterator[tuple[Key, ...]]:
        """Yield the tools that `asked` may mean, one interpretation after another, the most literal first."""
        yield self._exposed.shared.get(asked, ())
        yield self._originals.get(asked, ())
        folded = fold(asked)
        yield self._folded_displayed.get(folded, ())
        yield self._folded_originals.get(folded, ())
        yield from self._spelled(asked)

    def _settle(self, asked: str, keys: list[Key]) -> Key:
        """Return the one of `keys` that may be called. Raises AmbiguousToolError, ToolNotFoundError.

        A hidden tool gives way to another server's tool. It never gives way to a tool of its own server, because the
        name of a disabled tool must not run a different tool there. It also does not give way if `asked` names its
        server, while the other tool merely has that text as its own name.
        """
        callable_ = [key for key in keys if key not in self._hidden]
        if not callable_:
            raise self._hidden_error(asked, keys[0])
        meant = [key for key in keys if not _is_bare(asked, key)]
        if meant and self._hidden.keys() >= set(meant):
            raise self._hidden_error(asked, meant[0])
        only = callable_[0]
        if len(callable_) == 1 and all(key == only or key[0] != only[0] for key in keys):
            return only
        raise AmbiguousToolError(asked, sorted(f"{server}/{tool}" for server, tool in keys))

    def _hidden_error(self, asked: str, key: Key) -> ToolNotFoundError:
        if self._waits(key):
            error: ToolNotFoundError = ApprovalRequiredError(asked)
        else:
            error = ToolNotFoundError(asked)
            error.title = f"{asked} cannot be called"  # the tool is known: the hint says why
        error.hint, error.model_hint = self._hidden[key]
        return error

    def _spelled(self, asked: str) -> Iterator[tuple[Key, ...]]:
        """Yield the tools for which `asked` is a spelling: literal, then folded, then case-insensitive."""
        hashed = self._hashed.get(caseless(asked), ()) if _HASHED.search(asked) else ()
        loose = dict.fromkeys((*self._spellings.bare(asked), *self._spellings.behind(asked), *hashed))
        written = {key: _forms(*key) | ({asked} if key in hashed else set()) for key in loose}
        yield tuple(key for key in loose if asked in written[key])
        yield tuple(key for key in loose if fold(asked) in map(fold, written[key]))
        yield tuple(loose)

    @cached_property
    def _originals(self) -> Mapping[str, tuple[Key, ...]]:
        return _by_form((key[1], key) for key in self._exposed.by_key)

    @cached_property
    def _folded_displayed(self) -> Mapping[str, tuple[Key, ...]]:
        return _by_form((fold(name), key) for name, key in self._exposed.by_name.items())

    @cached_property
    def _folded_originals(self) -> Mapping[str, tuple[Key, ...]]:
        return _by_form((fold(key[1]), key) for key in self._exposed.by_key)

    @cached_property
    def _hashed(self) -> Mapping[str, tuple[Key, ...]]:
        """Return the tools by the hashed names that they have in other modes: no spelling rule produces such names."""
        modes = set(PREFIX_MODES) - {self._exposed.mode}
        names = (
            (key, mode, name) for mode in modes for key, name in expose_names(self._exposed.by_key, mode).by_key.items()
        )
        return _by_form((caseless(name), key) for key, mode, name in names if name != spelled(*key, mode))

    @cached_property
    def _spellings(self) -> Spellings:
        return Spellings(self._exposed.by_key, _starts)


def switched_off(server: str, tool: str) -> HiddenReason:
    """Return the reason for hiding a tool that is disabled in servers.yaml."""
    fact = f"{server}/{tool} is disabled in servers.yaml"
    return HiddenReason(
        f"{fact}; enable it with: multi-mcp enable {server}/{tool}", f"The user disabled it. {LEAVE_IT}"
    )


def server_of(name: str, servers: Iterable[str], mode: PrefixMode) -> list[str]:
    """Return the servers to which an unlisted tool's name may belong: the longest prefix first, exact before folded.

    `mcp__SERVER__TOOL` is understood in every mode. In mode none, only this form names a server.
    """
    places = []
    folded = fold(name)
    for server in servers:
        prefixes = [f"{server_prefix(server, 'mcp')}__"]
        if mode != "none":
            prefixes.append(f"{server_prefix(server, mode)}_")
        fitting = [p for p in prefixes if folded.startswith(fold(p)) and len(name) > len(p)]
        if fitting:
            best = max(fitting, key=len)
            places.append((-len(best), not name.startswith(best), server))
    return [server for *_, server in sorted(places)]


def _by_form(pairs: Iterable[tuple[str, Key]]) -> Mapping[str, tuple[Key, ...]]:
    """Return the tools that each written form may mean, in the catalog's order."""
    found: dict[str, dict[Key, None]] = {}
    for form, key in pairs:
        found.setdefault(form, {})[key] = None
    return {form: tuple(keys) for form, keys in found.items()}


def _forms(server: str, tool: str) -> set[str]:
    """Return every written form of a tool: its name, cleaned or raw, alone or after its server's name in each mode."""
    name, starts = clean(tool), _starts(server)
    forms = {start + name for start in starts} | {name or UNNAMED}
    return forms if name == tool else forms | {start + tool for start in starts}


def _is_bare(asked: str, key: Key) -> bool:
    """Return True if `asked` is the tool's own name and does not name its server."""
    server, tool = key
    name, loose = clean(tool), caseless(asked)
    return loose in (caseless(tool), caseless(name)) and all(
        caseless(start + name) != loose for start in _starts(server)
    )


def _addresses(server: str) -> frozenset[str]:
    """Return the unambiguous ways to name a server before a tool: `mcp__SERVER__` or `SERVER/`."""
    return frozenset({f"mcp__{server}__", f"{server_prefix(server, 'mcp')}__", f"{server}/"})


@lru_cache(maxsize=4096)
def _starts(server: str) -> frozenset[str]:
    prefixes = {server_prefix(server, mode) for mode in PREFIX_MODES if mode != "none"} | {server}
    return _addresses(server).union(f"{prefix}_" for prefix in prefixes)
