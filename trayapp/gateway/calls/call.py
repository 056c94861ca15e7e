"""One request of a client on its way to a backend and back: the answer's id restored, its progress and cancel carried.

Never here: finding the backend (scopes), what the request means, whom a server's question goes to (server_requests).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

from trayapp.backends.connection import Connection
from trayapp.backends.context import Live
from trayapp.backends.http.refusal import NOT_EXECUTED
from trayapp.gateway.calls.errors import to_client
from trayapp.gateway.client import ClientSession
from trayapp.model.errors import LEAVE_IT, ConnectionLostError
from trayapp.wire.envelope import LOG_LEVEL
from trayapp.wire.jsonio import JsonError
from trayapp.wire.messages import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    REQUEST_TIMEOUT,
    Reply,
    Request,
    RequestId,
    RpcError,
)
from trayapp.wire.revisions import ASKING, as_modern, as_older, asks_for_input

MAX_ROUNDS = 10  # of questions in one call, as the SDKs have it

_SERIALS = itertools.count()
Finishing = Callable[[Reply], Reply]  # raises JsonError


class RoutedCall:
    """A wire.messages.Call: open from `send` until its answer, its cancellation or its timeout.

    It hangs on its connection all that time, and in its session while the client waits. In between it may be parked:
    its client was asked something by an answer and is to come back (server_requests).
    """

    __slots__ = (
        "_last",
        "_late",
        "_live",
        "_number",
        "_rounds",
        "_timeout_s",
        "_timer",
        "connection",
        "finish",
        "log_level",
        "parked",
        "request",
        "request_id",
        "serial",
        "session",
    )

    def __init__(
        self, session: ClientSession, request: Request, connection: Connection, finish: Finishing | None = None
    ) -> None:
        self.session = session
        self.request = request  # as the server gets it
        self.request_id = request.id  # of the client's request that the answer goes to
        self.connection = connection
        self.serial = 0  # the order in which calls began
        self.parked = False
        self.log_level: str | None = None  # that the client asked for with this request
        self.finish = finish  # what becomes of the answer that the client gets
        self._rounds = 0  # how often its server has asked before it answered
        self._last = False  # nothing is sent once more
        self._live: Live | None = None  # the one that it was sent on, not the next one of the same server
        self._number = 0
        self._timeout_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._late: Reply | None = None  # the answer that came while the call was parked

    @property
    def is_under_way(self) -> bool:
        """True while its client waits for the answer, or is to come back for it."""
        return self.parked or self.session.open_calls.get(self.request_id) is self

    def send(self, timeout_s: float) -> None:
        """Pass the request on over the live connection; a timeout of 0 s is none."""
        method, params = self.request.method, self.request.params
        self.session.open_calls[self.request_id] = self
        self.serial, self._timeout_s = next(_SERIALS), timeout_s
        meta = params.get("_meta") if params else None
        self.log_level = meta.get(LOG_LEVEL) if isinstance(meta, dict) else None
        try:
            self.connection.begin(self)
            self._live = self.connection.live
            self._number = self.connection.relay(method, params, self, self.session.client.capabilities)
        except BaseException:
            self._close()  # else the connection would never be idle again
            raise
        if timeout_s > 0:
            self._set_timer()

    def answered(self, reply: Reply) -> None:
        """See wire.messages.Call. A server that had forgotten our session gets the request once more on a new one."""
        if self.parked:
            self._late = reply
        elif not self._close():
            return
        elif reply.frame:
            self._deliver(reply)  # the server's own words
        elif not self._last and was_not_executed(reply):
            self._last = True
            self.session.start(self.request_id, self._send_again)
        else:
            self._deliver(self._explained(reply))

    def progress(self, params: dict[str, Any]) -> None:
        """See wire.messages.Call."""
        if not self.parked:
            self.session.peer.send_notification("notifications/progress", params, self.request_id)

    def cancel(self, reason: str) -> None:
        """Tell the backend that the client wants no answer any more, and answer nothing (MCP cancellation)."""
        if self._close():
            self._tell_server(reason)

    # -- sent once more ------------------------------------------------------------------------------------------

    async def _send_again(self) -> None:
        await self.connection.up()
        self.send(self._timeout_s)

    def _ask_client(self, question: dict[str, Any]) -> None:
        """Ask the client what a 2026-07-28 server wants to know, then send the request with what it said."""

        async def work() -> None:
            self._rounds += 1
            if self._rounds > MAX_ROUNDS:
                why = f"{self.connection.name} asked more than {MAX_ROUNDS} times in one call"
                raise RpcError(INTERNAL_ERROR, why)
            self.connection.in_flight += 1  # nobody may close it as idle while a person thinks
            try:
                again = await self.session.questioner.answers(self.session, self.request_id, question)
                await self.connection.up()
            finally:
                self.connection.in_flight -= 1
            self.request = self.request.with_params({**(self.request.params or {}), **again})
            self.send(self._timeout_s)

        self.session.start(self.request_id, work)

    # -- parked --------------------------------------------------------------------------------------------------

    def detach(self) -> None:
        """Go on without the client's request, which is about to be answered with a question."""
        self.session.open_calls.pop(self.request_id, None)
        self.parked = True
        self._stop_timer()

    def attach(self, session: ClientSession, request_id: RequestId) -> bool:
        """Go on for another request of the client's. Return False when that one has its answer already."""
        self.session, self.request_id, self.parked = session, request_id, False
        session.open_calls[request_id] = self
        late, self._late = self._late, None
        if late is None:
            self._set_timer()
            return True
        self.answered(late)
        return False

    def abandon(self, reason: str) -> None:
        """End a parked call."""
        self.parked = False
        self.connection.end(self)
        if self._late is None:
            self._tell_server(reason)

    # -- the end -------------------------------------------------------------------------------------------------

    def _deliver(self, reply: Reply) -> None:
        """Answer the client as its protocol revision wants it."""
        why = ""
        try:
            modern = self._live is not None and self._live.peer.modern
            own = reply if self.session.client.modern == modern else self._translated(reply)
            if own is not None and self.finish is not None:
                own = self.finish(own)
            if own is not None:
                self.session.peer.respond(self.request_id, own)
        except JsonError:
            why = f"The answer of {self.connection.name} is not valid JSON"
        except MemoryError:
            why = f"The gateway has too little memory for the answer of {self.connection.name}"
        if why:
            self.session.peer.respond(self.request_id, Reply.of_error(RpcError(INTERNAL_ERROR, why)))

    def _translated(self, reply: Reply) -> Reply | None:
        """Return the answer as the other era has it; None for a question, which an older client is asked first."""
        method = self.request.method
        if self.session.client.modern:
            return as_modern(reply, method)
        if method in ASKING and asks_for_input(reply):
            self._ask_client(reply.result())
            return None
        return as_older(reply)

    def _set_timer(self) -> None:
        if self._timeout_s > 0 and self.request_id in self.session.open_calls:
            self._timer = asyncio.get_running_loop().call_later(self._timeout_s, self._expire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        if not self._close():
            return
        self._tell_server("timed out")
        self.session.peer.respond(self.request_id, Reply.of_error(timed_out(self.connection, self._timeout_s)))

    def _tell_server(self, reason: str) -> None:
        if self._live is not None:
            self._live.channel.cancel(self._number, reason)
            self.session.questioner.give_up(self._live, self.session)

    def _close(self) -> bool:
        """Take the call out of its session and its connection; return True for the one that ends it."""
        if self.session.open_calls.get(self.request_id) is not self:
            return False
        del self.session.open_calls[self.request_id]
        if self._timer is not None:
            self._timer.cancel()
        self.connection.end(self)
        return True

    def _explained(self, reply: Reply) -> Reply:
        """Return an error that says which server's connection closed under a call, and that nothing was sent twice."""
        if "error" not in reply.message or reply.message["error"].get("code") != CONNECTION_CLOSED:
            return reply
        transport = self._live.transport if self._live else None
        if transport is not None and transport.kind != "stdio" and not transport.gone.is_set():
            return reply  # the server's own words: it lives, and by HTTP its answers come without frames, too
        return Reply.of_error(to_client(lost_during_call(self.connection, reply.message["error"].get("message", ""))))


class Unheard:
    """A Call whose answer nobody waits for."""

    def answered(self, reply: Reply) -> None:
        """See wire.messages.Call."""

    def progress(self, params: dict[str, Any]) -> None:
        """See wire.messages.Call."""


def was_not_executed(reply: Reply) -> bool:
    """Return True if the transport, in an answer without a frame, says that the server never took the request."""
    return bool(reply.message.get("error", {}).get("data") == NOT_EXECUTED)


def timed_out(connection: Connection, timeout_s: float) -> RpcError:
    """Return the error of a call that took longer than `request_timeout`."""
    return RpcError(REQUEST_TIMEOUT, f"{connection.name} did not answer within {timeout_s:g} s")


def lost_during_call(connection: Connection, why: str) -> ConnectionLostError:
    """Return the error of a call that was under way when its server went away, or was taken away."""
    name, hint = connection.name, "The call was not repeated, it may have had effects"
    if connection.server.disabled:
        error = ConnectionLostError(
            name, f"{name} was disabled during the call", f"{hint}; enable it with: multi-mcp enable {name}"
        )
        error.model_hint = f"{hint}. The user switched it off. {LEAVE_IT}"
        return error
    if connection.retired:
        return ConnectionLostError(name, f"{name} was stopped during the call: {connection.retired}", hint)
    title = f"{name} went away during the call: {why}"
    return ConnectionLostError(name, title, f"{hint}; the next call starts the server again")
