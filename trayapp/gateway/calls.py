"""One request of a client on its way to a backend and back: the answer's id restored, its progress and cancel carried.

Never here: finding the backend (router), what the request means.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from trayapp.backends.connection import Connection
from trayapp.backends.transports import NOT_EXECUTED
from trayapp.backends.world import Live
from trayapp.gateway.errors import to_rpc
from trayapp.model.errors import ConnectionLostError
from trayapp.wire.messages import CONNECTION_CLOSED, REQUEST_TIMEOUT, Params, Reply, RequestId, RpcError

if TYPE_CHECKING:
    from trayapp.gateway.frontend import Session


class RoutedCall:
    """A wire.messages.Call: open from `send` until its answer, its cancellation or its timeout."""

    __slots__ = ("_again", "_connection", "_live", "_number", "_session", "_timer", "request_id")

    def __init__(self, session: Session, request_id: RequestId, connection: Connection) -> None:
        self._again: tuple[str, Params, float] | None = None  # what to send once more if nothing was executed
        self._session = session
        self.request_id = request_id
        self._connection = connection
        self._live: Live | None = None  # the one that it was sent on, not the next one of the same server
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def connection(self) -> Connection:
        """The backend that works on it."""
        return self._connection

    def send(self, method: str, params: Params, timeout_s: float, *, last: bool = False) -> None:
        """Pass the request on over the live connection; a timeout of 0 s is none.

        Unless it is the `last` try: a server that had forgotten our session gets it once more on a new one.
        """
        self._session.open_calls[self.request_id] = self
        self._again = None if last else (method, params, timeout_s)
        try:
            self._connection.begin()
            self._live = self._connection.live
            self._number = self._connection.relay(method, params, self)
        except BaseException:
            self._close()  # else the connection would never be idle again
            raise
        if timeout_s > 0 and self.request_id in self._session.open_calls:
            self._timer = asyncio.get_running_loop().call_later(timeout_s, self._expire, timeout_s)

    def answered(self, reply: Reply) -> None:
        """See wire.messages.Call."""
        if not self._close():
            return
        if self._again is not None and was_not_executed(reply):
            self._session.send_again(self.request_id, self._connection, *self._again)
        else:
            self._session.dispatcher.respond(self.request_id, self._explained(reply))

    def progress(self, params: dict[str, Any]) -> None:
        """See wire.messages.Call."""
        self._session.dispatcher.send_notification("notifications/progress", params)

    def cancel(self, reason: str) -> None:
        """The client wants no answer any more: tell the backend, answer nothing (MCP cancellation)."""
        if self._close() and self._live is not None:
            self._live.channel.cancel(self._number, reason)

    def _expire(self, timeout_s: float) -> None:
        if not self._close():
            return
        if self._live is not None:
            self._live.channel.cancel(self._number, "timed out")
        self._session.dispatcher.respond(self.request_id, Reply.of_error(timed_out(self._connection, timeout_s)))

    def _close(self) -> bool:
        """True for the one that ends the call."""
        if self._session.open_calls.get(self.request_id) is not self:
            return False
        del self._session.open_calls[self.request_id]
        if self._timer is not None:
            self._timer.cancel()
        self._connection.end()
        return True

    def _explained(self, reply: Reply) -> Reply:
        """A connection that closed under a call: the answer says which server, and that nothing was sent twice."""
        if reply.frame or "error" not in reply.message or reply.message["error"].get("code") != CONNECTION_CLOSED:
            return reply
        transport = self._live.transport if self._live else None
        if transport is not None and transport.kind != "stdio" and not transport.gone.is_set():
            return reply  # the server's own words: it lives, and by HTTP its answers come without frames, too
        return Reply.of_error(to_rpc(lost_during_call(self._connection, reply.message["error"].get("message", ""))))


def was_not_executed(reply: Reply) -> bool:
    """Whether the transport itself says that the server never took the request."""
    return not reply.frame and reply.message.get("error", {}).get("data") == NOT_EXECUTED


def timed_out(connection: Connection, timeout_s: float) -> RpcError:
    """The error of a call that took longer than `request_timeout`."""
    return RpcError(REQUEST_TIMEOUT, f"{connection.name} did not answer within {timeout_s:g} s")


def lost_during_call(connection: Connection, why: str) -> ConnectionLostError:
    """The error of a call that was under way when its server went away."""
    return ConnectionLostError(
        connection.name,
        f"{connection.name} went away during the call: {why}",
        "The call was not repeated, it may have had effects; the next call starts the server again",
    )
