"""What listens behind the HTTP port: the SDK's servers for Streamable HTTP and SSE, and the management requests.

Its one middleware hands every message to a session of ours and returns that one's answer untouched. Imported when the
first client knocks. Never here: binding the port, who may come in, sessions' behaviour.
"""

from __future__ import annotations

import logging
import socket
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import anyio
import anyio.abc
import anyio.lowlevel
import uvicorn
from mcp.server.context import CallNext
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from sse_starlette import sse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from trayapp import __version__
from trayapp.backends.handshake import MODERN_VERSIONS
from trayapp.gateway.frontend import Session
from trayapp.gateway.http.events import RecentEvents
from trayapp.gateway.http.guard import Guard
from trayapp.gateway.http.manage import FileEdits, routes
from trayapp.gateway.http.peers import HttpPeer, Message
from trayapp.gateway.http.presence import SESSION_HEADER, Asgi, Presence
from trayapp.gateway.http.quick import Quick
from trayapp.model.errors import MultiMcpError
from trayapp.wire.framing import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from trayapp.gateway.core import Gateway

log = logging.getLogger(__name__)

LAST_ANSWERS_S = 1.0  # at the end, for what is on its way
RETRY_MS = 1_000  # after which a client should come back for a stream that broke off
STREAM_PING_S = 30  # no proxy is between us and our clients; they give up a silent stream after 60 s at the earliest


class Front:
    """All clients that come by one port."""

    def __init__(self, gateway: Gateway, tasks: anyio.abc.TaskGroup) -> None:
        self._gateway = gateway
        self._tasks = tasks
        self._peers: WeakKeyDictionary[Any, HttpPeer] = WeakKeyDictionary()  # by the SDK's connection
        self._introductions: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()  # initialize's params
        self.presence = Presence(gateway.clock, tasks)

    async def hand_over(self, ctx: Message, call_next: CallNext) -> Any:
        """The middleware: every message of every client, in both eras."""
        if ctx.protocol_version in MODERN_VERSIONS:
            return await self._modern(ctx)
        peer = await self._peer(ctx)
        if ctx.request_id is not None:
            return await peer.request(ctx)
        peer.notification(ctx.method, ctx.params)
        return await call_next(ctx)  # the SDK takes note of `initialized`

    async def _peer(self, message: Message) -> HttpPeer:
        """The session of an older client lasts as long as its connection does, or until the client seems gone.

        One that comes again is introduced anew: it need not know.
        """
        connection = message.session._connection
        peer = self._peers.get(connection)
        if peer is not None and not peer.closed:
            self._note(message, peer)
            return peer
        self._peers[connection] = peer = HttpPeer(connection.outbound)
        session = Session(self._gateway, peer, options_of(message), "http")
        connection.exit_stack.callback(peer.close)
        self._tasks.start_soon(self._serve, session)
        if message.method == "initialize":
            self._introductions[connection] = dict(message.params or {})
        elif (introduction := self._introductions.get(connection)) is not None:
            await peer.introduce(introduction)
        self._note(message, peer)
        return peer

    def _note(self, message: Message, peer: HttpPeer) -> None:
        if isinstance(message.request, Request):
            self.presence.note(message.request.headers.get(SESSION_HEADER), peer)

    async def _serve(self, session: Session) -> None:
        """The boundary at which one session's failure stops."""
        try:
            await self._gateway.serve(session)
        except Exception:
            log.exception("A session failed in a way that we do not know")

    async def _modern(self, message: Message) -> Any:
        """A request of 2026-07-28 is a session of its own."""
        if message.request_id is None:
            return None
        peer = HttpPeer(None)
        session = Session(self._gateway, peer, options_of(message), "http", lasting=False)
        self._tasks.start_soon(self._serve, session)
        try:
            return await peer.request(message)
        finally:
            peer.close()

    def schema_of(self, name: str) -> Any:
        """The input schema of a listed tool, by which the SDK checks the headers that repeat arguments."""
        try:
            server, tool = self._gateway.view.whole.exposure.find(name)
        except MultiMcpError:
            return None
        item = self._gateway.view.known.tools.get((server, tool))
        return item.item.get("inputSchema") if item is not None else None


def options_of(message: Message) -> dict[str, Any]:
    """The session options in the URL's query."""
    request = message.request
    return dict(request.query_params) if isinstance(request, Request) else {}


async def serve(gateway: Gateway, file: FileEdits, sock: socket.socket, token: str) -> None:
    """Serve on a listening socket until cancelled."""
    _calm_streams()
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        front = Front(gateway, tasks)
        server: Server[Any] = Server("multi-mcp", version=__version__, get_tool_input_schema=front.schema_of)
        server.middleware.append(front.hand_over)
        manager = StreamableHTTPSessionManager(
            server, RecentEvents(), retry_interval=RETRY_MS, max_request_body_size=MAX_FRAME_BYTES
        )
        await stack.enter_async_context(manager.run())
        quick = Quick(front.presence.peer_of, gateway.clock)
        streamable = front.presence.around(quick.around(manager.handle_request))
        await _listen(Guard(application(server, streamable, routes(gateway, file)), token), sock)


def application(server: Server[Any], streamable: Asgi, more: list[Route]) -> Starlette:
    """The routes."""
    sse = SseServerTransport("/messages/", max_request_body_size=MAX_FRAME_BYTES)
    return Starlette(
        routes=[
            Route("/mcp", endpoint=_Asgi(streamable)),
            Route("/sse", endpoint=partial(_serve_sse, server, sse), methods=["GET"]),
            Mount("/messages/", app=sse.handle_post_message),
            *more,
        ]
    )


class _Asgi:
    """Starlette takes functions for handlers of requests; an object it takes for an application."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)


async def _serve_sse(server: Server[Any], sse: SseServerTransport, request: Request) -> Response:
    async with sse.connect_sse(request.scope, request.receive, request._send) as (read, write):
        await server.run(read, write, server.create_initialization_options())
    return Response()


def _calm_streams() -> None:
    """Fewer pings of event streams, and none of the task that looks twice a second whether uvicorn ends.

    It cannot see ours end, which ends the streams itself.
    """
    sse.EventSourceResponse.DEFAULT_PING_INTERVAL = STREAM_PING_S
    if state := getattr(sse, "_get_shutdown_state", None):
        state().watcher_started = True


async def _listen(app: Any, sock: socket.socket) -> None:
    """Uvicorn without its main loop, which wakes up ten times a second, and without its signal handlers."""
    config = uvicorn.Config(
        app, http="h11", ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
        date_header=False, timeout_graceful_shutdown=1,
    )  # fmt: skip
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[sock])
    try:
        await anyio.sleep_forever()
    finally:
        server.should_exit = True
        with anyio.move_on_after(LAST_ANSWERS_S, shield=True):
            await server.shutdown(sockets=[sock])
        with anyio.CancelScope(shield=True):
            for _ in range(2):  # streams that stay open, whose clients come again; and who came at the last moment
                await anyio.lowlevel.checkpoint()
                for connection in list(server.server_state.connections):
                    connection.transport.abort()
