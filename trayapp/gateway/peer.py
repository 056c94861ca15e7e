"""What a session needs of its client's connection, and that connection over frames (the shim).

Never here: sessions, MCP methods, HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from trayapp.wire.context import RequestContext
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.messages import METHOD_NOT_FOUND, Call, Params, Reply, RequestId, RpcError
from trayapp.wire.outbox import Pieces

OnRequest = Callable[[RequestId, str, Any], None]  # answered sooner or later with ClientPeer.respond
OnNotification = Callable[[str, Params], None]


class ClientPeer(Protocol):
    """The way to one client. `about`: the client's own request that a message belongs to, None = to none.

    On a stream of frames everything shares one way; over HTTP each request has its own (MCP transports).
    """

    async def run(self, on_request: OnRequest, on_notification: OnNotification) -> None:
        """Hand over all that comes, without blocking, until the client is gone."""

    def respond(self, request_id: RequestId, reply: Reply) -> None:
        """Answer a request of the client's; dropped when it is gone."""

    def send_notification(self, method: str, params: Params, about: RequestId | None = None) -> None:
        """Tell the client something; dropped when it is gone."""

    def relay(self, method: str, params: Params, call: Call, about: RequestId | None = None) -> int:
        """Ask the client something; its answer goes to `call`. Returns an id for `cancel`."""

    def cancel(self, request_id: int, reason: str) -> None:
        """Give up what was asked with `relay`."""


class FramePeer:
    """A client on newline-delimited frames; `dispatcher` is fed by whoever owns the stream."""

    def __init__(self, sink: Callable[[bytes], None], pour: Callable[[Pieces], None] | None = None) -> None:
        self.dispatcher = FrameDispatcher(sink, pour=pour)
        self.respond = self.dispatcher.respond
        self.cancel = self.dispatcher.cancel

    async def run(self, on_request: OnRequest, on_notification: OnNotification) -> None:
        """See ClientPeer."""

        def notification(method: str, params: Params) -> bool:
            on_notification(method, params)
            return True

        self.dispatcher.request_intercept = on_request
        await self.dispatcher.run(_never_asked, _never_told, notification)

    def send_notification(self, method: str, params: Params, about: RequestId | None = None) -> None:
        """See ClientPeer."""
        self.dispatcher.send_notification(method, params)

    def relay(self, method: str, params: Params, call: Call, about: RequestId | None = None) -> int:
        """See ClientPeer."""
        return self.dispatcher.relay(method, params, call)


async def _never_asked(context: RequestContext, method: str, params: Params) -> dict[str, Any]:
    """The intercept takes every request."""
    raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}"[:200])


async def _never_told(context: RequestContext, method: str, params: Params) -> None:
    """The intercept takes every notification."""
