"""One request of a client on its way to a backend and back: the answer's id restored, its progress and cancel carried.

Never here: finding the backend (router), what the request means, whom a server's question goes to (bridge).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trayapp.backends.connection import Connection
from trayapp.backends.context import Live
from trayapp.backends.http.refusal import NOT_EXECUTED
from trayapp.gateway.bridge import Questions
from trayapp.gateway.eras import ASKING, as_modern, as_older, asks_for_input
from trayapp.gateway.errors import to_client
from trayapp.model.errors import LEAVE_IT, ConnectionLostError
from trayapp.wire.envelope import LOG_LEVEL
from trayapp.wire.jsonio import JsonError
from trayapp.wire.messages import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    REQUEST_TIMEOUT,
    Params,
    Reply,
    RequestId,
    RpcError,
)

if TYPE_CHECKING:
    from trayapp.gateway.frontend import Session

_SERIALS = itertools.count()
Finishing = Callable[[Reply], Reply]  # raises JsonError


class RoutedCall:
    """A wire.messages.Call: open from `send` until its answer, its cancellation or its timeout.

    Meanwhile it may be parked: its client was asked something by an answer and is to come back (bridge).
    """

    __slots__ = (
        "_last",
        "_late",
        "_live",
        "_method",
        "_number",
        "_params",
        "_questions",
        "_rounds",
        "_timeout_s",
        "_timer",
        "connection",
        "finish",
        "log_level",
        "parked",
        "request_id",
        "serial",
        "session",
    )

    def __init__(
        self,
        session: Session,
        request_id: RequestId,
        connection: Connection,
        finish: Finishing | None = None,
        rounds: int = 0,
    ) -> None:
        self.session = session
        self.request_id = request_id
        self.connection = connection
        self.serial = next(_SERIALS)  # the order in which calls began
        self.parked = False
        self.log_level: str | None = None  # that the client asked for with this request
        self.finish = finish  # what becomes of the answer that the client gets
        self._rounds = rounds  # how often its server has asked before it answered
        self._method = ""
        self._params: Params = None
        self._last = False  # nothing is sent once more
        self._live: Live | None = None  # the one that it was sent on, not the next one of the same server
        self._number = 0
        self._timeout_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._late: Reply | None = None  # the answer that came while the call was parked
        self._questions: Questions | None = None

    @property
    def is_under_way(self) -> bool:
        """True while its client waits for the answer, or is to come back for it."""
        return self.parked or self.session.open_calls.get(self.request_id) is self

    @property
    def questions(self) -> Questions:
        """What its server asks the client meanwhile."""
        if self._questions is None:
            self._questions = Questions(self, self.session.bridge)
        return self._questions

    def send(self, method: str, params: Params, timeout_s: float, *, last: bool = False) -> None:
        """Pass the request on over the live connection; a timeout of 0 s is none.

        Unless it is the `last` try: a server that had forgotten our session gets it once more on a new one.
        """
        self.session.open_calls[self.request_id] = self
        self._method, self._params, self._timeout_s, self._last = method, params, timeout_s, last
        meta = params.get("_meta") if params else None
        self.log_level = meta.get(LOG_LEVEL) if isinstance(meta, dict) else None
        try:
            self.connection.begin()
            self._live = self.connection.live
            self._number = self.connection.relay(method, params, self, self.session.capabilities)
        except BaseException:
            self._close()  # else the connection would never be idle again
            raise
        if timeout_s > 0:
            self._set_timer()

    def answered(self, reply: Reply) -> None:
        """See wire.messages.Call."""
        if self.parked:
            self._late = reply
        elif not self._close():
            return
        elif reply.frame:
            self._deliver(reply)  # the server's own words
        elif not self._last and was_not_executed(reply):
            self.session.send_again(self, self._method, self._params, self._timeout_s)
        else:
            self._deliver(self._explained(reply))

    def progress(self, params: dict[str, Any]) -> None:
        """See wire.messages.Call."""
        if not self.parked:
            self.session.peer.send_notification("notifications/progress", params, self.request_id)

    def cancel(self, reason: str) -> None:
        """The client wants no answer any more: tell the backend, answer nothing (MCP cancellation)."""
        if self._close():
            self._tell_server(reason)

    # -- parked --------------------------------------------------------------------------------------------------

    def detach(self) -> None:
        """The client's request is about to be answered with a question; the call goes on without it."""
        self.session.open_calls.pop(self.request_id, None)
        self.parked = True
        self._stop_timer()

    def attach(self, session: Session, request_id: RequestId) -> bool:
        """The client came back with another request. False when that one has its answer already."""
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
        self.connection.end()
        if self._late is None:
            self._tell_server(reason)

    # -- the end -------------------------------------------------------------------------------------------------

    def _deliver(self, reply: Reply) -> None:
        """Answer the client, with an error where memory does not suffice for the answer."""
        try:
            self._pass_on(reply)
        except MemoryError:
            why = f"The gateway has too little memory for the answer of {self.connection.name}"
            self.session.peer.respond(self.request_id, Reply.of_error(RpcError(INTERNAL_ERROR, why)))

    def _pass_on(self, reply: Reply) -> None:
        """Answer the client in its own era's way."""
        try:
            modern = self._live is not None and self._live.peer.modern
            own = reply if self.session.modern == modern else self._translated(reply)
            if own is not None and self.finish is not None:
                own = self.finish(own)
        except JsonError:
            own = Reply.of_error(RpcError(INTERNAL_ERROR, f"The answer of {self.connection.name} is not valid JSON"))
        if own is not None:
            self.session.peer.respond(self.request_id, own)

    def _translated(self, reply: Reply) -> Reply | None:
        """In the other era's way; None for a question, which an older client is asked before the call goes on."""
        if self.session.modern:
            return as_modern(reply, self._method)
        if self._method in ASKING and asks_for_input(reply):
            question = reply.result()
            self.session.ask_and_carry_on(self, self._method, self._params, self._timeout_s, question, self._rounds + 1)
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
            self.session.bridge.give_up(self._live, self.session)

    def _close(self) -> bool:
        """True for the one that ends the call."""
        if self.session.open_calls.get(self.request_id) is not self:
            return False
        del self.session.open_calls[self.request_id]
        if self._timer is not None:
            self._timer.cancel()
        self.connection.end()
        return True

    def _explained(self, reply: Reply) -> Reply:
        """A connection that closed under a call: the answer says which server, and that nothing was sent twice."""
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
    """Whether the transport itself, in an answer without a frame, says that the server never took the request."""
    return bool(reply.message.get("error", {}).get("data") == NOT_EXECUTED)


def timed_out(connection: Connection, timeout_s: float) -> RpcError:
    """The error of a call that took longer than `request_timeout`."""
    return RpcError(REQUEST_TIMEOUT, f"{connection.name} did not answer within {timeout_s:g} s")


def lost_during_call(connection: Connection, why: str) -> ConnectionLostError:
    """The error of a call that was under way when its server went away, or was taken away."""
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
