"""Handling of a peer's requests and notifications: a task for each, cancelled when the peer cancels the request.

Exceptions of handlers stop at one boundary. Never here: reading frames, outbound requests.
"""

from __future__ import annotations

import logging

import anyio
import anyio.abc

from trayapp.wire.context import NotifyIntercept, OnNotify, OnRequest, Outbound, RequestContext
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import CANCELLED, INTERNAL_ERROR, Params, Reply, RequestId, RpcError, is_request_id
from trayapp.wire.messages import progress_token as token_of

log = logging.getLogger(__name__)

INTERNAL = RpcError(INTERNAL_ERROR, "Internal error of the gateway; see its log")


class MessageHandler:
    """The inbound side of one dispatcher. Handlers run in `tasks`, the task group of its `run`."""

    def __init__(
        self,
        outbound: Outbound,
        tasks: anyio.abc.TaskGroup,
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
