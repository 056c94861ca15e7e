"""Answer what a model asks about tools: the status, a server's tools, a search, a tool in full."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from trayapp.backends.connection import Connection
from trayapp.catalog.search.index import LIMIT, Hit
from trayapp.gateway.client import ClientInfo
from trayapp.gateway.exposure.exposure import Exposure
from trayapp.gateway.mcp_tool import texts
from trayapp.gateway.mcp_tool.request import ToolRequest
from trayapp.gateway.mcp_tool.texts import Availability, availability
from trayapp.gateway.mcp_tool.tool_dependencies import ToolDependencies
from trayapp.gateway.scopes.session_view import SessionView
from trayapp.gateway.scopes.sharing import Topic
from trayapp.history.recorder import Recorder
from trayapp.model.errors import MultiMcpError, ServerDisabledError, ServerNotFoundError
from trayapp.wire.messages import RequestId

SEARCH_MOST = 50  # hits
WARMED_HITS = 2  # servers to connect after a search: those of the best hits


class ToolSession(Protocol):
    """A client session, as seen by the one tool."""

    client: ClientInfo
    history: Recorder
    lasting: bool  # False: the session is a single request
    seen: SessionView

    def connection(self, server: str) -> Connection:
        """Return the connection that the session's requests to a server use. Raises ServerNotFoundError."""

    def present(self, server: str) -> Connection:
        """Return the connection that a call would use, without starting one. Raises ServerNotFoundError."""

    def connection_now(self, server: str, topic: Topic) -> Connection | None:
        """Return the connection for a request that can be sent at once; None if it has to wait."""

    async def connected(self, request_id: RequestId, server: str, topic: Topic | None = None) -> Connection:
        """Connect the server of a request if needed, and return the connection for the request. Raises ServerError."""

    def behind(self) -> list[Connection]:
        """Return the connections whose lists have changed, or may be changing, and have not been read again."""

    def start(self, request_id: RequestId, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` as a task that ends when the client cancels that request."""

    def send_answer(self, request_id: RequestId, result: dict[str, Any], method: str) -> None:
        """Send one of the gateway's own results."""


class Discovery:
    """Tool discovery for one session. Connects servers whose tools the model reads about (warm_up)."""

    def __init__(self, session: ToolSession, dependencies: ToolDependencies) -> None:
        self._session = session
        self._dependencies = dependencies

    @property
    def _view(self) -> SessionView:
        return self._session.seen

    @property
    def _seen(self) -> Exposure:
        return self._session.seen.exposure

    def status(self) -> str:
        """Return the status of all servers."""
        return texts.status_text(self._seen, self.availability)

    def tools_of(self, asked: ToolRequest) -> str:
        """Return a page of a server's tools and resources. Raises ServerError."""
        server = self.about(asked.text)
        return texts.list_text(self._seen, server, self.availability(server), asked.offset, asked.limit)

    def search_at_once(self, asked: ToolRequest) -> str | None:
        """Search, and return the answer; None if the search would hold up other work. Raises MultiMcpError."""
        finder = self._view.view.finder
        if not finder.answers_at_once(self._seen, regex=asked.regex):
            return None
        return self._write_hits(asked, finder.search(self._seen, **self._search_arguments(asked)))

    async def search(self, asked: ToolRequest) -> str:
        """Search with pauses for other work, and return the answer. Raises MultiMcpError."""
        return self._write_hits(
            asked, await self._view.view.finder.find(lambda: self._seen, **self._search_arguments(asked))
        )

    def _search_arguments(self, asked: ToolRequest) -> dict[str, Any]:
        """Return the arguments of the search. Raises ServerError."""
        server = self.about(asked.server) if asked.server is not None else None
        limit = min(max(1, asked.limit or LIMIT), SEARCH_MOST)
        return {"words": asked.text, "server": server, "limit": limit, "regex": asked.regex}

    def _write_hits(self, asked: ToolRequest, hits: list[Hit]) -> str:
        """Return the answer to a search, and connect the servers of its best hits."""
        for name in list(dict.fromkeys(hit.server for hit in hits))[:WARMED_HITS]:
            self._warm(name)
        server = self.about(asked.server) if asked.server is not None else None
        asking = [name for name in self._view.being_asked() if server in (None, name)]
        return texts.search_text(
            self._seen,
            hits,
            asked.text,
            self.availability,
            schemas=asked.schemas,
            brief=asked.limit is None and bool(asked.text.strip()),
            server=server,
            asking=asking,
            kept_back=self._view.view.finder.kept_back(self._seen, asked.text, hits, server=server, regex=asked.regex),
        )

    def describe(self, asked: ToolRequest) -> str:
        """Return the full description of a tool, and connect its server in the background. Raises MultiMcpError."""
        server = self.server(asked.server) if asked.server is not None else None
        key = self._seen.find_callable(asked.text, server)
        self._warm(key[0])
        one = self.availability(key[0])
        return texts.describe_text(self._seen, key, one.line if one.why else "")

    def _warm(self, server: str) -> None:
        find = self._session.connection if self._session.lasting else self._session.present
        self._dependencies.warm_up.warm(find(server))

    def availability(self, server: str) -> Availability:
        """Return a server's availability, without starting it."""
        connection = self._session.present(server)
        now, settings = self._dependencies.services.clock.now(), self._view.view.config.settings
        return availability(server, connection, now, settings, self._view.view.offer(server))

    def about(self, asked: str) -> str:
        """Return the server that a request is about. Raises ServerError. If there is no such server, the error's code
        is `not_found`, not `server_not_found` as in a call, which is about a tool.
        """
        try:
            return self.server(asked)
        except ServerNotFoundError as error:
            error.code = "not_found"
            raise

    def server(self, asked: str) -> str:
        """Return the name of the server that a model means: case does not matter, and hyphens equal underscores.

        Raises ServerError if there is no such server, or if it is disabled.
        """
        name = self._view.named(asked)
        if self._seen.servers[name].disabled:
            raise ServerDisabledError(name)
        return name

    def must_be_met(self, asked: ToolRequest) -> bool:
        """Return True if the answer needs the lists of a server that has not been asked yet. Raises ServerError."""
        unknown = self._view.missing()
        if not unknown:
            return False
        if asked.mode == "describe":
            try:
                self._seen.find_callable(asked.text)
            except MultiMcpError:
                return True
        server = asked.text if asked.mode == "server" else asked.server
        return asked.mode in ("server", "search") and server is not None and self.about(server) in unknown
