"""Add servers' lists to the catalog: inspect them, compare them with the approvals, and keep them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import thread_time
from typing import Any

import anyio.to_thread

from trayapp.backends.connection import Connection
from trayapp.gateway.exposure.catalog import ONE_TOOL
from trayapp.gateway.scopes.servers import Servers
from trayapp.gateway.scopes.sign_ins import SignIns
from trayapp.gateway.services import Services
from trayapp.gateway.tasks import fenced
from trayapp.inspection.inspect import free_memory
from trayapp.model.offer import Offer
from trayapp.wire.capabilities import kind_of
from trayapp.wire.memory import give_back_freed_memory
from trayapp.wire.revisions import MODERN_VERSIONS

# A thread that works beside the event loop holds the interpreter for AT_ONCE_S at a time (sys.setswitchinterval), so
# shorter work is cheaper on the loop. 500 definitions of 10 servers took 70 ms of CPU time in threads, 20 ms on the
# loop.
AT_ONCE_S = 0.005  # CPU time: elapsed time means little on a busy machine
AFTER_LISTS_S = 0.5  # clients request the lists once all are read. The search for orders must not delay the answers
OURSELVES = "multi-mcp"  # the gateway's own name: no server's tool may imitate the gateway's tool


class ListIntake:
    """The part of one gateway that adds servers' lists to the catalog."""

    def __init__(self, services: Services, servers: Servers, sign_ins: SignIns) -> None:
        self._services = services
        self._servers = servers
        self._sign_ins = sign_ins
        self._reading = False
        self._tool_names: dict[str, tuple[Offer, frozenset[str]]] = {}  # server -> its offer, and its tools' names

    async def inspect_offer(self, key: str, offer: Offer) -> None:
        """Inspect an offer before it is taken: for AT_ONCE_S on the event loop, then in a thread."""
        shared = self._services.shared_key(key)
        if shared in self._servers.shared.servers:
            await fenced(self._look_ahead, shared, offer)  # an error of the inspection must not affect the server

    async def _look_ahead(self, server: str, offer: Offer) -> None:
        steps, until = self._services.approvals.look_ahead(server, offer), thread_time() + AT_ONCE_S

        def rest() -> None:
            for _ in steps:
                pass

        for _ in steps:
            if thread_time() > until:
                await anyio.to_thread.run_sync(rest, abandon_on_cancel=True)

    def take(self, connection: Connection, offer: Offer) -> None:
        """Store new lists from a server in the catalog, and judge them.

        Ignore lists from a connection for an era that the server does not support, if its first connection has read
        them, too.
        """
        services = self._services
        server = self._servers.shared.servers.get(services.shared_key(connection.key))
        if server is None or services.pool.get(connection.key) is not connection:
            return  # removed or started again in the meantime
        offer = replace(offer, signed=self._sign_ins.is_signed_in(server))
        self._judge(server.name)  # pin the earlier offer first, if no list request has done so yet
        kind = kind_of(connection.sent_capabilities, newer=offer.protocol in MODERN_VERSIONS)
        further = connection.key != server.name
        purpose = self._servers.own.purpose(connection.key)
        listings = services.listings
        other_era = further and purpose.newer not in (None, kind.newer)
        if other_era and listings.kind_at(server.name, kind) in listings.kinds(server.name):
            return  # its first connection has read the same lists, and is notified of changes
        probed = further and (purpose.newer is not None or listings.lacks_variant(server.name, kind))
        known_to_older = listings.older_names(server.name)
        if listings.take(server, offer, kind, probed=probed):
            services.approvals.split(server.name, listings.get(server.name), known_to_older)
            self._servers.forget_catalogs()
        self._judge(server.name)
        services.changes.changed()

    async def read_words(self) -> None:
        """Search the servers' lists for orders to a model, once all lists have been read. No client waits for this."""
        if self._reading:
            return
        self._reading = True
        try:
            await self._services.pool.settled()
            await self._services.clock.sleep(AFTER_LISTS_S)
            while await self.read_words_now():
                pass  # other lists have arrived in the meantime
        finally:
            self._reading = False

    async def read_words_now(self) -> bool:
        """Search all unread definitions for orders, in a thread. Return True if any definition was searched."""
        approvals, read = self._services.approvals, False
        for server in approvals.unread_servers():
            offer = self._services.listings.get(server)
            found = {}
            if offer is not None:
                found = await anyio.to_thread.run_sync(approvals.orders, server, offer, abandon_on_cancel=True)
            approvals.take_orders(server, found)
            read = read or bool(found)
        if read:
            free_memory()
            give_back_freed_memory()  # about 2 MB, scattered between objects that are still in use
            self._services.changes.changed()
        return read

    def take_approvals(self) -> None:
        """Apply changed approvals to the tools that are served."""
        self._services.served_tools.forget()
        self._servers.forget_catalogs()
        self._services.changes.changed()

    def tools_elsewhere(self, server: str) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield the plain name and the tools' names of the gateway and of each other server with known lists."""
        yield OURSELVES, frozenset({ONE_TOOL})
        own = self._servers.plain_name(server)
        for other in self._servers.shared.servers:
            plain = self._servers.plain_name(other)
            if plain != own and (offer := self._services.listings.get(other)) is not None:
                known = self._tool_names.get(other)
                if known is None or known[0] is not offer:
                    names = frozenset(str(item.get("name")) for item in offer.tools)
                    known = self._tool_names[other] = offer, names
                yield plain, known[1]

    def input_schema(self, key: str, tool: str) -> Any:
        """Return a tool's input schema, not repaired for clients, or None if the tool is unknown or has no schema."""
        shared = self._services.shared_key(key)
        offer = self._services.listings.get(shared)
        found = self._services.served_tools.of(shared, offer).tools.get(tool) if offer is not None else None
        return found.item.get("inputSchema") if found is not None else None

    def _judge(self, server: str) -> None:
        offer = self._services.listings.get(server)
        if offer is not None:
            _ = self._services.served_tools.of(server, offer).tools
