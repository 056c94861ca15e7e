"""ASGI requests and responses of the HTTP server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl

import anyio

from trayapp.wire.framing import MAX_FRAME_BYTES
from trayapp.wire.jsonio import JsonError, dumps, loads
from trayapp.wire.messages import INVALID_REQUEST, PARSE_ERROR, Reply, RequestId, RpcError, is_request_id

Asgi = Callable[[Any, Any, Any], Awaitable[None]]
Line = tuple[bytes, bytes]  # a header: its name in lower case, and its value

JSON = "application/json"
STREAM = "text/event-stream"
PART_BYTES = 1 << 18  # size of the parts in which a large answer is sent: as much as asyncio reads in one step
CONNECTION = "multi_mcp.connection"  # key of the HttpConnection (gateway/http/server) in a scope's state


class Headers:
    """The headers of one request. ASGI provides their names in lower case."""

    def __init__(self, scope: Any) -> None:
        self.lines: Sequence[Line] = scope["headers"]

    def all(self, name: str) -> list[str]:
        """Return every value of a header. `name`: in lower case."""
        wanted = name.encode("ascii")
        return [value.decode("latin-1") for key, value in self.lines if key == wanted]

    def get(self, name: str) -> str | None:
        """Return a header's first value, or None if the request does not have it. `name`: in lower case."""
        return next(iter(self.all(name)), None)

    def accepts(self, *kinds: str) -> bool:
        """Return True if the client accepts all of these media types, by name or wildcard. Weights are ignored."""
        named = {kind.partition(";")[0].strip().lower() for kind in ",".join(self.all("accept")).split(",")}
        return all(not named.isdisjoint((kind, f"{kind.partition('/')[0]}/*", "*/*")) for kind in kinds)

    @property
    def content(self) -> str:
        """Return the media type of the body in lower case, without parameters, or "" if it is not declared."""
        return (self.get("content-type") or "").partition(";")[0].strip().lower()


async def whole(receive: Any, most: int) -> bytes | None:
    """Receive and return a request's body. Return None if the client disconnects or sends more than `most` bytes."""
    parts, size = list[bytes](), 0
    while (event := await receive())["type"] == "http.request":
        parts.append(event.get("body", b""))
        size += len(parts[-1])
        if size > most:
            break
        if not event.get("more_body"):
            return b"".join(parts)
    return None


async def respond(send: Any, body: bytes, status: int = 200, kind: str = JSON, more: Sequence[Line] = ()) -> None:
    """Send a complete response. `kind`: the body's media type. `more`: further headers."""
    headers = [(b"content-length", str(len(body)).encode()), *more]
    if body:
        headers.append((b"content-type", kind.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def open_stream(send: Any, more: Sequence[Line] = ()) -> None:
    """Send the status and headers of an event stream. `more`: further headers."""
    headers = [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-cache, no-transform"),
        (b"x-accel-buffering", b"no"),
        *more,
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


def id_of(message: Any) -> RequestId | None:
    """Return the id of a JSON-RPC message, or None if it has no valid one."""
    request_id = message.get("id") if isinstance(message, dict) else None
    return request_id if is_request_id(request_id) else None


class HttpRequest:
    """A request to an MCP endpoint. `more`: further headers of its response."""

    def __init__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scope, self.receive, self.send = scope, receive, send
        self.headers = Headers(scope)
        self.method: str = scope["method"]
        self.more: list[Line] = []

    @property
    def options(self) -> dict[str, Any]:
        """Return the session options in the URL's query."""
        return dict(parse_qsl(self.scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))

    async def respond(self, body: bytes, status: int = 200, kind: str = JSON) -> None:
        """Send a complete response."""
        await respond(self.send, body, status, kind, self.more)

    async def answer(self, request_id: RequestId, reply: Reply, status: int = 200) -> None:
        """Send the answer to a JSON-RPC request. A large one is sent in parts: each lower layer copies its data."""
        id_json = dumps(request_id)
        if reply.size <= PART_BYTES:
            await self.respond(reply.with_id(id_json), status)
            return
        pieces = reply.pieces(id_json)
        length = str(sum(map(len, pieces))).encode()
        headers = [(b"content-length", length), *self.more, (b"content-type", JSON.encode())]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        for piece in pieces:
            for start in range(0, len(piece), PART_BYTES):
                part = piece[start : start + PART_BYTES]
                await self.send({"type": "http.response.body", "body": part, "more_body": True})
                await asyncio.sleep(0)  # let other tasks send, and let the server notice that the client is gone
        await self.send({"type": "http.response.body"})

    async def refuse(self, status: int, error: RpcError | str, message: Any = None) -> None:
        """Send a JSON-RPC error, with the id of `message` if that is valid. A text gets the code INVALID_REQUEST."""
        error = RpcError(INVALID_REQUEST, error) if isinstance(error, str) else error
        await self.respond(dumps({"jsonrpc": "2.0", "id": id_of(message), "error": error.body()}), status)

    async def refuse_method(self, allowed: str) -> None:
        """Refuse the HTTP method and name the allowed ones (RFC 9110, 15.5.6)."""
        self.more.append((b"allow", allowed.encode()))
        await self.refuse(405, "Method Not Allowed")

    async def message(self) -> Any:
        """Return the JSON value in the body of a POST. If the request is not acceptable, refuse it and return None."""
        if not self.headers.accepts(JSON, STREAM):
            await self.refuse(406, f"The client must accept {JSON} and {STREAM}")
        elif self.headers.content != JSON:
            await self.refuse(415, f"The Content-Type must be {JSON}")
        elif (body := await whole(self.receive, MAX_FRAME_BYTES)) is None:
            await self.refuse(413, f"The body is larger than {MAX_FRAME_BYTES >> 20} MiB")
        else:
            try:
                if (value := loads(body)) is not None:
                    return value
                await self.refuse(400, "The body is null")
            except JsonError:
                await self.refuse(400, RpcError(PARSE_ERROR, "The body is not valid JSON, or is nested too deeply"))
        return None


async def until_gone(receive: Any, scope: anyio.CancelScope) -> None:
    """Wait until the client disconnects, then cancel the scope."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
