"""Background work for a connected server: idle closing, health checks, list updates and subscriptions.

States and the consequences of failures are in `connection`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol

import anyio
import anyio.abc

from trayapp.backends.clock import first_of
from trayapp.backends.context import BackendContext, Live
from trayapp.backends.http.refusal import UNAUTHORIZED, refused
from trayapp.backends.listing import fetch_offer
from trayapp.backends.subscription import Subscription
from trayapp.model.config import ServerConfig
from trayapp.model.errors import ConnectFailedError, ConnectionLostError, ServerError
from trayapp.model.lifecycle import idle_limit_s, is_idle
from trayapp.model.offer import UNREAD, Offer
from trayapp.wire.messages import CONNECTION_CLOSED, METHOD_NOT_FOUND, RpcError

log = logging.getLogger(__name__)

LIST_CHANGED = {f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources", "events")}
LISTENS_WITHIN_S = 0.1  # reading lists waits this long for the subscription; local servers acknowledge in milliseconds
LISTS_AGAIN_S = 2.0  # the longest that a request for a list, or a call to an unknown name, waits for announced changes
REFETCH_DELAY_S = 0.1  # delay of a fetch: a server that changes many tools announces each; one fetch covers all
REFETCH_MOST_S = 5.0  # the delay doubles up to this if each reading causes an announcement
HEALTH_BEAT_S = 5.0  # a check may run this much early, so that all servers are checked at the same moment
HEALTH_TIMEOUT_S = 10.0  # a live server answers a ping in milliseconds; after this long it counts as hung
LAST_LISTS_S = 0.5  # how long reading may go on after the server has ended; incomplete lists then fail
PROBE_JITTER_S = 0.5  # the longest random delay of a probe, since one event may cause the probes of many connections


class _Round:
    """A reading of all lists. `usable` is set once the tools have been read or have failed, `ended` at the end."""

    def __init__(self) -> None:
        self.usable = anyio.Event()
        self.ended = anyio.Event()
        self.scope = anyio.CancelScope()
        self.offer: Offer | None = None
        self.error: RpcError | None = None

    def outcome(self) -> Offer:
        """Return what was read. Raises RpcError if the reading ended before the tools were read."""
        if self.offer is None or self.offer.failed.get("tools") == UNREAD:
            error = self.error or RpcError(CONNECTION_CLOSED, "The connection was closed")
            raise error.with_traceback(None)
        return self.offer


class Maintained(Protocol):
    """The part of a connection that Maintenance reads and changes."""

    key: str
    server: ServerConfig
    live: Live | None
    in_flight: int
    last_used: float | None
    used_since_connected: bool
    adjusted: anyio.Event

    @property
    def is_busy(self) -> bool: ...
    @property
    def lists_may_differ(self) -> bool: ...
    @property
    def name(self) -> str: ...
    def begin_close(self) -> None: ...
    def tell_offer(self, offer: Offer) -> None: ...
    async def reachable(self) -> None: ...


class Maintenance:
    """The maintenance of one live connection, from its handshake to its end."""

    def __init__(self, connection: Maintained, live: Live, context: BackendContext) -> None:
        self._connection = connection
        self._live = live
        self._context = context
        self._dirty = anyio.Event()
        self._awaited = anyio.Event()  # set when a caller waits for the next reading
        self._unread: anyio.Event | None = None  # exists while an announced change is unread; set once it is read
        self._reading: anyio.Event | None = None  # exists while announced changes are read; set once they are read
        self._is_slow = False  # the last reading exceeded LISTS_AGAIN_S: no list request waits for the next
        self._round: _Round | None = None  # the reading in progress
        self._tasks: anyio.abc.TaskGroup | None = None
        self._reads = False  # a reading of the lists has begun
        self.subscription = Subscription(
            connection.key,
            connection.name,
            live,
            context,
            self.lists_changed,
            lambda: self._reads or connection.used_since_connected,
        )
        self.lists_settled = anyio.Event()  # set once a new connection's lists have been read, or need not be
        self._probing = False
        self._sick: ServerError | None = None
        self.silent = False  # True if a probe ended the connection

    @asynccontextmanager
    async def duties(self) -> AsyncIterator[None]:
        """Run all maintenance tasks in the context. If the server has ended, let a reading go on for LAST_LISTS_S."""
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
                self._end(self._round)  # the reading was cancelled before it began
            for waited_for in filter(None, (self._unread, self._reading)):
                waited_for.set()
            self._unread = self._reading = None

    async def ending(self) -> ServerError:
        """Return the error that explains why the connection ended by itself. May wait briefly for an exit code."""
        name, transport = self._connection.name, self._live.transport
        if transport.refusal.unauthorized or transport.refusal.status == UNAUTHORIZED:
            return refused(name, transport.refusal)
        why = await transport.end_reason()
        return self._sick or ConnectionLostError(name, f"{name} {why}")

    def _drop(self, why: ServerError) -> None:
        self._sick = why
        self._live.transport.gone.set()

    async def _watch_idle(self) -> None:
        connection = self._connection
        while True:
            limit = idle_limit_s(connection.server, self._context.settings())
            if self._context.subscribed(connection.key):
                limit = None  # a client waits for the server's notifications
            idle_for = self._context.clock.now() - (connection.last_used or 0.0)
            if is_idle(connection.is_busy, idle_for, limit):
                log.info("Closing %s: idle for %.0f s", connection.name, idle_for)
                connection.begin_close()  # does not await: a call must not get a connection that is about to close
                await anyio.sleep_forever()
            waits: list[Callable[[], Awaitable[object]]] = [connection.adjusted.wait]
            if limit is not None:
                left_s = limit if connection.is_busy else limit - idle_for
                waits.append(partial(self._context.clock.sleep, left_s + 0.001))
            await first_of(*waits)

    # -- health checks -------------------------------------------------------------------------------------------

    async def _watch_health(self) -> None:
        """Check a keep-alive server at each interval, unless a call is in flight. Drop a silent connection."""
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
                self._drop(ConnectFailedError(connection.name, f"{connection.name} failed its health check: {why}"))

    async def probe(self) -> None:
        """Check now that the server responds, after the machine slept or its network changed. Drop a silent server.

        A process that is busy with a call is not checked: its pipe cannot have broken, and many servers answer only
        one request at a time.
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
            title = f"{connection.name} did not respond after a sleep or a network change: {why}"
            self._drop(ConnectionLostError(connection.name, title))

    async def _silence(self) -> str | None:
        """Ping the server. Return why it did not respond, or None if it did.

        An error counts as a response only if the method is unknown or the server asks to wait.
        """
        await self._connection.reachable()
        method = "server/discover" if self._live.peer.modern else "ping"
        try:
            params = self._live.peer.stamped(None, {})
            await self._live.channel.send_raw_request(method, params, timeout_s=HEALTH_TIMEOUT_S)
        except RpcError as error:
            if error.code != METHOD_NOT_FOUND and not self._live.transport.refusal.asks_to_wait:
                return error.message
        return None

    # -- lists ---------------------------------------------------------------------------------------------------

    def lists_changed(self) -> None:
        """Schedule a reading of all lists, because one of them changed."""
        if self._unread is None and self._tasks is not None:
            self._unread = anyio.Event()
        self._dirty.set()

    @property
    def is_behind(self) -> bool:
        """True if the server has announced a change of its lists that will soon be read."""
        return not self._is_slow and (self._unread is not None or self._reading is not None)

    async def catch_up(self, notice_s: float) -> None:
        """Wait until list changes that the server has announced, or announces within `notice_s` seconds, are read.

        Wait at most LISTS_AGAIN_S for the reading. While a server is slower than that, do not wait for it.
        """
        if not self.is_behind:
            with anyio.move_on_after(notice_s):
                await self._dirty.wait()
        waited_for = self._unread or self._reading
        if waited_for is None or self._is_slow:
            return
        self._awaited.set()
        with anyio.move_on_after(LISTS_AGAIN_S) as limit:
            await waited_for.wait()
        self._is_slow = self._is_slow or limit.cancelled_caught

    async def fetch(self, *, soon: bool = False) -> Offer:
        """Read all lists now, pass them to the observer and return them.

        With `soon`, return once the tools are read, even if other lists are not. If a reading is already in progress,
        wait for it. Begin another only without `soon` and if no list failed: a list that hangs takes a minute each
        time. Raises RpcError if the connection ended before the tools were read.
        """
        if (others := self._round) is not None:
            await (others.usable if soon else others.ended).wait()
            if soon or others.offer is None or others.offer.failed:
                return others.outcome()
        if self._round is None:
            if self._tasks is None:
                raise RpcError(CONNECTION_CLOSED, "The connection was closed")
            self._round = _Round()
            self._tasks.start_soon(self._read, self._round)
        current = self._round
        await (current.usable if soon else current.ended).wait()
        return current.outcome()

    async def _read(self, current: _Round) -> None:
        live = self._live

        def lacks_sign_in(offer: Offer) -> bool:
            return live.transport.refusal.unauthorized and "tools" in offer.failed

        async def tell(offer: Offer) -> None:
            if lacks_sign_in(offer):
                return  # the user has signed out: do not report lists that were read without the sign-in
            await self._context.inspect_offer(self._connection.key, offer)
            self._connection.tell_offer(offer)
            current.offer = offer
            if offer.failed.get("tools") != UNREAD:
                current.usable.set()

        try:
            with current.scope:
                if live.peer.modern:  # lists that are read before the acknowledgment are read again after it
                    with anyio.move_on_after(LISTENS_WITHIN_S):
                        await self.subscription.settled.wait()
                self._reads = True
                offer = await fetch_offer(live.channel, live.peer, live.sent_capabilities, tell)
                refused = live.transport.refusal.unauthorized
                is_over = self._connection.live is not live or live.transport.gone.is_set() or refused
                if offer.failed and is_over and (current.offer or not offer.has_items or lacks_sign_in(offer)):
                    current.error = RpcError(CONNECTION_CLOSED, next(iter(offer.failed.values())))
                else:
                    await tell(offer)
        finally:
            self._end(current)

    def _end(self, current: _Round) -> None:
        self._round = None
        current.usable.set()
        current.ended.set()

    async def _refetch(self) -> None:
        """Read the lists if wanted or possibly outdated, and again after announced changes. Only log failures."""
        if self._connection.lists_may_differ or self._context.wants_offer(self._connection.key):
            await self._fetch_quietly(soon=True)
        self.lists_settled.set()
        delay_s, known = REFETCH_DELAY_S, None
        while True:
            await self._dirty.wait()
            with anyio.move_on_after(delay_s):
                await self._awaited.wait()
            self._dirty, self._awaited = anyio.Event(), anyio.Event()
            self._reading, self._unread = self._unread, None
            if self._round is not None and self._round.usable.is_set():
                self._round.scope.cancel()  # the round waits for a list that may never arrive
                await self._round.ended.wait()
            began = anyio.current_time()
            before, known = known, await self._fetch_quietly()
            is_vain = self._dirty.is_set() and known == before
            delay_s = min(2 * delay_s, REFETCH_MOST_S) if is_vain else REFETCH_DELAY_S
            self._is_slow = anyio.current_time() - began > LISTS_AGAIN_S
            if self._reading is not None:
                self._reading.set()
                self._reading = None

    async def _fetch_quietly(self, *, soon: bool = False) -> Offer | None:
        offer = None
        try:
            offer = await self.fetch(soon=soon)
            failure = offer.failure
        except RpcError as error:
            failure = f"did not list its tools, prompts or resources: {error.message}"
        if failure:
            log.warning("%s %s", self._connection.name, failure)
        return offer
