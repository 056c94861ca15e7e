"""Tool search for all sessions of a view: one index, brought up to date server by server when somebody searches.

Never here: ranking (catalog/search), texts.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from trayapp.catalog.names import Key
from trayapp.gateway.exposure.catalog import Catalog
from trayapp.gateway.exposure.exposure import Exposure, read_tool
from trayapp.gateway.exposure.tools import ServedOffer
from trayapp.model.offer import Item

if TYPE_CHECKING:
    # Loaded by the first search: no list needs it.
    from trayapp.catalog.search.index import Entry, Hit, SearchIndex

ROUNDS_MOST = 3  # while servers are being met, each changes what is known: what the last one missed is little
STEP = 50  # tools: so many are made ready before other work comes in between

Signature = tuple[ServedOffer, Mapping[Key, str], str]  # what a server's entries were made from: offer, names, title


class ToolSearch:
    """The index of one view, whatever its sessions' options are: each search is narrowed to what its session sees."""

    def __init__(self) -> None:
        self._synonyms: Mapping[str, Any] = {}
        self._catalog: Catalog | None = None
        self._made: dict[str, Signature] = {}
        self._updating = anyio.Lock()
        self._updates = 0

    @cached_property
    def _index(self) -> SearchIndex:
        from trayapp.catalog.search.index import SearchIndex

        return SearchIndex()

    def answers_at_once(self, exposure: Exposure, *, regex: bool = False) -> bool:
        """Whether `search` holds up nobody: the index is up to date, and no pattern is tried on every tool."""
        return exposure.catalog is self._catalog and not regex

    async def find(
        self, exposure: Callable[[], Exposure], words: str, *, server: str | None, limit: int, regex: bool = False
    ) -> list[Hit]:
        """As `search`, with other work in between; `exposure` is asked anew after each wait."""
        async with self._updating:
            for _ in range(ROUNDS_MOST):
                for _ in self.update(exposure().catalog):
                    await anyio.lowlevel.checkpoint()
        if not regex or not words.strip():
            return self.search(exposure(), words, server=server, limit=limit)
        from trayapp.catalog.patterns import Pattern
        from trayapp.catalog.search.index import matching

        entries = self._index.listed(server, _allowed(exposure()))
        return await anyio.to_thread.run_sync(matching, Pattern(words), entries, limit, abandon_on_cancel=True)

    def search(
        self, exposure: Exposure, words: str, *, server: str | None, limit: int, regex: bool = False
    ) -> list[Hit]:
        """The best matches among what the exposure shows. Raises EmptyQueryError, InvalidPatternError."""
        for _ in self.update(exposure.catalog):
            pass
        return self._index.search(words, server=server, limit=limit, regex=regex, allowed=_allowed(exposure))

    def update(self, catalog: Catalog) -> Iterator[None]:
        """Renew the entries of those servers whose tools, or names, are others now, in steps of some milliseconds;
        ends early when another update begins between two of them."""
        if catalog is self._catalog:
            return
        self._catalog = None
        self._updates += 1
        this = self._updates
        if catalog.config.settings.synonyms != self._synonyms:
            self._synonyms = catalog.config.settings.synonyms
            for server in self._index.take_synonyms(self._synonyms):
                self._made.pop(server, None)
        names = self._names(catalog)
        for server in self._index.servers - names.keys():
            self._index.remove(server)
            self._made.pop(server, None)
        for server, named in names.items():
            offer, made, title = catalog.offers[server], self._made.get(server), title_of(catalog, server)
            if made is None or made[0] is not offer or made[1:] != (named, title):
                self._made.pop(server, None)  # whoever comes in between begins with it anew
                entries = [entry_of(catalog, key, name, title) for key, name in named.items()]
                for _ in self._index.updating(server, entries):
                    yield
                    if this != self._updates:
                        return
                self._made[server] = offer, named, title
        self._catalog = catalog

    @staticmethod
    def _names(catalog: Catalog) -> dict[str, dict[Key, str]]:
        """The exposed names of all that may be called, by server."""
        names: dict[str, dict[Key, str]] = {server: {} for server in catalog.offers}
        for key in catalog.tools:
            if key not in catalog.hidden:
                names[key[0]][key] = catalog.names.by_key[key]
        for key, name in catalog.read_tools.exposed.by_key.items():
            names[key[0]][key] = name
        return names


def _allowed(exposure: Exposure) -> Container[Key] | None:
    """What a search is narrowed to; None when it is not."""
    return None if exposure.is_whole else exposure.callable_keys


def title_of(catalog: Catalog, server: str) -> str:
    """What a server is called besides its key: by the user, or by itself."""
    told = catalog.offers[server].offer.server_info or {}
    given = (catalog.config.servers[server].title, told.get("title"), told.get("name"))
    return next((text for text in given if isinstance(text, str) and text), "")


def entry_of(catalog: Catalog, key: Key, name: str, title: str = "") -> Entry:
    """Return what the index holds of a tool, or of a resource as one."""
    from trayapp.catalog.search.index import Entry

    tool = catalog.tools.get(key)
    item: Item = tool.item if tool is not None else read_tool(catalog.resources[key], key[1], name)
    return Entry(*key, name, item, title)


def prepare(exposure: Exposure, finder: ToolSearch) -> Iterator[None]:
    """Do what the first list or the first search would have to wait for, in small steps."""
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
