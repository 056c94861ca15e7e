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
from trayapp.gateway.expose import Exposure, read_tool
from trayapp.gateway.known import Known
from trayapp.gateway.prepared import PreparedOffer
from trayapp.model.late import late_module
from trayapp.model.offer import Item

if TYPE_CHECKING:
    from trayapp.catalog import patterns
    from trayapp.catalog.search import index
    from trayapp.catalog.search.index import Entry, Hit, SearchIndex
else:
    patterns, index = late_module("trayapp.catalog.patterns"), late_module("trayapp.catalog.search.index")

ROUNDS_MOST = 3  # while servers are being met, each changes what is known: what the last one missed is little
STEP = 50  # tools: so many are made ready before other work comes in between

Signature = tuple[PreparedOffer, Mapping[Key, str], str]  # what a server's entries were made from: offer, names, title


class Finder:
    """The index of one view, whatever its sessions' options are: each search is narrowed to what its session sees."""

    def __init__(self) -> None:
        self._synonyms: Mapping[str, Any] = {}
        self._known: Known | None = None
        self._made: dict[str, Signature] = {}
        self._updating = anyio.Lock()
        self._updates = 0

    @cached_property
    def _index(self) -> SearchIndex:
        return index.SearchIndex()

    def answers_at_once(self, exposure: Exposure, *, regex: bool = False) -> bool:
        """Whether `search` holds up nobody: the index is up to date, and no pattern is tried on every tool."""
        return exposure.known is self._known and not regex

    async def find(
        self, exposure: Callable[[], Exposure], words: str, *, server: str | None, limit: int, regex: bool = False
    ) -> list[Hit]:
        """As `search`, with other work in between; `exposure` is asked anew after each wait."""
        async with self._updating:
            for _ in range(ROUNDS_MOST):
                for _ in self.update(exposure().known):
                    await anyio.lowlevel.checkpoint()
        if not regex or not words.strip():
            return self.search(exposure(), words, server=server, limit=limit)
        entries = self._index.listed(server, _allowed(exposure()))
        return await anyio.to_thread.run_sync(
            index.matching, patterns.Pattern(words), entries, limit, abandon_on_cancel=True
        )

    def search(
        self, exposure: Exposure, words: str, *, server: str | None, limit: int, regex: bool = False
    ) -> list[Hit]:
        """The best matches among what the exposure shows. Raises EmptyQueryError, InvalidPatternError."""
        for _ in self.update(exposure.known):
            pass
        return self._index.search(words, server=server, limit=limit, regex=regex, allowed=_allowed(exposure))

    def update(self, known: Known) -> Iterator[None]:
        """Renew the entries of those servers whose tools, or names, are others now, in steps of some milliseconds;
        ends early when another update begins between two of them."""
        if known is self._known:
            return
        self._known = None
        self._updates += 1
        this = self._updates
        if known.config.settings.synonyms != self._synonyms:
            self._synonyms = known.config.settings.synonyms
            for server in self._index.take_synonyms(self._synonyms):
                self._made.pop(server, None)
        names = self._names(known)
        for server in self._index.servers - names.keys():
            self._index.remove(server)
            self._made.pop(server, None)
        for server, named in names.items():
            offer, made, title = known.offers[server], self._made.get(server), title_of(known, server)
            if made is None or made[0] is not offer or made[1:] != (named, title):
                self._made.pop(server, None)  # whoever comes in between begins with it anew
                entries = [entry_of(known, key, name, title) for key, name in named.items()]
                for _ in self._index.updating(server, entries):
                    yield
                    if this != self._updates:
                        return
                self._made[server] = offer, named, title
        self._known = known

    @staticmethod
    def _names(known: Known) -> dict[str, dict[Key, str]]:
        """The exposed names of all that may be called, by server."""
        names: dict[str, dict[Key, str]] = {server: {} for server in known.offers}
        for key in known.tools:
            if key not in known.hidden:
                names[key[0]][key] = known.names.by_key[key]
        for key, name in known.read_tools.exposed.by_key.items():
            names[key[0]][key] = name
        return names


def _allowed(exposure: Exposure) -> Container[Key] | None:
    """What a search is narrowed to; None when it is not."""
    return None if exposure.is_whole else exposure.callable_keys


def title_of(known: Known, server: str) -> str:
    """What a server is called besides its key: by the user, or by itself."""
    told = known.offers[server].offer.server_info or {}
    given = (known.config.servers[server].title, told.get("title"), told.get("name"))
    return next((text for text in given if isinstance(text, str) and text), "")


def entry_of(known: Known, key: Key, name: str, title: str = "") -> Entry:
    """What the index holds of a tool, or of a resource as one."""
    tool = known.tools.get(key)
    item: Item = tool.item if tool is not None else read_tool(known.resources[key], key[1], name)
    return index.Entry(*key, name, item, title)


def prepare(exposure: Exposure, finder: Finder) -> Iterator[None]:
    """Do what the first list or the first search would have to wait for, in small steps."""
    for offer in exposure.known.offers.values():
        offer.prepare()
        yield
    if exposure.mode == "search":
        yield from finder.update(exposure.known)
        return
    for number, (key, tool) in enumerate(exposure.tools.items()):
        tool.listed(exposure.name_of(key))
        if number % STEP == 0:
            yield
