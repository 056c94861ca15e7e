"""FrameDispatcher: JSON-RPC over newline-delimited frames, in the shape of the SDK's Dispatcher Protocol.

Besides awaiting a result it can relay: pass an answer on as it came, unparsed when large (DESIGN, decision 1).
Never here: the SDK, sockets, processes, the meaning of any MCP method but progress and cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypedDict, TypeGuard

import anyio
import anyio.abc

from trayapp.wire.framing import (
    MAX_FRAME_BYTES,
    SMALL_FRAME_BYTES,
    FrameSplitter,
    Oversized,
    find_answer_id,
    find_leading_id,
)
from trayapp.wire.jsonio import JsonError, dumps, loads
from trayapp.wire.messages import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    REQUEST_TIMEOUT,
    Call,
    Params,
    Reply,
    RequestId,
    RpcError,
)
from trayapp.wire.outbox import BATCH, Outbox

log = logging.getLogger(__name__)

PROGRESS = "notifications/progress"
CANCELLED = "notifications/cancelled"


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
RequestIntercept = Callable[[RequestId, str, Any], bool]


class _Awaited:
    """The Call behind `send_raw_request`."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def answered(self, reply: Reply) -> None:
        if not self.future.done():
            self.future.set_result(reply)

    def progress(self, params: dict[str, Any]) -> None:
        pass


class FrameDispatcher:
    """One peer on a stream of frames. Not thread-safe: everything happens on one event loop.

    `sink` takes whole frames and does not block. `request_intercept(id, method, params)`, when set, sees every inbound
    request first, without a task; returning True means that it answers by itself (`respond`, `respond_frame`).
    """

    def __init__(self, sink: Callable[[bytes], None], *, on_junk: Callable[[bytes], None] | None = None) -> None:
        self._out = Outbox(sink)
        self._splitter = FrameSplitter()
        self._on_junk = on_junk or (lambda frame: None)
        self._pending: dict[int, tuple[Call, RequestId | None]] = {}
        self._inbound: dict[RequestId, RequestContext] = {}
        self._last_id = 0
        self._early: list[bytes] | None = []  # bytes that came before run()
        self._closed: RpcError | None = None
        self._ended = anyio.Event()
        self._tasks: anyio.abc.TaskGroup | None = None
        self._on_request: OnRequest | None = None
        self._on_notify: OnNotify | None = None
        self._notify_intercept: NotifyIntercept | None = None
        self.request_intercept: RequestIntercept | None = None

    # -- outbound ------------------------------------------------------------------------------------------------

    @property
    def open_calls(self) -> int:
        """How many requests of ours wait for an answer."""
        return len(self._pending)

    def relay(self, method: str, params: Params, call: Call) -> int:
        """Send a request; its answer goes to `call` (see wire.messages.Channel)."""
        self._last_id += 1
        request_id = self._last_id
        if self._closed is not None:
            call.answered(Reply.of_error(self._closed))
            return request_id
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": method}
        token = None
        if params is not None:
            token = progress_token(params)
            if token is not None:
                params = {**params, "_meta": {**params["_meta"], "progressToken": request_id}}
            message["params"] = params
        self._pending[request_id] = (call, token)
        self._out.write(dumps(message) + b"\n")
        return request_id

    def cancel(self, request_id: int, reason: str) -> None:
        """Give up a relayed request (see wire.messages.Channel)."""
        if self._pending.pop(request_id, None) is not None:
            self.send_notification(CANCELLED, {"requestId": request_id, "reason": reason})

    async def send_raw_request(self, method: str, params: Params, opts: CallOptions | None = None) -> dict[str, Any]:
        """Send a request and await its result.

        Raises RpcError: the peer's error, REQUEST_TIMEOUT after `opts["timeout"]` seconds, CONNECTION_CLOSED.
        """
        opts = opts or {}
        waiting = _Awaited()
        request_id = self.relay(method, params, waiting)
        try:
            async with asyncio.timeout(opts.get("timeout")):
                reply = await waiting.future
        except (TimeoutError, asyncio.CancelledError) as error:
            if opts.get("cancel_on_abandon", True):
                self.cancel(request_id, "timed out" if isinstance(error, TimeoutError) else "caller cancelled")
            self._pending.pop(request_id, None)
            if isinstance(error, TimeoutError):
                raise RpcError(REQUEST_TIMEOUT, f"No answer to {method} within {opts.get('timeout')} s") from None
            raise
        return reply.result()

    async def notify(self, method: str, params: Params, opts: CallOptions | None = None) -> None:
        """Send a notification; dropped when closed."""
        self.send_notification(method, params)

    def send_notification(self, method: str, params: Params) -> None:
        """`notify` without a coroutine."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.respond_frame(dumps(message) + b"\n")

    def respond(self, request_id: RequestId, reply: Reply) -> None:
        """Answer an inbound request."""
        self.respond_frame(reply.with_id(dumps(request_id)))

    def respond_frame(self, frame: bytes) -> None:
        """Send a frame that is whole already; dropped when closed."""
        if self._closed is None:
            self._out.write(frame)

    def adopt(self, protocol: str) -> None:
        """Nothing to do: frames carry no headers (see wire.messages.Channel)."""

    # -- inbound -------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Bytes that came from the peer."""
        if self._early is not None:
            self._early.append(data)
            return
        frames = self._splitter.feed(data)
        if len(frames) == 1:
            self._take(frames[0])
            return
        with BATCH:
            for frame in frames:
                self._take(frame)

    def close(self, why: RpcError | None = None) -> None:
        """The peer is gone: every open request of ours is answered with `why`, and `run` returns."""
        if self._closed is not None:
            return
        self._closed = why or RpcError(CONNECTION_CLOSED, "Connection closed")
        pending, self._pending = self._pending, {}
        for call, _ in pending.values():
            call.answered(Reply.of_error(self._closed))
        self._ended.set()

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: NotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Handle inbound messages until `close`; requests still being handled then are cancelled."""
        self._on_request, self._on_notify, self._notify_intercept = on_request, on_notify, on_notify_intercept
        try:
            async with anyio.create_task_group() as self._tasks:
                early, self._early = self._early or [], None
                task_status.started()
                for data in early:
                    self.feed(data)
                await self._ended.wait()
                self._tasks.cancel_scope.cancel()
        finally:
            self.close()
            self._tasks = None

    def _take(self, frame: bytes | Oversized) -> None:
        if isinstance(frame, Oversized):
            self._refuse(frame.head, f"A message is larger than {MAX_FRAME_BYTES // 2**20} MiB")
            return
        place = find_answer_id(frame)
        if place is not None and len(frame) > SMALL_FRAME_BYTES and frame.endswith(b"}"):
            self._answer(loads(frame[place[0] : place[1]]), Reply(frame, *place))
            return
        try:
            message = loads(frame)
        except JsonError:
            self._refuse(frame, "A message is not valid JSON")
            return
        if isinstance(message, list):
            for part in message:  # a batch: JSON-RPC, and MCP 2025-03-26
                self._sort(part, b"", None)
        else:
            self._sort(message, frame, place)

    def _sort(self, message: Any, frame: bytes, place: tuple[int, int] | None) -> None:
        if not isinstance(message, dict):
            self._on_junk(frame)
        elif isinstance(method := message.get("method"), str):
            request_id = message.get("id")
            if request_id is None:
                self._notification(method, message.get("params"))
            elif is_request_id(request_id):
                self._request(request_id, method, message.get("params"))
            else:
                self._on_junk(frame)
        elif ("result" in message or "error" in message) and is_request_id(request_id := message.get("id")):
            start, end = place or (0, 0)
            self._answer(request_id, Reply(frame, start, end, message))
        elif is_request_id(request_id := message.get("id")):
            error = RpcError(INVALID_REQUEST, "Neither a request nor an answer")
            self.respond(request_id, Reply.of_error(error))
        else:
            self._on_junk(frame)

    def _refuse(self, head: bytes, why: str) -> None:
        """A frame that cannot be read: whoever can be told from its head gets an error, else it is junk."""
        id_json = find_leading_id(head)
        request_id = loads(id_json) if id_json is not None else None
        if is_request_id(request_id) and is_pending_answer(head, request_id, self._pending):
            self._answer(request_id, Reply.of_error(RpcError(INTERNAL_ERROR, why)))
        elif id_json is not None and b'"method"' in head[:512]:
            self.respond_frame(Reply.of_error(RpcError(INVALID_REQUEST, why)).with_id(id_json))
        else:
            self._on_junk(head)

    def _answer(self, request_id: RequestId, reply: Reply) -> None:
        if isinstance(request_id, str) and request_id.isdecimal():
            request_id = int(request_id)  # some servers return every id as text
        pending = self._pending.pop(request_id, None) if isinstance(request_id, int) else None
        if pending is not None:
            pending[0].answered(reply)

    def _request(self, request_id: RequestId, method: str, params: Any) -> None:
        intercept = self.request_intercept
        if intercept is not None and intercept(request_id, method, params):
            return
        if self._tasks is not None:
            context = RequestContext(self, request_id, progress_token(params))
            self._inbound[request_id] = context
            self._tasks.start_soon(self._handle, context, method, params)

    async def _handle(self, context: RequestContext, method: str, params: Params) -> None:
        """One inbound request: the boundary where exceptions become JSON-RPC errors."""
        assert self._on_request is not None and context.request_id is not None
        reply: Reply | None = None
        with context.scope:
            try:
                reply = Reply.of_result(await self._on_request(context, method, params))
            except RpcError as error:
                reply = Reply.of_error(error)
            except Exception:
                log.exception("Handling %s failed", method)
                reply = Reply.of_error(RpcError(INTERNAL_ERROR, "Internal error of the gateway; see its log"))
        if self._inbound.get(context.request_id) is context:
            del self._inbound[context.request_id]
        if reply is not None and not context.cancel_requested.is_set():
            self.respond(context.request_id, reply)

    def _notification(self, method: str, params: Any) -> None:
        if params is not None and not isinstance(params, dict):
            return
        if method == PROGRESS and params is not None and self._progress(params):
            return
        if method == CANCELLED and params is not None:
            context = self._inbound.get(params.get("requestId", ""))
            if context is not None:
                context.cancel_requested.set()
                context.scope.cancel()
        if self._notify_intercept is not None and self._notify_intercept(method, params):
            return
        if self._tasks is not None and self._on_notify is not None:
            self._tasks.start_soon(self._handle_notification, method, params)

    async def _handle_notification(self, method: str, params: Params) -> None:
        """One inbound notification: the boundary that keeps its failure from the others."""
        assert self._on_notify is not None
        try:
            await self._on_notify(RequestContext(self, None), method, params)
        except Exception:
            log.exception("Handling %s failed", method)

    def _progress(self, params: dict[str, Any]) -> bool:
        token = params.get("progressToken")
        if isinstance(token, str) and token.isdecimal():
            token = int(token)
        pending = self._pending.get(token) if isinstance(token, int) else None
        if pending is None or pending[1] is None:
            return False
        call, original = pending
        call.progress({**params, "progressToken": original})
        return True


def is_request_id(value: Any) -> TypeGuard[RequestId]:
    """Whether a JSON value may be an id: text or a whole number (JSON-RPC 2.0, MCP basic)."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def is_pending_answer(head: bytes, request_id: Any, pending: dict[int, Any]) -> bool:
    """Whether an unreadable frame is the answer to one of our open requests."""
    return request_id in pending and (b'"result"' in head[:512] or b'"error"' in head[:512])


def progress_token(params: Any) -> RequestId | None:
    """`params._meta.progressToken`, when it is one."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if is_request_id(token) else None
