"""What a request gets whose port is closed before its answer: an error, and the proper end of its stream.

A client that waits at a stream for an answer may wait for it for ever when the stream just breaks off. Never here:
when a port is closed, what the answer would have been.
"""

from __future__ import annotations

import asyncio
from typing import Any

from trayapp.gateway.http.asgi import STREAM, Asgi, Headers, event, respond
from trayapp.wire.framing import SMALL_FRAME_BYTES
from trayapp.wire.jsonio import JsonError, dumps, loads
from trayapp.wire.messages import CONNECTION_CLOSED, RequestId, RpcError, is_request_id

CLOSED = RpcError(CONNECTION_CLOSED, "The gateway closed its HTTP port before the answer")


class Exchanged:
    """What came of one request and what of its response has gone out."""

    def __init__(self, receive: Any, send: Any) -> None:
        self._receive = receive
        self._send = send
        self._body = b""  # of a request that is not large
        self._begun: Any = None
        self._whole = False

    async def receive(self) -> Any:
        """See ASGI."""
        came = await self._receive()
        if came["type"] == "http.request" and len(self._body) <= SMALL_FRAME_BYTES:
            self._body += came.get("body", b"")
        return came

    async def send(self, said: Any) -> None:
        """See ASGI."""
        if said["type"] == "http.response.start":
            self._begun = said
        else:
            self._whole = not said.get("more_body")
        await self._send(said)

    async def end(self) -> None:
        """Make it a whole response."""
        request_id = request_in(self._body)
        error = dumps({"jsonrpc": "2.0", "id": request_id, "error": CLOSED.body()})
        if self._begun is None:
            await respond(self._send, error, 503)
        elif not self._whole and (Headers(self._begun).get("content-type") or "").startswith(STREAM):
            await self._send({"type": "http.response.body", "body": b"" if request_id is None else event(error)})


def request_in(body: bytes) -> RequestId | None:
    """The id of the request that a body is; None when it is none."""
    try:
        message = loads(body)
    except JsonError:
        return None
    request_id = message.get("id") if isinstance(message, dict) and "method" in message else None
    return request_id if is_request_id(request_id) else None


def ended_in_order(app: Asgi) -> Asgi:
    """The application, each of whose tasks may be cancelled: nobody but who closes the port cancels a whole one."""

    async def answered(scope: Any, receive: Any, send: Any) -> None:
        made = Exchanged(receive, send)
        try:
            await app(scope, made.receive, made.send)
        except asyncio.CancelledError:
            await made.end()

    return answered
