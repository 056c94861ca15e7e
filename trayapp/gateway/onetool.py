"""The one tool, `mcp`, for one session: each mode carried out, from its request to its answer.

Never here: reading the fields (request), the words of answers (texts), what becomes of a call's result (finish).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from trayapp.backends.connection import Connection
from trayapp.catalog.names import Key
from trayapp.catalog.search.index import LIMIT, Hit
from trayapp.gateway import texts
from trayapp.gateway.callee import prepared_call
from trayapp.gateway.errors import explained, model_hint, shown
from trayapp.gateway.expose import Exposure
from trayapp.gateway.finish import Finish, error_result, text_result
from trayapp.gateway.options import UnknownOptionsError
from trayapp.gateway.paging import CutResults
from trayapp.gateway.request import Request, read_request
from trayapp.gateway.router import is_up
from trayapp.gateway.standing import Standing, standing
from trayapp.model.errors import MultiMcpError, ServerDisabledError, ServerNotFoundError, ToolNotFoundError
from trayapp.wire.messages import RequestId

if TYPE_CHECKING:
    from trayapp.gateway.core import Gateway
    from trayapp.gateway.finder import Finder
    from trayapp.gateway.frontend import Session
    from trayapp.gateway.window import Window

SEARCH_MOST = 50  # hits
WARMED_HITS = 2  # servers that one search connects: those of the best hits
LISTS_S = 2.0  # what a call waits at most for the lists of its server, which was just started and has old ones

Start = Callable[[RequestId, Callable[[], Any]], None]


class ToolGoneError(ToolNotFoundError):
    """The tool was known, and its server, once connected, has it no more."""

    code = "tool_not_found_after_reconnect"

    def __init__(self, name: str, server: str, now: list[str]) -> None:
        super().__init__(name)
        self.title = f"{server} no longer has {name}"
        self.hint = self.model_hint = f"It has now: {', '.join(now)}" if now else "It has no tools now"


class OneTool:
    """Of one session. `start` begins work that waits, under the id of the request that it answers."""

    def __init__(self, session: Session, gateway: Gateway, start: Start) -> None:
        self._session = session
        self._gateway = gateway
        self._start = start
        self._results = CutResults(gateway.copies) if session.lasting else gateway.cut_results

    @property
    def _window(self) -> Window:
        return self._session.window

    @property
    def _seen(self) -> Exposure:
        return self._session.window.exposure

    def answer(self, request_id: RequestId, params: dict[str, Any]) -> None:
        """Answer at once what needs no waiting. Whatever is wrong is a result with isError, for a model to read."""
        try:
            if self._window.wrong:
                raise UnknownOptionsError(self._window.wrong)
            request = read_request(params.get("arguments"))
            self._take(request_id, params, request)
        except MultiMcpError as error:
            self._refuse(request_id, error)

    def _take(self, request_id: RequestId, params: dict[str, Any], request: Request) -> None:
        if request.mode == "tool":
            self._call(request_id, params, request)
        elif request.mode == "connect":
            self._later(request_id, partial(self._connect, request_id, request))
        elif self._must_be_met(request):
            self._later(request_id, partial(self._meet, request_id, request))
        elif request.mode == "search":
            self._find_tools(request_id, request)
        else:
            self._say(request_id, self._text(request))

    def _text(self, request: Request) -> str:
        match request.mode:
            case "server":
                return self._list(request)
            case "describe":
                return self._describe(request)
            case "result":
                limit = self._window.config.settings.result_limit
                return self._results.get(request.text, request.offset, limit)
            case _:
                return texts.status_text(self._seen, self._standing)

    def close(self) -> None:
        """The session has ended: nobody can ask for the rest of its results."""
        if self._session.lasting:
            self._results.drop()

    # -- reading about tools -------------------------------------------------------------------------------------

    def _list(self, request: Request) -> str:
        server = self._about(request.text)
        return texts.list_text(self._seen, server, self._standing(server), request.offset, request.limit)

    def _find_tools(self, request_id: RequestId, request: Request) -> None:
        """Search at once where that takes a moment, in a task where it would hold up others."""
        if self._finder.answers_at_once(self._seen, regex=request.regex):
            self._say(request_id, self._found(request, self._finder.search(self._seen, **self._asked(request))))
        else:
            self._later(request_id, partial(self._search, request_id, request))

    async def _search(self, request_id: RequestId, request: Request) -> None:
        hits = await self._finder.find(lambda: self._seen, **self._asked(request))
        self._say(request_id, self._found(request, hits))

    @property
    def _finder(self) -> Finder:
        return self._window.view.finder

    def _asked(self, request: Request) -> dict[str, Any]:
        """What a search is asked. Raises ServerError."""
        server = self._about(request.server) if request.server is not None else None
        limit = min(max(1, request.limit or LIMIT), SEARCH_MOST)
        return {"words": request.text, "server": server, "limit": limit, "regex": request.regex}

    def _found(self, request: Request, hits: list[Hit]) -> str:
        """The answer to a search. The servers of the best hits are warmed up."""
        for name in list(dict.fromkeys(hit.server for hit in hits))[:WARMED_HITS]:
            self._warm(name)
        server = self._about(request.server) if request.server is not None else None
        asking = [name for name in self._window.being_asked() if server in (None, name)]
        return texts.search_text(
            self._seen,
            hits,
            request.text,
            self._standing,
            schemas=request.schemas,
            brief=request.limit is None and bool(request.text.strip()),
            server=server,
            asking=asking,
        )

    def _describe(self, request: Request) -> str:
        server = self._server(request.server) if request.server is not None else None
        key = self._seen.find_callable(request.text, server)
        self._warm(key[0])
        one = self._standing(key[0])
        return texts.describe_text(self._seen, key, one.line if one.why else "")

    def _warm(self, server: str) -> None:
        self._gateway.warm_up.warm(self._session.connection(server))

    def _standing(self, server: str) -> Standing:
        connection = self._present(server)
        now, settings = self._gateway.clock.now(), self._window.config.settings
        return standing(server, connection, now, settings, self._window.offer(server))

    def _present(self, server: str) -> Connection:
        """The connection that a call would go to, if there is one: looking starts none of the session's own."""
        shared = self._window.find(server)
        return self._gateway.pool.get(self._gateway.own.key(self._session, shared.name)) or shared

    def _about(self, asked: str) -> str:
        """The server that is asked about. Raises ServerError; of one that is not there `not_found`: a call says
        `server_not_found`, since it is about a tool."""
        try:
            return self._server(asked)
        except ServerNotFoundError as error:
            error.code = "not_found"
            raise

    def _server(self, asked: str) -> str:
        """A server by its name, or by one that differs in hyphens or case alone. Raises ServerError."""
        name = self._window.named(asked)
        if self._seen.servers[name].disabled:
            raise ServerDisabledError(name)
        return name

    # -- servers of which nothing is known yet -------------------------------------------------------------------

    def _must_be_met(self, request: Request) -> bool:
        unknown = self._window.missing()
        if not unknown:
            return False
        if request.mode == "describe":
            try:
                self._seen.find_callable(request.text)
            except MultiMcpError:
                return True
        asked = request.text if request.mode == "server" else request.server
        return request.mode in ("server", "search") and asked is not None and self._about(asked) in unknown

    async def _meet(self, request_id: RequestId, request: Request) -> None:
        """Ask the server first, then answer."""
        if request.mode == "describe":
            await self._window.router.find_tool(request.text, request.server)
        else:
            await self._window.router.meet(self._server(request.server or request.text))
        if request.mode == "search":
            await self._search(request_id, request)
        else:
            self._say(request_id, self._text(request))

    async def _connect(self, request_id: RequestId, request: Request) -> None:
        """Connect, or connect anew; calls of others that are under way there are not torn down for it."""
        server = self._about(request.text)
        connection = self._session.connection(server)
        if connection.live is None or not connection.in_flight:
            await self._gateway.pool.reconnect(connection)
        if not self._gateway.own.is_own(connection.name):  # whose lists are those of the shared one
            await connection.fetch(explicit=True)
        self._say(request_id, texts.list_text(self._seen, server, self._standing(server)))

    # -- calling -------------------------------------------------------------------------------------------------

    def _call(self, request_id: RequestId, params: dict[str, Any], request: Request) -> None:
        if request.server is not None:
            request_server: str | None = self._server(request.server)
        else:
            request_server = None
        try:
            key = self._seen.find_callable(request.text, request_server)
        except ToolNotFoundError:
            if not self._window.missing():
                raise
        else:
            connection = self._session.connection(key[0])
            if is_up(connection) and not self._gateway.clientele.outgrew(connection):
                self._send(request_id, connection, params, request, key)
                return
            self._prepared(params, request, key)  # nothing is started for a call that cannot be made
        self._later(request_id, partial(self._call_later, request_id, params, request, request_server))

    async def _call_later(
        self, request_id: RequestId, params: dict[str, Any], request: Request, server: str | None
    ) -> None:
        """A call whose server must be started, or even be found, first."""
        key = await self._find(request_id, request.text, server)
        connection = await self._session.connected(request_id, key[0])
        await connection.lists_settled(LISTS_S)
        gone = self._gone(self._window, key, request.text)
        if gone is not None:
            raise gone
        self._send(request_id, connection, params, request, key)

    async def _find(self, request_id: RequestId, asked: str, server: str | None) -> Key:
        read = self._seen.find_read(asked, server)
        if read is not None:
            return self._seen.find_callable(asked, server)
        return await self._session.find_tool(request_id, asked, server)

    def _send(
        self, request_id: RequestId, connection: Connection, params: dict[str, Any], request: Request, key: Key
    ) -> None:
        method, own = self._prepared(params, request, key)
        limit = self._window.config.settings.result_limit
        gone = partial(self._gone, self._window, key, request.text)
        reads = method == "resources/read"
        finish = Finish(self._session.protocol, limit, self._results, gone, reads=reads)
        self._session.send_on(request_id, connection, method, own, finish)

    def _prepared(self, params: dict[str, Any], request: Request, key: Key) -> tuple[str, dict[str, Any]]:
        """The request as its server gets it: what the client said beside name and arguments goes with it."""
        beside = {name: value for name, value in params.items() if name not in ("name", "arguments")}
        return prepared_call(self._seen, key, request.args, beside)

    @staticmethod
    def _gone(window: Window, key: Key, asked: str) -> MultiMcpError | None:
        """Asked when a server refused a call: whether it has, since it was connected, no such tool."""
        seen = window.exposure
        if key in seen.entries.get(key[0], {}):
            return None
        return ToolGoneError(asked, key[0], [seen.name_of(one) for one in seen.entries.get(key[0], {})])

    # -- answering -----------------------------------------------------------------------------------------------

    def _later(self, request_id: RequestId, work: Callable[[], Any]) -> None:
        async def answered() -> None:
            try:
                await work()
            except MultiMcpError as error:
                self._refuse(request_id, error)

        self._start(request_id, answered)

    def _say(self, request_id: RequestId, text: str) -> None:
        self._respond(request_id, text_result(text))

    def _refuse(self, request_id: RequestId, error: MultiMcpError) -> None:
        self._respond(
            request_id,
            error_result(error, shown(_error_text(explained(error, self._window.config.problems)))),
        )

    def _respond(self, request_id: RequestId, result: dict[str, Any]) -> None:
        self._session.send_answer(request_id, result, "tools/call")


def _error_text(error: MultiMcpError) -> str:
    return texts.error_text(error, model_hint(error))
