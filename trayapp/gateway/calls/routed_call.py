"""Route one request of a client to a backend, and its answer back with the client's request id.

If the connection is lost, a call that the server did not accept is sent again. Any other call gets an error.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from time import perf_counter
from typing import Any

from trayapp.backends.connection import Connection
from trayapp.backends.context import Live
from trayapp.backends.http.refusal import NOT_EXECUTED
from trayapp.gateway.asks import NotAllowedError, Subject
from trayapp.gateway.calls.consent import GATED, AskingSession, CallConsent
from trayapp.gateway.calls.errors import to_client, tool_error
from trayapp.history.ended_call import HEAD_BYTES, RECORDED, EndedCall, Outcome, ends_of
from trayapp.model.errors import LEAVE_IT, ConnectionLostError, MultiMcpError
from trayapp.wire.jsonio import JsonError, dumps
from trayapp.wire.messages import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    REQUEST_TIMEOUT,
    Reply,
    Request,
    RequestId,
    RpcError,
)
from trayapp.wire.revisions import (
    ASKING,
    LOG_LEVEL,
    as_modern,
    as_older,
    asks_for_input,
    error_as_older,
    with_result_type,
)

LATE_LOGS_S = 0.05  # a local server's log messages arrive up to some milliseconds after the answer that they belong to
MAX_ROUNDS = 10  # rounds of questions in one call, as in the SDKs

_SERIALS = itertools.count()
Finishing = Callable[[Reply], Reply | None]  # may raise JsonError; returns None if the answer comes later


@dataclass(eq=False, repr=False, slots=True)
class RoutedCall:
    """A client's request (a wire.messages.Call). It is open from `send` until its answer, cancellation or timeout.

    The call is registered in its session while the client waits, and on its connection once sent. If the client's
    request is answered with a question, the call is parked until the client comes back (server_requests).

    The first `answered` or `cancel` ends it. Later ones do nothing. Errors reach the client as its answer. The class is
    broad because consent, a question, a timeout and a lost connection can each interrupt the same request.
    """

    session: AskingSession
    request_id: RequestId  # the client's request that gets the answer
    request: Request  # in the form that the backend gets
    connection: Connection
    finish: Finishing | None = None  # makes the client's answer from the backend's
    through_tool: bool = field(default=False, kw_only=True)  # the client called the one tool, not this tool by name
    serial: int = field(default=0, init=False)  # number in the order in which calls began
    number: int = field(default=0, init=False)  # the id of the request at the server
    sent_at: float = field(default=0.0, init=False)  # by the gateway's clock, like `parked_at`
    parked: bool = field(default=False, init=False)
    parked_at: float = field(default=0.0, init=False)  # when its client was last asked
    moved: bool = field(default=False, init=False)  # True if sent again on another connection
    log_level: str | None = field(default=None, init=False)  # requested by the client for this call
    proof: Callable[[float], None] | None = field(default=None, init=False)  # called with the time to the answer, in s
    _allowed: str = field(default="", init=False)  # hash of the definition for which the user has allowed this call
    _consent: CallConsent | None = field(default=None, init=False)  # the open ask, while the user is asked
    _began: float = field(default_factory=perf_counter, init=False)
    _rounds: int = field(default=0, init=False)  # how often the backend has asked before answering
    _last: bool = field(default=False, init=False)  # True if the request must not be sent again
    _live: Live | None = field(default=None, init=False)  # the connection on which it was sent, not a later one
    _timeout_s: float = field(default=0.0, init=False)
    _timer: asyncio.TimerHandle | None = field(default=None, init=False)
    _late: Reply | None = field(default=None, init=False)  # the answer, if it came while the call was parked

    @property
    def is_under_way(self) -> bool:
        """Return True while the client waits for the answer, or has yet to come back for it."""
        return self.parked or self.session.open_calls.get(self.request_id) is self

    def send(self, timeout_s: float, *, gated: bool = True) -> None:
        """Send the request over the connection, which must be live, once the user has given any consent that it needs.

        If the user refuses or cannot be asked, answer with the reason. `timeout_s`: 0 for no timeout. `gated`: False if
        the caller has just checked that the request needs no consent.
        """
        method, params, live = self.request.method, self.request.params, self.connection.live
        subject = self._subject() if gated and method in GATED else None
        if subject is not None and not self._is_allowed(subject):
            self._ask_user(subject, timeout_s)
            return
        assert live is not None
        self.session.open_calls[self.request_id] = self
        self.serial, self._timeout_s = next(_SERIALS), timeout_s
        meta = params.get("_meta") if params else None
        self.log_level = meta.get(LOG_LEVEL) if isinstance(meta, dict) else None
        try:
            self.connection.begin(self)
            self.sent_at = self.connection.last_used or 0.0
            self.session.called_servers.add(self.connection.key)
            self._live = live
            if live.peer.modern or (params is not None and "_meta" in params):
                params = live.peer.stamped(params, self.session.capabilities)
            self.number = live.transport.channel.relay(method, params, self)
        except BaseException:
            self._close()  # otherwise the connection would never be idle again
            raise
        if timeout_s > 0:
            self._set_timer()

    def answered(self, reply: Reply) -> None:
        """Deliver the answer to the client, or keep it while the call is parked.

        If the backend did not accept the request, for example because it lost our session, send the request once more.
        """
        if self.parked:
            self._late = reply
            return
        live = self._live if self.log_level is not None else None
        if live is not None and live.transport.kind == "http" and not live.peer.modern:
            # An older server over HTTP sends log messages and answers over two connections, so the answer may arrive
            # first. A client that requested log messages gets none after the answer.
            asyncio.get_running_loop().call_later(LATE_LOGS_S, self._answered_after_logs, reply)
            return
        if not self._close():
            return
        if not reply.frame:  # the answer may be the transport's own
            if not self._last and reply.message.get("error", {}).get("data") == NOT_EXECUTED:
                self._last = True
                self.session.start(self.request_id, self._send_again)
                return
            reply = self._explain_loss(reply)
        if self.proof is not None and (reply.frame or "result" in reply.message):
            self.proof((self.connection.last_used or 0.0) - self.sent_at)
        outcome: Outcome | None = None
        try:
            modern = self._live is not None and self._live.peer.modern
            own = self._translate(reply, modern) if modern or self.session.client.modern else reply
            if own is None:
                return  # the answer is a question, and the request is sent again after it
            if self.finish is not None:
                own = self.finish(own)
            if own is not None:
                self.session.peer.respond(self.request_id, own)
        except (JsonError, MemoryError) as error:
            name, outcome = self.connection.name, "failed"
            invalid = f"The answer of {name} is not valid JSON"
            why = invalid if isinstance(error, JsonError) else f"Not enough memory for the answer of {name}"
            self.session.peer.respond(self.request_id, Reply.of_error(RpcError(INTERNAL_ERROR, why)))
        self._note(reply, outcome)

    def _answered_after_logs(self, reply: Reply) -> None:
        self.log_level = None  # do not wait for log messages again
        self.answered(reply)

    def progress(self, params: dict[str, Any]) -> None:
        """Pass progress on to the client, unless the call is parked."""
        if not self.parked:
            self.session.peer.send_notification("notifications/progress", params, self.request_id)

    def cancel(self, reason: str) -> None:
        """Cancel the request, or the ask for the user's consent. The client gets no answer (MCP cancellation)."""
        if self._close():
            self._note(None, "cancelled")
            self._tell_server(reason)

    # -- the user's consent --------------------------------------------------------------------------------------

    def _subject(self) -> Subject | None:
        return self.session.subject_of(self.connection, self.request, listed=not self.through_tool)

    def _is_allowed(self, subject: Subject) -> bool:
        """Return True if the call needs no ask, or if it brings answers to a server's questions in an allowed call."""
        if subject.hash == self._allowed or self.session.asks.allows(self.session, subject):
            return True
        params = self.request.params or {}
        if params.keys().isdisjoint(("inputResponses", "requestState")):
            return False
        if not self.session.asks.is_round(self._round(params.get("requestState")), subject):
            return False
        self._allowed = subject.hash
        return True

    def _round(self, state: Any) -> str:
        """Return the key that links the next request of this call to this one. `state`: the server's requestState."""
        params = self.request.params or {}
        called = [params.get("name"), params.get("uri"), params.get("arguments")]
        words = [self.session.client.name, self.connection.key, self.request.method, *called, state]
        return sha256(dumps(words)).hexdigest()

    def _ask_user(self, subject: Subject, timeout_s: float) -> None:
        self._timeout_s = timeout_s

        def answered(error: NotAllowedError | None) -> None:
            del self.session.open_calls[self.request_id]
            self._consent = None
            if error is not None:
                self._refuse(error)
            else:
                self._allowed = subject.hash
                self.session.start(self.request_id, self._send_allowed)

        try:
            self._consent = CallConsent(self.session, self.request_id, self.request, subject, answered)
        except NotAllowedError as error:
            self._refuse(error)
        else:
            self.session.open_calls[self.request_id] = self

    async def _send_allowed(self) -> None:
        """Send the call that the user has just allowed, unless its tool was removed or its server cannot be started.

        If the tool's definition has changed, ask the user again.
        """
        try:
            await self.connection.up()
            subject = self._subject()
            if subject is not None and not subject.callable:
                raise NotAllowedError(subject, "ask_gone")
            self.send(self._timeout_s)
        except MultiMcpError as error:
            self._refuse(error)

    def _refuse(self, error: MultiMcpError) -> None:
        """Answer a call that is not sent. If the client called a tool, the answer is a result for the model to read."""
        self._note(None, "refused", error.title)
        if not self.through_tool and self.request.method != "tools/call":
            self.session.peer.respond(self.request_id, Reply.of_error(to_client(error)))
            return
        reply = Reply.of_result(tool_error(error))
        reply = as_modern(reply, "tools/call") if self.session.client.modern else reply
        self.session.peer.respond(self.request_id, reply)

    # -- sending again -------------------------------------------------------------------------------------------

    async def _send_again(self) -> None:
        await self.connection.up()
        self.send(self._timeout_s)

    def move(self) -> None:
        """Cancel the request, which must be safe to repeat, and send it again on its session's current connection."""

        async def work() -> None:
            self.connection = await self.session.connected_again(self.request_id, self.request, self.connection)
            self.send(self._timeout_s)

        if self._close():
            self.moved = True
            self._tell_server("sent again on another connection")
            self.session.start(self.request_id, work)

    def _ask_client(self, question: dict[str, Any]) -> None:
        """Start a task that gets answers to a 2026-07-28 server's questions, and sends the request again with them."""

        async def work() -> None:
            self._rounds += 1
            if self._rounds > MAX_ROUNDS:
                why = f"{self.connection.name} asked more than {MAX_ROUNDS} times in one call"
                raise RpcError(INTERNAL_ERROR, why)
            answers = self.session.questioner.answers
            with self.connection.held():  # a person may take a long time to answer
                again = await answers(self.session, self.request_id, question, self.connection.key)
                await self.connection.up()
            self.request = self.request.with_params({**(self.request.params or {}), **again})
            self.send(self._timeout_s)

        self.session.start(self.request_id, work)

    # -- parking -------------------------------------------------------------------------------------------------

    def detach(self) -> None:
        """Detach from the client's request, which is about to be answered with a question."""
        self.session.open_calls.pop(self.request_id, None)
        self.parked = True
        if self._timer is not None:
            self._timer.cancel()

    def attach(self, session: AskingSession, request_id: RequestId) -> bool:
        """Continue the call for another request of the client. If the answer has come, send it and return False."""
        self.session, self.request_id, self.parked = session, request_id, False
        session.open_calls[request_id] = self
        late, self._late = self._late, None
        if late is None:
            self._set_timer()
            return True
        self.answered(late)
        return False

    def abandon(self, reason: str) -> None:
        """End a parked call, and cancel it at the backend unless the answer has come."""
        self.parked = False
        self.connection.end(self)
        if self._late is None:
            self._note(None, "cancelled")
            self._tell_server(reason)

    # -- answers -------------------------------------------------------------------------------------------------

    def _note(self, reply: Reply | None, outcome: Outcome | None = None, error: str = "") -> None:
        """Record the call in the history, if calls of its method are recorded."""
        request, server = self.request, self.connection.server.name
        if request.method not in RECORDED:
            return
        answer: bytes | dict[str, Any] | None = None
        size = len(reply.frame) if reply is not None else 0
        if reply is not None:  # do not keep a large answer in memory until its row is made
            answer = (reply.frame if size < HEAD_BYTES else ends_of(reply.frame)) if size else reply.message
        call = EndedCall(
            perf_counter(), self._began, self.session, server, request.method, request.params, answer, size, outcome,
            error, "user" if self._allowed else "",
        )  # fmt: skip
        self.session.history.note(call)

    def _translate(self, reply: Reply, modern: bool) -> Reply | None:
        """Return the answer in the client's form, or None if it is a question that is now put to the client or user."""
        method = self.request.method
        asks, newer = modern and method in ASKING and asks_for_input(reply), self.session.client.modern
        if asks and (not newer or self.session.questioner.is_for_user(self.session, reply.result())):
            self._ask_client(reply.result())
            return None
        if not newer:
            return error_as_older(as_older(reply)) if method == "resources/read" else as_older(reply)
        if asks and self._allowed:
            self.session.asks.expect_round(self._round(reply.result().get("requestState")), self._allowed)
        return with_result_type(reply, method) if modern else as_modern(reply, method)

    def _set_timer(self) -> None:
        if self._timeout_s > 0 and self.request_id in self.session.open_calls:
            self._timer = asyncio.get_running_loop().call_later(self._timeout_s, self._expire)

    def _expire(self) -> None:
        if self._close():
            self._tell_server("timed out")
            self.session.peer.respond(self.request_id, Reply.of_error(timed_out(self.connection, self._timeout_s)))
            self._note(None, "timeout")

    def _tell_server(self, reason: str) -> None:
        if self._live is not None:
            self._live.channel.cancel(self.number, reason)
            self.session.questioner.give_up(self.connection, self._live, self.session)

    def _close(self) -> bool:
        """Remove the call from its session and connection. Return True if it was sent and had not ended yet."""
        if self.session.open_calls.get(self.request_id) is not self:
            return False
        del self.session.open_calls[self.request_id]
        if self._consent is not None:  # the call was not sent yet
            self._consent.withdraw("its call was cancelled")
            self._consent = None
            return False
        if self._timer is not None:
            self._timer.cancel()
        self.connection.end(self)
        return True

    def _explain_loss(self, reply: Reply) -> Reply:
        """Return the answer, or an error that names the server whose connection closed during the call."""
        error = reply.message.get("error", {})
        if error.get("code") != CONNECTION_CLOSED:
            return reply
        transport = self._live.transport if self._live else None
        if transport is not None and transport.kind != "stdio" and not transport.gone.is_set():
            return reply  # the backend's own answer: it is still running, and over HTTP answers can come without frames
        return Reply.of_error(to_client(lost_during_call(self.connection, error.get("message", ""))))


def routed_calls(connection: Connection) -> list[RoutedCall]:
    """Return the clients' calls in progress on a connection."""
    return [call for call in connection.open_calls if isinstance(call, RoutedCall)]


class IgnoredCall:
    """A call whose answer is ignored."""

    def answered(self, reply: Reply) -> None:
        """Ignore the answer."""

    def progress(self, params: dict[str, Any]) -> None:
        """Ignore progress notifications."""


def timed_out(connection: Connection, timeout_s: float) -> RpcError:
    """Return the error of a call that took longer than `request_timeout`."""
    return RpcError(REQUEST_TIMEOUT, f"{connection.name} did not answer within {timeout_s:g} s")


def lost_during_call(connection: Connection, why: str) -> ConnectionLostError:
    """Return the error of a call whose server failed or was stopped before it answered."""
    name, hint = connection.name, "The call was not repeated and may have had effects"
    if connection.server.disabled:
        title = f"{name} was disabled during the call"
        error = ConnectionLostError(name, title, f"{hint}; enable it with: multi-mcp enable {name}")
        error.model_hint = f"{hint}. The user disabled it. {LEAVE_IT}"
        return error
    if connection.retired:
        return ConnectionLostError(name, f"{name} was stopped during the call: {connection.retired}", hint)
    title = f"Lost the connection to {name} during the call: {why}"
    return ConnectionLostError(name, title, f"{hint}; the next call restarts the server")
