"""One request of a client on its way to a backend and back: the answer's id restored, its progress and cancel carried.

Never here: finding the backend (router), what the request means.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from trayapp.backends.connection import Connection
from trayapp.model.errors import ConnectionLostError
from trayapp.wire.messages import CONNECTION_CLOSED, REQUEST_TIMEOUT, Params, Reply, RequestId, RpcError

if TYPE_CHECKING:
    from trayapp.gateway.frontend import Session


class RoutedCall:
    """A wire.messages.Call: open from `send` until its answer, its cancellation or its timeout."""

    __slots__ = ("_connection", "_number", "_session", "_timer", "request_id")

    def __init__(self, session: Session, request_id: RequestId, connection: Connection) -> None:
        self._session = session
        self.request_id = request_id
        self._connection = connection
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def connection(self) -> Connection:
        """The backend that works on it."""
        return self._connection

    def send(self, method: str, params: Params, timeout_s: float) -> None:
        """Pass the request on over the live connection; a timeout of 0 s is none."""
        self._session.open_calls[self.request_id] = self
        self._connection.begin()
        self._number = self._connection.relay(method, params, self)
        if timeout_s > 0 and self.request_id in self._session.open_calls:
            self._timer = asyncio.get_running_loop().call_later(timeout_s, self._expire, timeout_s)

    def answered(self, reply: Reply) -> None:
        """See wire.messages.Call."""
        if self._close():
            self._session.dispatcher.respond(self.request_id, _explained(reply, self._connection))

    def progress(self, params: dict[str, Any]) -> None:
        """See wire.messages.Call."""
        self._session.dispatcher.send_notification("notifications/progress", params)

    def cancel(self, reason: str) -> None:
        """The client wants no answer any more: tell the backend, answer nothing (MCP cancellation)."""
        channel = self._connection.live.channel if self._connection.live else None
        if self._close() and channel is not None:
            channel.cancel(self._number, reason)

    def _expire(self, timeout_s: float) -> None:
        channel = self._connection.live.channel if self._connection.live else None
        if not self._close():
            return
        if channel is not None:
            channel.cancel(self._number, "timed out")
        error = RpcError(REQUEST_TIMEOUT, f"{self._connection.name} did not answer within {timeout_s:g} s")
        self._session.dispatcher.respond(self.request_id, Reply.of_error(error))

    def _close(self) -> bool:
        """True for the one that ends the call."""
        if self._session.open_calls.get(self.request_id) is not self:
            return False
        del self._session.open_calls[self.request_id]
        if self._timer is not None:
            self._timer.cancel()
        self._connection.end()
        return True


def _explained(reply: Reply, connection: Connection) -> Reply:
    """A connection that closed under a call: the answer says which server, and that nothing was sent twice."""
    if reply.frame or "error" not in reply.message or reply.message["error"].get("code") != CONNECTION_CLOSED:
        return reply
    why = reply.message["error"].get("message", "")
    lost = ConnectionLostError(
        connection.name,
        f"{connection.name} went away during the call: {why}",
        "The call was not repeated, it may have had effects; the next call starts the server again",
    )
    return Reply.of_error(RpcError(CONNECTION_CLOSED, str(lost), {"code": lost.code, "server": lost.server}))
