"""What applications behind the port read of an ASGI request, and the plain answers they write.

Without starlette, which the first client would wait for. Never here: MCP, who may come in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl

import anyio

Asgi = Callable[[Any, Any, Any], Awaitable[None]]

JSON = "application/json"
STREAM = "text/event-stream"


class Headers:
    """Of one request; ASGI has their names in lower case."""

    def __init__(self, scope: Any) -> None:
        self._lines: Sequence[tuple[bytes, bytes]] = scope["headers"]

    def all(self, name: str) -> list[str]:
        """Every value of that name."""
        wanted = name.encode("ascii")
        return [value.decode("latin-1") for key, value in self._lines if key == wanted]

    def get(self, name: str, default: str | None = None) -> str | None:
        """The first one."""
        return next(iter(self.all(name)), default)

    def accepts(self, *kinds: str) -> bool:
        """Whether the client names all of these kinds of content, which is the least that servers ask for."""
        named = {kind.partition(";")[0].strip() for kind in (self.get("accept") or "").split(",")}
        return named.issuperset(kinds)

    @property
    def content(self) -> str:
        """The kind of the body."""
        return (self.get("content-type") or "").partition(";")[0].strip()


def options_of(scope: Any) -> dict[str, Any]:
    """The session options in the URL's query."""
    return dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))


async def whole(receive: Any, most: int | None = None) -> bytes | None:
    """The body; None when the client has gone, or sends more than `most` bytes."""
    parts, size = [], 0
    while True:
        event = await receive()
        if event["type"] != "http.request":
            return None
        parts.append(event.get("body", b""))
        size += len(parts[-1])
        if most is not None and size > most:
            return None
        if not event.get("more_body"):
            return b"".join(parts)


def replayed(body: bytes, receive: Any) -> Any:
    """`receive`, with the body once more before it."""
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Any:
        return left.pop() if left else await receive()

    return again


async def respond(
    send: Any, body: bytes, status: int = 200, kind: str = JSON, more: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """One whole answer."""
    headers = [(b"content-length", str(len(body)).encode()), *more]
    if body:
        headers.append((b"content-type", kind.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def open_stream(send: Any, more: Sequence[tuple[bytes, bytes]] = ()) -> None:
    """The beginning of an event stream."""
    headers = [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-cache, no-transform"),
        (b"x-accel-buffering", b"no"),
        *more,
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


def event(frame: bytes) -> bytes:
    """One message on a stream. A bare return, which JSON allows between its signs, would be the end of a line there."""
    return b"event: message\r\ndata: %b\r\n\r\n" % frame.replace(b"\r", b" ")


async def until_gone(receive: Any, scope: anyio.CancelScope) -> None:
    """Cancel the scope when the client goes."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
