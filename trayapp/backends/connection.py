"""One server's life: started once however many wait for it, watched, closed when idle, its failures kept in its box.

Every change of state goes through model/lifecycle. Never here: other servers, exposed names, the cache's files.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
import anyio.abc

from trayapp.backends.clock import Clock
from trayapp.backends.handshake import HANDSHAKE_VERSIONS, Peer, shake_hands
from trayapp.backends.launch import Keyring, Launch, StdioLaunch, prepared
from trayapp.backends.listing import fetch_offer
from trayapp.backends.route import is_remote
from trayapp.backends.transports import NOT_EXECUTED, SSE_AFTER, Open, Transport, ways
from trayapp.model.errors import (
    ConnectFailedError,
    ConnectionLostError,
    MultiMcpError,
    ServerBackoffError,
    ServerDisabledError,
    ServerError,
    SignInWantedError,
)
from trayapp.model.lifecycle import Event, State, backoff_left_s, idle_limit_s, is_idle, next_state
from trayapp.model.offer import Offer
from trayapp.model.servers import ServerConfig
from trayapp.model.settings import Settings
from trayapp.wire.messages import CONNECTION_CLOSED, METHOD_NOT_FOUND, Call, Channel, Params, RpcError

log = logging.getLogger(__name__)

LIST_CHANGED = {f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")}
REFETCH_DELAY_S = 0.1  # a server that changes many tools announces each; one fetch answers them all
LONGEST_WAIT_S = 3600.0  # however long a server asks us to wait
HEALTH_TIMEOUT_S = 10.0  # a live server answers a ping in milliseconds; this long means that it hangs
PROBE_JITTER_S = 0.5  # many connections that are asked for the same reason are not asked in the same moment
_UNAUTHORIZED = 401


class Observer(Protocol):
    """Who hears of a connection's life. Nothing here may block."""

    def state_changed(self, connection: Connection) -> None:
        """Its `state` or `error` is another now."""

    def offer_fetched(self, connection: Connection, offer: Offer) -> None:
        """The server's lists were read from it just now."""

    def notified(self, connection: Connection, method: str, params: Params) -> None:
        """A notification that is no business of the connection's own."""

    async def asked(self, connection: Connection, method: str, params: Params) -> dict[str, Any]:
        """A request of the server's, except ping. Raises RpcError."""


async def _no_wait() -> None:
    """Where nobody says what a route is, there is one."""


@dataclass(frozen=True, slots=True)
class World:
    """What all connections share."""

    clock: Clock
    settings: Callable[[], Settings]
    environ: Mapping[str, str]
    keyring: Keyring
    open: Open
    stderr: Callable[[str], Callable[[bytes], None]]  # server name -> where its stderr goes
    observer: Observer
    hint: Callable[[str], str]  # server name -> protocol revision of last time, "" when never met
    wants_offer: Callable[[str], bool]  # server name -> whether its lists should be read once it is connected
    capabilities: Mapping[str, Any] = field(default_factory=dict)  # what we can do for servers
    route: Callable[[], Awaitable[None]] = _no_wait  # returns once there is a way into the network, or after a while


@dataclass(frozen=True, slots=True)
class Live:
    """A connected server."""

    transport: Transport
    peer: Peer

    @property
    def channel(self) -> Channel:
        """Where requests go."""
        return self.transport.channel


class _Attempt:
    """One try to connect, awaited by all who want the server."""

    __slots__ = ("done", "error")

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.error: ServerError | None = None


class Connection:
    """One configured server. All methods belong to the event loop of the task group that `tasks` is."""

    def __init__(self, server: ServerConfig, world: World, tasks: anyio.abc.TaskGroup) -> None:
        self.server = server
        self.state = State.DISABLED if server.disabled else State.IDLE
        self.error: ServerError | None = None
        self.live: Live | None = None
        self.in_flight = 0
        self.calls = 0
        self.last_used: float | None = None  # by the clock
        self.wait_asked_s = 0.0  # what the server asked for with its last refusal (Retry-After)
        self.failed_at: float | None = None  # by the clock; set while the failure holds calls back
        self._world = world
        self._tasks = tasks
        self._attempt: _Attempt | None = None
        self._closing = anyio.Event()
        self._finished: anyio.Event | None = None  # of the task that runs now
        self._dirty = anyio.Event()
        self._adjusted = anyio.Event()
        self._fetching = anyio.Lock()
        self._retired = False
        self.used = anyio.Event()  # set by the first call
        self.dropped = anyio.Event()  # set once a connection has ended; replaced by the next one
        self.silent = False  # the last connection was dropped by a probe
        self._sick: ServerError | None = None  # why we ended the live connection ourselves
        self._probing = False

    @property
    def name(self) -> str:
        """The server's name in servers.yaml."""
        return self.server.name

    @property
    def pid(self) -> int | None:
        """Of its process, while there is one."""
        return self.live.transport.pid if self.live else None

    # -- use -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """A call starts: it keeps the connection from being idle."""
        self.in_flight += 1
        self.calls += 1
        self.last_used = self._world.clock.now()
        self.used.set()

    def end(self) -> None:
        """A call ended, whatever way."""
        self.in_flight -= 1
        self.last_used = self._world.clock.now()

    def relay(self, method: str, params: Params, call: Call) -> int:
        """Send a request over the live connection; the caller has seen that there is one."""
        assert self.live is not None
        return self.live.channel.relay(method, self.live.peer.stamped(params, self._world.capabilities), call)

    async def request(self, method: str, params: Params) -> dict[str, Any]:
        """Connect if needed, ask, and await the result. Raises ServerError or RpcError."""
        try:
            return await self._request(method, params)
        except RpcError as error:
            if error.data != NOT_EXECUTED:
                raise
        return await self._request(method, params)  # once more, on a new session; what fails then has failed

    async def _request(self, method: str, params: Params) -> dict[str, Any]:
        live = await self.ensure()
        self.begin()
        try:
            return await live.channel.send_raw_request(method, live.peer.stamped(params, self._world.capabilities))
        finally:
            self.end()

    async def ensure(self, *, explicit: bool = False) -> Live:
        """The live connection, started if need be: one attempt however many wait.

        `explicit` (the user asked) ignores the backoff and a pending sign-in. Raises ServerError.
        """
        while self.live is None:
            attempt = self._attempt
            ended = self.state is State.STOPPING or (attempt is not None and attempt.done.is_set())
            if ended and self._finished is not None:
                await self._finished.wait()  # its process may take a while to stop
                continue
            attempt = attempt or self._begin_attempt(explicit)
            await attempt.done.wait()
            if attempt.error is not None:
                raise attempt.error.with_traceback(None)
        return self.live

    def _begin_attempt(self, explicit: bool) -> _Attempt:
        if self._retired:
            raise ServerError(self.name, f"{self.name} was changed in servers.yaml just now", "Ask again")
        if self.server.disabled or self.state is State.DISABLED:
            raise ServerDisabledError(self.name)
        if not explicit:
            self._check_backoff()
        self._attempt = attempt = _Attempt()
        self._closing, self._finished = anyio.Event(), anyio.Event()
        self.error = None
        self._apply(Event.CONNECT)
        self._tasks.start_soon(self._run, attempt, self._finished)
        return attempt

    def _check_backoff(self) -> None:
        if self.state is State.NEEDS_AUTH:
            raise SignInWantedError(self.name)
        if self.failed_at is None:
            return
        ago = self._world.clock.now() - self.failed_at
        if max(backoff_left_s(ago, self._world.settings()), self.wait_asked_s - ago) > 0:
            raise ServerBackoffError(self.name, ago, self.error.title if self.error else "unknown")

    async def fetch(self, *, explicit: bool = False) -> Offer:
        """Read all lists now and tell the observer. Raises ServerError; the connection stays as it is."""
        live = await self.ensure(explicit=explicit)
        self.in_flight += 1  # nobody may close it as idle meanwhile
        try:
            async with self._fetching:
                offer = await fetch_offer(live.channel, live.peer)
                self._tell(self._world.observer.offer_fetched, offer)
                return offer
        except RpcError as error:
            raise ServerError(self.name, f"{self.name} did not list what it offers: {error.message}") from None
        finally:
            self.in_flight -= 1

    async def probe(self) -> None:
        """Ask the live connection for a sign of life, since the machine slept or its network changed.

        A silent one is dropped, without a backoff: the next call starts it again. A process that is busy with a call is
        not asked: its pipe cannot have been cut, and many servers answer only one request at a time.
        """
        live = self.live
        if live is None or self._probing or (self.in_flight and live.transport.kind == "stdio"):
            return
        self._probing = True
        try:
            await self._world.clock.sleep(random.uniform(0, PROBE_JITTER_S))
            why = await self._silence(live)
        finally:
            self._probing = False
        if why is not None and self.live is live:
            self.silent = True
            title = f"{self.name} gave no sign of life after a sleep or a change of the network: {why}"
            self._drop(live, ConnectionLostError(self.name, title))

    async def reachable(self) -> None:
        """Wait a moment for a way into the network, where this server needs one: being offline is not its failure."""
        if is_remote(self.server):
            await self._world.route()

    async def _silence(self, live: Live) -> str | None:
        """Why a live server gave no sign of life; None when it gave one."""
        await self.reachable()
        method = "server/discover" if live.peer.modern else "ping"
        try:
            params = live.peer.stamped(None, self._world.capabilities)
            await live.channel.send_raw_request(method, params, {"timeout": HEALTH_TIMEOUT_S})
        except RpcError as error:
            return None if error.code == METHOD_NOT_FOUND else error.message  # an answer is an answer
        return None

    def _drop(self, live: Live, why: ServerError) -> None:
        self._sick = why
        live.transport.gone.set()

    # -- change --------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """End the connection, process included, and wait until it is gone."""
        self.begin_close()
        if self._finished is not None:
            await self._finished.wait()

    def begin_close(self) -> None:
        """Close without waiting. From here on no call gets the old connection: the next one waits for a new one."""
        if self.state in (State.CONNECTING, State.CONNECTED):
            self.live = None
            self._closing.set()
            self._apply(Event.CLOSE)
        elif self.state in (State.FAILED, State.NEEDS_AUTH):
            self.error, self.failed_at = None, None
            self._apply(Event.CLOSE)

    def retire(self) -> None:
        """Close for good: whoever still holds this connection cannot start the server again."""
        self._retired = True
        self.begin_close()

    def adjust(self, server: ServerConfig) -> None:
        """Take other settings for the same process; `follow_switch` carries out a switch to or from disabled."""
        self.server = server
        self._adjusted.set()
        self._adjusted = anyio.Event()

    async def follow_switch(self) -> None:
        """Close and switch off, or make available again, as the settings say now and still say once it is closed."""
        if self.server.disabled:
            await self.close()
        if self.server.disabled and self.state is State.IDLE:
            self._apply(Event.DISABLE)
        elif not self.server.disabled and self.state is State.DISABLED:
            self._apply(Event.ENABLE)

    def _apply(self, event: Event) -> None:
        self.state = next_state(self.state, event)
        self._tell(self._world.observer.state_changed)

    def _tell(self, hear: Callable[..., None], *facts: Any) -> None:
        """Tell the observer: the boundary at which a mistake over there stops, so that it decides no server's life."""
        try:
            hear(self, *facts)
        except Exception:
            log.exception("News of %s were not understood", self.name)

    # -- the task of one connection ------------------------------------------------------------------------------

    async def _run(self, attempt: _Attempt, finished: anyio.Event) -> None:
        """From start to end of one connection: the boundary at which one server's failure stops."""
        error: ServerError | None = None
        try:
            await self._until_closed(self._connect_and_serve, attempt)
        except ServerError as failure:
            error = failure
        except MultiMcpError as failure:
            error = ConnectFailedError(self.name, f"Cannot start {self.name}: {failure.title}", failure.hint)
        except Exception as failure:
            log.exception("Connection to %s failed in a way that we do not know", self.name)
            error = ConnectFailedError(
                self.name, f"Cannot use {self.name}: {type(failure).__name__}", "See gateway.log"
            )
        finally:
            self._settle(attempt, error)
            finished.set()

    def _settle(self, attempt: _Attempt, error: ServerError | None) -> None:
        """The connection has ended: decide the state, then let everybody go on."""
        self.live = None
        self._attempt = None
        self.dropped.set()
        if not attempt.done.is_set():
            stopped = ConnectionLostError(self.name, f"{self.name} was stopped while it was starting")
            attempt.error = stopped if error is None or self._closing.is_set() else error
            attempt.done.set()
        if self.state is State.STOPPING:
            self._apply(Event.CLOSED)
        elif error is not None:
            self.error = error
            self._note_failure(error)

    def _note_failure(self, error: ServerError) -> None:
        if isinstance(error, SignInWantedError):
            self._apply(Event.SIGN_IN_WANTED)
        elif isinstance(error, ConnectionLostError):
            self._apply(Event.LOST)  # no backoff: the next call may start it again
        else:
            log.log(logging.WARNING if self.failed_at is None else logging.INFO, "%s", error)  # one warning an outage
            self.failed_at = self._world.clock.now()
            asked = error.retry_after_s if isinstance(error, ConnectFailedError) else None
            self.wait_asked_s = min(asked or 0.0, LONGEST_WAIT_S)
            self._apply(Event.FAIL)

    async def _until_closed(self, work: Callable[[_Attempt], Any], attempt: _Attempt) -> None:
        failure: MultiMcpError | None = None
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                await self._closing.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            try:
                await work(attempt)
            except MultiMcpError as error:
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _connect_and_serve(self, attempt: _Attempt) -> None:
        launch = await prepared(self.server, self._world.environ, self._world.keyring, self._world.clock.time())
        hints = [self._world.hint(self.name)]
        if not hints[0] and isinstance(launch, StdioLaunch):
            hints.append(HANDSHAKE_VERSIONS[-1])  # for servers that die of a request before initialize
        candidates = ways(launch)
        for number, (way, hint) in enumerate([(way, hint) for way in candidates for hint in hints], start=1):
            if await self._try(way, hint, attempt, last=number == len(candidates) * len(hints)):
                return

    async def _try(self, way: Launch, hint: str, attempt: _Attempt, *, last: bool) -> bool:
        """Connect one way and serve until the end; False when the next way should be tried."""
        timeout = self.server.connect_timeout or self._world.settings().connect_timeout
        with anyio.move_on_after(timeout) as limit:
            async with self._opened(way) as transport:
                try:
                    peer = await shake_hands(transport.channel, self._world.capabilities, hint)
                except RpcError as error:
                    if not last and self._try_next(transport, error):
                        return False
                    raise await self._handshake_failure(transport, error) from None
                limit.deadline = math.inf
                await self._serve(Live(transport, peer), attempt)
        if limit.cancelled_caught:
            title = f"{self.name} did not finish its handshake within {timeout:g} s"
            raise ConnectFailedError(
                self.name, title, "Raise its connect_timeout in servers.yaml if it is slow to start"
            )
        return True

    @asynccontextmanager
    async def _opened(self, way: Launch) -> AsyncIterator[Transport]:
        """The transport; an address that wants a sign-in before it opens at all (legacy SSE) says so."""
        try:
            async with self._world.open(way, self, self._world.stderr(self.name)) as transport:
                yield transport
        except ConnectFailedError as error:
            raise (SignInWantedError(self.name) if error.http_status == _UNAUTHORIZED else error) from None

    @staticmethod
    def _try_next(transport: Transport, error: RpcError) -> bool:
        if transport.kind == "stdio":
            return error.code == CONNECTION_CLOSED
        return transport.refusal.status in SSE_AFTER

    async def _handshake_failure(self, transport: Transport, error: RpcError) -> ServerError:
        if transport.refusal.status == _UNAUTHORIZED:
            return SignInWantedError(self.name)
        why = error.message
        if transport.refusal.status is not None:
            why = f"{why} (HTTP {transport.refusal.status})"
        failure = ConnectFailedError(
            self.name, f"Cannot connect to {self.name}: {why}", f"See: multi-mcp logs {self.name}"
        )
        failure.http_status = transport.refusal.status
        failure.retry_after_s = transport.refusal.retry_after_s
        return failure

    async def _serve(self, live: Live, attempt: _Attempt) -> None:
        self.live, self.failed_at, self.error = live, None, None
        self.dropped = anyio.Event()
        self._dirty = anyio.Event()
        self.last_used = self._world.clock.now()
        self.silent, self._sick = False, None
        attempt.done.set()
        self._apply(Event.READY)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_idle)
            tasks.start_soon(self._refetch, live)
            tasks.start_soon(self._watch_health, live)
            if live.peer.modern:
                tasks.start_soon(self._listen, live)
            await live.transport.gone.wait()
            self.live = None  # at once: the next call waits for a new connection
            tasks.cancel_scope.cancel()
        if not self._closing.is_set():
            if live.transport.refusal.status == _UNAUTHORIZED:
                raise SignInWantedError(self.name)
            why = await live.transport.obituary()
            raise self._sick or ConnectionLostError(self.name, f"{self.name} {why}")

    async def _watch_idle(self) -> None:
        while True:
            limit = idle_limit_s(self.server, self._world.settings())
            idle_for = self._world.clock.now() - (self.last_used or 0.0)
            if is_idle(self.in_flight, idle_for, limit):
                log.info("Closing %s: idle for %.0f s", self.name, idle_for)
                self.begin_close()  # at once: a call that comes now must not meet a connection about to close
                await anyio.sleep_forever()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_then_cancel, self._adjusted.wait, tasks)
                if limit is not None:
                    wait = limit if self.in_flight else limit - idle_for
                    tasks.start_soon(_then_cancel, lambda: self._world.clock.sleep(wait + 0.001), tasks)  # noqa: B023

    async def _watch_health(self, live: Live) -> None:
        """Ask a keep-alive server for a sign of life; one that does not give it is closed and counts as failed."""
        while True:
            if "keep-alive" not in self.server.lifecycle:
                await self._adjusted.wait()
                continue
            await self._world.clock.sleep(self._world.settings().health_interval)
            if self.in_flight:
                continue
            if (why := await self._silence(live)) is not None:
                self._drop(live, ConnectFailedError(self.name, f"{self.name} fails its health check: {why}"))

    async def _refetch(self, live: Live) -> None:
        """Read the lists when they are not known, and whenever the server says that they changed.

        A failure changes nothing.
        """
        async with self._fetching:
            if self._world.wants_offer(self.name):
                await self._fetch_quietly(live)
        while True:
            await self._dirty.wait()
            await anyio.sleep(REFETCH_DELAY_S)
            self._dirty = anyio.Event()
            async with self._fetching:
                await self._fetch_quietly(live)

    async def _fetch_quietly(self, live: Live) -> None:
        try:
            self._tell(self._world.observer.offer_fetched, await fetch_offer(live.channel, live.peer))
        except RpcError as error:
            log.warning("%s did not list what it offers: %s", self.name, error.message)

    async def _listen(self, live: Live) -> None:
        """Subscribe to list changes, which a 2026-07-28 server sends only when asked to."""
        announced = live.peer.capabilities
        changing = [k for k in ("tools", "prompts", "resources") if (announced.get(k) or {}).get("listChanged")]
        wanted = {f"{kind}ListChanged": True for kind in changing}
        if not wanted:
            return
        params = live.peer.stamped({"notifications": wanted}, self._world.capabilities)
        try:
            await live.channel.send_raw_request("subscriptions/listen", params)
        except RpcError as error:
            log.info("%s takes no subscription: %s", self.name, error.message)

    # -- what the server sends by itself (transports.Inbound) ----------------------------------------------------

    async def on_request(self, method: str, params: Params) -> dict[str, Any]:
        """See transports.Inbound."""
        if method == "ping":
            return {}
        return await self._world.observer.asked(self, method, params)

    def on_notification(self, method: str, params: Params) -> None:
        """See transports.Inbound."""
        if method in LIST_CHANGED:
            self._dirty.set()
        else:
            self._tell(self._world.observer.notified, method, params)


async def _then_cancel(wait: Callable[[], Any], tasks: anyio.abc.TaskGroup) -> None:
    await wait()
    tasks.cancel_scope.cancel()
