"""From a name that a client asked for to the tool that it means: an index that is built once per change of the catalog.

Never here: splitting names (they are looked up), connecting to a server whose tools are not known yet, I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import chain

from trayapp.catalog.names import Exposed, Key, clean, expose_names, server_prefix, spelled
from trayapp.catalog.suggest import nearest
from trayapp.model.errors import AmbiguousToolError, ApprovalRequiredError, ToolNotFoundError
from trayapp.model.settings import PREFIX_MODES, PrefixMode


class Lookup:
    """Finds tools by name. `hidden` holds the known tools that may not be called, each with the hint that says why;
    `waits` tells which of them an approval would bring back."""

    def __init__(
        self,
        exposed: Exposed,
        hidden: Mapping[Key, str] | None = None,
        waits: Callable[[Key], bool] = lambda key: False,
    ) -> None:
        self._exposed = exposed
        self._hidden = hidden or {}
        self._waits = waits
        self._open = exposed.by_name
        if self._hidden:
            self._open = {name: key for name, key in exposed.by_name.items() if key not in self._hidden}

    def find(self, asked: str, server: str | None = None) -> Key:
        """The (server, tool) that `asked` means, on `server` when given; one dict hit for a listed name.

        Raises AmbiguousToolError, and ToolNotFoundError with suggestions, or with the reason when the tool is hidden.
        """
        key = self._open.get(asked)
        if key is not None and (server is None or key[0] == server):
            return key
        for keys in self._stages(asked):
            here = [key for key in keys if server is None or key[0] == server]
            if here:
                return self._settle(asked, here)
        raise ToolNotFoundError(asked, self.suggestions(asked, server))

    def suggestions(self, asked: str, server: str | None = None) -> list[str]:
        """The listed names nearest to `asked`, best first."""
        return nearest(asked, [name for name, key in self._open.items() if server is None or key[0] == server])

    def _stages(self, asked: str) -> Iterator[tuple[Key, ...]]:
        """What each reading of `asked` leads to, the most literal first; later indexes are built when needed."""
        key = self._exposed.by_name.get(asked)
        yield (key,) if key else ()
        yield self._exposed.shared.get(asked, ())
        yield self._originals.get(asked)
        folded = fold(asked)
        yield self._folded_displayed.get(folded)
        yield self._folded_originals.get(folded)
        yield self._spelled(asked)

    def _settle(self, asked: str, keys: list[Key]) -> Key:
        """The one that may be called. A hidden tool steps aside for another server's, never for its sibling:
        what is switched off under this very name must not run something else of that server."""
        callable_ = [key for key in keys if key not in self._hidden]
        if not callable_:
            raise self._hidden_error(asked, keys[0])
        only = callable_[0]
        if len(callable_) == 1 and all(key == only or key[0] != only[0] for key in keys):
            return only
        raise AmbiguousToolError(asked, sorted(f"{server}/{tool}" for server, tool in keys))

    def _hidden_error(self, asked: str, key: Key) -> ToolNotFoundError:
        error = ApprovalRequiredError(asked) if self._waits(key) else ToolNotFoundError(asked)
        error.hint = self._hidden[key]
        return error

    def _spelled(self, asked: str) -> tuple[Key, ...]:
        """The tools that `asked` is any spelling of: literally, else folded, else without regard to case."""
        loose = self._spellings.get(_caseless(asked))
        written = {key: _forms(*key) | self._other_modes.get(key, set()) for key in loose}
        literal = tuple(key for key in loose if asked in written[key])
        folded = tuple(key for key in loose if fold(asked) in map(fold, written[key]))
        return literal or folded or loose

    @cached_property
    def _originals(self) -> _Forms:
        return _Forms((key[1], key) for key in self._exposed.by_key)

    @cached_property
    def _folded_displayed(self) -> _Forms:
        return _Forms((fold(name), key) for name, key in self._exposed.by_name.items())

    @cached_property
    def _folded_originals(self) -> _Forms:
        return _Forms((fold(key[1]), key) for key in self._exposed.by_key)

    @cached_property
    def _other_modes(self) -> dict[Key, set[str]]:
        """The names with a hash behind them that tools have in the other modes: no spelling rule leads to those."""
        names: dict[Key, set[str]] = {}
        for mode in set(PREFIX_MODES) - {self._exposed.mode}:
            for key, name in expose_names(self._exposed.by_key, mode).by_key.items():
                if name != spelled(*key, mode):
                    names.setdefault(key, set()).add(name)
        return names

    @cached_property
    def _spellings(self) -> _Forms:
        every = ((form, key) for key in self._exposed.by_key for form in set(map(_caseless, _forms(*key))))
        others = ((_caseless(form), key) for key, names in self._other_modes.items() for form in names)
        return _Forms(chain(every, others))


def fold(name: str) -> str:
    """`name` with hyphens as underscores: models mix them up."""
    return name.replace("-", "_")


def switched_off(server: str, tool: str) -> str:
    """The hint for a tool that servers.yaml keeps from clients."""
    return f"{server}/{tool} is switched off in servers.yaml; switch it on with: multi-mcp enable {server}/{tool}"


def server_of(name: str, servers: Iterable[str], mode: PrefixMode) -> list[str]:
    """The servers that a name of no known tool may belong to, the longest prefix first, the exact before the folded.

    `mcp__SERVER__TOOL` is understood in every mode; in mode none it alone names a server.
    """
    places = []
    folded = fold(name)
    for server in servers:
        fitting = [p for p in _prefixes(server, mode) if folded.startswith(fold(p)) and len(name) > len(p)]
        if fitting:
            best = max(fitting, key=len)
            places.append((-len(best), not name.startswith(best), server))
    return [server for *_, server in sorted(places)]


def _prefixes(server: str, mode: PrefixMode) -> list[str]:
    called = f"{server_prefix(server, 'mcp')}__"
    return [called] if mode == "none" else [called, f"{server_prefix(server, mode)}_"]


class _Forms:
    """Which tools each written form may mean. Most forms mean one: only the others pay for a collection."""

    def __init__(self, pairs: Iterable[tuple[str, Key]]) -> None:
        self._first: dict[str, Key] = {}
        self._all: dict[str, dict[Key, None]] = {}
        for form, key in pairs:
            first = self._first.setdefault(form, key)
            if first != key:
                self._all.setdefault(form, {first: None})[key] = None

    def get(self, form: str) -> tuple[Key, ...]:
        """The tools that `form` may mean, in the catalog's order."""
        if form in self._all:
            return tuple(self._all[form])
        return (self._first[form],) if form in self._first else ()


def _caseless(name: str) -> str:
    return name.replace("-", "_").lower()


def _forms(server: str, tool: str) -> set[str]:
    """Every way to write a tool by rule: alone, or behind its server's name in each mode (twice too), raw."""
    name, starts = clean(tool), _starts(server)
    forms = {start + name for start in starts} | {name or "tool"}
    return forms if name == tool else forms | {start + tool for start in starts}


@lru_cache(maxsize=4096)
def _starts(server: str) -> frozenset[str]:
    prefixes = {server_prefix(server, mode) for mode in PREFIX_MODES if mode != "none"} | {server}
    called = {f"mcp__{server}__", f"{server_prefix(server, 'mcp')}__"}
    return frozenset({f"{prefix}_" for prefix in prefixes} | called | {f"{server}/"})
