"""From a client's request to the backend that answers it: find it by exposed name, start it if need be, pass it on.

Never here: what sessions list, how a connection is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from trayapp.backends.connection import Connection
from trayapp.catalog.lookup import server_of
from trayapp.catalog.resources import SCHEME
from trayapp.gateway.eras import RESOURCE_NOT_FOUND
from trayapp.gateway.expose import Exposure
from trayapp.model.errors import MultiMcpError, ServerError, ToolNotFoundError
from trayapp.wire.messages import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from trayapp.gateway.window import Window

ROUTED = frozenset({"tools/call", "prompts/get", "resources/read", "completion/complete"})


WAYS_MOST = 1000  # names of tools whose ways are kept

Target = tuple[str, dict[str, Any]]  # server, params under that server's own names


class Way(NamedTuple):
    """Where calls of one tool go while its exposure lasts, which every change of servers and settings ends."""

    connection: Connection
    tool: str  # the server's own name of it
    timeout_s: float


class Router:
    """Routes by the exposure and the servers that `window` has now."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._ways: dict[str, Way] = {}
        self._ways_of: Exposure | None = None

    @property
    def _exposure(self) -> Exposure:
        return self._window.exposure

    def target(self, method: str, params: Any) -> Target:
        """Which server a request is for. Raises MultiMcpError, RpcError."""
        if not isinstance(params, dict):
            raise RpcError(INVALID_PARAMS, f"{method} needs params")
        if method == "tools/call":
            server, name = self._exposure.find(text_of(params, "name", method))
            return server, {**params, "name": name}
        if method == "prompts/get":
            server, name = self._prompt(text_of(params, "name", method))
            return server, {**params, "name": name}
        if method == "resources/read":
            server, uri = self.resource(text_of(params, "uri", method))
            return server, {**params, "uri": uri}
        return self._completion(params)

    def way(self, params: Any) -> Way | None:
        """The way of a tool that was called before and whose server is up; None of all others."""
        name = params.get("name") if isinstance(params, dict) else None
        if type(name) is not str or self._ways_of is not self._window.exposure:
            return None
        way = self._ways.get(name)
        if way is None:
            return None
        live = way.connection.live
        return way if live is not None and not live.transport.gone.is_set() else None

    def keep_way(self, name: str, connection: Connection, tool: str) -> None:
        """A call of `name` goes to that tool, whichever session calls it."""
        exposure = self._window.exposure
        if self._ways_of is not exposure or len(self._ways) >= WAYS_MOST:
            self._ways_of, self._ways = exposure, {}
        self._ways[name] = Way(connection, tool, self.timeout_s(connection))

    def target_of_unknown(self, params: Any) -> str | None:
        """Which server a request of a method that we do not know is for; None when that cannot be told.

        The only one there is; else the one whose tool or resource the params name.
        """
        enabled = [name for name, server in self._window.config.servers.items() if not server.disabled]
        if len(enabled) == 1:
            return enabled[0]
        known = params if isinstance(params, dict) else {}
        try:
            if isinstance(known.get("uri"), str):
                return self.resource(known["uri"])[0]
            if isinstance(known.get("name"), str):
                return self._exposure.find(known["name"])[0]
        except (MultiMcpError, RpcError):
            return None
        return None

    def connection(self, server: str) -> Connection:
        """The connection of a server; raises ServerNotFoundError."""
        return self._window.find(server)

    async def connected(self, server: str) -> Connection:
        """The connection of a server, up. Raises ServerError."""
        connection = self.connection(server)
        await self.up(connection)
        return connection

    async def up(self, connection: Connection) -> None:
        """Wait until a call can be sent, starting the server if need be. Raises ServerError."""
        while not is_up(connection):
            if connection.live is not None:
                await connection.dropped.wait()
            await connection.ensure()

    def timeout_s(self, connection: Connection) -> float:
        """How long a request of a client may take at that server; 0 = as long as the client waits.

        A project's word counts for its own sessions, also where the process is the user's.
        """
        config = self._window.config
        server = config.servers.get(self._window.view.name_of(connection.name) or "", connection.server)
        return config.settings.request_timeout if server.request_timeout is None else server.request_timeout

    async def find_tool(
        self, asked: str, server: str | None = None, starts: Callable[[str], None] = lambda name: None
    ) -> tuple[str, str]:
        """As Exposure.find, asking servers that are not known yet and that may have the tool, likeliest first.

        `starts` hears of each before. One that was asked stays connected: the call comes next. Raises MultiMcpError.
        """
        unfound: MultiMcpError | None = None
        for name in (None, *self._may_have(asked, server)):
            try:
                if name is not None:
                    starts(name)
                    await self.meet(name)
                return self._exposure.find(asked, server)
            except ToolNotFoundError as error:
                unfound = unfound if isinstance(unfound, ServerError) else error
            except ServerError as error:
                unfound = unfound if isinstance(unfound, ServerError) else error
        assert unfound is not None
        raise unfound

    def _may_have(self, asked: str, server: str | None) -> list[str]:
        unknown = self._window.missing()
        if server is not None:
            return [server] if server in unknown else []
        return server_of(asked, unknown, self._window.config.settings.tool_prefix)

    async def meet(self, server: str) -> None:
        """Read the lists of a server that is not known, once however many calls want that. Raises ServerError."""
        connection = self._window.get(server)
        if connection is not None and server in self._window.missing():
            await connection.fetch(soon=True)

    def _prompt(self, asked: str) -> tuple[str, str]:
        key = self._exposure.find_prompt(asked)
        if key is None:
            raise RpcError(INVALID_PARAMS, self._exposure.no_prompt(asked))
        return key

    def resource(self, uri: str) -> tuple[str, str]:
        """The (server, original URI) of a URI that a client names. Raises MultiMcpError, RpcError."""
        key = self._exposure.find_resource(uri)
        if key is not None:
            return key
        if not uri.startswith(SCHEME):
            # A URI that no list and no template names: with one server that has resources, it can only be that one's.
            holders = self._exposure.resource_servers
            if len(holders) == 1:
                return holders[0], uri
        raise RpcError(RESOURCE_NOT_FOUND, "No server has that resource", {"uri": uri})

    def _completion(self, params: dict[str, Any]) -> Target:
        ref = params.get("ref")
        if not isinstance(ref, dict):
            raise RpcError(INVALID_PARAMS, "completion/complete needs ref")
        if ref.get("type") == "ref/prompt":
            server, name = self._prompt(text_of(ref, "name", "ref/prompt"))
            return server, {**params, "ref": {**ref, "name": name}}
        uri = text_of(ref, "uri", "ref/resource")
        server, original = self._exposure.find_template(uri) or self.resource(uri)
        return server, {**params, "ref": {**ref, "uri": original}}


def is_up(connection: Connection) -> bool:
    """Whether a call can be sent now. A server that died is still `live` until its own task has taken note."""
    return connection.live is not None and not connection.live.transport.gone.is_set()


def text_of(params: dict[str, Any], member: str, where: str) -> str:
    """`params[member]`, which must be text. Raises RpcError."""
    value = params.get(member)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"{where} needs {member}")
    return value
