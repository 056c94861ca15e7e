"""Read what servers list for other kinds of clients than the first reading was for, after it, in the background.

The first reading is in the newest era that the server speaks, told that its client can do everything. A server that
speaks both eras is read in the older one, too; one that asked while it was read, or changed its lists, is read
for a client that can do nothing. Any other server costs no second reading. What differs is kept in the catalog's cache.

Over HTTP, `initialize` is a fault to some servers of the newer era. So such a server is tried in the older one only
once a client of that era is there.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio

from trayapp.backends.connection import Connection
from trayapp.gateway.scopes.servers import Servers
from trayapp.gateway.services import Services
from trayapp.model.errors import ServerError

log = logging.getLogger(__name__)

AT_ONCE = 2  # nobody waits for them, and each may start a process


class VariantProbes:
    """Probes of one gateway. `once_calm`: does work that no client waits for."""

    def __init__(
        self, services: Services, servers: Servers, once_calm: Callable[[Callable[[], Awaitable[Any]]], Awaitable[None]]
    ) -> None:
        self._services = services
        self._servers = servers
        self._once_calm = once_calm
        self._has_older_clients = False  # or had one
        self._begun: set[str] = set()
        self._at_once = anyio.CapacityLimiter(AT_ONCE)

    def consider(self, connection: Connection) -> None:
        """Probe a server whose lists were read on its first connection, if they may differ."""
        name, own, listings = connection.key, self._servers.own, self._services.listings
        if own.is_own(name) or name not in self._servers.shared.servers:
            return
        traits, kinds = listings.traits(name), listings.kinds(name)
        if not kinds:
            return
        over_http = connection.server.url is not None
        may_be_older = traits.older or (traits.older is None and (self._has_older_clients or not over_http))
        if traits.newer and may_be_older and all(kind.newer for kind in kinds):
            self._begin(own.of_era(name, newer=False))
        self._consider_weak(connection)

    def _consider_weak(self, connection: Connection) -> None:
        """Probe what a client that can do nothing is listed in the older era."""
        name, listings = connection.key, self._services.listings
        # A server over HTTP says nothing while it is read, and costs no process.
        may_depend = bool(listings.traits(name).asks or connection.changes_at_start or connection.server.url)
        if may_depend and listings.traits(name).older and all(kind.newer or kind.able for kind in listings.kinds(name)):
            self._begin(self._servers.own.weak(name))

    def note_clients(self) -> None:
        """Consider servers over HTTP again once the first client of the older era is there."""
        clients = [session.client for session in self._services.sessions]
        if self._has_older_clients or not any(client.protocol and not client.modern for client in clients):
            return
        self._has_older_clients = True
        for name, server in self._servers.shared.servers.items():
            if server.url is not None and (connection := self._services.pool.get(name)) is not None:
                self.consider(connection)

    def _begin(self, key: str) -> None:
        if key not in self._begun:
            self._begun.add(key)
            self._services.spawn(self._once_calm, partial(self._probe, key))

    async def _probe(self, key: str) -> None:
        await self._services.pool.settled()
        async with self._at_once:
            connection = self._servers.further(key)
            if connection is None or connection.server.disabled:
                return
            try:
                await self._services.pool.refresh(connection, explicit=False)
            except ServerError as error:
                log.info("Cannot read the lists that other clients get: %s", error)
            finally:
                self._begun.discard(key)
        first = self._services.pool.get(self._services.shared_key(key))
        if first is not None and not self._servers.own.purpose(key).weak:
            self._consider_weak(first)
