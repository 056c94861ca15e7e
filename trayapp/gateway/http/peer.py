"""The connection of one HTTP client, in the form of a ClientPeer."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import anyio

from trayapp.gateway.client import OnNotification, OnRequest
from trayapp.gateway.http.streams import EventStream
from trayapp.wire.frames import INTERNAL
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import (
    CANCELLED,
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    PROGRESS,
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

REQUEST_CANCELLED = -32800  # the SDKs' code for the error that ends the stream of a cancelled request
AGAIN = "introduced again"  # the id of a repeated handshake. No client gets the answer
INITIALIZED = "notifications/initialized"


class HttpPeer:
    """A client's connection over HTTP (gateway.client.ClientPeer).

    Messages about a request go out on its response stream, all others on the `standing` stream. Without a standing
    stream, the others are dropped, and no question can be asked.
    """

    def __init__(self, standing: EventStream | None = None) -> None:
        self._standing = standing
        self._open: dict[RequestId, EventStream] = {}
        self._numbers = itertools.count(1)
        self._asked: dict[int, tuple[Call, RequestId | None, EventStream]] = {}
        self._gone = anyio.Event()
        self._taking = anyio.Event()
        self.ready = self._taking.wait  # waits until the session accepts requests
        self._on_request: OnRequest  # set by `run`, as is `_on_notification`
        self._on_notification: OnNotification

    async def run(self, on_request: OnRequest, on_notification: OnNotification) -> None:
        self._on_request, self._on_notification = on_request, on_notification
        self._taking.set()
        try:
            await self._gone.wait()
        finally:
            self.close()

    @property
    def is_closed(self) -> bool:
        """Return True if the session has ended."""
        return self._gone.is_set()

    def close(self) -> None:
        """End the session. All open requests and questions are answered with an error."""
        self._gone.set()
        opened, self._open = self._open, {}
        for request_id, stream in opened.items():
            stream.answer(request_id, Reply.of_error(RpcError(CONNECTION_CLOSED, "The session has ended")))
        asked, self._asked = self._asked, {}
        for call, _, _ in asked.values():
            call.answered(Reply.of_error(RpcError(CONNECTION_CLOSED, "The client disconnected")))

    # -- from the client -----------------------------------------------------------------------------------------

    def request(self, request_id: RequestId, method: str, params: dict[str, Any] | None, stream: EventStream) -> None:
        """Pass a request to the session, but refuse it if a request with its id is in progress. Await `ready` first.

        The answer, and messages about the request, go to `stream`.
        """
        if request_id in self._open:
            error = RpcError(INVALID_REQUEST, f"A request with the id {request_id!r} is already in progress")
            stream.answer(request_id, Reply.of_error(error))
            return
        self._open[request_id] = stream
        try:
            self._on_request(Request(request_id, method, params))
        except Exception:  # the boundary for one request's failure
            log.exception("Unexpected error in a request over HTTP")
            self.respond(request_id, Reply.of_error(INTERNAL))

    def notification(self, method: str, params: dict[str, Any] | None) -> None:
        """Pass a notification to the session, or progress on a question to the call that sent the question.

        A request that the client cancels is answered with an error, so that its response stream ends.
        """
        known = params or {}
        if method == PROGRESS and (number := own_id(known.get("progressToken"))) in self._asked:
            call, token, _ = self._asked[number]
            if token is not None:
                call.progress({**known, "progressToken": token})
                return
        self._on_notification(method, params)
        request_id = known.get("requestId") if method == CANCELLED else None
        if is_request_id(request_id) and (stream := self._open.pop(request_id, None)) is not None:
            stream.be_events()  # the SDK's client no longer waits for a JSON answer
            stream.answer(request_id, Reply.of_error(RpcError(REQUEST_CANCELLED, "Request cancelled")))

    def answered(self, message: dict[str, Any]) -> None:
        """Pass the client's answer to the call that sent the question.

        Repair a malformed answer. Ignore an answer to no open question.
        """
        number = own_id(message.get("id"))
        asked = self._asked.pop(number, None) if number is not None else None
        if asked is not None:
            asked[0].answered(Reply(b"", message=message if is_answer(message) else mended(message)))

    async def introduce(self, params: dict[str, Any]) -> None:
        """Repeat the handshake, in place of a client whose former session has ended. `params`: those of initialize."""
        await self.ready()
        stream = EventStream()
        self.request(AGAIN, "initialize", params, stream)
        await stream.answered()
        self.notification(INITIALIZED, None)

    # -- open requests --------------------------------------------------------------------------------------------

    @property
    def awaited(self) -> frozenset[RequestId]:
        """Return the ids of the requests without an answer."""
        return frozenset(self._open)

    def stream(self, number: int) -> EventStream | None:
        """Return the stream with that number, or None if it has ended."""
        streams = (*self._open.values(), self._standing)
        return next((stream for stream in streams if stream and stream.number == number), None)

    def give_up(self, requests: frozenset[RequestId]) -> None:
        """Cancel those of the given requests that are unanswered, because their client has disconnected."""
        for request_id in requests & self.awaited:
            self._on_notification(CANCELLED, {"requestId": request_id, "reason": "the client disconnected"})
            self.respond(request_id, Reply.of_error(RpcError(CONNECTION_CLOSED, "The client disconnected")))

    # -- to the client (ClientPeer) ------------------------------------------------------------------------------

    def respond(self, request_id: RequestId, reply: Reply) -> None:
        if (stream := self._open.pop(request_id, None)) is not None:
            stream.answer(request_id, reply)

    def send_notification(self, method: str, params: Params, about: RequestId | None = None) -> None:
        if (stream := self._stream_about(about)) is not None:
            stream.put(_message(method, params))

    def relay(self, method: str, params: Params, call: Call, about: RequestId | None = None) -> int:
        number, stream = next(self._numbers), self._stream_about(about)
        if self._standing is None or stream is None or self.is_closed:
            call.answered(Reply.of_error(RpcError(CONNECTION_CLOSED, "The client cannot be asked")))
            return number
        token = None
        if params is not None and (token := progress_token(params)) is not None:
            params = {**params, "_meta": {**params["_meta"], "progressToken": number}}
        self._asked[number] = call, token, stream
        stream.put(_message(method, params, id=number))
        return number

    def cancel(self, request_id: int, reason: str) -> None:
        if (asked := self._asked.pop(request_id, None)) is not None:
            asked[2].put(_message(CANCELLED, {"requestId": request_id, "reason": reason}))

    def _stream_about(self, about: RequestId | None) -> EventStream | None:
        return (self._open.get(about) if about is not None else None) or self._standing


def _message(method: str, params: Params, **more: Any) -> bytes:
    return dumps({"jsonrpc": "2.0", **more, "method": method, **({} if params is None else {"params": params})})
