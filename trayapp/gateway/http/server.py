"""The web server of the HTTP port, and the applications behind its paths. Loaded when the first client connects."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from trayapp.gateway.client import ClientPeer
from trayapp.gateway.http.asgi import CONNECTION, STREAM, Asgi, Headers, HttpRequest, id_of, respond
from trayapp.gateway.http.guard import LONG_HEADERS, Access, Guard, is_of_panel
from trayapp.gateway.http.legacy_sse import MESSAGES, LegacySse
from trayapp.gateway.http.manage import Manage
from trayapp.gateway.http.sessions import IDLE_MOST, HttpSessions
from trayapp.gateway.http.streamable import StatelessHttp, StreamableHttp
from trayapp.gateway.http.streams import EventStore, event
from trayapp.gateway.tasks import fenced
from trayapp.model.errors import MultiMcpError
from trayapp.wire.endpoint import BACKLOG, PendingConnections
from trayapp.wire.framing import SMALL_FRAME_BYTES
from trayapp.wire.jsonio import JsonError, dumps, loads
from trayapp.wire.loopback import comes_from_another_user
from trayapp.wire.messages import CONNECTION_CLOSED, RpcError

if TYPE_CHECKING:
    from trayapp.gateway.gateway import Gateway
    from trayapp.gateway.servers_file import ServersFile
    from trayapp.panel.host import PanelHost

LINGER_S = 1.0  # time between a refusal and the close. A close while bytes are unread would discard the answer
HEAD_BYTES = 64 * 1024  # limit on the received bytes of an incomplete head. `guard` limits complete heads
LAST_ANSWERS_S = 1.0  # time at shutdown for requests in progress to finish
LAST_WORDS_S = 0.2  # time after LAST_ANSWERS_S to refuse the remaining requests
CLOSED = RpcError(CONNECTION_CLOSED, "The gateway closed its HTTP port before the answer")


async def serve(
    gateway: Gateway,
    file: ServersFile,
    sock: socket.socket,
    access: Access,
    panel: Callable[[], PanelHost],
    idle_most: int = IDLE_MOST,
) -> None:
    """Serve on a listening socket until cancelled. `idle_most`: the most sessions without an open request."""
    async with anyio.create_task_group() as tasks:

        def begin(peer: ClientPeer, options: dict[str, Any], *, lasting: bool = True) -> None:
            tasks.start_soon(fenced, gateway.serve, gateway.new_session(peer, options, "http", lasting=lasting))

        sessions = HttpSessions(begin, gateway.services.clock, tasks, EventStore(), idle_most)
        tasks.start_soon(sessions.end_idle)
        streamable = StreamableHttp(sessions, StatelessHttp(begin, partial(schema_of, gateway)))
        try:
            app = by_path(streamable, LegacySse(begin), Manage(gateway, file), PanelLoader(panel))
            await listen(Guard(app, access), sock)
        finally:
            tasks.cancel_scope.cancel()


def schema_of(gateway: Gateway, name: str) -> Any:
    """Return the input schema of a listed tool, or None if no listed tool has that name."""
    seen = gateway.servers.view.exposure()
    try:
        return seen.tools[seen.find(name)].item.get("inputSchema")
    except MultiMcpError:
        return None


class PanelLoader:
    """The ASGI application of the panel, loaded at its first request, so that only its users pay for its templates."""

    def __init__(self, host: Callable[[], PanelHost]) -> None:
        self._host = host
        self._panel: Asgi | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._panel is None:
            module = await anyio.to_thread.run_sync(import_module, "trayapp.panel.app")
            self._panel = self._panel or module.Panel(self._host())
        await self._panel(scope, receive, send)


def by_path(streamable: StreamableHttp, sse: LegacySse, others: Asgi, panel: Asgi) -> Asgi:
    """Return an application that routes each request by its path."""

    async def routed(scope: Any, receive: Any, send: Any) -> None:
        path, method = scope["path"].rstrip("/"), scope["method"]
        if path == "/mcp":
            await streamable.take(HttpRequest(scope, receive, send))
        elif (path, method) == ("/sse", "GET"):
            await sse.stream(HttpRequest(scope, receive, send))
        elif (path, method) == (MESSAGES, "POST"):
            await sse.post(HttpRequest(scope, receive, send))
        elif path in ("/sse", MESSAGES):
            await respond(send, b"", 405, more=[(b"allow", b"GET" if path == "/sse" else b"POST")])
        elif is_of_panel(path):
            await panel(scope, receive, send)
        else:
            await others(scope, receive, send)

    return routed


# -- the web server --------------------------------------------------------------------------------------------------


class HttpConnection(HttpToolsProtocol):
    """A TCP connection. PendingConnections closes it unless an authorized request of this user arrives in time."""

    def __init__(self, pending: PendingConnections, *, app_state: dict[str, Any], **more: Any) -> None:
        super().__init__(app_state={**app_state, CONNECTION: self}, **more)
        self._pending = pending
        self._is_ours: bool | None = None
        self._is_refused = False
        self._unparsed = 0  # bytes that may be part of a head, or of the trailers after a body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._pending.add(self, transport.abort)

    def send_400_response(self, msg: str) -> None:
        """Refuse input that is not HTTP with status 400, and close the connection."""
        self._refuse(HTTPStatus.BAD_REQUEST, msg)

    def _refuse(self, status: HTTPStatus, words: str) -> None:
        """Send a refusal, and close the connection LINGER_S later."""
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}",
            "content-type: text/plain; charset=utf-8",
            f"content-length: {len(words)}",
            "connection: close",
        )
        self.transport.write("\r\n".join((*head, "", words)).encode("ascii"))
        self._is_refused = True
        self.transport.write_eof()
        self.loop.call_later(LINGER_S, self.transport.close)

    def data_received(self, data: bytes) -> None:
        """Process received data, unless it follows a refusal. Limit the head's size, which the parser does not."""
        if self._is_refused:
            return
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > HEAD_BYTES and not self._is_refused:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, LONG_HEADERS)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Pass a header on without trailing whitespace, which the parser leaves in the value (RFC 9110, 5.5)."""
        super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        self._unparsed = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def connection_lost(self, exc: Exception | None) -> None:
        self._pending.discard(self)
        super().connection_lost(exc)

    def let_in(self) -> bool:
        """Keep the connection of an authorized request open, and return True. Return False if it is another user's."""
        if self._is_ours is None:
            here, there = self.server, self.client
            known = here is not None and here[1] is not None and there is not None
            self._is_ours = not (known and comes_from_another_user((here[0], here[1]), there))  # type: ignore[index, arg-type]
            if self._is_ours:
                self._pending.discard(self)
        return self._is_ours


async def listen(app: Asgi, sock: socket.socket, last_answers_s: float = LAST_ANSWERS_S) -> None:
    """Run uvicorn until cancelled. Then give open requests `last_answers_s` to finish, cancel those that remain
    (ended_in_order), and close all connections.

    This omits uvicorn's signal handlers, and its main loop, which wakes up ten times a second.
    """
    pending = PendingConnections()
    config = uvicorn.Config(
        ended_in_order(app), http="httptools", ws="none", lifespan="off", log_config=None, access_log=False,
        server_header=False, date_header=False, proxy_headers=False, backlog=pending.burst,
    )  # fmt: skip
    config.load()
    config.http_protocol_class = cast(type[asyncio.Protocol], partial(HttpConnection, pending))
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[sock])
    sock.listen(BACKLOG)  # startup has set the backlog to `burst`, the most connections that are accepted in one turn
    try:
        await anyio.sleep_forever()
    finally:
        server.should_exit = True
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(last_answers_s):
                await server.shutdown(sockets=[sock])
            left = server.server_state
            waiting = list(left.tasks)
            for task in waiting:
                task.cancel()
            if waiting:
                await asyncio.wait(waiting, timeout=LAST_WORDS_S)
            for _ in range(2):  # repeat for clients that connected at the last moment
                await anyio.lowlevel.checkpoint()
                for connection in list(left.connections):
                    connection.transport.abort()


# -- requests whose port is closed before their answer -----------------------------------------------------------------


def ended_in_order(app: Asgi) -> Asgi:
    """Return the application, wrapped to complete the responses of requests that are cancelled when the port closes.

    Otherwise, a client whose stream breaks off might wait for its answer forever.
    """

    async def answered(scope: Any, receive: Any, send: Any) -> None:
        made = Exchange(receive, send)
        try:
            await app(scope, made.receive, made.send)
        except asyncio.CancelledError:
            await made.end()

    return answered


class Exchange:
    """A request, and the part of its response that has been sent."""

    def __init__(self, receive: Any, send: Any) -> None:
        self._receive = receive
        self._send = send
        self._body = b""  # the body of a small request, or the beginning of a larger one
        self._begun: Any = None
        self._whole = False

    async def receive(self) -> Any:
        came = await self._receive()
        if came["type"] == "http.request" and len(self._body) <= SMALL_FRAME_BYTES:
            self._body += came.get("body", b"")
        return came

    async def send(self, said: Any) -> None:
        if said["type"] == "http.response.start":
            self._begun = said
        else:
            self._whole = not said.get("more_body")
        await self._send(said)

    async def end(self) -> None:
        """Complete the response with an error: with status 503 if nothing was sent yet, or as a stream's last event.

        A stream whose request has no valid id just ends. Any other unfinished response stays unfinished.
        """
        request_id = None
        with suppress(JsonError):
            message = loads(self._body)
            request_id = id_of(message) if isinstance(message, dict) and "method" in message else None
        error = dumps({"jsonrpc": "2.0", "id": request_id, "error": CLOSED.body()})
        if self._begun is None:
            await respond(self._send, error, 503)
        elif not self._whole and (Headers(self._begun).get("content-type") or "").startswith(STREAM):
            await self._send({"type": "http.response.body", "body": b"" if request_id is None else event(error)})
