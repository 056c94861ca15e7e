"""The older transport over HTTP: an event stream with all that the gateway says, a POST for each message of the client
(MCP 2024-11-05, transports). Frames on it are those of the shim's socket, and so is all behind it.

Never here: who may come in, sessions' behaviour, Streamable HTTP.
"""

from __future__ import annotations

import logging
from typing import Any
from uuid import uuid4

import anyio

from trayapp.gateway.http.arrivals import Arrivals
from trayapp.gateway.http.asgi import JSON, Headers, event, open_stream, options_of, respond, until_gone, whole
from trayapp.gateway.sessions.peer import FramePeer
from trayapp.wire.framing import MAX_FRAME_BYTES
from trayapp.wire.jsonio import JsonError, loads

log = logging.getLogger(__name__)

MESSAGES = "/messages"
SESSION = "session_id"  # in the URL's query
STREAM_PING_S = 30  # no proxy is between us and our clients; they give up a silent stream after 60 s at the earliest
BEHIND_MOST = 64 * 1024 * 1024  # bytes that wait for a client which does not read; then it is given up
PING = b": ping\r\n\r\n"
TEXT = "text/plain; charset=utf-8"


class Outflow:
    """What is to be written to one stream."""

    def __init__(self, ping_s: float = STREAM_PING_S) -> None:
        self._ping_s = ping_s
        self._waiting: list[bytes] = []
        self._size = 0
        self._news = anyio.Event()
        self.lost = anyio.Event()  # the client does not read

    def put(self, frames: bytes) -> None:
        """Whole frames; does not block."""
        before = self._size  # a single answer may be as long as that by itself
        self._waiting.append(b"".join(map(event, frames.split(b"\n")[:-1])))
        self._size += len(self._waiting[-1])
        self._news.set()
        if before > BEHIND_MOST and not self.lost.is_set():
            log.warning("Gave up a client over HTTP that does not read its answers")
            self.lost.set()

    async def take(self) -> bytes:
        """All that there is, once there is something; a ping when there is nothing for long."""
        with anyio.move_on_after(self._ping_s):
            await self._news.wait()
        waiting, self._waiting, self._size, self._news = self._waiting, [], 0, anyio.Event()
        return b"".join(waiting) or PING


class Streams:
    """All sessions of one port that came this way."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._peers: dict[str, FramePeer] = {}

    async def stream(self, scope: Any, receive: Any, send: Any) -> None:
        """The stream, which is the session: it ends with it."""
        out, session_id = Outflow(), uuid4().hex
        peer = self._peers[session_id] = FramePeer(out.put)
        self._arrivals.begin(peer, options_of(scope))
        try:
            await open_stream(send)
            where = f"event: endpoint\r\ndata: {MESSAGES}/?{SESSION}={session_id}\r\n\r\n"
            await send({"type": "http.response.body", "body": where.encode(), "more_body": True})
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_keep_writing, out, send)
                tasks.start_soon(until_gone, receive, tasks.cancel_scope)
                await out.lost.wait()
                tasks.cancel_scope.cancel()
        finally:
            del self._peers[session_id]
            peer.dispatcher.close()

    async def post(self, scope: Any, receive: Any, send: Any) -> None:
        """One message of a client's; what is said to it goes by its stream."""
        peer = self._peers.get(str(options_of(scope).get(SESSION, "")))
        if peer is None:
            await respond(send, b"Could not find session", 404, TEXT)
        elif Headers(scope).content != JSON:
            await respond(send, b"Invalid Content-Type header", 400, TEXT)
        elif (body := await whole(receive, MAX_FRAME_BYTES)) is None:
            await respond(send, b"The body is too large", 413, TEXT)
        elif not is_message(body):
            await respond(send, b"Could not parse message", 400, TEXT)
        else:
            await respond(send, b"Accepted", 202, TEXT)
            peer.dispatcher.feed(body.replace(b"\n", b" ") + b"\n")  # JSON has them between its signs alone


async def _keep_writing(out: Outflow, send: Any) -> None:
    while True:
        await send({"type": "http.response.body", "body": await out.take(), "more_body": True})


def is_message(body: bytes) -> bool:
    """Whether it can be handed on as one frame."""
    try:
        return isinstance(loads(body), dict)
    except JsonError:
        return False
