"""Exchange messages with a client as frames: through the shim, or over HTTP with SSE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trayapp.gateway.client import OnNotification, OnRequest
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.framing import Pieces
from trayapp.wire.messages import Call, Params, RequestId


class FramePeer:
    """A client that exchanges newline-delimited frames. Its transport feeds the received ones to `dispatcher`."""

    def __init__(self, sink: Callable[[bytes], None], pour: Callable[[Pieces], None] | None = None) -> None:
        self.dispatcher = FrameDispatcher(sink, pour=pour)
        self.respond = self.dispatcher.respond
        self.cancel = self.dispatcher.cancel

    async def run(self, on_request: OnRequest, on_notification: OnNotification) -> None:
        async def refuse(method: str, params: Params) -> dict[str, Any]:
            raise AssertionError("the intercept takes every request")

        self.dispatcher.request_intercept = on_request
        await self.dispatcher.run(refuse, on_notification)

    def send_notification(self, method: str, params: Params, about: RequestId | None = None) -> None:
        self.dispatcher.send_notification(method, params)

    def relay(self, method: str, params: Params, call: Call, about: RequestId | None = None) -> int:
        return self.dispatcher.relay(method, params, call)
