"""Read what servers list for other kinds of clients than the first reading was for, after it, in the background.

The first reading is in the newest era that the server speaks, told that its client can do everything. A server that
speaks both eras is read in the older one, too; one that asked while it was read, or changed its lists, is read
for a client that can do nothing. Any other server costs no second reading. What differs is kept in the catalog's cache.
"""

from __future__ import annotations

import logging

import anyio

from trayapp.backends.connection import Connection
from trayapp.gateway.scopes.servers import Servers
from trayapp.gateway.services import Services
from trayapp.model.errors import ServerError

log = logging.getLogger(__name__)

AT_ONCE = 2  # nobody waits for them, and each may start a process


class VariantProbes:
    """Probes of one gateway."""

    def __init__(self, services: Services, servers: Servers) -> None:
        self._services = services
        self._servers = servers
        self._begun: set[str] = set()
        self._at_once = anyio.CapacityLimiter(AT_ONCE)

    def consider(self, connection: Connection) -> None:
        """Probe a server whose lists were read on its first connection, if they may differ."""
        name, own, listings = connection.key, self._servers.own, self._services.listings
        if own.is_own(name) or name not in self._servers.shared.servers:
            return
        traits, kinds = listings.traits(name), [one.kind for one in listings.variants(name)]
        if not kinds:
            return
        # Over HTTP an `initialize` is a fault to some servers of the newer era: only an older client's own tells there.
        may_be_older = traits.older or (traits.older is None and connection.server.url is None)
        if traits.newer and may_be_older and all(kind.newer for kind in kinds):
            self._begin(own.of_era(name, newer=False))
        # A server over HTTP says nothing while it is read, and costs no process.
        may_depend = bool(traits.asks or connection.changes_at_start or connection.server.url is not None)
        if may_depend and traits.older and all(kind.newer or kind.able for kind in kinds):
            self._begin(own.weak(name))

    def _begin(self, key: str) -> None:
        if key not in self._begun:
            self._begun.add(key)
            self._services.spawn(self._probe, key)

    async def _probe(self, key: str) -> None:
        await self._services.pool.settled()
        async with self._at_once:
            connection = self._servers.further(key)
            if connection is None or connection.server.disabled:
                return
            try:
                await self._services.pool.refresh(connection, explicit=False)
            except ServerError as error:
                log.info("What other clients are listed is not known: %s", error)
            finally:
                self._begun.discard(key)
