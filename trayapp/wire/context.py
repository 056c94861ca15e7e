"""What a handler gets with an inbound message, and the shapes of handlers and intercepts (the SDK's DispatchContext).

Never here: reading frames, deciding who handles what.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

import anyio

from trayapp.wire.messages import PROGRESS, Params, RequestId

if TYPE_CHECKING:
    from trayapp.wire.frames import FrameDispatcher


class CallOptions(TypedDict, total=False):
    """The keys of the SDK's CallOptions that mean something on frames; others are ignored, as its contract allows."""

    timeout: float
    cancel_on_abandon: bool


@dataclass(frozen=True, slots=True)
class FrameTransport:
    """What the SDK calls a TransportContext."""

    kind: str = "frames"
    can_send_request: bool = True
    headers: None = None


@dataclass(slots=True)
class RequestContext:
    """What a handler gets with an inbound message: the SDK's DispatchContext."""

    dispatcher: FrameDispatcher
    request_id: RequestId | None
    progress_token: RequestId | None = None
    transport: FrameTransport = field(default_factory=FrameTransport)
    message_metadata: None = None
    can_send_request: bool = True
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def send_raw_request(self, method: str, params: Params, opts: CallOptions | None = None) -> dict[str, Any]:
        """As the dispatcher's."""
        return await self.dispatcher.send_raw_request(method, params, opts)

    async def notify(self, method: str, params: Params, opts: CallOptions | None = None) -> None:
        """As the dispatcher's."""
        await self.dispatcher.notify(method, params, opts)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress when the peer gave a token; nothing otherwise."""
        if self.progress_token is None:
            return
        fields = {"progress": progress, "total": total, "message": message}
        known = {name: value for name, value in fields.items() if value is not None}
        self.dispatcher.send_notification(PROGRESS, {"progressToken": self.progress_token, **known})


OnRequest = Callable[[RequestContext, str, Params], Awaitable[dict[str, Any]]]
OnNotify = Callable[[RequestContext, str, Params], Awaitable[None]]
NotifyIntercept = Callable[[str, Params], bool]
RequestIntercept = Callable[[RequestId, str, Any], bool | None]
