"""FrameDispatcher: JSON-RPC over newline-delimited frames.

It can wait for a request's result, or relay the answer as received, unparsed if it is large (DESIGN, decision 1).
Each request of the peer is handled in its own task, which is cancelled when the peer cancels the request. A handler's
exception affects only its own message.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.abc
from anyio.abc import TaskGroup

from trayapp.wire.framing import (
    BATCH,
    SMALL_FRAME_BYTES,
    TAIL_BYTES,
    FrameSplitter,
    Outbox,
    OversizedFrame,
    Pieces,
    begins_answer,
    find_answer_id,
    find_outer_id,
    id_place,
)
from trayapp.wire.jsonio import MAX_DEPTH, JsonError, dumps, loads
from trayapp.wire.messages import (
    CANCELLED,
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    PROGRESS,
    REQUEST_TIMEOUT,
    Call,
    Params,
    Reply,
    Request,
    RequestId,
    RpcError,
    is_answer,
    is_request_id,
    mended,
    own_id,
    progress_token,
)

log = logging.getLogger(__name__)

INTERNAL = RpcError(INTERNAL_ERROR, "Internal error of the gateway. See its log")

OnRequest = Callable[[str, Params], Awaitable[dict[str, Any]]]
OnNotification = Callable[[str, Params], object]


class PendingCall:
    """A Call whose answer is awaited."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def answered(self, reply: Reply) -> None:
        if not self.future.done():
            self.future.set_result(reply)

    def progress(self, params: dict[str, Any]) -> None:
        """Do nothing: this call sent no progress token."""


class FrameDispatcher:
    """One peer on a stream of frames. Not thread-safe: everything happens on one event loop.

    The class is broad because both directions of JSON-RPC share its ids, its closing and its output.

    - `sink` takes whole frames and does not block.
    - `pour`, if given, takes large frames in pieces.
    - `request_intercept`, when set, gets every inbound request, without a task, and answers it (`respond`).
    - `on_junk` gets the start of any input that is not JSON-RPC and has no id to answer. By default it is logged.
    - `peer` names the other side in errors about its answers.
    """

    def __init__(
        self,
        sink: Callable[[bytes], None],
        *,
        pour: Callable[[Pieces], None] | None = None,
        on_junk: Callable[[bytes], None] | None = None,
        peer: str = "",
    ) -> None:
        self._answer_words = f"The answer of {peer}" if peer else "The answer"
        self._out = Outbox(sink, pour)
        self._splitter = FrameSplitter()
        self._on_junk = on_junk or _log_junk
        self._pending: dict[int, tuple[Call, RequestId | None]] = {}
        self._last_id = 0
        self._early: list[bytes] | None = []  # bytes received before run()
        self._closed: RpcError | None = None
        self._ended = anyio.Event()
        self._handling: TaskGroup | None = None  # set while `run` handles inbound messages
        self._scopes: dict[RequestId, anyio.CancelScope] = {}  # the cancel scopes of inbound requests
        self.request_intercept: Callable[[Request], object] | None = None

    # -- outbound ------------------------------------------------------------------------------------------------

    def call_of(self, request_id: int) -> Call | None:
        """Return the call that waits for the answer to an outbound request, or None if that request is not open."""
        pending = self._pending.get(request_id)
        return pending[0] if pending is not None else None

    def relay(self, method: str, params: Params, call: Call) -> int:
        self._last_id += 1
        request_id = self._last_id
        if self._closed is not None:
            call.answered(Reply.of_error(self._closed))
            return request_id
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": method}
        token = None
        if params is not None:
            if "_meta" in params and (token := progress_token(params)) is not None:
                params = {**params, "_meta": {**params["_meta"], "progressToken": request_id}}
            message["params"] = params
        frame = dumps(message) + b"\n"
        self._pending[request_id] = (call, token)
        self._out.write(frame)
        return request_id

    def cancel(self, request_id: int, reason: str) -> None:
        if self._pending.pop(request_id, None) is not None:
            self.send_notification(CANCELLED, {"requestId": request_id, "reason": reason})

    async def send_raw_request(
        self, method: str, params: Params, *, timeout_s: float | None = None, cancel_on_abandon: bool = True
    ) -> dict[str, Any]:
        waiting = PendingCall()
        request_id = self.relay(method, params, waiting)
        try:
            async with asyncio.timeout(timeout_s):
                reply = await waiting.future
        except (TimeoutError, asyncio.CancelledError) as error:
            if cancel_on_abandon:
                self.cancel(request_id, "timed out" if isinstance(error, TimeoutError) else "caller cancelled")
            self._pending.pop(request_id, None)
            if isinstance(error, TimeoutError):
                raise RpcError(REQUEST_TIMEOUT, f"No answer to {method} within {timeout_s} s") from None
            raise
        return reply.result()

    def send_notification(self, method: str, params: Params) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.respond_frame(dumps(message) + b"\n")

    def respond(self, request_id: RequestId, reply: Reply) -> None:
        """Answer an inbound request, or drop the answer if the dispatcher is closed."""
        if self._closed is not None:
            return
        id_json = b"%d" % request_id if type(request_id) is int else dumps(request_id)
        if len(reply.frame) > SMALL_FRAME_BYTES:
            self._out.write_pieces(reply.pieces(id_json))
        else:
            self._out.write(reply.with_id(id_json))

    def respond_frame(self, frame: bytes) -> None:
        """Send a complete frame, or drop it if the dispatcher is closed."""
        if self._closed is None:
            self._out.write(frame)

    def adopt(self, protocol: str) -> None:
        """Do nothing: frames carry no headers (wire.messages.Channel)."""

    # -- inbound -------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Handle bytes from the peer. Bytes received before `run` wait for it."""
        if self._early is not None:
            self._early.append(data)
            return
        frames = self._splitter.feed(data)
        if len(frames) == 1:
            self.take(frames[0])
            return
        with BATCH:
            for frame in frames:
                self.take(frame)

    def close(self, why: RpcError | None = None) -> None:
        """Answer every open outbound request with `why`, since the peer is gone, and let `run` return."""
        if self._closed is not None:
            return
        self._closed = why or RpcError(CONNECTION_CLOSED, "Connection closed")
        for number in list(self._pending):
            self.answer(number, Reply.of_error(self._closed))
        self._ended.set()

    async def run(
        self,
        on_request: OnRequest,
        on_notification: OnNotification,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Handle inbound messages until `close`. Requests still being handled then are cancelled.

        Each request has a task; notifications are handled immediately, in order.
        """
        try:
            async with anyio.create_task_group() as tasks:
                self._handling, self._on_request, self._on_notification = tasks, on_request, on_notification
                early, self._early = self._early or [], None
                task_status.started()
                for data in early:
                    self.feed(data)
                await self._ended.wait()
                tasks.cancel_scope.cancel()
        finally:
            self.close()
            self._handling = None

    def take(self, frame: bytes | OversizedFrame) -> None:
        """Handle one inbound frame. Exception boundary: its failure does not affect the frames that follow."""
        try:
            if isinstance(frame, OversizedFrame):
                self._refuse(frame.head, frame.tail, INVALID_REQUEST, frame.why)
            elif len(frame) > SMALL_FRAME_BYTES and (place := _answer_place(frame)) is not None:
                self.answer(loads(frame[place[0] : place[1]]), Reply(frame, *place))
            else:
                message = loads(frame)
                if type(message) is dict:
                    self._sort(message, frame)
                elif isinstance(message, list) and message:
                    for part in message:  # a batch (JSON-RPC 2.0, MCP 2025-03-26)
                        self._sort(part, b"")
                else:
                    self._on_junk(frame)
        except JsonError:
            assert isinstance(frame, bytes)
            self._refuse(frame, frame[-TAIL_BYTES:], PARSE_ERROR, "is not valid JSON, or is nested too deeply")
        except Exception:
            log.exception("Unexpected error in a message")
            if not isinstance(frame, OversizedFrame):  # the peer, or the call that waits for this answer, gets an error
                self._refuse(frame, frame[-TAIL_BYTES:], INTERNAL_ERROR, "could not be handled")

    def _sort(self, message: Any, frame: bytes) -> None:
        """Handle one message. `frame`: the frame that contained it; empty for a message of a batch."""
        if type(message) is not dict:
            self._on_junk(frame or dumps(message))
            return
        method = message.get("method")
        request_id: Any = message.get("id")
        has_id = type(request_id) is int or type(request_id) is str  # is_request_id, inlined for speed
        if isinstance(method, str):
            if request_id is None:
                self._notification(method, message.get("params"))
            elif not has_id:
                self._on_junk(frame or dumps(message))
            elif (params := message.get("params")) is not None and type(params) is not dict:
                self.respond(request_id, Reply.of_error(RpcError(INVALID_PARAMS, "params must be an object")))
            else:
                try:
                    if self.request_intercept is not None:
                        self.request_intercept(Request(request_id, method, params))
                    elif self._handling is not None:
                        scope = self._scopes[request_id] = anyio.CancelScope()
                        self._handling.start_soon(self._handle, scope, request_id, method, params)
                except Exception:  # the same boundary as in _handle
                    log.exception("Unexpected error in %s", method)
                    self.respond(request_id, Reply.of_error(INTERNAL))
        elif not has_id:
            self._on_junk(frame or dumps(message))
        elif "result" in message or "error" in message:
            if ("error" in message or type(message["result"]) is not dict) and not is_answer(message):
                frame, message = b"", mended(message, self._answer_words)
            start, end = id_place(frame, b"%d" % request_id if type(request_id) is int else dumps(request_id))
            self.answer(request_id, Reply(frame, start, end, message))
        elif own_id(request_id) in self._pending:
            why = f"{self._answer_words} has neither a result nor an error"
            self.answer(request_id, Reply.of_error(RpcError(INTERNAL_ERROR, why)))
        else:
            self.respond(request_id, Reply.of_error(RpcError(INVALID_REQUEST, "Neither a request nor an answer")))

    def _refuse(self, head: bytes, tail: bytes, code: int, why: str) -> None:
        """Report a frame that cannot be read, with an error to the request or call that its id names.

        The id is looked for at both ends of the frame. Without an id, the frame is junk.
        `code`: the error code for a request. `why`: ends the error's sentence, which begins with the request or answer.
        """
        id_json = find_outer_id(head, tail)
        number = own_id(loads(id_json)) if id_json is not None else None
        if id_json is not None and not begins_answer(head) and b'"method"' in head[:TAIL_BYTES]:
            self.respond_frame(Reply.of_error(RpcError(code, f"The request {why}")).with_id(id_json))
        elif number in self._pending:
            reply = Reply.of_error(RpcError(INTERNAL_ERROR, f"{self._answer_words} {why}"))
            reply.unread = head  # part of the answer may be usable
            self.answer(number, reply)
        else:
            self._on_junk(head)

    def answer(self, request_id: RequestId, reply: Reply) -> None:
        """Deliver the answer to an outbound request. Ignore it if that request is not open."""
        number = request_id if type(request_id) is int else own_id(request_id)
        pending = self._pending.pop(number, None) if number is not None else None
        if pending is None:
            return
        try:
            pending[0].answered(reply)
        except Exception:  # the boundary of a call: its failure does not affect others
            log.exception("Unexpected error in an answer")

    async def _handle(self, scope: anyio.CancelScope, request_id: RequestId, method: str, params: Params) -> None:
        """Handle one inbound request from the start of its task to its answer.

        This is the boundary where exceptions become JSON-RPC errors.
        """
        id_json, frame = dumps(request_id), b""
        with scope:
            try:
                try:
                    frame = Reply.of_result(await self._on_request(method, params)).with_id(id_json)
                except RpcError as error:
                    frame = Reply.of_error(error).with_id(id_json)
            except Exception:
                log.exception("Unexpected error in %s", method)
                frame = Reply.of_error(INTERNAL).with_id(id_json)
        if self._scopes.get(request_id) is scope:
            del self._scopes[request_id]
        if frame and not scope.cancel_called:
            self.respond_frame(frame)

    def _notification(self, method: str, params: Any) -> None:
        """Handle a notification. Exception boundary: its handler's failure does not affect later messages."""
        if params is not None and not isinstance(params, dict):
            return
        if method == PROGRESS and params is not None:
            token = own_id(params.get("progressToken"))
            pending = self._pending.get(token) if token is not None else None
            if pending is not None and pending[1] is not None:
                pending[0].progress({**params, "progressToken": pending[1]})
                return
        if self._handling is None:
            return
        if method == CANCELLED and params is not None and is_request_id(request_id := params.get("requestId")):
            scope = self._scopes.get(request_id)
            if scope is not None:
                scope.cancel()
        try:
            self._on_notification(method, params)
        except Exception:
            log.exception("Unexpected error in %s", method)


def _answer_place(frame: bytes) -> tuple[int, int] | None:
    """Return the place of the id in a large answer that can be passed on as received; None if it must be parsed.

    Such an answer is complete and not nested too deeply for parsers: it has fewer opening brackets than MAX_DEPTH.
    Counting the brackets costs at most a tenth of a parse.
    """
    if not frame.endswith((b"}", b"}\r")):
        return None
    left = MAX_DEPTH
    for bracket in (b"[", b"{"):
        at = frame.find(bracket)  # `find` is twenty times faster than counting all brackets
        while at >= 0 and left:
            left -= 1
            at = frame.find(bracket, at + 1)
    return find_answer_id(frame) if left > 0 else None


def _log_junk(frame: bytes) -> None:
    log.warning("Dropped a message of %d bytes that is not JSON-RPC", len(frame))
