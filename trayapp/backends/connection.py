"""The life of one connection to a server: started once for all waiting callers, watched, and closed when idle.

Its failures affect no other server. Every change of state goes through model/lifecycle. gateway/calls/routed_call
decides what happens to calls that are lost when a connection ends.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import anyio
import anyio.abc

from trayapp.backends.connect import connect
from trayapp.backends.context import BackendContext, Live
from trayapp.backends.http.refusal import LONGEST_WAIT_S, NOT_EXECUTED, refused
from trayapp.backends.launch import is_remote
from trayapp.backends.maintenance import LIST_CHANGED, Maintenance
from trayapp.backends.subscription import ACKNOWLEDGED, UPDATED, Listening
from trayapp.model.config import ServerConfig
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
from trayapp.wire.jsonio import member_at
from trayapp.wire.messages import INVALID_REQUEST, Call, Params, RpcError

log = logging.getLogger(__name__)


DOUBT_AGAIN_S = 60.0  # minimum time between readings of the lists of a server that keeps ending by itself
NOTICE_S = 0.1  # time after a call in which the server may announce that a list changed
# Why a connection was closed permanently, as in "NAME was stopped during the call: ..."
ENTRY_CHANGED = "its entry in servers.yaml changed"
GATEWAY_STOPPED = "the gateway stopped"


class Observer(Protocol):
    """Receives the events of a connection. No method may block."""

    def state_changed(self, connection: Connection) -> None:
        """Note that the connection's `state` or `error` changed."""

    def offer_fetched(self, connection: Connection, offer: Offer) -> None:
        """Take the lists that were just read from the server."""

    def notified(self, connection: Connection, method: str, params: Params, about: Call | None) -> None:
        """Pass on a notification that the connection does not handle. `about` is the same as in context.Inbound."""

    async def asked(self, connection: Connection, method: str, params: Params, about: Call | None) -> dict[str, Any]:
        """Return the result of a server's request other than ping. Raises RpcError."""


class _Attempt:
    """One attempt to connect, awaited by everyone who needs the server, and the connection that it leads to."""

    __slots__ = ("background", "done", "ended", "error", "scope")

    def __init__(self, background: bool) -> None:
        self.background = background  # no call waits for it
        self.done = anyio.Event()  # set once connected, or failed with `error`
        self.error: ServerError | None = None
        self.scope = anyio.CancelScope()  # of the task that connects and serves; cancelling it closes the connection
        self.ended = anyio.Event()  # set when that task ends


class Connection:
    """A connection to one configured server. Call its methods only in the event loop of the task group `tasks`.

    The class is broad because a server's life is one state machine. Code that needs only a part uses a Protocol.
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
        self.key = key or server.name  # its name in the pool, never shown: a server may have several connections
        self.state = State.DISABLED if server.disabled else State.IDLE
        self.error: ServerError | None = None
        self.live: Live | None = None
        self.in_flight = 0
        self.tasks: dict[str, float] = {}  # id of an unfinished task -> clock time when the server may forget it
        self.open_calls: dict[Call, None] = {}  # sessions' calls in flight, in the order in which they began
        self.announced: dict[str, set[Call]] = {}  # list_changed method -> calls that may be its cause; {}: lists read
        self.own_requests = 0  # calls in flight from the command line or the gateway itself
        self.calls = 0
        self.last_used: float | None = None  # clock time
        self.wait_asked_s = 0.0  # the wait that the server's last refusal requested (Retry-After)
        self.failed_at: float | None = None  # clock time of the failure that began a backoff; None once connected
        self._context = context
        self._observer = observer
        self._tasks = tasks
        self._attempt: _Attempt | None = None
        self._maintenance: Maintenance | None = None  # of the live connection
        self.retired = ""  # why the connection was closed permanently; if set, it never starts again
        self.used = anyio.Event()  # set by the first call
        self.used_since_connected = False
        self._has_answered = False  # since the server connected, a call has ended or its lists were read
        self._has_announced = False  # since the last call began, the server announced a list change
        self.silent = False  # the last connection was dropped by a probe
        self.adjusted = anyio.Event()  # set when `server` or a subscription changes, then replaced by a new event
        self.changes_at_start = False  # a list change was announced before any call: lists may depend on the client
        self.sent_capabilities: Mapping[str, Any] = {}  # the client capabilities sent in the last handshake
        self._was_lost = False  # the server has ended by itself since its lists were read
        self._doubted_at = -math.inf  # clock time when the lists were last read because of _was_lost
        self._next_end: anyio.Event | None = None  # exists while something waits for the end of a call

    @property
    def name(self) -> str:
        return self.server.name

    @property
    def pid(self) -> int | None:
        return self.live.transport.pid if self.live else None

    @property
    def lists_may_differ(self) -> bool:
        """True if the server may now be another version: it has ended by itself since its lists were read.

        False for DOUBT_AGAIN_S seconds after they were last read for this reason.
        """
        return self._was_lost and self._context.clock.now() - self._doubted_at >= DOUBT_AGAIN_S

    # -- use -----------------------------------------------------------------------------------------------------

    @property
    def is_up(self) -> bool:
        """True if a call can be sent now. A server that died stays `live` until its own task notices."""
        return self.live is not None and not self.live.transport.gone.is_set()

    async def up(self) -> None:
        """Wait until a call can be sent. Start the server if needed. Raises ServerError."""
        while not self.is_up:
            if self.live is not None:
                await self.dropped()
            await self.ensure()

    def begin(self, call: Call | None = None) -> None:
        """Record the start of a call: a session's `call`, or one that the gateway makes itself (None).

        A connection with open calls is not closed as idle.
        """
        if call is not None:
            self.open_calls[call] = None
        self.in_flight += 1
        self.calls += 1
        self.last_used = self._context.clock.now()
        self._has_announced = False
        if not self.used_since_connected:
            self.used_since_connected = True
            self.used.set()

    def end(self, call: Call | None = None) -> None:
        if call is not None:
            self.open_calls.pop(call, None)
        self.in_flight -= 1
        self.last_used = self._context.clock.now()
        self._has_answered = True
        if self._next_end is not None:
            self._next_end.set()
            self._next_end = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the connection from being closed as idle."""
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1

    def note_task(self, task_id: str, left_s: float) -> None:
        """Note that the server works on a task for up to `left_s` more seconds (0: ended), and so is not idle."""
        if left_s > 0:
            self.tasks[task_id] = self._context.clock.now() + left_s
        else:
            self.tasks.pop(task_id, None)

    @property
    def is_busy(self) -> bool:
        """True while the server works on a call or a task."""
        now = self._context.clock.now()
        return self.in_flight > 0 or any(until > now for until in self.tasks.values())

    def next_end(self) -> anyio.Event:
        """Return an event that is set when the next call ends, successful or not."""
        if self._next_end is None:
            self._next_end = anyio.Event()
        return self._next_end

    async def request(self, method: str, params: Params) -> dict[str, Any]:
        """Connect if needed, send the request and return its result. Raises ServerError or RpcError.

        A request that the server did not execute (NOT_EXECUTED) is sent once more, on a new session.
        """
        is_first = True
        while True:
            live = await self.ensure()
            self.begin()
            self.own_requests += 1
            try:
                return await live.channel.send_raw_request(method, live.peer.stamped(params, {}))
            except RpcError as error:
                if error.data != NOT_EXECUTED or not is_first:
                    raise
                is_first = False
            finally:
                self.own_requests -= 1
                self.end()

    async def ensure(self, *, explicit: bool = False, background: bool = False) -> Live:
        """Connect if needed, in one attempt shared by all callers, and return the live connection.

        `explicit` (the user asked) ignores the backoff and a pending sign-in. `background`: no call waits for the
        attempt, so its failure begins no backoff. Raises ServerError.
        """
        while self.live is None:
            attempt = self._attempt
            if attempt is not None and (self.state is State.STOPPING or attempt.done.is_set()):
                await attempt.ended.wait()  # its process may take a while to stop
                continue
            attempt = attempt or self._begin_attempt(explicit, background)
            await attempt.done.wait()
            if attempt.error is not None:
                raise attempt.error.with_traceback(None)
        return self.live

    def _begin_attempt(self, explicit: bool, background: bool) -> _Attempt:
        if self.retired:
            raise ServerError(self.name, f"{self.name} cannot be started: {self.retired}", "Call again")
        if self.server.disabled or self.state is State.DISABLED:
            raise ServerDisabledError(self.name)
        if not explicit and self.state is State.NEEDS_AUTH:
            raise SignInWantedError(self.name)
        if not explicit and self.failed_at is not None:
            ago = self._context.clock.now() - self.failed_at
            if max(backoff_left_s(ago, self._context.settings()), self.wait_asked_s - ago) > 0:
                raise ServerBackoffError(self.name, ago, self.error.title if self.error else "unknown")
        self._attempt = attempt = _Attempt(background)
        self.error = None
        self._apply(Event.CONNECT)
        self._tasks.start_soon(self._run, attempt)
        return attempt

    async def fetch(self, *, explicit: bool = False, soon: bool = False) -> Offer:
        """Read all lists now, pass them to the observer and return them. The connection stays open.

        With `soon`, return without lists that are slow, and wait for the tools no longer than the connect timeout.
        Raises ServerError, also if the tools could not be listed.
        """
        live = await self.ensure(explicit=explicit)
        limit_s = self.server.connect_timeout or self._context.settings().connect_timeout
        try:
            assert self._maintenance is not None
            with self.held(), anyio.fail_after(limit_s if soon else None):
                offer = await self._maintenance.fetch(soon=soon)
            if "tools" not in offer.failed:
                return offer
            failure = offer.failure
        except TimeoutError:
            hint = f"Call again later. If it is slow, raise connect_timeout of {self.name} in servers.yaml"
            raise ServerError(self.name, f"{self.name} did not list its tools within {limit_s:g} s", hint) from None
        except RpcError as error:
            failure = f"did not list its tools, prompts or resources: {error.message}"
        if live.transport.refusal.unauthorized:
            raise refused(self.name, live.transport.refusal)
        raise ServerError(self.name, f"{self.name} {failure}")

    async def lists_settled(self, at_most_s: float) -> None:
        """Wait up to `at_most_s` until a new connection's lists have been read, if reading was needed."""
        if self._maintenance is not None and self.live is not None:
            with anyio.move_on_after(at_most_s):
                await self._maintenance.lists_settled.wait()

    @property
    def is_behind(self) -> bool:
        """True if the server has announced a change of its lists that will soon be read."""
        return self._maintenance is not None and self.live is not None and self._maintenance.is_behind

    @property
    def notice_left_s(self) -> float:
        """Return for how many more seconds the last call may cause a list_changed; 0 or less if it cannot.

        list_changed often comes after the call's answer. Over HTTP and in the newer era, it has its own stream. Go's
        SDK gathers changes for 10 ms.
        """
        if self.live is None or self.last_used is None or not self.used_since_connected:
            return 0.0
        if self._has_announced or not self.live.peer.changing_lists:
            return 0.0
        return self.last_used + NOTICE_S - self._context.clock.now()

    async def catch_up(self) -> None:
        """Wait, for a limited time, until list changes that the server announced, or may soon announce, are read."""
        if self._maintenance is not None:
            await self._maintenance.catch_up(self.notice_left_s)

    async def probe(self) -> None:
        """Check that a live connection still responds. Drop a silent connection without a backoff."""
        if self.live is not None and self._maintenance is not None:
            await self._maintenance.probe()

    async def reachable(self) -> None:
        """Wait briefly for a network route if this server is remote: being offline is not the server's failure."""
        if is_remote(self.server):
            await self._context.route()

    # -- change --------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Close the connection, including its process, and wait until it is gone."""
        self.begin_close()
        await self.dropped()

    async def dropped(self) -> None:
        """Wait until the current connection, if any, has ended."""
        if self._attempt is not None:
            await self._attempt.ended.wait()

    def begin_close(self) -> None:
        """Close without waiting. From now on no call gets the old connection: the next call waits for a new one.

        A server that failed or waits for a sign-in or the keyring becomes idle, without its error and backoff.
        """
        if self.state in (State.CONNECTING, State.CONNECTED) and self._attempt is not None:
            self.live = None
            self._attempt.scope.cancel()
            self._apply(Event.CLOSE)
        elif self.state in (State.FAILED, State.NEEDS_AUTH, State.KEYRING_LOCKED):
            self.error, self.failed_at = None, None
            self._apply(Event.CLOSE)

    def retire(self, why: str = ENTRY_CHANGED) -> None:
        """Close permanently: code that still holds this connection cannot start the server again."""
        self.retired = why
        self.begin_close()

    def adjust(self, server: ServerConfig) -> None:
        """Use new settings without a restart. If `disabled` has changed, call `follow_switch` afterwards."""
        self.server = server
        self._note_adjusted()

    def _note_adjusted(self) -> None:
        self.adjusted.set()
        self.adjusted = anyio.Event()

    async def follow_switch(self) -> None:
        """Disable or enable the server as `server.disabled` says. That may change again while the server closes."""
        if self.server.disabled:
            await self.close()
        if self.server.disabled and self.state is State.IDLE:
            self._apply(Event.DISABLE)
        elif not self.server.disabled and self.state is State.DISABLED:
            self._apply(Event.ENABLE)

    def follow_subscriptions(self) -> None:
        """Update the subscription after a session has subscribed to or unsubscribed from a resource."""
        if self._maintenance is not None and self.live is not None:
            self._maintenance.subscription.changed()
        self._note_adjusted()  # a subscription prevents idle closing

    async def follows(self, uri: str) -> None:
        """Wait for a connected 2026-07-28 server to confirm the subscription to `uri`, for a limited time.

        Raises RpcError if the server refuses it.
        """
        if self._maintenance is not None and self.live is not None:
            await self._maintenance.subscription.confirmed(uri)

    def _apply(self, event: Event) -> None:
        self.state = next_state(self.state, event)
        self._tell(self._observer.state_changed)

    def tell_offer(self, offer: Offer) -> None:
        self._has_answered = True
        if self._was_lost and not offer.failed:
            self._was_lost, self._doubted_at = False, self._context.clock.now()
        self._tell(self._observer.offer_fetched, offer)

    def _tell(self, hear: Callable[..., None], *facts: Any) -> None:
        """Call the observer. This is the boundary at which an observer's error stops: it must not end the server."""
        try:
            hear(self, *facts)
        except Exception:
            log.exception("Unexpected error in an observer of %s", self.name)

    # -- the task of one connection ------------------------------------------------------------------------------

    async def _run(self, attempt: _Attempt) -> None:
        """Run one connection from start to end. This is the boundary at which one server's failure stops."""
        error: ServerError | None = None
        try:
            with attempt.scope:
                async with connect(self.key, self.server, self._context, self) as live:
                    await self._serve(live, attempt)
        except ServerError as failure:
            error = failure
        except MultiMcpError as failure:
            error = ConnectFailedError(self.name, f"Cannot start {self.name}: {failure.title}", failure.hint)
            error.__cause__ = failure
        except Exception as failure:
            log.exception("Unexpected error in the connection to %s", self.name)
            error = ConnectFailedError(
                self.name, f"Cannot use {self.name}: {type(failure).__name__}", "See gateway.log"
            )
        finally:
            self._settle(attempt, error)
            attempt.ended.set()

    def _settle(self, attempt: _Attempt, error: ServerError | None) -> None:
        """Set the state after the connection has ended, then release all waiting callers."""
        self.live = None
        self._attempt = None
        self._maintenance = None  # an idle server should take no memory
        if not attempt.done.is_set():
            why = f": {self.retired}" if self.retired else ""
            stopped = ConnectionLostError(self.name, f"{self.name} was stopped while it was starting{why}")
            attempt.error = stopped if error is None or attempt.scope.cancel_called else error
            attempt.done.set()
        if self.state is State.STOPPING:
            self._apply(Event.CLOSED)
            return
        if error is None:
            return
        self.error = error
        if isinstance(error, SignInWantedError):
            self._apply(Event.SIGN_IN_WANTED)
        elif isinstance(error, KeyringLockedError):
            self._apply(Event.KEYRING_LOCKED)  # no backoff: the next call tries again, without a dialog
        elif isinstance(error, ConnectionLostError):
            self._was_lost = True
            self._apply(Event.LOST)  # no backoff: the next call may start it again
        else:
            is_first = self.failed_at is None and not attempt.background
            log.log(logging.WARNING if is_first else logging.INFO, "%s", error)  # one warning per outage
            if not attempt.background:
                self.failed_at = self._context.clock.now()
            asked = error.retry_after_s if isinstance(error, ConnectFailedError) else None
            self.wait_asked_s = min(asked or 0.0, LONGEST_WAIT_S)
            self._apply(Event.FAIL)

    async def _serve(self, live: Live, attempt: _Attempt) -> None:
        self._maintenance = maintenance = Maintenance(self, live, self._context)
        self.live, self.failed_at, self.error = live, None, None
        self.sent_capabilities = live.sent_capabilities
        self.last_used = self._context.clock.now()
        self.silent, self.used_since_connected, self._has_answered, self.tasks = False, False, False, {}
        attempt.done.set()
        self._apply(Event.READY)
        async with maintenance.duties():
            await live.transport.gone.wait()
            self.live = None  # before anything is awaited: the next call has to wait for a new connection
        self.silent = maintenance.silent
        if not attempt.scope.cancel_called:
            raise await maintenance.ending()

    # -- messages that the server starts (context.Inbound) ----------------------------------------------------

    @property
    def _is_unwanted(self) -> bool:
        """True if the user has disabled or removed the server: its messages are ignored until it has ended."""
        return self.server.disabled or bool(self.retired)

    async def on_request(self, method: str, params: Params, about: Call | None = None) -> dict[str, Any]:
        """Answer a ping, and pass on any other request. Implements context.Inbound. Raises RpcError."""
        if method == "ping":
            return {}
        if self._is_unwanted:
            raise RpcError(INVALID_REQUEST, "The client has closed this connection")
        return await self._observer.asked(self, method, params, about)

    def on_notification(self, method: str, params: Params, about: Call | None = None) -> None:
        """Handle list changes and acknowledgments, and pass on the rest. Implements context.Inbound."""
        maintenance = self._maintenance
        if self._is_unwanted:
            return
        if method == UPDATED and maintenance is not None and not maintenance.subscription.is_news(params, about):
            return
        if isinstance(about, Listening):
            about = None  # the gateway's own subscription, not a session's call
        if method in LIST_CHANGED:
            self._has_announced = True
            starts = maintenance is None or not maintenance.lists_settled.is_set()
            if starts and not self.used_since_connected:  # a call, too, may change the lists
                self.changes_at_start = True
            if self._has_answered:  # a change announced during the start has no call as its cause
                self.announced.setdefault(method, set()).update(self.open_calls if about is None else {about})
            if maintenance is not None:
                maintenance.lists_changed()
        elif method == ACKNOWLEDGED and member_at(params, "notifications", "taskIds") is None:
            if maintenance is not None:  # an acknowledgment with taskIds belongs to a session's subscription
                maintenance.subscription.acknowledged(params)
        else:
            self._tell(self._observer.notified, method, params, about)

    def input_schema(self, tool: str) -> Any:
        return self._context.input_schema(self.key, tool)
