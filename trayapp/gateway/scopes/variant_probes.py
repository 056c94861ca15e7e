"""Read servers' lists again, for kinds of clients that the first reading did not cover.

The first reading uses the newest era that the server supports, and announces a client that can do everything. Some
servers are read again, and the catalog's cache keeps the differences:

- A server that supports both eras is also read in the older one.
- In the older era, every server over HTTP is also read for a client that can do nothing. So is any other server that
  has asked a question, or has changed its lists during the first reading. If the lists differ, the server is also read
  for each kind of client that connects.
- A server that announces an extension, or has Apps, is also read for a client whose support for these differs from that
  announced in all earlier readings.

Servers are read again in the background. But a client's first list waits for the reading for its kind, because many
clients list once and ignore list_changed. If the list contains only the one tool, that tool's first search waits
instead. A server that may be out of reach delays the list or search by only REACHED_S.

Over HTTP, some servers of the newer era treat `initialize` as an error. So a server over HTTP is tried in the older era
only once a client of that era has connected.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import nullcontext
from functools import partial
from typing import Any

import anyio

from trayapp.backends.clock import first_of
from trayapp.backends.connection import Connection
from trayapp.gateway.scopes.servers import Servers
from trayapp.gateway.services import Services
from trayapp.model.errors import ServerError
from trayapp.wire.capabilities import EVERYTHING, NO_KIND, ClientKind, kind_of

log = logging.getLogger(__name__)

AT_ONCE = 2  # processes that may run for probes at the same time
LIST_WAITS_S = 5.0  # longest wait of a list, after which the client gets the lists read for the nearest kind
REACHED_S = 1.0  # a server that has not answered the handshake by then may be out of reach
OLDER = kind_of(EVERYTHING, newer=False)
WEAK = NO_KIND  # a client of the older era that can do nothing


class VariantProbes:
    """The probes of one gateway's servers, which read their lists again for other kinds of clients.

    `once_calm`: runs background work after the first list.
    """

    def __init__(
        self, services: Services, servers: Servers, once_calm: Callable[[Callable[[], Awaitable[Any]]], Awaitable[None]]
    ) -> None:
        self._services = services
        self._servers = servers
        self._once_calm = once_calm
        self._begun: set[str] = set()
        self._hurried: dict[str, float] = {}  # key -> the clock's time when a client began to wait
        self._done: set[str] = set()  # keys of ended probes, even failed ones, until the server's lists are read again
        self._at_once = anyio.CapacityLimiter(AT_ONCE)

    def consider(self, connection: Connection) -> None:
        """Probe a server whose lists were just read on its first connection, if they may differ for other clients."""
        name, own = connection.key, self._servers.own
        if own.is_own(name) or name not in self._servers.shared.servers:
            return
        self._done = {key for key in self._done if own.shared_key(key) != name}
        self._begin(connection)

    def _begin(self, first: Connection) -> None:
        """Start the probes of a server that are needed for all kinds of clients that are connected or expected."""

        async def probe(key: str) -> None:
            await self._services.pool.settled()
            await self._probe(key)

        clients = [session.client for session in self._services.sessions]
        kinds = {kind_of(client.capabilities, newer=client.modern) for client in clients if client.protocol}
        if first.server.url is None:
            kinds.add(OLDER)
        if self._services.listings.traits(first.key).older:
            kinds.add(WEAK)
        for kind in kinds:
            key = self._probe_for(first.key, kind)
            if key is not None and key not in self._begun:
                self._begun.add(key)
                self._services.spawn(self._once_calm, partial(probe, key))

    def _probe_for(self, name: str, kind: ClientKind) -> str | None:
        """Return the key of the connection on which to read a server's lists for that kind of client.

        Return None if no reading is needed, or if it has already been tried.
        """
        listings, own = self._services.listings, self._servers.own
        if listings.traits(name).speaks(newer=kind.newer) is False:
            kind = kind._replace(newer=not kind.newer)  # the bridge passes the client's capabilities on
        kind, kinds = listings.kind_at(name, kind), listings.kinds(name)
        if not kinds or kind in kinds:
            return None
        of_era = [known for known in kinds if known.newer == kind.newer]
        if not of_era:
            key = own.of_era(name, newer=kind.newer)
        elif listings.lacks_variant(name, kind):
            key = own.of_kind(name, kind)
        elif not kind.newer and all(known.able for known in of_era) and self._may_depend(name):
            key = own.of_kind(name, WEAK)
        elif all(kind.extensions != known.extensions for known in of_era):
            key = own.of_kind(name, kind)
        else:
            return None
        return key if key not in self._done else None

    def _may_depend(self, name: str) -> bool:
        """Return True if the lists of a server of the older era may depend on its client's capabilities."""
        connection = self._services.pool.get(name)
        if connection is None:
            return False
        # A server over HTTP sends no questions or changes while it is read, so only another reading, which needs no
        # process, can show whether its lists differ.
        asks = self._services.listings.traits(name).asks
        return bool(asks or connection.changes_at_start or connection.server.url)

    def unread(self, servers: Iterable[str], kind: ClientKind) -> list[str]:
        """Return the keys of the connections on which to read these servers' lists for that kind of client."""
        return [key for name in servers if (key := self._probe_for(name, kind)) is not None]

    def begin(self, servers: Iterable[str], kind: ClientKind) -> None:
        """Begin to read these servers' lists for that kind of client, before any client waits for them."""
        for key in self.unread(servers, kind):
            self._left_s(key)

    async def read(self, servers: Collection[str], kind: ClientKind) -> None:
        """Wait until these servers' lists have been read for that kind of client.

        After LIST_WAITS_S, or REACHED_S for a server that may be out of reach, return while the reading continues.
        """
        while (left_s := max(map(self._left_s, self.unread(servers, kind)), default=0.0)) > 0:
            await first_of(self._services.changes.next, partial(self._services.clock.sleep, left_s))

    def _left_s(self, key: str) -> float:
        """Start that probe if it has not begun. Return how many more seconds a list waits for it."""
        services = self._services
        now = services.clock.now()
        if key not in self._hurried:
            self._hurried[key] = now
            services.spawn(self._probe, key)
        first, probe = services.pool.get(services.shared_key(key)), services.pool.get(key)
        answers = (first is not None and first.server.url is None) or (probe is not None and probe.is_up)
        return self._hurried[key] + (LIST_WAITS_S if answers else REACHED_S) - now

    async def _probe(self, key: str) -> None:
        """Read the lists on the connection with that key, unless this probe has already ended."""
        pool = self._services.pool
        first = pool.get(self._services.shared_key(key))
        over_http = first is not None and first.server.url is not None
        async with nullcontext() if over_http else self._at_once:
            connection = None if key in self._done else self._servers.further(key)
            if connection is not None and not connection.server.disabled:
                try:
                    await pool.refresh(connection, explicit=False)
                except ServerError as error:
                    log.info("Cannot read the lists that other clients get: %s", error)
            self._begun.discard(key)
            self._hurried.pop(key, None)
            self._done.add(key)
        self._services.changes.changed()
        if first is not None:
            self._begin(first)
