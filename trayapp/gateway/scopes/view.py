"""Combine servers into the view that sessions have: the user's servers, overlaid with those of a trusted project.

A project's own servers run beside the user's, under keys that appear in no list.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

from trayapp.backends.clock import first_of
from trayapp.backends.connection import Connection
from trayapp.gateway.exposure.catalog import Catalog
from trayapp.gateway.exposure.exposure import Exposure, SessionOptions, Unseen, choose
from trayapp.gateway.exposure.list_results import ListResults
from trayapp.gateway.exposure.search import ToolSearch
from trayapp.gateway.services import Services
from trayapp.model.config import Config, ServerConfig
from trayapp.model.lifecycle import State
from trayapp.model.offer import Item, Offer
from trayapp.wire.capabilities import ClientKind

# The first lists wait this long for servers whose lists were never read, because many clients list once and ignore
# list_changed.
FIRST_LIST_GRACE_S = 0.5  # so that the first list takes less than a second, even with the start and the loading of HTTP
# A server in one of these states answers no list request.
HOPELESS = frozenset({State.FAILED, State.NEEDS_AUTH, State.KEYRING_LOCKED})
NO_OPTIONS = SessionOptions()
KEY_HEX = 8  # digits of the digest of a project's folder, which distinguishes equal server names in two projects


class View:
    """The servers, by plain name, for the sessions of one project or of none. `folder`: the project's folder, or None.

    It has many methods because sessions see servers only through it.
    """

    def __init__(self, services: Services, folder: Path | None = None) -> None:
        self.folder = folder
        self.config = Config()
        self.finder = ToolSearch()
        self._services = services
        self.first_list_delay = FirstListDelay(services, self)
        self._keys: dict[str, str] = {}
        self.revision = 0  # changes with each new catalog
        self._catalog: Catalog | None = None
        self._noted: Catalog | None = None  # the catalog whose names were kept last
        self._plain_exposure: Exposure | None = None
        self._exposures: WeakValueDictionary[tuple[SessionOptions, Unseen, bool], Exposure] = WeakValueDictionary()
        self._list_results: WeakValueDictionary[tuple[int, bool], ListResults] = WeakValueDictionary()

    def take(self, config: Config, own: frozenset[str] = frozenset()) -> None:
        """Use `config` from now on. `own`: the names of the project's own servers, which run only for this view."""
        digest = hashlib.blake2b(str(self.folder).encode("utf-8", "surrogatepass")).hexdigest()[:KEY_HEX]
        self._keys = {name: f"{name}@{digest}" for name in own}
        self.config = config
        self.forget()

    def key(self, name: str) -> str:
        """Return the key under which a server of this view runs."""
        return self._keys.get(name, name)

    def owns(self, key: str) -> bool:
        """Return True if the server with that key runs for this view alone."""
        return key in self._keys.values()

    def own_servers(self) -> dict[str, ServerConfig]:
        """Return key -> entry of the servers that run only for this view. The entries have the keys as names."""
        return {key: replace(self.config.servers[name], name=key) for name, key in self._keys.items()}

    def name_of(self, key: str) -> str | None:
        """Return the plain name of the server that runs under `key`, or None if this view does not have it."""
        name = next((name for name, own in self._keys.items() if own == key), key)
        return name if name in self.config.servers and self.key(name) == key else None

    # -- the catalog ---------------------------------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        if self._catalog is None:
            parts = self._services
            offers = {name: offer for name in self.config.servers if (offer := self.offer(name)) is not None}
            served = {name: parts.served_tools.of(self.key(name), offer) for name, offer in offers.items()}
            self._catalog = Catalog(self.config, served, partial(parts.given_names.of, plain=self._plain))
        return self._catalog

    @property
    def _plain(self) -> dict[str, str]:
        return {self.key(name): name for name in self.config.servers}

    def note_names(self) -> bool:
        """Store the current exposed names. Return True if any of them is new."""
        catalog = self.catalog
        if catalog is self._noted:
            return False
        self._noted = catalog
        return self._services.given_names.note(catalog.names, catalog.held, self._plain)

    def forget(self) -> None:
        """Drop the catalog. It is built again when it is next needed."""
        self.revision += 1
        self._catalog = None

    def exposure(self, options: SessionOptions = NO_OPTIONS, kind: ClientKind | None = None) -> Exposure:
        """Return the exposure that sessions with these options and that kind of client share (None: any client)."""
        catalog, unseen = self.catalog, self._unseen(kind)
        older = kind is not None and not kind.newer and any(served.older for served in catalog.offers.values())
        key = (options, unseen, older)
        found = self._exposures.get(key)
        if found is None or found.catalog is not catalog:
            found = self._exposures[key] = Exposure(catalog, choose(options, catalog.config), unseen, older=older)
            if options == NO_OPTIONS and not unseen and not older:
                self._plain_exposure = found  # a strong reference, because it is needed again even without sessions
        return found

    def _unseen(self, kind: ClientKind | None) -> Unseen:
        """Return the items that servers do not list for clients of that kind."""
        if kind is None:
            return frozenset()
        found: set[tuple[str, str, str]] = set()
        for name in self.config.servers:
            key = self.key(name)
            best = self._services.listings.variant(key, kind)
            if best is not None:
                found |= {
                    (each, name, item)
                    for one in self._services.listings.variants(key)
                    for each, names in one.names.items()
                    for item in names - best.names[each]
                }
        return frozenset(found)

    def list_results(self, exposure: Exposure, *, newer: bool = False) -> ListResults:
        """Return the results of list requests for an exposure, in one object for all its sessions.

        `newer`: for clients of 2026-07-28, which have a separate object only if their lists differ.
        """
        key = id(exposure), newer and exposure.has_other_outputs
        found = self._list_results.get(key)
        if found is None or found.seen is not exposure:
            found = self._list_results[key] = ListResults(exposure, any_output=key[1])
        return found

    def offer(self, name: str) -> Offer | None:
        """Return a server's offer, or None if its lists have not been read yet."""
        return self._services.listings.get(self.key(name))

    def definitions(self, server: str, tool: str) -> list[Item]:
        """Return a tool's definitions: those served to each era, followed by the one that its server lists now."""
        served = (known.get((server, tool)) for known in (self.catalog.older_tools, self.catalog.tools))
        offer = self.offer(server)
        now = next((item for item in offer.tools if item.get("name") == tool), None) if offer is not None else None
        return [*(known.item for known in served if known is not None), *([] if now is None else [now])]

    def shared_key(self, key: str) -> str:
        """Return the key of the server that a further connection belongs to. Return any other key unchanged."""
        return self._services.shared_key(key)

    def missing(self) -> list[str]:
        """Return the enabled servers whose tools have not been read."""
        unknown = set(self._services.listings.missing())
        return [name for name in self.config.servers if self.key(name) in unknown]

    def find(self, name: str) -> Connection:
        """Return the first connection of a server. Raises ServerNotFoundError."""
        return self._services.pool.find(self.key(name))

    def get(self, name: str) -> Connection | None:
        """Return the first connection of a server, or None if there is none."""
        return self._services.pool.get(self.key(name))

    def being_asked(self, *, own: bool = False) -> list[str]:
        """Return the `missing` servers that may still answer. `own`: only those that run for this view alone."""
        discovering = self._services.pool.discovering
        if not discovering:
            return []
        names = [name for name in self.missing() if name in self._keys or not own]
        asked = {name: self.get(name) for name in names if self.key(name) in discovering}
        return [name for name, found in asked.items() if found is not None and found.state not in HOPELESS]


class FirstListDelay:
    """The delay of one view's first lists while its servers are asked for their lists for the first time."""

    def __init__(self, services: Services, view: View) -> None:
        self._services = services
        self._view = view
        self._latest = 0.0  # the clock's time until which a list may wait

    def begin(self) -> None:
        """Begin the delay, which lasts at most FIRST_LIST_GRACE_S."""
        self._latest = self._services.clock.now() + FIRST_LIST_GRACE_S

    @property
    def may_grow(self) -> bool:
        """Return True if a list should wait, because servers are being asked for their tools and the delay lasts."""
        return self._services.clock.now() < self._latest and bool(self._view.being_asked())

    async def settled(self) -> None:
        """Wait until `may_grow` is False."""
        await self.answered(self._latest - self._services.clock.now())

    async def answered(self, at_most_s: float, *, own: bool = False) -> None:
        """Wait until no server is being asked for its tools, but at most `at_most_s`.

        `own`: wait only for servers that run for this view alone.
        """

        async def all_answered() -> None:
            while self._view.being_asked(own=own):
                await self._services.changes.next()

        await first_of(all_answered, partial(self._services.clock.sleep, max(0.0, at_most_s)))
