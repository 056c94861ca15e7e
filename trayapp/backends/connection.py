"""One server's life: started once however many wait for it, watched, closed when idle, its failures kept in its box.

Every change of state goes through model/lifecycle. Never here: other servers, exposed names, the cache's files.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import anyio
import anyio.abc

from trayapp.backends.connecting import connected
from trayapp.backends.context import BackendContext, Live
from trayapp.backends.http.refusal import LONGEST_WAIT_S, NOT_EXECUTED, refused
from trayapp.backends.maintenance import LIST_CHANGED, OF_OURS, Maintenance, is_of_tasks
from trayapp.backends.route import is_remote
from trayapp.model.errors import (
    ConnectFailedError,
    ConnectionLostError,
    KeyringLockedError,
    MultiMcpError,
    ServerBackoffError,
    ServerDisabledError,
    ServerError,
    SignInWantedError,
)
from trayapp.model.lifecycle import Event, State, backoff_left_s, next_state
from trayapp.model.offer import Offer
from trayapp.model.servers import ServerConfig
from trayapp.wire.messages import INVALID_REQUEST, Call, Params, RpcError

log = logging.getLogger(__name__)


# Why a connection was closed for good, as in "NAME was stopped during the call: ..."
ENTRY_CHANGED = "its entry in servers.yaml changed"
GATEWAY_STOPPED = "the gateway stopped"


class Observer(Protocol):
    """Who hears of a connection's life. Nothing here may block."""

    def state_changed(self, connection: Connection) -> None:
        """Its `state` or `error` is another now."""

    def offer_fetched(self, connection: Connection, offer: Offer) -> None:
        """The server's lists were read from it just now."""

    def notified(self, connection: Connection, method: str, params: Params, about: Call | None) -> None:
        """Pass on a notification that is no business of the connection's own; `about` as in transport.Inbound."""

    async def asked(self, connection: Connection, method: str, params: Params, about: Call | None) -> dict[str, Any]:
        """Answer a request of the server, except ping. Raises RpcError."""


class _Attempt:
    """One try to connect, awaited by all who want the server."""

    __slots__ = ("done", "error")

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.error: ServerError | None = None


class Connection:
    """One configured server. All methods belong to the event loop of the task group that `tasks` is.

    It is broad because a server's life is one state machine; what needs a part of it sees that by a Protocol.
    """

    def __init__(
        self,
        server: ServerConfig,
        context: BackendContext,
        observer: Observer,
        tasks: anyio.abc.TaskGroup,
        key: str | None = None,
    ) -> None:
        self.server = server
        self.key = key or server.name  # in the pool: a server may have several connections. Nobody is told of it
        self.state = State.DISABLED if server.disabled else State.IDLE
        self.error: ServerError | None = None
        self.live: Live | None = None
        self.in_flight = 0
        self.open_calls: dict[Call, None] = {}  # of those in flight: the sessions', in the order in which they began
        self.announced: dict[str, set[Call]] = {}  # list_changed, until its reader clears it -> calls in flight then
        self.own_requests = 0  # of those in flight: the command line's and the gateway's, no session's
        self.calls = 0
        self.last_used: float | None = None  # by the clock
        self.wait_asked_s = 0.0  # what the server asked for with its last refusal (Retry-After)
        self.failed_at: float | None = None  # by the clock; set while the failure holds calls back
        self._context = context
        self._observer = observer
        self._tasks = tasks
        self._attempt: _Attempt | None = None
        self._closing = anyio.Event()
        self._finished: anyio.Event | None = None  # of the task that runs now
        self._maintenance: Maintenance | None = None  # of the last connection
        self.retired = ""  # why it was closed for good: it cannot be started again
        self.used = anyio.Event()  # set by the first call
        self.used_since_connected = False
        self.dropped = anyio.Event()  # set once a connection has ended; replaced by the next one
        self.silent = False  # the last connection was dropped by a probe
        self.adjusted = anyio.Event()  # set when `server` becomes another; replaced at once
        self.changes_at_start = False  # its lists changed while they were first read: by what its client can do?
        self.told: Mapping[str, Any] = {}  # the client capabilities that the last handshake named
        self._next_end: anyio.Event | None = None  # while somebody waits for the end of a call

    @property
    def name(self) -> str:
        """The server's name in servers.yaml."""
        return self.server.name

    @property
    def pid(self) -> int | None:
        """Of its process, while there is one."""
        return self.live.transport.pid if self.live else None

    # -- use -----------------------------------------------------------------------------------------------------

    @property
    def is_up(self) -> bool:
        """True if a call can be sent now. A server that died is `live` until its own task has taken note."""
        return self.live is not None and not self.live.transport.gone.is_set()

    async def up(self) -> None:
        """Wait until a call can be sent, starting the server if need be. Raises ServerError."""
        while not self.is_up:
            if self.live is not None:
                await self.dropped.wait()
            await self.ensure()

    def begin(self, call: Call | None = None) -> None:
        """Start a call, a session's `call` or one of our own: it keeps the connection from being idle."""
        if call is not None:
            self.open_calls[call] = None
        self.in_flight += 1
        self.calls += 1
        self.last_used = self._context.clock.now()
        if not self.used_since_connected:
            self.used_since_connected = True
            self.used.set()

    def end(self, call: Call | None = None) -> None:
        """End a call, whatever way it went."""
        if call is not None:
            self.open_calls.pop(call, None)
        self.in_flight -= 1
        self.last_used = self._context.clock.now()
        if self._next_end is not None:
            self._next_end.set()
            self._next_end = None

    def next_end(self) -> anyio.Event:
        """Return the event that is set when a call ends, whatever way it went."""
        if self._next_end is None:
            self._next_end = anyio.Event()
        return self._next_end

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
        self.own_requests += 1
        try:
            return await live.channel.send_raw_request(method, live.peer.stamped(params, {}))
        finally:
            self.own_requests -= 1
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
        if self.retired:
            raise ServerError(self.name, f"{self.name} cannot be started: {self.retired}", "Call again")
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
        ago = self._context.clock.now() - self.failed_at
        if max(backoff_left_s(ago, self._context.settings()), self.wait_asked_s - ago) > 0:
            raise ServerBackoffError(self.name, ago, self.error.title if self.error else "unknown")

    async def fetch(self, *, explicit: bool = False, soon: bool = False) -> Offer:
        """Read all lists now and tell the observer; the connection stays as it is.

        `soon`: return what was read while other lists take long, and wait for the tools no longer than for a start.
        Raises ServerError, also when tools were not listed.
        """
        live = await self.ensure(explicit=explicit)
        limit_s = self.server.connect_timeout or self._context.settings().connect_timeout
        self.in_flight += 1  # nobody may close it as idle meanwhile
        try:
            assert self._maintenance is not None
            with anyio.fail_after(limit_s if soon else None):
                offer = await self._maintenance.fetch(soon=soon)
        except TimeoutError:
            hint = f"Call again later. If it is slow, raise connect_timeout of {self.name} in servers.yaml"
            raise ServerError(self.name, f"{self.name} did not list its tools within {limit_s:g} s", hint) from None
        except RpcError as error:
            if live.transport.refusal.unauthorized:
                raise refused(self.name, live.transport.refusal) from None
            raise ServerError(self.name, f"{self.name} did not list what it offers: {error.message}") from None
        finally:
            self.in_flight -= 1
        if "tools" in offer.failed:
            if live.transport.refusal.unauthorized:
                raise refused(self.name, live.transport.refusal)
            raise ServerError(self.name, f"{self.name} {offer.failure}")
        return offer

    async def lists_settled(self, at_most_s: float) -> None:
        """Wait until a connection that was just made has said what it offers, if it had to be asked; not for ever."""
        if self._maintenance is not None and self.live is not None:
            with anyio.move_on_after(at_most_s):
                await self._maintenance.lists_settled.wait()

    async def probe(self) -> None:
        """Ask the live connection for a sign of life, since the machine slept or its network changed.

        A silent one is dropped, without a backoff: the next call starts it again.
        """
        if self.live is not None and self._maintenance is not None:
            await self._maintenance.probe()

    async def reachable(self) -> None:
        """Wait a moment for a way into the network, where this server needs one: being offline is not its failure."""
        if is_remote(self.server):
            await self._context.route()

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
        elif self.state in (State.FAILED, State.NEEDS_AUTH, State.KEYRING_LOCKED):
            self.error, self.failed_at = None, None
            self._apply(Event.CLOSE)

    def retire(self, why: str = ENTRY_CHANGED) -> None:
        """Close for good: whoever still holds this connection cannot start the server again."""
        self.retired = why
        self.begin_close()

    def adjust(self, server: ServerConfig) -> None:
        """Take other settings for the same process; `follow_switch` carries out a switch to or from disabled."""
        self.server = server
        self.adjusted.set()
        self.adjusted = anyio.Event()

    async def follow_switch(self) -> None:
        """Close and switch off, or make available again, as the settings say now and still say once it is closed."""
        if self.server.disabled:
            await self.close()
        if self.server.disabled and self.state is State.IDLE:
            self._apply(Event.DISABLE)
        elif not self.server.disabled and self.state is State.DISABLED:
            self._apply(Event.ENABLE)

    def follow_subscriptions(self) -> None:
        """Somebody began or ceased to want updates of a resource."""
        if self._maintenance is not None and self.live is not None:
            self._maintenance.subscription.changed()
        self.adjusted.set()  # a subscription keeps it from being idle
        self.adjusted = anyio.Event()

    async def follows(self, uri: str) -> None:
        """Wait until a 2026-07-28 server, connected, tells of that resource. Raises RpcError if it does not."""
        if self._maintenance is not None and self.live is not None:
            await self._maintenance.subscription.confirmed(uri)

    def _apply(self, event: Event) -> None:
        self.state = next_state(self.state, event)
        self._tell(self._observer.state_changed)

    def tell_offer(self, offer: Offer) -> None:
        """Tell the observer that the lists were read."""
        self._tell(self._observer.offer_fetched, offer)

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
            why = f": {self.retired}" if self.retired else ""
            stopped = ConnectionLostError(self.name, f"{self.name} was stopped while it was starting{why}")
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
        elif isinstance(error, KeyringLockedError):
            self._apply(Event.KEYRING_LOCKED)  # no backoff: the next call looks again, without a dialog
        elif isinstance(error, ConnectionLostError):
            self._apply(Event.LOST)  # no backoff: the next call may start it again
        else:
            log.log(logging.WARNING if self.failed_at is None else logging.INFO, "%s", error)  # one warning an outage
            self.failed_at = self._context.clock.now()
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
        async with connected(self.key, self.server, self._context, self) as live:
            await self._serve(live, attempt)

    async def _serve(self, live: Live, attempt: _Attempt) -> None:
        self._maintenance = maintenance = Maintenance(self, live, self._context)
        self.live, self.failed_at, self.error = live, None, None
        self.told = live.told
        self.dropped = anyio.Event()
        self.last_used = self._context.clock.now()
        self.silent, self.used_since_connected = False, False
        attempt.done.set()
        self._apply(Event.READY)
        async with maintenance.duties():
            await live.transport.gone.wait()
            self.live = None  # at once: the next call waits for a new connection
        self.silent = maintenance.silent
        if not self._closing.is_set():
            raise await maintenance.ending()

    # -- what the server sends by itself (transport.Inbound) ----------------------------------------------------

    @property
    def _is_unwanted(self) -> bool:
        """True if the user has disabled or removed the server: what it says until it has ended concerns nobody."""
        return self.server.disabled or bool(self.retired)

    async def on_request(self, method: str, params: Params, about: Call | None = None) -> dict[str, Any]:
        """See transport.Inbound."""
        if method == "ping":
            return {}
        if self._is_unwanted:
            raise RpcError(INVALID_REQUEST, "The client has closed this connection")
        return await self._observer.asked(self, method, params, about)

    def on_notification(self, method: str, params: Params, about: Call | None = None) -> None:
        """See transport.Inbound."""
        if self._is_unwanted:
            return
        if method not in OF_OURS or is_of_tasks(method, params):
            self._tell(self._observer.notified, method, params, about)
            return
        if method in LIST_CHANGED:
            if self._maintenance is None or not self._maintenance.lists_settled.is_set():
                self.changes_at_start = True
            self.announced.setdefault(method, set()).update(self.open_calls if about is None else {about})
        if self._maintenance is not None:
            self._maintenance.told(method, params)

    def input_schema(self, tool: str) -> Any:
        """See transport.Inbound."""
        return self._context.input_schema(self.key, tool)
