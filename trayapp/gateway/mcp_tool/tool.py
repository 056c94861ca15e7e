"""Carry out each mode of the one tool, `mcp`, for one session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import Any, Protocol

from trayapp.backends.connection import Connection
from trayapp.catalog.names import Key
from trayapp.catalog.search.index import LIMIT, Hit
from trayapp.gateway.calls.errors import explained, model_hint
from trayapp.gateway.calls.routed_call import Finishing
from trayapp.gateway.exposure.exposure import Exposure, UnknownOptionsError
from trayapp.gateway.extensions.streams import ExtensionSession
from trayapp.gateway.mcp_tool import texts
from trayapp.gateway.mcp_tool.request import ToolRequest, prepared_call, read_request
from trayapp.gateway.mcp_tool.results import error_result, fit_reply, text_result
from trayapp.gateway.mcp_tool.texts import Availability, availability
from trayapp.gateway.mcp_tool.tool_dependencies import CutResults, ToolDependencies
from trayapp.gateway.scopes.sharing import Topic
from trayapp.history.ended_call import refused_call
from trayapp.model.errors import MultiMcpError, ServerDisabledError, ServerNotFoundError, ToolNotFoundError
from trayapp.model.redact import redacted
from trayapp.wire.messages import Request, RequestId, RpcError

SEARCH_MOST = 50  # hits in one answer
WARMED_HITS = 2  # number of servers that are connected after a search, those with the best hits
LISTS_S = 2.0  # how long a call waits at most while the lists of a server that has just started are read again


class ToolSession(ExtensionSession, Protocol):
    """The part of a client session that the one tool uses."""

    def connection(self, server: str) -> Connection:
        """Return the connection that the session's requests to a server use. Raises ServerNotFoundError."""

    def connection_now(self, server: str, topic: Topic) -> Connection | None:
        """Return the connection for a request that can be sent immediately, or None if the request has to wait."""

    def behind(self) -> list[Connection]:
        """Return the connections whose lists have changed, or may be changing, and have not been read again."""

    def send_answer(self, request_id: RequestId, result: dict[str, Any], method: str) -> None:
        """Send a result of the gateway itself. `method`: the method of the request that it answers."""


class RequestSender(Protocol):
    """The sender of one session's requests to servers."""

    @property
    def session(self) -> ToolSession:
        """Return the session that the requests belong to."""

    def send_to(self, server: str, request: Request, connection: Connection, fit: Finishing | None = None) -> None:
        """Send a request to a connected server of the session. `fit` adapts the answer to the client."""

    def send_again(self, key: Key, request: Request, fit: Finishing) -> bool:
        """Send a call over its tool's known route, and return True. Return False if there is no known route, or if the
        call may have to wait.
        """

    async def find_tool(self, request_id: RequestId, asked: str, server: str | None = None) -> Key:
        """Return the key of a call's tool. If needed, first read lists that have never been read. Raises MultiMcpError.

        `server`: the only server to search, or None for all.
        """


class ToolGoneError(ToolNotFoundError):
    """Raised when a server no longer lists the tool of a call, for example after a reconnect."""

    code = "tool_not_found_after_reconnect"

    def __init__(self, name: str, server: str, now: list[str]) -> None:
        super().__init__(name)
        self.title = f"{server} no longer has {name}"
        self.hint = self.model_hint = f"It now has: {', '.join(now)}" if now else "It now has no tools"


class McpTool:
    """The tool `mcp` of one session."""

    def __init__(self, sending: RequestSender, dependencies: ToolDependencies) -> None:
        self._sending = sending
        self._session = sending.session
        self._dependencies = dependencies
        self._discovery = Discovery(sending.session, dependencies)
        self._results = CutResults(dependencies.result_files) if self._session.lasting else dependencies.cut_results

    @property
    def _seen(self) -> Exposure:
        return self._session.seen.exposure

    def answer(self, request: Request) -> None:
        """Answer a call immediately, or start a task if the answer has to wait. Errors become results with isError."""
        try:
            if wrong := self._seen.choice.wrong:
                raise UnknownOptionsError(wrong)
            asked = read_request(request.params.get("arguments"))
            if asked.mode == "tool":
                self._call(request, asked)
            elif asked.mode == "connect":
                self._start(request.id, partial(self._connect, asked))
            elif self._discovery.must_be_met(asked):
                self._start(request.id, partial(self._meet, asked))
            elif (text := self._text(asked)) is not None:
                self._respond(request.id, text_result(text))
            else:
                self._start(request.id, partial(self._discovery.search, asked))
        except MultiMcpError as error:
            arguments = request.params.get("arguments")
            if isinstance(arguments, dict) and arguments.get("tool"):  # the other modes are not calls
                called = {"name": arguments["tool"], "arguments": arguments.get("args")}
                owner = str(arguments.get("server") or "")
                self._session.history.note(refused_call(perf_counter(), self._session, owner, called, error))
            self._refuse(request.id, error)

    def _text(self, asked: ToolRequest) -> str | None:
        """Return the answer to a request, or None for a search that would delay other work. Raises MultiMcpError."""
        match asked.mode:
            case "search":
                return self._discovery.search_at_once(asked)
            case "server":
                return self._discovery.tools_of(asked)
            case "describe":
                return self._discovery.describe(asked)
            case "result":
                limit = self._session.seen.view.config.settings.result_limit
                return self._results.get(asked.text, asked.offset, limit)
            case _:
                return self._discovery.status()

    def close(self) -> None:
        """Forget the cut results of the session, which has ended. Those that single requests share are kept."""
        if self._session.lasting:
            self._results.drop()

    async def _meet(self, asked: ToolRequest) -> str:
        """Return the answer to a request that needs unread lists, after reading them.

        Read those of the named server or, for `describe`, of one server after another until one has the tool.
        """
        if asked.mode == "describe":
            await self._session.seen.find_tool(asked.text, asked.server)
        else:
            await self._session.seen.meet(self._discovery.server(asked.server or asked.text))
        return self._text(asked) or await self._discovery.search(asked)

    async def _connect(self, asked: ToolRequest) -> str:
        """Connect a server, read its lists, and return the first page of its tools.

        Reconnect a connected server unless calls on it are in progress.
        """
        server, services = self._discovery.about(asked.text), self._dependencies.services
        connection = self._session.connection(server)
        if connection.live is None or not connection.in_flight:
            await services.pool.reconnect(connection)
        if services.shared_key(connection.key) == connection.key:  # further connections use the lists of the first one
            await connection.fetch(explicit=True)
        return texts.list_text(self._seen, server, self._discovery.availability(server))

    # -- calls ---------------------------------------------------------------------------------------------------

    def _call(self, request: Request, asked: ToolRequest) -> None:
        server = self._discovery.server(asked.server) if asked.server is not None else None
        try:
            key = self._seen.find_callable(asked.text, server)
        except ToolNotFoundError:
            if not self._session.seen.missing() and not self._session.behind():
                raise
        else:
            own, fit = self._prepare_call(request, asked, key)  # checks the arguments before any server is started
            if self._sending.send_again(key, own, fit):
                return
            connection = self._session.connection_now(key[0], self._topic(key))
            if connection is not None:
                self._sending.send_to(key[0], own, connection, fit)
                return
        self._start(request.id, partial(self._call_later, request, asked, server))

    async def _call_later(self, request: Request, asked: ToolRequest, server: str | None) -> None:
        """Find a call's tool, start the tool's server if needed, and send the call. Raises MultiMcpError, RpcError."""
        began, key = perf_counter(), None
        try:
            try:
                if self._seen.find_read(asked.text, server) is None:
                    key = await self._sending.find_tool(request.id, asked.text, server)
            except ToolNotFoundError:
                pass  # it may be a resource that has meanwhile been listed
            key = key or self._seen.find_callable(asked.text, server)
            connection = await self._session.connected(request.id, key[0], self._topic(key))
            await connection.lists_settled(LISTS_S)
            if (gone := self._find_gone(key, asked.text)) is not None:
                raise gone
            # By now, the session may have switched to another connection.
            connection = await self._session.connected(request.id, key[0], self._topic(key))
            own, fit = self._prepare_call(request, asked, key)
            self._sending.send_to(key[0], own, connection, fit)
        except (MultiMcpError, RpcError) as error:
            called = {"name": key[1] if key is not None else asked.text, "arguments": asked.args}
            owner = key[0] if key is not None else server or ""
            self._session.history.note(refused_call(began, self._session, owner, called, error))
            raise

    def _prepare_call(self, request: Request, asked: ToolRequest, key: Key) -> tuple[Request, Finishing]:
        """Return the request for the server, and the finish that adapts the server's answer to the client."""
        beside = {name: value for name, value in request.params.items() if name not in ("name", "arguments")}
        method, params = prepared_call(self._seen, key, asked.args, beside)
        limit, gone = self._session.seen.view.config.settings.result_limit, partial(self._find_gone, key, asked.text)
        reads = method == "resources/read"
        fit = partial(fit_reply, self._session.client.protocol, limit, self._results, gone, reads=reads)
        return Request(request.id, method, params), fit

    def _topic(self, key: Key) -> Topic:
        """Return the topic of a call: the method that the server gets, and its own name for the tool or resource."""
        return ("resources/read" if key in self._seen.reads else "tools/call"), key[1]

    def _find_gone(self, key: Key, asked: str) -> MultiMcpError | None:
        """Return an error if the server no longer lists the tool, otherwise None."""
        listed = self._seen.entries.get(key[0], {})
        return None if key in listed else ToolGoneError(asked, key[0], [self._seen.name_of(one) for one in listed])

    # -- answers -------------------------------------------------------------------------------------------------

    def _start(self, request_id: RequestId, work: Callable[[], Awaitable[str | None]]) -> None:
        async def answered() -> None:
            try:
                if (text := await work()) is not None:
                    self._respond(request_id, text_result(text))
            except MultiMcpError as error:
                self._refuse(request_id, error)

        self._session.start(request_id, answered)

    def _refuse(self, request_id: RequestId, error: MultiMcpError) -> None:
        told = explained(error, self._session.seen.view.config.problems)
        self._respond(request_id, error_result(error, redacted(texts.error_text(told, model_hint(told)))))

    def _respond(self, request_id: RequestId, result: dict[str, Any]) -> None:
        self._session.send_answer(request_id, result, "tools/call")


class Discovery:
    """Answers to a model's requests for the status, a server's tools, a search, or the description of a tool.

    The last two also connect servers in the background (`warm_up`).
    """

    def __init__(self, session: ToolSession, dependencies: ToolDependencies) -> None:
        self._session = session
        self._dependencies = dependencies

    @property
    def _seen(self) -> Exposure:
        return self._session.seen.exposure

    def status(self) -> str:
        return texts.status_text(self._seen, self.availability)

    def tools_of(self, asked: ToolRequest) -> str:
        """Return a page of a server's tools and resources. Raises ServerError."""
        server = self.about(asked.text)
        return texts.list_text(self._seen, server, self.availability(server), asked.offset, asked.limit)

    def search_at_once(self, asked: ToolRequest) -> str | None:
        """Return the answer to a search, or None if the search would delay other work. Raises MultiMcpError."""
        finder = self._session.seen.view.finder
        if asked.regex or not finder.is_current(self._seen):  # a pattern is tried on every tool
            return None
        return self._write_hits(asked, finder.search(self._seen, **self._search_arguments(asked)))

    async def search(self, asked: ToolRequest) -> str:
        """Search with pauses for other work, and return the answer. Raises MultiMcpError."""
        find, arguments = self._session.seen.view.finder.find, self._search_arguments(asked)
        return self._write_hits(asked, await find(lambda: self._seen, regex=asked.regex, **arguments))

    def _search_arguments(self, asked: ToolRequest) -> dict[str, Any]:
        server = self.about(asked.server) if asked.server is not None else None
        return {"words": asked.text, "server": server, "limit": min(max(1, asked.limit or LIMIT), SEARCH_MOST)}

    def _write_hits(self, asked: ToolRequest, hits: list[Hit]) -> str:
        """Return the answer to a search, and connect the servers of its best hits in the background."""
        for name in list(dict.fromkeys(hit.server for hit in hits))[:WARMED_HITS]:
            self._warm(name)
        server = self.about(asked.server) if asked.server is not None else None
        asking = [name for name in self._session.seen.being_asked() if server in (None, name)]
        finder = self._session.seen.view.finder
        return texts.search_text(
            self._seen,
            hits,
            asked.text,
            self.availability,
            schemas=asked.schemas,
            brief=asked.limit is None and bool(asked.text.strip()),
            server=server,
            asking=asking,
            kept_back=finder.kept_back(self._seen, asked.text, hits, server=server, regex=asked.regex),
        )

    def describe(self, asked: ToolRequest) -> str:
        """Return the full description of a tool, and connect its server in the background. Raises MultiMcpError."""
        server = self.server(asked.server) if asked.server is not None else None
        key = self._seen.find_callable(asked.text, server)
        self._warm(key[0])
        return texts.describe_text(self._seen, key, self.availability(key[0]).away)

    def _warm(self, server: str) -> None:
        find = self._session.connection if self._session.lasting else self._session.present
        self._dependencies.warm_up.warm(find(server))

    def availability(self, server: str) -> Availability:
        """Return a server's availability, without starting it."""
        connection = self._session.present(server)
        now, settings = self._dependencies.services.clock.now(), self._session.seen.view.config.settings
        return availability(server, connection, now, settings, self._session.seen.view.offer(server))

    def about(self, asked: str) -> str:
        """Return the name of the server that a request is about, as `server` does. Raises ServerError.

        The error for an unknown server has the code `not_found` instead of `server_not_found`.
        """
        try:
            return self.server(asked)
        except ServerNotFoundError as error:
            error.code = "not_found"
            raise

    def server(self, asked: str) -> str:
        """Return the name of the server that a model means. Case is ignored, and hyphens equal underscores.

        Raises ServerError if there is no such server, or if it is disabled.
        """
        name = self._session.seen.named(asked)
        if self._seen.servers[name].disabled:
            raise ServerDisabledError(name)
        return name

    def must_be_met(self, asked: ToolRequest) -> bool:
        """Return True if the answer needs the lists of a server that have never been read. Raises ServerError."""
        unknown = self._session.seen.missing()
        if not unknown:
            return False
        if asked.mode == "describe":
            try:
                self._seen.find_callable(asked.text)
            except MultiMcpError:
                return True
        server = asked.text if asked.mode == "server" else asked.server
        return asked.mode in ("server", "search") and server is not None and self.about(server) in unknown
