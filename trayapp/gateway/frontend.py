"""One client session: its handshake, its lists, its calls. The same behind the shim and, later, behind HTTP.

The exception boundary of a session is its dispatcher. Never here: sockets, other sessions, starting servers.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc

from trayapp import __version__
from trayapp.backends.connection import Connection
from trayapp.backends.handshake import HANDSHAKE_VERSIONS
from trayapp.gateway.calls import RoutedCall
from trayapp.gateway.errors import to_rpc
from trayapp.gateway.options import session_options
from trayapp.gateway.router import ROUTED, is_up
from trayapp.model.errors import MultiMcpError, ToolNotFoundError
from trayapp.model.status import SessionStatus
from trayapp.wire.frames import CANCELLED, INTERNAL, FrameDispatcher, RequestContext
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Params,
    Reply,
    RequestId,
    RpcError,
    is_request_id,
)

if TYPE_CHECKING:
    from trayapp.gateway.core import Gateway
    from trayapp.gateway.view import View
    from trayapp.gateway.window import Window

log = logging.getLogger(__name__)

SERVER_INFO = {"name": "multi-mcp", "title": "multi-mcp", "version": __version__}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True},
    "completions": {},
    "logging": {},
}
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")  # RFC 5424, as MCP logging


class Session:
    """One client. `options` are those of its first line: cwd, expose, servers, profile."""

    def __init__(
        self, gateway: Gateway, sink: Callable[[bytes], None], options: dict[str, Any], transport: str
    ) -> None:
        self._gateway = gateway
        self.view: View = gateway.view  # another one once its project is known
        self.options = session_options(options)
        self.cwd = options.get("cwd")
        self._window: Window | None = None
        self.transport = transport
        self.client = "unknown"
        self.protocol = ""
        self.log_level: str | None = None
        self.ready = False  # has sent notifications/initialized
        self.open_calls: dict[RequestId, RoutedCall] = {}
        self._waiting: dict[RequestId, anyio.CancelScope] = {}  # requests with a task: their server is being started
        self._known: dict[str, bytes] = {}  # the lists as the client had them, or was told that they changed
        self._tasks: anyio.abc.TaskGroup | None = None
        self.dispatcher = FrameDispatcher(sink)
        self.dispatcher.request_intercept = self._on_request_now

    async def run(self) -> None:
        """Serve until the client is gone; then its calls are given up."""
        try:
            async with anyio.create_task_group() as self._tasks:
                await self.dispatcher.run(self._on_request, self._on_notification, self._on_notification_now)
                self._tasks.cancel_scope.cancel()
        finally:
            for call in list(self.open_calls.values()):
                call.cancel("the client is gone")

    @property
    def window(self) -> Window:
        """What this session sees; the same one for all sessions of its view with its options."""
        if self._window is None or self._window.view is not self.view:
            self._window = self.view.window(self.options)
        return self._window

    @property
    def status(self) -> SessionStatus:
        """For the snapshot."""
        return SessionStatus(self.client, self.transport, self.protocol, self.window.exposure.mode)

    def notify(self, method: str, params: Params = None) -> None:
        """Tell the client something, once it said that it is ready to hear (MCP lifecycle)."""
        if self.ready:
            self.dispatcher.send_notification(method, params)

    def tell_changes(self, listings: Mapping[str, bytes]) -> None:
        """Say `list_changed` of the lists (by LIST_KINDS) that are others now; to a client that is not ready, later."""
        if not self.ready:
            return
        changed = [TOLD_AS[kind] for kind, listing in listings.items() if self._known.get(kind, listing) != listing]
        self._known.update(listings)
        for kind in dict.fromkeys(changed):
            self.notify(f"notifications/{kind}/list_changed")

    def wants_log(self, level: Any) -> bool:
        """Whether a log message of that level is to be passed on."""
        if self.log_level is None or level not in LEVELS:
            return True
        return LEVELS.index(level) >= LEVELS.index(self.log_level)

    # -- requests that need no task ------------------------------------------------------------------------------

    def _on_request_now(self, request_id: RequestId, method: str, params: Any) -> bool:
        """Answer, or pass on, what can be done at once: calls of connected servers above all."""
        if method in ROUTED:
            self._route(request_id, method, params)
            return True
        if method == "ping":
            self._send_result(request_id, b"{}")
            return True
        if method in LISTS:
            self._list(request_id, LISTS[method])
            return True
        if method in SETTLED:
            self._answer_now(request_id, SETTLED[method], params)
            return True
        return False

    def _answer_now(self, request_id: RequestId, answer: Callable[..., dict[str, Any]], params: Any) -> None:
        """Answers that need no waiting come in the order of their requests: clients pipeline their handshake."""
        try:
            result = answer(self, params if isinstance(params, dict) else {})
        except RpcError as error:
            self._send_error(request_id, error)
        else:
            self.dispatcher.respond(request_id, Reply.of_result(result))

    def _list(self, request_id: RequestId, kind: str) -> None:
        if self.view.lists_may_grow:
            self._start(request_id, partial(self._list_later, request_id, kind))
        else:
            self._send_list(request_id, kind)

    def _send_list(self, request_id: RequestId, kind: str) -> None:
        self._known[kind] = listing = self.window.listing(kind)
        self._send_result(request_id, listing)
        self._gateway.list_served()

    def _route(self, request_id: RequestId, method: str, params: Any) -> None:
        if request_id in self.open_calls or request_id in self._waiting:
            self._refuse_twice(request_id)
            return
        try:
            server, own_params = self.window.router.target(method, params)
            connection = self.window.router.connection(server)
            if is_up(connection):
                self._send_on(request_id, connection, method, own_params)
                return
        except ToolNotFoundError as error:
            if not self.window.missing():
                self._send_error(request_id, error)
                return
        except (MultiMcpError, RpcError) as error:
            self._send_error(request_id, error)
            return
        self._start(request_id, partial(self._route_later, request_id, method, params))

    def _send_on(self, request_id: RequestId, connection: Connection, method: str, params: dict[str, Any]) -> None:
        RoutedCall(self, request_id, connection).send(method, params, self.window.router.timeout_s(connection))

    def send_again(
        self, request_id: RequestId, connection: Connection, method: str, params: Params, timeout_s: float
    ) -> None:
        """Send a request that was not executed once more, on a new connection."""

        async def work() -> None:
            await connection.ensure()
            RoutedCall(self, request_id, connection).send(method, params, timeout_s, last=True)

        self._start(request_id, work)

    def _send_result(self, request_id: RequestId, result: bytes) -> None:
        self.dispatcher.respond_frame(b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (dumps(request_id), result))

    def _send_error(self, request_id: RequestId, error: MultiMcpError | RpcError) -> None:
        rpc = to_rpc(error) if isinstance(error, MultiMcpError) else error
        self.dispatcher.respond(request_id, Reply.of_error(rpc))

    def _refuse_twice(self, request_id: RequestId) -> None:
        error = RpcError(INVALID_REQUEST, f"A request with the id {request_id!r} is under way already")
        self._send_error(request_id, error)

    # -- requests with a task of their own -----------------------------------------------------------------------

    def _start(self, request_id: RequestId, work: Callable[[], Awaitable[None]]) -> None:
        if request_id in self._waiting:
            self._refuse_twice(request_id)
            return
        assert self._tasks is not None
        self._waiting[request_id] = scope = anyio.CancelScope()
        self._tasks.start_soon(self._carry_out, request_id, scope, work)

    async def _carry_out(
        self, request_id: RequestId, scope: anyio.CancelScope, work: Callable[[], Awaitable[None]]
    ) -> None:
        """The boundary of one request: its failure is its answer. One that the client has cancelled gets none."""
        error: MultiMcpError | RpcError | None = None
        try:
            with scope:
                await work()
        except (MultiMcpError, RpcError) as failure:
            error = failure
        except Exception:
            log.exception("A request failed in a way that we do not know")
            error = INTERNAL
        finally:
            del self._waiting[request_id]
        if error is not None:
            self._send_error(request_id, error)

    async def _list_later(self, request_id: RequestId, kind: str) -> None:
        await self.view.first_lists()
        self._send_list(request_id, kind)

    async def _route_later(self, request_id: RequestId, method: str, params: Any) -> None:
        """A call whose server must be started, or even be found, first."""
        connection, own_params = await self._connected_target(method, params)
        self._send_on(request_id, connection, method, own_params)

    async def _connected_target(self, method: str, params: Any) -> tuple[Connection, dict[str, Any]]:
        if method == "tools/call" and isinstance(params, dict) and isinstance(params.get("name"), str):
            await self.window.router.find_tool(params["name"])
        server, own_params = self.window.router.target(method, params)
        return await self.window.router.connected(server), own_params

    async def _on_request(self, context: RequestContext, method: str, params: Params) -> dict[str, Any]:
        """What the intercept leaves: methods that we do not know."""
        raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}"[:200])

    # -- the session's own state ---------------------------------------------------------------------------------

    def _initialize(self, params: Params) -> dict[str, Any]:
        wanted = (params or {}).get("protocolVersion")
        self.protocol = wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        info = (params or {}).get("clientInfo")
        if isinstance(info, dict) and isinstance(info.get("name"), str):
            self.client = info["name"][:80]
        self._gateway.changed()
        result: dict[str, Any] = {
            "protocolVersion": self.protocol,
            "capabilities": CAPABILITIES,
            "serverInfo": SERVER_INFO,
        }
        instructions = self.window.exposure.instructions
        return {**result, "instructions": instructions} if instructions else result

    def _set_level(self, params: Params) -> dict[str, Any]:
        level = (params or {}).get("level")
        if level not in LEVELS:
            raise RpcError(INVALID_PARAMS, f"Unknown log level: {level!r}"[:200])
        self.log_level = level
        self._gateway.set_log_levels()
        return {}

    def _on_notification_now(self, method: str, params: Params) -> bool:
        if method == CANCELLED and params is not None:
            self._cancel(params.get("requestId"), str(params.get("reason") or "cancelled by the client"))
        elif method == "notifications/initialized":
            self.ready = True
            self.tell_changes({kind: self.window.listing(kind) for kind in LIST_KINDS})
        return True

    async def _on_notification(self, context: RequestContext, method: str, params: Params) -> None:
        """Never reached: the intercept takes every notification."""

    def _cancel(self, request_id: Any, reason: str) -> None:
        if not is_request_id(request_id):
            return
        if call := self.open_calls.get(request_id):
            call.cancel(reason)
        elif scope := self._waiting.get(request_id):
            scope.cancel()


LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "templates",
}
LIST_KINDS = tuple(LISTS.values())
TOLD_AS = {**{kind: kind for kind in LIST_KINDS}, "templates": "resources"}  # there is no notification for them alone
SETTLED: dict[str, Callable[..., dict[str, Any]]] = {
    "initialize": Session._initialize,
    "logging/setLevel": Session._set_level,
}
