"""One client session: its handshake, its lists, its calls. The same behind the shim and behind HTTP.

The exception boundary of a session is its peer. Never here: sockets, other sessions, starting servers.
"""

from __future__ import annotations

import logging
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc

from trayapp.backends.connection import Connection
from trayapp.catalog.names import Key
from trayapp.gateway.bridge import MAX_ROUNDS, Bridge
from trayapp.gateway.calls import Finishing, RoutedCall
from trayapp.gateway.eras import as_modern, error_as_modern, hinted
from trayapp.gateway.errors import to_client, unknown_method
from trayapp.gateway.introductions import MODERN, OLDER, SERVER_INFO, at_least, take_envelope
from trayapp.gateway.lists import LIST_KINDS, LISTS, Lists
from trayapp.gateway.options import session_options
from trayapp.gateway.peer import ClientPeer
from trayapp.gateway.router import ROUTED, is_up
from trayapp.gateway.subscriptions import MODERN_WORK, OLDER_WORK
from trayapp.gateway.tool import takes
from trayapp.gateway.underway import Underway, twice
from trayapp.model.errors import MultiMcpError, ToolNotFoundError
from trayapp.model.late import late_module
from trayapp.model.status import SessionStatus
from trayapp.wire.envelope import LOG_LEVEL, has_envelope
from trayapp.wire.frames import CANCELLED
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import INTERNAL_ERROR, Params, Reply, RequestId, RpcError, is_request_id

if TYPE_CHECKING:
    from trayapp.gateway import index, onetool
    from trayapp.gateway.core import Gateway
    from trayapp.gateway.view import View
    from trayapp.gateway.window import Window
else:
    index, onetool = late_module("trayapp.gateway.index"), late_module("trayapp.gateway.onetool")

log = logging.getLogger(__name__)


class Session:
    """One client. `options` are those of its first line: cwd, expose, servers, profile.

    `lasting`: it is one connection, whose end ends the session's calls; over HTTP a 2026-07-28 request is all there is.
    """

    def __init__(
        self, gateway: Gateway, peer: ClientPeer, options: dict[str, Any], transport: str, *, lasting: bool = True
    ) -> None:
        self._gateway = gateway
        self.peer = peer
        self.view: View = gateway.view  # another one once its project is known
        self.options = session_options(options)
        self.cwd = options.get("cwd")
        self._window: Window | None = None
        self.transport = transport
        self.lasting: bool = lasting
        self.client = "unknown"
        self.protocol = ""
        self.modern = False  # speaks 2026-07-28: each request carries its own envelope
        self.capabilities: dict[str, Any] = {}  # what the client can do for servers
        self.log_level: str | None = None
        self.ready = False  # has sent notifications/initialized
        self.open_calls: dict[RequestId, RoutedCall] = {}
        self._underway = Underway(self._send_error)
        self.start = self._underway.start  # a request with a task of its own
        self.lists = Lists(self, gateway)

    async def run(self) -> None:
        """Serve until the client is gone; then its calls are given up."""
        try:
            async with anyio.create_task_group() as self._underway.tasks:
                await self.peer.run(self._on_request, self._on_notification)
                self._underway.tasks.cancel_scope.cancel()
        finally:
            for call in list(self.open_calls.values()):
                call.cancel("the client is gone")
            self._gateway.subscriptions.drop(self)
            if "_one_tool" in self.__dict__:
                self._one_tool.close()
            if self.lasting:
                self.bridge.drop(self)

    @cached_property
    def _one_tool(self) -> onetool.OneTool:
        return onetool.OneTool(self, self._gateway, self.start)

    @property
    def bridge(self) -> Bridge:
        """Where servers' questions go."""
        return self._gateway.bridge

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

    def notify(self, method: str, params: Params = None, about: RequestId | None = None) -> None:
        """Tell the client something, once it said that it is ready to hear (MCP lifecycle)."""
        if self.ready:
            self.peer.send_notification(method, params, about)

    def wants_log(self, level: Any) -> bool:
        """Whether a log message of that level is to be passed on, to a client that chose its level once."""
        return at_least(level, self.log_level)

    def awaited_servers(self) -> set[str]:
        """The servers that are being started for requests of this client."""
        return {self.server_key(name) for name in self._underway.servers}

    def has_server(self, key: str) -> bool:
        """True if this session may use that server: it is in its view, and its filters leave it in."""
        shared = self._gateway.own.base(key)
        name = self.view.name_of(shared)
        return name is not None and self.window.has(name) and key in (shared, self._gateway.own.key(self, shared))

    def server_key(self, name: str) -> str:
        """Under what key this session reaches a server."""
        return self._gateway.own.key(self, self.view.key(name))

    # -- requests that need no task ------------------------------------------------------------------------------

    def _on_request(self, request_id: RequestId, method: str, params: Any) -> None:
        """Answer, or pass on, what can be done at once: calls of connected servers above all."""
        try:
            if self.modern or has_envelope(params):
                take_envelope(self._gateway, self, method, params)
            if method in ROUTED:
                self._route(request_id, method, params)
            elif method in LISTS:
                self.lists.ask(request_id, LISTS[method])
            elif (answer := (MODERN if self.modern else OLDER).get(method)) is not None:
                # Answers that need no waiting come in the order of their requests: clients pipeline their handshake.
                result = answer(self._gateway, self, params if isinstance(params, dict) else {})
                self.send_cacheable(request_id, dumps(result))
            elif (work := (MODERN_WORK if self.modern else OLDER_WORK).get(method)) is not None:
                work(self._gateway, self, request_id, params if isinstance(params, dict) else {})
            else:
                self._route_unknown(request_id, method, params)
        except (MultiMcpError, RpcError) as error:
            self._send_error(request_id, error)

    def refuse_twice(self, request_id: RequestId) -> None:
        """Raises RpcError: a request with that id has no answer yet."""
        if request_id in self.open_calls or request_id in self._underway.scopes:
            raise twice(request_id)

    def _route(self, request_id: RequestId, method: str, params: Any) -> None:
        if request_id in self.open_calls or request_id in self._underway.scopes:
            raise twice(request_id)
        if self.modern and self.bridge.resume(self, request_id, params):
            return
        if method == "tools/call" and self._passed_on(request_id, params):
            return
        if takes(method, params):
            self._one_tool.answer(request_id, params)
            return
        if method == "resources/read" and index.is_index(params):
            self.send_answer(request_id, index.index_result(self.window.exposure), method)
            return
        try:
            server, own_params = self.window.router.target(method, params)
        except ToolNotFoundError:
            if not self.window.missing():
                raise
        else:
            connection = self.connection(server)
            if is_up(connection) and not self._gateway.clientele.outgrew(connection):
                if method == "tools/call" and connection.server.scope != "session":
                    self.window.router.keep_way(params["name"], connection, own_params["name"])
                self.send_on(request_id, connection, method, own_params)
                return
        self.start(request_id, partial(self._route_later, request_id, method, params))

    def _passed_on(self, request_id: RequestId, params: Any) -> bool:
        """Whether it was a call like one before it, of a server in use: most are, and take the short way."""
        way = self.window.router.way(params)
        if way is None or not way.connection.used_since_connected:
            return False
        self._send(request_id, way.connection, "tools/call", {**params, "name": way.tool}, way.timeout_s)
        return True

    def connection(self, server: str) -> Connection:
        """The connection of a server: the session's own where it has one for itself. Raises ServerNotFoundError."""
        return self._gateway.running.connection_of(self, self.window.router.connection(server))

    def _route_unknown(self, request_id: RequestId, method: str, params: Any) -> None:
        """A method of an extension: for the one server there is, or the one that the params name."""
        if method in SETTLED_METHODS or request_id in self._underway.scopes or not isinstance(params, dict | None):
            raise unknown_method(method)
        server = self.window.router.target_of_unknown(params)
        if server is None:
            raise unknown_method(method)

        async def work() -> None:
            self.send_on(request_id, await self.connected(request_id, server), method, params or {})

        self.start(request_id, work)

    def send_on(
        self,
        request_id: RequestId,
        connection: Connection,
        method: str,
        params: dict[str, Any],
        finish: Finishing | None = None,
    ) -> None:
        """Pass a request on to a connected server; `finish` makes of its answer what the client gets."""
        self._send(request_id, connection, method, params, self.window.router.timeout_s(connection), finish)

    def _send(
        self,
        request_id: RequestId,
        connection: Connection,
        method: str,
        params: dict[str, Any],
        timeout_s: float,
        finish: Finishing | None = None,
    ) -> None:
        if self.log_level is not None and connection.live is not None and connection.live.peer.modern:
            meta = params.get("_meta")
            params = {**params, "_meta": {**(meta if isinstance(meta, dict) else {}), LOG_LEVEL: self.log_level}}
        elif self.modern and LOG_LEVEL in params.get("_meta", ()):
            self._gateway.news.set_level(connection, params["_meta"][LOG_LEVEL])
        RoutedCall(self, request_id, connection, finish).send(method, params, timeout_s)

    def send_again(self, call: RoutedCall, method: str, params: Params, timeout_s: float) -> None:
        """Send a request that was not executed once more, on a new connection."""
        request_id, connection = call.request_id, call.connection

        async def work() -> None:
            await self.window.router.up(connection)
            RoutedCall(self, request_id, connection, call.finish).send(method, params, timeout_s, last=True)

        self.start(request_id, work)

    def ask_and_carry_on(
        self, call: RoutedCall, method: str, params: Params, timeout_s: float, question: dict[str, Any], rounds: int
    ) -> None:
        """A 2026-07-28 server answered with questions: ask the client, then send the request with what it said."""
        request_id, connection = call.request_id, call.connection

        async def work() -> None:
            if rounds > MAX_ROUNDS:
                raise RpcError(INTERNAL_ERROR, f"{connection.name} asked more than {MAX_ROUNDS} times in one call")
            connection.in_flight += 1  # nobody may close it as idle while a person thinks
            try:
                again = await self.bridge.answers(self, request_id, question)
                await self.window.router.up(connection)
            finally:
                connection.in_flight -= 1
            next_call = RoutedCall(self, request_id, connection, call.finish, rounds)
            next_call.send(method, {**(params or {}), **again}, timeout_s)

        self.start(request_id, work)

    def send_result(self, request_id: RequestId, result: bytes) -> None:
        """A result of our own, as JSON in the client's era's way."""
        self.peer.respond(request_id, Reply.of_result_json(result))

    def send_cacheable(self, request_id: RequestId, result: bytes) -> None:
        """The same, of what a client of 2026-07-28 may keep for a while; not empty."""
        self.send_result(request_id, hinted(result, SERVER_INFO) if self.modern else result)

    def send_answer(self, request_id: RequestId, result: dict[str, Any], method: str) -> None:
        """A result of our own for a request that servers answer, too."""
        reply = Reply.of_result(result)
        self.peer.respond(request_id, as_modern(reply, method) if self.modern else reply)

    def _send_error(self, request_id: RequestId, error: MultiMcpError | RpcError) -> None:
        rpc = to_client(error) if isinstance(error, MultiMcpError) else error
        reply = Reply.of_error(rpc)
        self.peer.respond(request_id, error_as_modern(reply) if self.modern else reply)

    # -- requests with a task of their own -----------------------------------------------------------------------

    async def _route_later(self, request_id: RequestId, method: str, params: Any) -> None:
        """A call whose server must be started, or even be found, first."""
        if method == "tools/call" and isinstance(params, dict) and isinstance(params.get("name"), str):
            await self.find_tool(request_id, params["name"])
        server, own_params = self.window.router.target(method, params)
        self.send_on(request_id, await self.connected(request_id, server), method, own_params)

    async def find_tool(self, request_id: RequestId, asked: str, server: str | None = None) -> Key:
        """Find the tool of a call as Router.find_tool; a server that is started for it may ask this client."""
        return await self.window.router.find_tool(asked, server, partial(self._underway.waits_for, request_id))

    async def connected(self, request_id: RequestId, server: str) -> Connection:
        """The connection that a request waits for, up. Raises ServerError."""
        self._underway.waits_for(request_id, server)
        connection = self.connection(server)
        if self._gateway.clientele.outgrew(connection):
            log.info("%s is started anew: a client can do more for it than those before", connection.name)
            await connection.close()
        await self.window.router.up(connection)
        return connection

    # -- what the client tells -----------------------------------------------------------------------------------

    def _on_notification(self, method: str, params: Params) -> None:
        if method == CANCELLED:
            if params is not None:
                self._cancel(params.get("requestId"), str(params.get("reason") or "cancelled by the client"))
        elif method == "notifications/initialized":
            self.ready = True
            self.lists.tell({kind: self.window.listing(kind) for kind in LIST_KINDS})
        elif method != "notifications/progress":  # which the dispatcher brings to whom it concerns
            self._gateway.tell_servers(self, method, params)

    def _cancel(self, request_id: Any, reason: str) -> None:
        if not is_request_id(request_id):
            return
        if call := self.open_calls.get(request_id):
            call.cancel(reason)
        else:
            self._underway.cancel(request_id)


SETTLED_METHODS = frozenset({*OLDER, *MODERN, *OLDER_WORK, *MODERN_WORK})  # no server's, whatever the era
