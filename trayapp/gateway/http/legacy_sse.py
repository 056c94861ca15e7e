"""HTTP with SSE (MCP 2024-11-05, transports): one event stream to the client, and one POST for each of its messages.

The stream carries the same frames that a shim receives over its socket. A FramePeer writes both.
"""

from __future__ import annotations

from uuid import uuid4

from trayapp.gateway.client import FramePeer
from trayapp.gateway.http.asgi import JSON, HttpRequest, whole
from trayapp.gateway.http.sessions import ServeClient
from trayapp.gateway.http.streams import EventStream
from trayapp.wire.framing import MAX_FRAME_BYTES
from trayapp.wire.jsonio import JsonError, loads

MESSAGES = "/messages"
SESSION = "session_id"  # in the URL's query
TEXT = "text/plain; charset=utf-8"


class LegacySse:
    """The clients of one port that use this transport."""

    def __init__(self, serve: ServeClient) -> None:
        self._serve = serve
        self._peers: dict[str, FramePeer] = {}

    async def stream(self, request: HttpRequest) -> None:
        """Answer a GET with the event stream of a new session. The session ends with the stream."""
        out, session_id = EventStream(expects=None), uuid4().hex

        def write(frames: bytes) -> None:
            for frame in frames.split(b"\n")[:-1]:
                out.put(frame)

        peer = self._peers[session_id] = FramePeer(write)
        self._serve(peer, request.options)
        try:
            where = f"event: endpoint\r\ndata: {MESSAGES}/?{SESSION}={session_id}\r\n\r\n"
            await out.carry(request, where.encode())
        finally:
            del self._peers[session_id]
            peer.dispatcher.close()

    async def post(self, request: HttpRequest) -> None:
        """Answer a POST: refuse its message, or accept it. The session sends the message's answer on the stream."""
        peer = self._peers.get(request.options.get(SESSION, ""))
        if peer is None:
            await request.respond(b"Could not find session", 404, TEXT)
        elif request.headers.content != JSON:
            await request.respond(b"Invalid Content-Type header", 400, TEXT)
        elif (body := await whole(request.receive, MAX_FRAME_BYTES)) is None:
            await request.respond(b"The body is too large", 413, TEXT)
        elif not is_message(body):
            await request.respond(b"Could not parse message", 400, TEXT)
        else:
            await request.respond(b"Accepted", 202, TEXT)
            peer.dispatcher.feed(body.replace(b"\n", b" ") + b"\n")  # JSON allows line breaks only between its tokens


def is_message(body: bytes) -> bool:
    """Return True if the body is a JSON object."""
    try:
        return isinstance(loads(body), dict)
    except JsonError:
        return False
