"""Handle each request of a client: answer it immediately, pass it on to a server, or start a task if it has to wait.

Unexpected errors are caught by the client's peer, and those of tasks by PendingRequests.
"""

from __future__ import annotations

import logging
from functools import cached_property, partial
from time import perf_counter
from typing import TYPE_CHECKING

import anyio

from trayapp.backends.connection import Connection
from trayapp.catalog.names import Key
from trayapp.gateway.calls.consent import GATED
from trayapp.gateway.calls.errors import unknown_method
from trayapp.gateway.calls.routed_call import Finishing, RoutedCall
from trayapp.gateway.client import text_of
from trayapp.gateway.exposure.exposure import INDEX_URI
from trayapp.gateway.exposure.list_results import index_result, is_one_tool, looks_for_tools
from trayapp.gateway.extensions.results import chained, finish_of
from trayapp.gateway.extensions.routing import task_ids
from trayapp.gateway.scopes.session_view import ROUTED, Target
from trayapp.gateway.scopes.sharing import TRUSTED, topic_of
from trayapp.gateway.sessions.handshake import discover, initialize, set_level, take_envelope, take_handshake
from trayapp.gateway.sessions.session import LISTS, Session, SessionDependencies
from trayapp.history.ended_call import refused_call
from trayapp.model.errors import MultiMcpError, ToolNotFoundError
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import (
    CANCELLED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    Params,
    Request,
    RequestId,
    RpcError,
    is_request_id,
)
from trayapp.wire.revisions import LOG_LEVEL, has_envelope

if TYPE_CHECKING:
    from trayapp.gateway.extensions.requests import ExtensionRequests
    from trayapp.gateway.mcp_tool.tool import McpTool

log = logging.getLogger(__name__)

# Methods of each era besides lists and calls.
OLDER = frozenset({"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
MODERN = frozenset({"server/discover", "subscriptions/listen"})


def _letters(method: str) -> str:
    return "".join(filter(str.isalpha, method)).casefold()


_GATED = frozenset(map(_letters, GATED))
NOTIFICATIONS = "notifications/"  # the beginning of each notification's method (MCP, basic)


class ClientRequests:
    """The requests of one session. It has many methods because every method of MCP arrives here."""

    def __init__(self, session: Session, dependencies: SessionDependencies) -> None:
        self.session = session
        self._dependencies = dependencies

    async def run(self) -> None:
        """Serve the client until it disconnects, then cancel its calls."""
        session = self.session
        try:
            async with anyio.create_task_group() as session.pending.tasks:
                await session.peer.run(self.take, self._on_notification)
                session.pending.tasks.cancel_scope.cancel()
        finally:
            session.end()
            if "_one_tool" in self.__dict__:
                self._one_tool.close()

    @cached_property
    def _one_tool(self) -> McpTool:
        from trayapp.gateway.mcp_tool.tool import McpTool  # imported on first use, because lists do not need it

        return McpTool(self, self._dependencies.tool)

    @cached_property
    def _extensions(self) -> ExtensionRequests:
        from trayapp.gateway.extensions.requests import ExtensionRequests  # also imported on first use

        return ExtensionRequests(self, self._dependencies.streams, self._dependencies.services.spawn)

    # -- requests ------------------------------------------------------------------------------------------------

    def take(self, request: Request) -> None:
        """Answer a request or pass it on to a server: immediately if possible, as with most calls, or in a task."""
        session, method = self.session, request.method
        try:
            if request.id in session.open_calls or request.id in session.pending.scopes:
                raise RpcError(INVALID_REQUEST, f"A request with the id {request.id!r} is already in progress")
            params = request.params
            if session.client.modern or (params is not None and "_meta" in params and has_envelope(params)):
                if take_envelope(session.client, method, request.params, lasting=session.lasting):
                    self._dependencies.services.changes.changed()
                session.recognize()
            if method in ROUTED:
                if session.client.modern and self._dependencies.server_requests.resume(session, request):
                    return
                name = params.get("name") if method == "tools/call" and isinstance(params, dict) else None
                if type(name) is not str or not self.send_again(name, request):
                    self._route(request)
            elif method in LISTS:
                self._list(request, LISTS[method])
            elif method in (MODERN if session.client.modern else OLDER):
                self._answer(request)
            else:
                self._route_unknown(request)
        except (MultiMcpError, RpcError) as error:
            if method == "tools/call":
                session.history.note(refused_call(perf_counter(), session, "", request.params, error))
            session.refuse(request.id, error)

    def _answer(self, request: Request) -> None:
        """Answer a request whose method is in OLDER or MODERN, or start a task that answers it.

        Immediate answers keep the order of their requests, because clients pipeline their handshake.
        """
        session, params = self.session, request.params if isinstance(request.params, dict) else {}
        match request.method:
            case "initialize":
                take_handshake(session.client, params)
                session.recognize()
                result = initialize(session.client, session.seen.exposure)
                self._dependencies.services.changes.changed()
            case "server/discover":
                result = discover(session.seen.exposure)
            case "logging/setLevel":
                result = set_level(session.client, params)
                for connection in self._dependencies.services.pool:
                    self._dependencies.notifications.set_level(connection)
            case "ping":
                result = {}
            case "subscriptions/listen":
                session.begin_lists()
                listen = partial(self._dependencies.subscriptions.listen, session, request.id, params)
                if tasks := task_ids(params):
                    listen = partial(self._extensions.listen, request.id, tasks, listen)
                session.start(request.id, listen)
                return
            case _:
                session.start(request.id, partial(self._subscribe, request))
                return
        session.send_cacheable(request.id, dumps(result))

    async def _subscribe(self, request: Request) -> None:
        session, subscriptions = self.session, self._dependencies.subscriptions
        uri = text_of(request.params if isinstance(request.params, dict) else {}, "uri", request.method)
        if request.method == "resources/subscribe":
            await subscriptions.subscribe(session, request.id, uri)
        else:
            await subscriptions.unsubscribe(session, uri)
        session.send_result(request.id, b"{}")

    # -- lists ---------------------------------------------------------------------------------------------------

    def _list(self, request: Request, kind: str) -> None:
        """Answer a list request for one of LIST_KINDS. Raises RpcError for a cursor: every list is one page.

        A list that contains only the one tool is sent immediately. Other lists may have to wait until servers' lists
        have been read for the first time, for this kind of client, or again after a change.
        """
        session, request_id = self.session, request.id
        if isinstance(request.params, dict) and request.params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "Invalid cursor: every list here is one page")
        if self._is_settled(kind):
            self._dependencies.probes.begin(session.seen.running_keys, session.kind)  # prepare the first search
        elif session.view.first_list_delay.may_grow or session.unread() or session.behind():
            session.start(request_id, partial(self._list_later, request_id, kind))
            return
        self._give_list(request_id, kind)

    def _is_settled(self, kind: str) -> bool:
        """Return True if the list contains only the one tool, whatever servers answer.

        It is then sent immediately, because some clients do not wait for lists and send the model's first request
        without our tools.
        """
        exposure = self.session.seen.exposure
        if kind != "tools" or self.session.shows_apps or exposure.mode != "search":
            return False
        return not any(server.direct_tools for server in exposure.servers.values())

    async def _list_later(self, request_id: RequestId, kind: str) -> None:
        try:
            with self.session.lists.awaiting(kind):
                await self.session.view.first_list_delay.settled()
                await self._read_kind()
                await self.session.catch_up()
        except anyio.get_cancelled_exc_class():
            self._dependencies.services.changes.changed()  # report changes that the answer would have contained
            raise
        self._give_list(request_id, kind)

    async def _read_kind(self) -> None:
        if self.session.unread():
            await self._dependencies.probes.read(self.session.seen.running_keys, self.session.kind)

    def _give_list(self, request_id: RequestId, kind: str) -> None:
        session = self.session
        listing = session.listing(kind)
        session.note_given(kind, listing)
        session.send_cacheable(request_id, listing, session.seen.results.hints[kind])
        self._dependencies.list_served()

    # -- calls ---------------------------------------------------------------------------------------------------

    def _route(self, request: Request) -> None:
        session, method, params = self.session, request.method, request.params
        if method == "tools/call":
            if is_one_tool(params):

                async def look() -> None:
                    await self._read_kind()
                    await session.catch_up()
                    self._one_tool.answer(request)

                if looks_for_tools(params) and (session.unread() or session.behind()):
                    session.start(request.id, look)
                else:
                    self._one_tool.answer(request)
                return
        elif method == "resources/read" and isinstance(params, dict) and params.get("uri") == INDEX_URI:
            session.send_answer(request.id, index_result(session.seen.exposure), method)
            return
        try:
            server, own_params = session.seen.target(request)
        except (ToolNotFoundError, RpcError) as error:
            may_have_it = isinstance(error, ToolNotFoundError) and session.seen.missing()
            if not may_have_it and not session.behind():
                raise
        else:
            own = request.with_params(own_params)
            connection = session.connection_now(server, topic_of(own))
            if connection is not None:
                if method == "tools/call":
                    finish = finish_of(session.seen.exposure, server)
                    if finish is None or not finish.tasks:  # a task's answer differs for each session
                        self._keep_route(params["name"], own, connection, finish)
                self.send_to(server, own, connection)
                return
        session.start(request.id, partial(self._route_later, request))

    def _route_unknown(self, request: Request) -> None:
        """Start a task that answers an extension's request, known or not. Raises RpcError if no server may get it."""
        session, params = self.session, request.params
        settled = request.method in OLDER or request.method in MODERN  # no server gets a method of the other era
        misspelled = _letters(request.method) in _GATED  # a lenient server would execute it without the user's consent
        if settled or misspelled or not isinstance(params, dict | None):
            raise unknown_method(request.method)
        session.start(request.id, partial(self._extensions.answer, request.with_params(params or {})))

    def send_to(self, server: str, request: Request, connection: Connection, fit: Finishing | None = None) -> None:
        """Send a request to a connected server. `fit`: adapts the answer of a call through the one tool, else None."""
        seen = self.session.seen.exposure
        finish, eyes = finish_of(seen, server), None
        if request.method == "tools/call" and finish is not None and finish.tasks:
            self._extensions.send(server, request, connection, finish, fit)
            return
        if request.method == "tools/call" and fit is not None:
            self._keep_route((server, request.params["name"]), request, connection, finish)
        if request.method == "resources/read" and seen.catalog.skill_files:
            eyes = self._extensions.eyes(server, request, connection)
        self.send_on(request, connection, chained(eyes, chained(finish, fit)), through_tool=fit is not None)

    def _keep_route(
        self, called: str | Key, request: Request, connection: Connection, finish: Finishing | None
    ) -> None:
        """Keep the route for later calls if the tool's calls may use this connection without further checks."""
        quiet = self._dependencies.servers.sharing.quiet_topic(self.session, connection, topic_of(request))
        if quiet is not None:
            self.session.seen.keep_route(called, connection, request.params["name"], finish, quiet)

    def send_again(self, called: str | Key, request: Request, fit: Finishing | None = None) -> bool:
        """Send a call over the route of an earlier call of its tool, as with most calls, and return True.

        Return False if there is no such route, or if the call may have to wait. `called`: the tool's exposed name, or
        (server, the tool's own name) for a call through the one tool. `fit`: adapts the answer of such a call.
        """
        session = self.session
        route = session.seen.route(called)
        if route is None or route.server in session.apart:
            return False
        connection, quiet, tool = route.connection, route.quiet, route.tool
        uncertain = quiet.answers < TRUSTED and bool(connection.open_calls)
        if uncertain and self._dependencies.servers.sharing.wait(session, connection, (request.method, tool)):
            return False
        if fit is None:
            request = Request(request.id, request.method, {**request.params, "name": tool})
        if session.client.modern or session.client.log_level is not None:
            request = self._with_log_level(request, connection)
        finish = route.finish if fit is None else chained(route.finish, fit)
        call = RoutedCall(session, request.id, request, connection, finish, through_tool=fit is not None)
        if uncertain:
            call.proof = quiet.note
        call.send(route.timeout_s, gated=route.gated)
        return True

    def send_on(
        self, request: Request, connection: Connection, finish: Finishing | None = None, *, through_tool: bool = False
    ) -> None:
        timeout_s = self.session.seen.timeout_s(connection)
        own = self._with_log_level(request, connection)
        call = RoutedCall(self.session, request.id, own, connection, finish, through_tool=through_tool)
        if connection.live is not None and not connection.live.peer.modern:
            call.proof = partial(self._dependencies.servers.sharing.note_answer, connection, request)
        call.send(timeout_s)

    def _with_log_level(self, request: Request, connection: Connection) -> Request:
        """Return the request for the server, with the client's log level added if the server is of the newer era.

        If the client sent its level in the request and the server is of the older era, set the server's level.
        """
        client, params = self.session.client, request.params
        if client.log_level is not None and connection.live is not None and connection.live.peer.modern:
            meta = params.get("_meta")
            meta = {**(meta if isinstance(meta, dict) else {}), LOG_LEVEL: client.log_level}
            return request.with_params({**params, "_meta": meta})
        if client.modern and LOG_LEVEL in params.get("_meta", ()):
            self._dependencies.notifications.set_level(connection, params["_meta"][LOG_LEVEL])
        return request

    async def _route_later(self, request: Request) -> None:
        session, params = self.session, request.params
        began, server = perf_counter(), ""
        try:
            if request.method == "tools/call" and isinstance(params, dict) and isinstance(params.get("name"), str):
                await self.find_tool(request.id, params["name"])
            server, params = await self._target(request)
            own = request.with_params(params)
            connection = await session.connected(request.id, server, topic_of(own))
            self.send_to(server, own, connection)
        except (MultiMcpError, RpcError) as error:
            if request.method == "tools/call":
                session.history.note(refused_call(began, session, server, params, error))
            raise

    async def find_tool(self, request_id: RequestId, asked: str, server: str | None = None) -> Key:
        """Return the key of a tool, as SessionView.find_tool does. First read lists that have changed. Raises
        MultiMcpError.

        A server that is started for this may send requests to the client.
        """
        session = self.session
        try:
            return session.seen.exposure.find(asked, server)
        except ToolNotFoundError:
            await session.catch_up()
        return await session.seen.find_tool(asked, server, partial(session.pending.waits_for, request_id))

    async def _target(self, request: Request) -> Target:
        """Return the server and params of a request. If the name is unknown, first read lists that have changed.

        Raises MultiMcpError, RpcError.
        """
        session = self.session
        try:
            return session.seen.target(request)
        except (MultiMcpError, RpcError):
            if not session.behind():
                raise
        await session.catch_up()
        return session.seen.target(request)

    # -- notifications -------------------------------------------------------------------------------------------

    def _on_notification(self, method: str, params: Params) -> None:
        session = self.session
        if method == CANCELLED:
            request_id = params.get("requestId") if params is not None else None
            if params is None or not is_request_id(request_id):
                return
            if call := session.open_calls.get(request_id):
                call.cancel(str(params.get("reason") or "cancelled by the client"))
            else:
                session.pending.cancel(request_id)
                session.questioner.drop(session, request_id)
        elif method == "notifications/initialized":
            session.client.ready = True
            session.tell_lists()
        elif not method.startswith(NOTIFICATIONS):
            log.debug("Dropped %.100s: a request without an id", method)  # a lenient server would execute the request
        elif method != "notifications/progress":  # the dispatcher itself passes progress on
            self._dependencies.notifications.tell_servers(session, method, params)
