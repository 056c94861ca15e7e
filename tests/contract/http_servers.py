"""Real HTTP servers in this process, each on its own port, for Streamable HTTP and legacy SSE.

The SDK's transports do the framing and the routing. Results come unchanged from `behaviour`, so no field is lost.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import anyio
import anyio.abc
import uvicorn
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tests.fixtures.behaviour import MODERN, Behaviour
from tests.patience import stretched
from trayapp.wire.messages import METHOD_NOT_FOUND, Params, RpcError

POST_PATH = "/messages/"
BACKLOG = 64


@dataclass(frozen=True)
class ReceivedRequest:
    """An HTTP request as received. `method` is the JSON-RPC method of a POST."""

    verb: str
    path: str
    headers: dict[str, str]
    method: str | None = None
    id: Any = None
    query: str = ""


Refuse = Callable[[ReceivedRequest], Response | None]


@dataclass
class HttpServer(Behaviour):
    """A server of /mcp, /sse or both. `refusal` may answer a request before the MCP server sees it."""

    streamable: bool = True
    sse: bool = False
    seen: list[ReceivedRequest] = field(default_factory=list)
    sessions: dict[str, StreamableHTTPServerTransport] = field(default_factory=dict)
    dispatchers: list[JSONRPCDispatcher[Any]] = field(default_factory=list)
    port: int = 0
    host: str = "127.0.0.1"
    get_is_sse: bool = False  # a GET of the Streamable HTTP URL opens a legacy SSE stream, as on old servers
    cut_next: bool = False  # the next POST's TCP connection is cut before an answer
    hang_on: str = ""  # requests with this HTTP verb get no answer
    refusal: Refuse = lambda seen: None
    _sse_transport: SseServerTransport = field(default_factory=lambda: SseServerTransport(POST_PATH))
    _tasks: anyio.abc.TaskGroup | None = None
    _uvicorn: uvicorn.Server | None = None

    def refuse(self, seen: ReceivedRequest) -> Response | None:
        """Return the response that replaces the MCP server's, or None."""
        return self.refusal(seen)

    def url(self, path: str = "/mcp") -> str:
        return f"http://{self.host}:{self.port}{path}"

    async def tell(self, method: str, params: Params = None) -> None:
        """Send a notification to every session, outside of any request."""
        for dispatcher in self.dispatchers:
            await dispatcher.notify(method, params)

    def die(self) -> None:
        """Cut every connection and accept no new ones, as a killed process would."""
        assert self._uvicorn is not None
        for listener in self._uvicorn.servers:
            listener.close()
        for connection in list(self._uvicorn.server_state.connections):
            connection.transport.abort()

    def forget_sessions(self) -> None:
        """Forget all sessions, as a restart at the same address does."""
        self.sessions.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP request (ASGI)."""
        request = Request(scope, receive)
        body = await request.body()
        message = json.loads(body) if body else {}
        where, asked = request.url, (message.get("method"), message.get("id"))
        seen = ReceivedRequest(request.method, where.path, dict(request.headers), *asked, where.query)
        self.seen.append(seen)
        answer = self.refuse(seen) or self._wrong_place(seen)
        if seen.verb == "POST" and self.cut_next:
            self.cut_next = False
            self._cut(scope["client"][1])
        elif seen.verb == self.hang_on:
            await anyio.sleep_forever()
        elif answer is not None:
            await answer(scope, _again(body, receive), send)
        elif seen.path == "/mcp":
            await self._mcp(seen, message, scope, _again(body, receive), send)
        elif seen.path == POST_PATH:
            await self._sse_transport.handle_post_message(scope, _again(body, receive), send)
        else:
            async with self._sse_transport.connect_sse(scope, receive, send) as streams:
                await self._serve(*streams)

    def _cut(self, port: int) -> None:
        assert self._uvicorn is not None
        for connection in list(self._uvicorn.server_state.connections):
            if connection.transport.get_extra_info("peername")[1] == port:
                connection.transport.abort()

    def _wrong_place(self, seen: ReceivedRequest) -> Response | None:
        if seen.path == "/mcp" and self.streamable:
            return None
        if self.sse and seen.path == POST_PATH:
            return None
        if self.sse and seen.path in ("/sse", "/mcp"):
            return None if seen.verb == "GET" else Response(status_code=405)
        return Response(status_code=404)

    async def _mcp(self, seen: ReceivedRequest, message: Any, scope: Scope, receive: Receive, send: Send) -> None:
        if self.sse and (not self.streamable or (self.get_is_sse and seen.verb == "GET")):
            async with self._sse_transport.connect_sse(scope, receive, send) as streams:
                await self._serve(*streams)
            return
        if self.modern and seen.headers.get("mcp-protocol-version") == MODERN:
            await self._modern(seen, message, scope, receive, send)
            return
        session = seen.headers.get("mcp-session-id")
        if session is not None and session not in self.sessions:
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Session not found"}}
            await JSONResponse(error, 404)(scope, receive, send)
            return
        await (self.sessions[session] if session else await self._new_session()).handle_request(scope, receive, send)

    async def _new_session(self) -> StreamableHTTPServerTransport:
        assert self._tasks is not None
        number = uuid4().hex
        self.sessions[number] = transport = StreamableHTTPServerTransport(number)
        await self._tasks.start(self._run_session, transport)
        return transport

    async def _run_session(
        self, transport: StreamableHTTPServerTransport, *, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        async with transport.connect() as streams:
            task_status.started()
            await self._serve(*streams)

    async def _serve(self, read: Any, write: Any) -> None:
        dispatcher: JSONRPCDispatcher[Any] = JSONRPCDispatcher(read, write)
        self.dispatchers.append(dispatcher)

        async def on_request(context: Any, method: str, params: Params) -> dict[str, Any]:
            try:
                return await self.answer(method, params, SdkPeer(context))
            except RpcError as error:
                raise MCPError(error.code, error.message, error.data) from None

        async def on_notify(context: Any, method: str, params: Params) -> None:
            self.hear(method, params)

        await dispatcher.run(on_request, on_notify)

    async def _modern(self, seen: ReceivedRequest, message: Any, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a POST of 2026-07-28 with JSON, or a subscription with an event stream that stays open."""
        if seen.headers.get("mcp-method") != message.get("method"):
            await Response("Mcp-Method does not fit", 400)(scope, receive, send)
            return
        if message["method"] == "subscriptions/listen":
            self.hear(message["method"], message.get("params"))
            await StreamingResponse(_never(), media_type="text/event-stream")(scope, receive, send)
            return
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            body["result"] = await self.answer(message["method"], message.get("params"), Nobody())
        except RpcError as error:
            body["error"] = error.body()
        unknown = body.get("error", {}).get("code") == METHOD_NOT_FOUND
        await JSONResponse(body, 404 if unknown else 200)(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[HttpServer]:
        """Serve on `port` of `host` until the end of the block. If `port` is 0, choose a free one."""
        listener = socket.create_server((self.host, self.port), backlog=BACKLOG)
        self.port = listener.getsockname()[1]
        config = uvicorn.Config(self, log_level=logging.CRITICAL, lifespan="off", timeout_graceful_shutdown=0)
        self._uvicorn = server = _Quiet(config)
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(server.serve, [listener])
            with anyio.fail_after(stretched(10.0)):
                while not server.started:  # noqa: ASYNC110 (uvicorn has no event for it)
                    await anyio.sleep(0.005)
            try:
                yield self
            finally:
                self.die()
                listener.close()
                self._tasks.cancel_scope.cancel()


class _Quiet(uvicorn.Server):
    """An HTTP server that leaves all signals to pytest."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@dataclass
class SdkPeer:
    """An implementation of behaviour.Asker with the SDK's context of one request."""

    context: Any

    async def notify(self, method: str, params: Params) -> None:
        await self.context.notify(method, params)

    async def ask(self, method: str, params: Params) -> Any:
        try:
            return await self.context.send_raw_request(method, params)
        except MCPError as error:
            raise RpcError(error.code, error.message, error.data) from None


class Nobody:
    """An Asker for a JSON answer, which cannot carry any other message."""

    async def notify(self, method: str, params: Params) -> None:
        """Discard the notification."""

    async def ask(self, method: str, params: Params) -> Any:
        raise RpcError(METHOD_NOT_FOUND, "no way to ask")


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first returns the body, which has already been read."""
    given = False

    async def replay() -> Mapping[str, Any]:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replay  # type: ignore[return-value]


async def _never() -> AsyncIterator[bytes]:
    yield b": open\n\n"
    await anyio.sleep_forever()
