"""Batches of clients of MCP 2025-03-26 and before: each message as if it had come alone, the answers on one stream.

The SDK refuses them, as later revisions do. Never here: what a message means, clients of later revisions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio

from trayapp.gateway.http.asgi import STREAM, Asgi, Headers, event, open_stream, replayed, respond, whole
from trayapp.gateway.http.peers import HttpPeer
from trayapp.gateway.http.presence import SESSION_HEADER
from trayapp.gateway.http.quick import VERSION_HEADER, takes_both
from trayapp.wire.jsonio import JsonError, dumps, loads
from trayapp.wire.messages import INVALID_REQUEST, RpcError

MOST = 1_000  # messages of a batch; each takes some 12 KB while it waits, and half a million fit into one body
BATCHED = (None, "2024-11-05", "2025-03-26")  # they do not name their revision: the header came with the next one
TOO_MANY = RpcError(INVALID_REQUEST, f"A batch may hold {MOST} messages; send the others after them")


class Batches:
    """`peer_of`: the session that an id belongs to, None where there is none."""

    def __init__(self, peer_of: Callable[[str | None], HttpPeer | None]) -> None:
        self._peer_of = peer_of

    def around(self, app: Asgi) -> Asgi:
        """The application, which gets single messages where it can."""

        async def taken(scope: Any, receive: Any, send: Any) -> None:
            if not self._may_batch(scope):
                await app(scope, receive, send)
            elif (body := await whole(receive)) is not None:
                parts = parts_in(body)
                if len(parts) > MOST:
                    await respond(send, dumps({"jsonrpc": "2.0", "id": None, "error": TOO_MANY.body()}), 400)
                elif parts:
                    await _answer_all(app, parts, scope, receive, send)
                else:
                    await app(scope, replayed(body, receive), send)

        return taken

    def _may_batch(self, scope: Any) -> bool:
        headers = Headers(scope)
        return (
            scope["method"] == "POST"
            and headers.get(VERSION_HEADER) in BATCHED
            and takes_both(headers)
            and self._peer_of(headers.get(SESSION_HEADER)) is not None
        )


def parts_in(body: bytes) -> list[Any]:
    """The messages of a batch; none where it is no batch."""
    if not body.lstrip().startswith(b"["):
        return []
    try:
        return list(loads(body))
    except JsonError:
        return []


def is_request(part: Any) -> bool:
    """Whether it is to be answered."""
    return not isinstance(part, dict) or ("id" in part and ("method" in part or not part.keys() & {"result", "error"}))


async def _answer_all(app: Asgi, parts: list[Any], scope: Any, receive: Any, send: Any) -> None:
    if not any(map(is_request, parts)):
        for part in parts:
            await _answer(app, part, scope, receive, _unheard)
        await respond(send, b"", 202)
        return
    await open_stream(send, [line for line in scope["headers"] if line[0] == SESSION_HEADER.encode()])
    write = partial(_write, send)
    async with anyio.create_task_group() as tasks:
        for part in parts:
            if is_request(part):
                tasks.start_soon(_answer, app, part, scope, receive, write)
            else:
                await _answer(app, part, scope, receive, _unheard)
    await send({"type": "http.response.body", "body": b""})


async def _write(send: Any, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


async def _unheard(data: bytes) -> None:
    """The answer to what wants none."""


async def _answer(app: Asgi, part: Any, scope: Any, receive: Any, write: Callable[[bytes], Any]) -> None:
    """One message to its end; its answer as events."""
    body, streams, said = dumps(part), False, b""

    async def send(came: Any) -> None:
        nonlocal streams, said
        if came["type"] == "http.response.start":
            streams = (Headers(came).get("content-type") or "").startswith(STREAM)
        elif not streams:
            said += came.get("body", b"")
        elif came.get("body"):
            await write(came["body"])

    lines = [line for line in scope["headers"] if line[0] != b"content-length"]
    lines.append((b"content-length", str(len(body)).encode()))
    await app({**scope, "headers": lines}, replayed(body, receive), send)
    if said:
        await write(event(_under_its_id(said, part)))


def _under_its_id(said: bytes, part: Any) -> bytes:
    """An answer in JSON; an error that the SDK could not attribute has the id of the message that it is over."""
    try:
        answer = loads(said)
    except JsonError:
        return said.strip()
    if isinstance(answer, dict) and answer.get("id", 0) is None and isinstance(part, dict):
        answer["id"] = part.get("id")
    return dumps(answer)
