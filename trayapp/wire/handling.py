"""Handling of a peer's requests and notifications: a task for each, cancelled when the peer cancels the request.

A handler gets a context with each message (the SDK's DispatchContext).

Exceptions of handlers stop at one boundary. Never here: reading frames, outbound requests.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict

import anyio
from anyio.abc import TaskGroup

from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import (
    CANCELLED,
    INTERNAL_ERROR,
    PROGRESS,
    Params,
    Reply,
    Request,
    RequestId,
    RpcError,
    is_request_id,
)
from trayapp.wire.messages import progress_token as token_of

log = logging.getLogger(__name__)

INTERNAL = RpcError(INTERNAL_ERROR, "Internal error of the gateway; see its log")


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


class MessageHandler:
    """The inbound side of one dispatcher. Handlers run in `tasks`, the task group of its `run`."""

    def __init__(
        self,
        outbound: Outbound,
        tasks: TaskGroup,
        on_request: OnRequest,
        on_notify: OnNotify,
        intercept: NotifyIntercept | None,
    ) -> None:
        self._outbound = outbound
        self._tasks = tasks
        self._on_request = on_request
        self._on_notify = on_notify
        self._intercept = intercept
        self._inbound: dict[RequestId, RequestContext] = {}

    def request(self, request_id: RequestId, method: str, params: Params) -> None:
        """Handle a request that was not intercepted."""
        context = RequestContext(self._outbound, request_id, token_of(params))
        self._inbound[request_id] = context
        self._tasks.start_soon(self._handle, context, method, params)

    def notification(self, method: str, params: Params) -> None:
        """Handle a notification other than progress of an outbound request."""
        if method == CANCELLED and params is not None and is_request_id(request_id := params.get("requestId")):
            context = self._inbound.get(request_id)
            if context is not None:
                context.cancel_requested.set()
                context.scope.cancel()
        if not self._intercepted(method, params):
            self._tasks.start_soon(self._handle_notification, method, params)

    async def _handle(self, context: RequestContext, method: str, params: Params) -> None:
        """Handle one inbound request from the start of its task to its answer."""
        assert context.request_id is not None
        frame: bytes | None = None
        with context.scope:
            frame = await self._handled(context, dumps(context.request_id), method, params)
        if self._inbound.get(context.request_id) is context:
            del self._inbound[context.request_id]
        if frame is not None and not context.cancel_requested.is_set():
            self._outbound.respond_frame(frame)

    async def _handled(self, context: RequestContext, id_json: bytes, method: str, params: Params) -> bytes:
        """Return the frame of the answer. This is the boundary where exceptions become JSON-RPC errors."""
        try:
            try:
                return Reply.of_result(await self._on_request(context, method, params)).with_id(id_json)
            except RpcError as error:
                return Reply.of_error(error).with_id(id_json)
        except Exception:
            log.exception("Unexpected error in %s", method)
            return Reply.of_error(INTERNAL).with_id(id_json)

    def _intercepted(self, method: str, params: Params) -> bool:
        try:
            return self._intercept is not None and self._intercept(method, params)
        except Exception:  # the same boundary as _handle_notification
            log.exception("Unexpected error in %s", method)
            return False

    async def _handle_notification(self, method: str, params: Params) -> None:
        """Handle one inbound notification. This is the boundary that keeps its failure from the others."""
        try:
            await self._on_notify(RequestContext(self._outbound, None), method, params)
        except Exception:
            log.exception("Unexpected error in %s", method)
