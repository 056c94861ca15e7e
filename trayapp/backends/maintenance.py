"""What goes on beside the calls of a connected server: it is closed when idle, asked for its health and its lists.

Never here: connecting, states, failures' consequences.
"""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol

import anyio
import anyio.abc

from trayapp.backends.context import BackendContext, Live
from trayapp.backends.http.refusal import UNAUTHORIZED, refused
from trayapp.backends.listing import fetch_offer
from trayapp.backends.subscription import ACKNOWLEDGED, Subscription
from trayapp.model.errors import ConnectFailedError, ConnectionLostError, ServerError
from trayapp.model.lifecycle import idle_limit_s, is_idle
from trayapp.model.offer import UNREAD, Offer
from trayapp.model.servers import ServerConfig
from trayapp.wire.messages import CONNECTION_CLOSED, METHOD_NOT_FOUND, Params, RpcError

log = logging.getLogger(__name__)

LIST_CHANGED = {f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources", "events")}
OF_OURS = frozenset({*LIST_CHANGED, ACKNOWLEDGED})  # what a server tells by itself that is for nobody else
REFETCH_DELAY_S = 0.1  # a server that changes many tools announces each; one fetch answers them all
HEALTH_BEAT_S = 5.0  # of `health_interval` so much may be missing, for all servers to be asked at one moment
HEALTH_TIMEOUT_S = 10.0  # a live server answers a ping in milliseconds; this long means that it hangs
LAST_LISTS_S = 0.5  # lists that were read before a server ended count; the others fail at once
PROBE_JITTER_S = 0.5  # many connections that are asked for the same reason are not asked in the same moment


def is_of_tasks(method: str, params: Params) -> bool:
    """True if a server acknowledges that it tells of tasks, which sessions ask for, and never a connection."""
    said = (params or {}).get("notifications") if method == ACKNOWLEDGED else None
    return isinstance(said, dict) and "taskIds" in said


class _Round:
    """One reading of all lists. `usable`: the tools were read, or failed; `ended`: nothing more comes."""

    def __init__(self) -> None:
        self.usable = anyio.Event()
        self.ended = anyio.Event()
        self.scope = anyio.CancelScope()
        self.offer: Offer | None = None
        self.error: RpcError | None = None

    def outcome(self) -> Offer:
        """What was read. Raises RpcError when it ended before the tools were."""
        if self.offer is None or self.offer.failed.get("tools") == UNREAD:
            error = self.error or RpcError(CONNECTION_CLOSED, "The connection was closed")
            raise error.with_traceback(None)
        return self.offer


class Maintained(Protocol):
    """What is read of a connection to look after it, and what may be done to it."""

    key: str
    server: ServerConfig
    live: Live | None
    in_flight: int
    last_used: float | None
    used_since_connected: bool
    adjusted: anyio.Event

    @property
    def name(self) -> str:
        """The server's name in servers.yaml."""

    def begin_close(self) -> None:
        """Close without waiting."""

    def tell_offer(self, offer: Offer) -> None:
        """Tell the observer that the lists were read."""

    async def reachable(self) -> None:
        """Wait a moment for a way into the network, where this server needs one."""


class Maintenance:
    """One live connection of `connection`, from the handshake to its end."""

    def __init__(self, connection: Maintained, live: Live, context: BackendContext) -> None:
        self._connection = connection
        self._live = live
        self._context = context
        self._dirty = anyio.Event()
        self._round: _Round | None = None  # while the lists are read
        self._tasks: anyio.abc.TaskGroup | None = None
        self.subscription = Subscription(
            connection.key, connection.name, live, context, self.lists_changed, lambda: connection.used_since_connected
        )
        self.lists_settled = anyio.Event()  # what had to be read of a new connection has been
        self._probing = False
        self._sick: ServerError | None = None
        self.silent = False  # a probe ended it

    @asynccontextmanager
    async def duties(self) -> AsyncIterator[None]:
        """Everything that is watched, asked and read meanwhile; ends with the context."""
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._watch_idle)
                tasks.start_soon(self._refetch)
                tasks.start_soon(self._watch_health)
                if self._live.peer.modern:
                    tasks.start_soon(self.subscription.listen)
                yield
                if self._live.transport.gone.is_set() and self._round is not None:
                    with anyio.move_on_after(LAST_LISTS_S):
                        await self._round.ended.wait()
                tasks.cancel_scope.cancel()
        finally:
            self._tasks = None
            if self._round is not None:
                self._end(self._round)  # it was cancelled before it began

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
            limit = idle_limit_s(connection.server, self._context.settings())
            if self._context.subscribed(connection.key):
                limit = None  # somebody waits for what it tells by itself
            idle_for = self._context.clock.now() - (connection.last_used or 0.0)
            if is_idle(connection.in_flight, idle_for, limit):
                log.info("Closing %s: idle for %.0f s", connection.name, idle_for)
                connection.begin_close()  # at once: a call that comes now must not meet a connection about to close
                await anyio.sleep_forever()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_then_cancel, connection.adjusted.wait, tasks)
                if limit is not None:
                    wait = limit if connection.in_flight else limit - idle_for
                    tasks.start_soon(_then_cancel, lambda: self._context.clock.sleep(wait + 0.001), tasks)  # noqa: B023

    # -- signs of life -------------------------------------------------------------------------------------------

    async def _watch_health(self) -> None:
        """Ask a keep-alive server for a sign of life; one that does not give it is closed and counts as failed."""
        connection = self._connection
        while True:
            if "keep-alive" not in connection.server.lifecycle:
                await connection.adjusted.wait()
                continue
            interval_s = self._context.settings().health_interval
            await self._context.clock.beat(min(HEALTH_BEAT_S, interval_s), interval_s)
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
            await self._context.clock.sleep(random.uniform(0, PROBE_JITTER_S))
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

    def told(self, method: str, params: Params) -> None:
        """One of OF_OURS came."""
        if method == ACKNOWLEDGED:
            self.subscription.acknowledged(params)
        else:
            self.lists_changed()

    def lists_changed(self) -> None:
        """The server says that one of its lists is another now: it is read soon."""
        self._dirty.set()

    async def fetch(self, *, soon: bool = False) -> Offer:
        """Read all lists now and tell the observer. Raises RpcError when the connection ended before the tools were.

        `soon`: return what was read while other lists take long. Who has waited for a reading in which a list failed
        does not begin another: a list that hangs takes a minute each time.
        """
        others = self._round
        if others is not None:
            await (others.usable if soon else others.ended).wait()
            if soon or others.offer is None or others.offer.failed:
                return others.outcome()
        current = self._round or self._begin_round()
        await (current.usable if soon else current.ended).wait()
        return current.outcome()

    def _begin_round(self) -> _Round:
        if self._tasks is None:
            raise RpcError(CONNECTION_CLOSED, "The connection was closed")
        self._round = current = _Round()
        self._tasks.start_soon(self._read, current)
        return current

    async def _read(self, current: _Round) -> None:
        async def tell(offer: Offer) -> None:
            await self._context.look_over(self._connection.key, offer)
            self._connection.tell_offer(offer)
            current.offer = offer
            if offer.failed.get("tools") != UNREAD:
                current.usable.set()

        try:
            with current.scope:
                offer = await fetch_offer(self._live.channel, self._live.peer, self._live.told, tell)
                if offer.failed and self._is_over() and (current.offer or not offer.has_items):
                    current.error = RpcError(CONNECTION_CLOSED, next(iter(offer.failed.values())))
                else:
                    await tell(offer)
        finally:
            self._end(current)

    def _end(self, current: _Round) -> None:
        self._round = None
        current.usable.set()
        current.ended.set()

    def _is_over(self) -> bool:
        """True if the lists failed because the connection ends, or the server wants a sign-in."""
        live = self._live
        return self._connection.live is not live or live.transport.gone.is_set() or live.transport.refusal.unauthorized

    async def _refetch(self) -> None:
        """Read the lists when they are not known, and whenever the server says that they changed.

        A list that fails changes nothing.
        """
        if self._context.wants_offer(self._connection.key):
            await self._fetch_quietly(soon=True)
        self.lists_settled.set()
        while True:
            await self._dirty.wait()
            await anyio.sleep(REFETCH_DELAY_S)
            self._dirty = anyio.Event()
            if self._round is not None and self._round.usable.is_set():
                self._round.scope.cancel()  # it waits for a list that may never come
                await self._round.ended.wait()
            await self._fetch_quietly()

    async def _fetch_quietly(self, *, soon: bool = False) -> None:
        name = self._connection.name
        try:
            offer = await self.fetch(soon=soon)
        except RpcError as error:
            log.warning("%s did not list what it offers: %s", name, error.message)
        else:
            if offer.failure:
                log.warning("%s %s", name, offer.failure)


async def _then_cancel(wait: Callable[[], Awaitable[object]], tasks: anyio.abc.TaskGroup) -> None:
    await wait()
    tasks.cancel_scope.cancel()
