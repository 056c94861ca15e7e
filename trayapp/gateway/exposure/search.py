"""Search tools for all sessions of a view, in one index that is updated server by server at each search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from trayapp.catalog.names import Key
from trayapp.gateway.exposure.catalog import Catalog
from trayapp.gateway.exposure.exposure import Exposure, read_tool
from trayapp.gateway.exposure.served_tools import ServedOffer
from trayapp.model.offer import Item

if TYPE_CHECKING:
    # The first search loads this module. Lists do not need it.
    from trayapp.catalog.search.index import Entry, Hit, SearchIndex

ROUNDS_MOST = 3  # updates before a search: during each, further servers may list their tools, but fewer each time
STEP = 50  # the number of tools that are prepared before other work may run

Signature = tuple[ServedOffer, Mapping[Key, str], str]  # offer, names and title that a server's entries are built from


class ToolSearch:
    """The search index of one view's tools. Each search is limited to the tools that its session sees."""

    def __init__(self) -> None:
        self._synonyms: Mapping[str, Any] = {}
        self._catalog: Catalog | None = None
        self._made: dict[str, Signature] = {}
        self._updating = anyio.Lock()
        self._updates = 0
        self._kept: tuple[Catalog, SearchIndex] | None = None

    @cached_property
    def _index(self) -> SearchIndex:
        from trayapp.catalog.search.index import SearchIndex

        return SearchIndex()

    def is_current(self, exposure: Exposure) -> bool:
        """Return True if the index is up to date with the exposure's catalog, so that `search` is quick."""
        return exposure.catalog is self._catalog

    async def find(
        self, exposure: Callable[[], Exposure], words: str, *, server: str | None, limit: int, regex: bool = False
    ) -> list[Hit]:
        """Return the best matches, as `search` does, but pause for other work.

        `exposure` returns what the session sees now. `regex`: `words` is a regular expression.
        Raises EmptyQueryError, InvalidPatternError.
        """
        async with self._updating:
            for _ in range(ROUNDS_MOST):
                for _ in self.update(exposure().catalog):
                    await anyio.lowlevel.checkpoint()
        if not regex or not words.strip():
            return self.search(exposure(), words, server=server, limit=limit)
        from trayapp.catalog.search.index import Pattern, matching

        entries = self._index.listed(server, _allowed_keys(exposure()))
        return await anyio.to_thread.run_sync(matching, Pattern(words), entries, limit, abandon_on_cancel=True)

    def search(self, exposure: Exposure, words: str, *, server: str | None, limit: int) -> list[Hit]:
        """Return the best matches that the exposure shows, after an update of the index without pauses.

        `server`: search only its tools, or None for all servers. Raises EmptyQueryError.
        """
        for _ in self.update(exposure.catalog):
            pass
        return self._index.search(words, server=server, limit=limit, allowed=_allowed_keys(exposure))

    def kept_back(
        self, exposure: Exposure, words: str, hits: Sequence[Hit], *, server: str | None, regex: bool
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Return how many matching tools the user disabled, and how many wait for approval, each by server.

        A tool matches if it lacks no more of the words than the best hit. With `regex` or without words, every tool
        matches.
        """
        off = {key for key in exposure.switched_off if server in (None, key[0])}
        keys = off.union(key for key in exposure.waiting if server in (None, key[0]))
        if keys and words.strip() and not regex:  # a pattern would take too long here, and delay other requests
            least = min((len(hit.missed) for hit in hits), default=None)
            found = self._kept_index(exposure.catalog).search(words, limit=len(keys), allowed=frozenset(keys))
            near = [hit for hit in found if least is None or len(hit.missed) <= least]
            keys = {key for hit in near for key in (hit.key, *hit.also)}
        return _count_by_server(keys & off), _count_by_server(keys - off)

    def _kept_index(self, catalog: Catalog) -> SearchIndex:
        from trayapp.catalog.search.index import SearchIndex

        if self._kept is None or self._kept[0] is not catalog:
            index, names = SearchIndex(), dict[str, list[Key]]()
            for key in (*catalog.waiting, *catalog.switched_off):
                names.setdefault(key[0], []).append(key)
            for server, keys in names.items():
                title = _title(catalog, server)
                index.update(server, [_entry(catalog, key, catalog.names.by_key[key], title) for key in keys])
            self._kept = catalog, index
        return self._kept[1]

    def update(self, catalog: Catalog) -> Iterator[None]:
        """Bring the index up to date with a catalog, one changed server at a time. Yield often, for other work.

        Stop early if another update begins during a yield.
        """
        if catalog is self._catalog:
            return
        self._catalog = None
        self._updates += 1
        this = self._updates
        if catalog.config.settings.synonyms != self._synonyms:
            self._synonyms = catalog.config.settings.synonyms
            for server in self._index.take_synonyms(self._synonyms):
                self._made.pop(server, None)
        names: dict[str, dict[Key, str]] = {server: {} for server in catalog.offers}
        shown = {key: catalog.names.by_key[key] for key in catalog.tools if key not in catalog.hidden}
        for key, name in {**shown, **catalog.read_tools.exposed.by_key}.items():
            names[key[0]][key] = name
        for server in self._index.servers - names.keys():
            self._index.remove(server)
            self._made.pop(server, None)
        for server, named in names.items():
            offer, made, title = catalog.offers[server], self._made.get(server), _title(catalog, server)
            if made is None or made[0] is not offer or made[1:] != (named, title):
                self._made.pop(server, None)  # an update that begins during a yield indexes this server again
                entries = [_entry(catalog, key, name, title) for key, name in named.items()]
                for _ in self._index.updating(server, entries):
                    yield
                    if this != self._updates:
                        return
                self._made[server] = offer, named, title
        self._catalog = catalog


def _allowed_keys(exposure: Exposure) -> Container[Key] | None:
    """Return the keys to which a search is limited, or None for no limit."""
    return None if exposure.is_whole and not exposure.unseen else exposure.callable_keys


def _title(catalog: Catalog, server: str) -> str:
    """Return a server's title from servers.yaml, or else the title or name that it announces, or "" if it has none."""
    told = catalog.offers[server].offer.server_info or {}
    given = (catalog.config.servers[server].title, told.get("title"), told.get("name"))
    return next((text for text in given if isinstance(text, str) and text), "")


def _entry(catalog: Catalog, key: Key, name: str, title: str) -> Entry:
    from trayapp.catalog.search.index import Entry

    tool = catalog.tools.get(key)
    item: Item = tool.item if tool is not None else read_tool(catalog.readable[key], key[1], name)
    return Entry(*key, name, item, title)


def prepare(exposure: Exposure, finder: ToolSearch) -> Iterator[None]:
    """Prepare the first list, or in the mode "search" the first search. Yield between small steps."""
    for offer in exposure.catalog.offers.values():
        offer.prepare()
        yield
    if exposure.mode == "search":
        yield from finder.update(exposure.catalog)
        return
    for number, (key, tool) in enumerate(exposure.tools.items()):
        tool.listed(exposure.name_of(key))
        if number % STEP == 0:
            yield


def _count_by_server(keys: Collection[Key]) -> dict[str, int]:
    return dict(sorted(Counter(key[0] for key in keys).items()))
