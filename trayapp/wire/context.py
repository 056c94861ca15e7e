"""The context that a handler gets with an inbound message (the SDK's DispatchContext), and the handler types.

Never here: reading frames, routing messages to handlers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict

import anyio

from trayapp.wire.messages import PROGRESS, Params, Request, RequestId


class CallOptions(TypedDict, total=False):
    """The keys of the SDK's CallOptions that apply to frames. Others are ignored, as its contract allows."""

    timeout: float
    cancel_on_abandon: bool


class Outbound(Protocol):
    """The path back to a message's sender: the SDK's Outbound, plus frames sent without a task."""

    async def send_raw_request(self, method: str, params: Params, opts: CallOptions | None = None) -> dict[str, Any]:
        """Send a request and return its result. Raises RpcError."""

    async def notify(self, method: str, params: Params, opts: CallOptions | None = None) -> None:
        """Send a notification. It is dropped when closed."""

    def send_notification(self, method: str, params: Params) -> None:
        """Send a notification without waiting. It is dropped when closed."""

    def respond_frame(self, frame: bytes) -> None:
        """Send a complete frame. It is dropped when closed."""


@dataclass(frozen=True, slots=True)
class FrameTransport:
    """The SDK's TransportContext, for frames."""

    kind: str = "frames"
    can_send_request: bool = True
    headers: None = None


@dataclass(slots=True)
class RequestContext:
    """The context of one inbound message: the SDK's DispatchContext."""

    outbound: Outbound
    request_id: RequestId | None
    progress_token: RequestId | None = None
    transport: FrameTransport = field(default_factory=FrameTransport)
    message_metadata: None = None
    can_send_request: bool = True
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def send_raw_request(self, method: str, params: Params, opts: CallOptions | None = None) -> dict[str, Any]:
        """Send a request to the peer and return its result. Raises RpcError."""
        return await self.outbound.send_raw_request(method, params, opts)

    async def notify(self, method: str, params: Params, opts: CallOptions | None = None) -> None:
        """Send a notification to the peer."""
        await self.outbound.notify(method, params, opts)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress if the peer gave a token. Do nothing otherwise."""
        if self.progress_token is None:
            return
        fields = {"progress": progress, "total": total, "message": message}
        known = {name: value for name, value in fields.items() if value is not None}
        self.outbound.send_notification(PROGRESS, {"progressToken": self.progress_token, **known})


OnRequest = Callable[[RequestContext, str, Params], Awaitable[dict[str, Any]]]
OnNotify = Callable[[RequestContext, str, Params], Awaitable[None]]
NotifyIntercept = Callable[[str, Params], bool]
RequestIntercept = Callable[[Request], bool | None]
