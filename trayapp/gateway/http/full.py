"""What the SDK does of HTTP: sessions with streams that can be resumed, all that lasts, tells or asks; and management.

Its one middleware hands every message to a session of ours and returns that one's answer untouched. Loaded when a
client needs it. Never here: binding the port, who may come in, sessions' behaviour.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from mcp.server.context import CallNext, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.dispatcher import Outbound
from mcp.shared.exceptions import MCPError, NoBackChannelError
from sse_starlette import sse
from starlette.applications import Starlette
from starlette.requests import Request

from trayapp import __version__
from trayapp.gateway.http.arrivals import Arrivals
from trayapp.gateway.http.asgi import Asgi, options_of
from trayapp.gateway.http.events import RecentEvents
from trayapp.gateway.http.manage import FileEdits, routes
from trayapp.gateway.http.opening import GIVEN_ID, OPENED, Opened
from trayapp.gateway.http.peers import BEGUN, Exchange, HttpPeer
from trayapp.gateway.http.presence import SESSION_HEADER, Presence
from trayapp.gateway.http.sse import STREAM_PING_S
from trayapp.model.errors import MultiMcpError
from trayapp.wire.framing import MAX_FRAME_BYTES
from trayapp.wire.messages import CONNECTION_CLOSED, Params, RpcError
from trayapp.wire.revisions import MODERN_VERSIONS

if TYPE_CHECKING:
    from trayapp.gateway.gateway import Gateway

RETRY_MS = 1_000  # after which a client should come back for a stream that broke off

Message = ServerRequestContext[Any, Any]


class Way:
    """A channel of the SDK's: the boundary from its errors to ours."""

    def __init__(self, channel: Outbound) -> None:
        self._channel = channel

    async def notify(self, method: str, params: Params) -> None:
        """See peers.Outbound."""
        await self._channel.notify(method, params)

    async def send_raw_request(self, method: str, params: Params) -> dict[str, Any]:
        """See peers.Outbound."""
        try:
            return await self._channel.send_raw_request(method, params)
        except NoBackChannelError:
            raise RpcError(CONNECTION_CLOSED, "The client cannot be asked now") from None
        except MCPError as error:
            raise RpcError(error.code, error.message, error.data) from None


class Front:
    """All clients that come by one port."""

    def __init__(self, arrivals: Arrivals, presence: Presence) -> None:
        self._arrivals = arrivals
        self._presence = presence
        self._peers: WeakKeyDictionary[Any, HttpPeer] = WeakKeyDictionary()  # by the SDK's connection
        self._introductions: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()  # initialize's params

    async def hand_over(self, ctx: Message, call_next: CallNext) -> Any:
        """The middleware: every message of every client, in both eras."""
        if ctx.protocol_version in MODERN_VERSIONS:
            return await self._modern(ctx)
        opened = opened_in(ctx)
        if opened is not None and ctx.method == "initialize":
            ctx.session._connection.exit_stack.callback(opened.forget)
            if not opened.peer.closed:
                self._take(opened, ctx)
                return opened.result
        elif opened is not None and not opened.peer.closed:
            return await call_next(ctx)  # its session has heard it
        peer = await self._peer(ctx)
        if ctx.request_id is not None:
            return await answer_of(peer, ctx)
        peer.notification(ctx.method, ctx.params)
        return await call_next(ctx)  # the SDK takes note of `initialized`

    def _take(self, opened: Opened, message: Message) -> None:
        """Go on with a session that the client has already."""
        connection = message.session._connection
        self._peers[connection] = opened.peer
        self._introductions[connection] = dict(message.params or {})
        connection.exit_stack.callback(opened.peer.close)
        opened.outbound = Way(connection.outbound)

    async def _peer(self, message: Message) -> HttpPeer:
        """The session of an older client lasts as long as its connection does, or until the client seems gone.

        One that comes again is introduced anew: it need not know.
        """
        connection = message.session._connection
        peer = self._peers.get(connection)
        if peer is not None and not peer.closed:
            self._note(message, peer)
            return peer
        self._peers[connection] = peer = HttpPeer(Way(connection.outbound))
        connection.exit_stack.callback(peer.close)
        self._arrivals.begin(peer, options_of(scope_of(message)))
        if message.method == "initialize":
            self._introductions[connection] = dict(message.params or {})
        elif (introduction := self._introductions.get(connection)) is not None:
            await peer.introduce(introduction)
        self._note(message, peer)
        return peer

    def _note(self, message: Message, peer: HttpPeer) -> None:
        if isinstance(message.request, Request):
            given = message.request.scope.get(GIVEN_ID) or message.request.headers.get(SESSION_HEADER)
            self._presence.note(given or message.session._connection.session_id, peer)

    async def _modern(self, message: Message) -> Any:
        """A request of 2026-07-28 is a session of its own."""
        if message.request_id is None:
            return None
        peer = HttpPeer(None)
        self._arrivals.begin(peer, options_of(scope_of(message)), lasting=False)
        try:
            return await answer_of(peer, message)
        finally:
            peer.close()

    def schema_of(self, name: str) -> Any:
        """The input schema of a listed tool, by which the SDK checks the headers that repeat arguments."""
        view = self._arrivals.gateway.servers.view
        try:
            server, tool = view.exposure().find(name)
        except MultiMcpError:
            return None
        item = view.catalog.tools.get((server, tool))
        return item.item.get("inputSchema") if item is not None else None


def scope_of(message: Message) -> Any:
    """The ASGI scope of the request that a message came with."""
    return message.request.scope if isinstance(message.request, Request) else {}


def opened_in(message: Message) -> Opened | None:
    """The session that is handed on with a message."""
    opened = scope_of(message).get(OPENED)
    return opened if isinstance(opened, Opened) else None


async def answer_of(peer: HttpPeer, message: Message) -> dict[str, Any]:
    """The session's answer to a request. Raises MCPError."""
    begun = scope_of(message).get(BEGUN)
    assert message.request_id is not None
    try:
        return await peer.request(
            message.request_id, message.method, message.params, Way(channel_of(message)),
            begun if isinstance(begun, Exchange) else None,
        )  # fmt: skip
    except RpcError as error:
        raise MCPError(error.code, error.message, error.data) from None


def channel_of(message: Message) -> Outbound:
    """The way that belongs to one request: the stream of its answer.

    The SDK's public methods want typed messages, which would lose fields that it does not know.
    """
    return message.session._request_outbound


@asynccontextmanager
async def running(
    gateway: Gateway, file: FileEdits, arrivals: Arrivals, presence: Presence
) -> AsyncIterator[tuple[Asgi, Asgi]]:
    """The applications: Streamable HTTP, and all other paths."""
    _calm_streams()
    front = Front(arrivals, presence)
    server: Server[Any] = Server("multi-mcp", version=__version__, get_tool_input_schema=front.schema_of)
    server.middleware.append(front.hand_over)
    manager = StreamableHTTPSessionManager(
        server, RecentEvents(), retry_interval=RETRY_MS, max_request_body_size=MAX_FRAME_BYTES
    )
    async with manager.run():
        yield manager.handle_request, Starlette(routes=routes(gateway, file))


def _calm_streams() -> None:
    """Fewer pings of event streams, and none of the task that looks twice a second whether uvicorn ends.

    It cannot see ours end, which ends the streams itself.
    """
    sse.EventSourceResponse.DEFAULT_PING_INTERVAL = STREAM_PING_S
    if state := getattr(sse, "_get_shutdown_state", None):
        state().watcher_started = True
