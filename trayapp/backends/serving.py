"""What goes on beside the calls of a connected server: it is closed when idle, asked for its health and its lists.

Never here: connecting, states, failures' consequences.
"""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.abc

from trayapp.backends.listening import ACKNOWLEDGED, Listening
from trayapp.backends.listing import fetch_offer
from trayapp.backends.transports import UNAUTHORIZED, refused
from trayapp.backends.world import Live, World
from trayapp.model.errors import ConnectFailedError, ConnectionLostError, ServerError
from trayapp.model.lifecycle import idle_limit_s, is_idle
from trayapp.model.offer import Offer
from trayapp.wire.messages import METHOD_NOT_FOUND, RpcError

if TYPE_CHECKING:
    from trayapp.backends.connection import Connection

log = logging.getLogger(__name__)

LIST_CHANGED = {f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")}
OF_OURS = frozenset({*LIST_CHANGED, ACKNOWLEDGED})  # what a server tells by itself that is for nobody else
REFETCH_DELAY_S = 0.1  # a server that changes many tools announces each; one fetch answers them all
HEALTH_BEAT_S = 5.0  # of `health_interval` so much may be missing, for all servers to be asked at one moment
HEALTH_TIMEOUT_S = 10.0  # a live server answers a ping in milliseconds; this long means that it hangs
PROBE_JITTER_S = 0.5  # many connections that are asked for the same reason are not asked in the same moment


class Serving:
    """One live connection of `connection`, from the handshake to its end."""

    def __init__(self, connection: Connection, live: Live, world: World) -> None:
        self._connection = connection
        self._live = live
        self._world = world
        self._dirty = anyio.Event()
        self._fetching = anyio.Lock()
        self._failed: RpcError | None = None  # over which the last fetch failed
        self.listening = Listening(
            connection.name, live, world, self.lists_changed, lambda: connection.used_since_connected
        )
        self.lists_settled = anyio.Event()  # what had to be read of a new connection has been
        self._probing = False
        self._sick: ServerError | None = None
        self.silent = False  # a probe ended it

    @asynccontextmanager
    async def duties(self) -> AsyncIterator[None]:
        """Everything that is watched, asked and read meanwhile; ends with the context."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_idle)
            tasks.start_soon(self._refetch)
            tasks.start_soon(self._watch_health)
            if self._live.peer.modern:
                tasks.start_soon(self.listening.listen)
            yield
            tasks.cancel_scope.cancel()

    async def ending(self) -> ServerError:
        """Why the connection has ended by itself."""
        name, transport = self._connection.name, self._live.transport
        if transport.refusal.unauthorized or transport.refusal.status == UNAUTHORIZED:
            return refused(name, transport.refusal)
        why = await transport.obituary()
        return self._sick or ConnectionLostError(name, f"{name} {why}")

    def _drop(self, why: ServerError) -> None:
        self._sick = why
        self._live.transport.gone.set()

    # -- idle ----------------------------------------------------------------------------------------------------

    async def _watch_idle(self) -> None:
        connection = self._connection
        while True:
            limit = idle_limit_s(connection.server, self._world.settings())
            if self._world.subscribed(connection.name):
                limit = None  # somebody waits for what it tells by itself
            idle_for = self._world.clock.now() - (connection.last_used or 0.0)
            if is_idle(connection.in_flight, idle_for, limit):
                log.info("Closing %s: idle for %.0f s", connection.name, idle_for)
                connection.begin_close()  # at once: a call that comes now must not meet a connection about to close
                await anyio.sleep_forever()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_then_cancel, connection.adjusted.wait, tasks)
                if limit is not None:
                    wait = limit if connection.in_flight else limit - idle_for
                    tasks.start_soon(_then_cancel, lambda: self._world.clock.sleep(wait + 0.001), tasks)  # noqa: B023

    # -- signs of life -------------------------------------------------------------------------------------------

    async def _watch_health(self) -> None:
        """Ask a keep-alive server for a sign of life; one that does not give it is closed and counts as failed."""
        connection = self._connection
        while True:
            if "keep-alive" not in connection.server.lifecycle:
                await connection.adjusted.wait()
                continue
            interval_s = self._world.settings().health_interval
            await self._world.clock.beat(min(HEALTH_BEAT_S, interval_s), interval_s)
            if connection.in_flight:
                continue
            if (why := await self._silence()) is not None:
                self._drop(ConnectFailedError(connection.name, f"{connection.name} fails its health check: {why}"))

    async def probe(self) -> None:
        """Ask for a sign of life now, since the machine slept or its network changed; a silent server is dropped.

        A process that is busy with a call is not asked: its pipe cannot have been cut, and many servers answer only one
        request at a time.
        """
        connection = self._connection
        if self._probing or (connection.in_flight and self._live.transport.kind == "stdio"):
            return
        self._probing = True
        try:
            await self._world.clock.sleep(random.uniform(0, PROBE_JITTER_S))
            why = await self._silence()
        finally:
            self._probing = False
        if why is not None and connection.live is self._live:
            self.silent = True
            title = f"{connection.name} gave no sign of life after a sleep or a change of the network: {why}"
            self._drop(ConnectionLostError(connection.name, title))

    async def _silence(self) -> str | None:
        """Why the server gave no sign of life; None when it gave one."""
        await self._connection.reachable()
        method = "server/discover" if self._live.peer.modern else "ping"
        try:
            params = self._live.peer.stamped(None, {})
            await self._live.channel.send_raw_request(method, params, {"timeout": HEALTH_TIMEOUT_S})
        except RpcError as error:
            answered = error.code == METHOD_NOT_FOUND or self._live.transport.refusal.asks_to_wait
            return None if answered else error.message  # an answer is an answer
        return None

    # -- lists ---------------------------------------------------------------------------------------------------

    def told(self, method: str) -> None:
        """One of OF_OURS came."""
        if method == ACKNOWLEDGED:
            self.listening.acknowledged()
        else:
            self.lists_changed()

    def lists_changed(self) -> None:
        """The server says that one of its lists is another now: it is read soon."""
        self._dirty.set()

    async def fetch(self) -> Offer:
        """Read all lists now and tell the observer. Raises RpcError.

        Who has waited for a fetch that failed does not begin another: a list that hangs takes a minute each time.
        """
        others = self._fetching.locked()
        async with self._fetching:
            if others and self._failed is not None:
                raise self._failed.with_traceback(None)
            return await self._fetch()

    async def _fetch(self) -> Offer:
        self._failed = None
        try:
            offer = await fetch_offer(self._live.channel, self._live.peer)
        except RpcError as error:
            self._failed = error
            raise
        await self._world.look_over(self._connection.name, offer)
        self._connection.tell(self._world.observer.offer_fetched, offer)
        return offer

    async def _refetch(self) -> None:
        """Read the lists when they are not known, and whenever the server says that they changed.

        A failure changes nothing.
        """
        async with self._fetching:
            if self._world.wants_offer(self._connection.name):
                await self._fetch_quietly()
        self.lists_settled.set()
        while True:
            await self._dirty.wait()
            await anyio.sleep(REFETCH_DELAY_S)
            self._dirty = anyio.Event()
            async with self._fetching:
                await self._fetch_quietly()

    async def _fetch_quietly(self) -> None:
        try:
            await self._fetch()
        except RpcError as error:
            log.warning("%s did not list what it offers: %s", self._connection.name, error.message)


async def _then_cancel(wait: Callable[[], Awaitable[object]], tasks: anyio.abc.TaskGroup) -> None:
    await wait()
    tasks.cancel_scope.cancel()
