"""Decide what sessions with the same options and kind of client see, and find the server for each of their requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

from trayapp.backends.connection import Connection
from trayapp.backends.context import Live
from trayapp.catalog.approval_store import definition_hash
from trayapp.catalog.lookup import server_of
from trayapp.catalog.names import Key
from trayapp.catalog.resources import SCHEME
from trayapp.catalog.suggest import nearest
from trayapp.gateway.asks import READS, Subject, ask_mode, asks_first, strictest
from trayapp.gateway.calls.routed_call import Finishing
from trayapp.gateway.client import text_of
from trayapp.gateway.exposure.exposure import Exposure, SessionOptions
from trayapp.gateway.exposure.list_results import ListResults
from trayapp.gateway.scopes.sharing import QuietTopic
from trayapp.gateway.scopes.view import NO_OPTIONS, View
from trayapp.model.errors import MultiMcpError, ServerError, ServerNotFoundError, ToolNotFoundError
from trayapp.wire.capabilities import ClientKind
from trayapp.wire.messages import INVALID_PARAMS, Request, RpcError
from trayapp.wire.revisions import RESOURCE_NOT_FOUND

ROUTED = frozenset({"tools/call", "prompts/get", "resources/read", "completion/complete"})
ROUTES_MOST = 1000  # limit on the routes, and on the subjects, that a session view keeps

Target = tuple[str, dict[str, Any]]  # server, params with that server's own names


class Route(NamedTuple):
    """The destination of one tool's calls. It is valid until the view gets a new catalog, because servers or settings
    have changed.
    """

    server: str  # the server's key
    connection: Connection
    live: Live  # the connection's state when the route was kept. A reconnect may change the era
    tool: str  # the server's own name for the tool
    timeout_s: float
    finish: Finishing | None
    gated: bool  # the user may have to allow its calls
    quiet: QuietTopic


class SessionView:
    """The part of a View that sessions with the same options and kind of client see.

    It has many methods because it finds the server for each kind of request.
    """

    def __init__(self, view: View, options: SessionOptions, kind: ClientKind | None = None) -> None:
        self.view = view
        self.options = options
        self.kind = kind  # None: any kind of client
        self.read_at = -1  # the view's revision when all servers' lists for this kind were last read
        self._exposure: Exposure | None = None
        self._lists: ListResults | None = None
        self._revision = -1  # the revision of the view that the routes and subjects belong to
        self._routes: dict[str | Key, Route] = {}
        self._subjects: dict[tuple[str, str, str, bool], Subject | None] = {}

    # -- exposure ------------------------------------------------------------------------------------------------

    @property
    def exposure(self) -> Exposure:
        """Return what sessions of this view see now."""
        if self._exposure is None or self._exposure.catalog is not self.view.catalog:
            self._exposure = self.view.exposure(self.options, self.kind)
        return self._exposure

    @property
    def results(self) -> ListResults:
        """Return the results of list requests from sessions of this view."""
        exposure = self.exposure
        if self._lists is None or self._lists.seen is not exposure:
            self._lists = self.view.list_results(exposure, newer=self.kind is not None and self.kind.newer)
        return self._lists

    def has(self, server: str) -> bool:
        """Return True if sessions of this view may use that server."""
        return server in self.exposure.servers

    @property
    def running_keys(self) -> list[str]:
        """Return the keys of the enabled servers that sessions of this view may use."""
        return [self.view.key(name) for name, entry in self.exposure.servers.items() if not entry.disabled]

    def missing(self) -> list[str]:
        """Return the enabled servers, visible to sessions of this view, whose tools have not been read."""
        return [name for name in self.view.missing() if self.has(name)]

    def being_asked(self) -> list[str]:
        """Return those of the `missing` servers that are being asked now."""
        return [name for name in self.view.being_asked() if self.has(name)]

    # -- servers -------------------------------------------------------------------------------------------------

    def named(self, asked: str) -> str:
        """Return the name of the server that `asked` means. Case is ignored, and hyphens equal underscores.

        Raises ServerNotFoundError if there is no such server, or more than one.
        """
        servers = self.exposure.servers
        if asked in servers:
            return asked
        alike = [name for name in servers if _fold_name(name) == _fold_name(asked)]
        if len(alike) == 1:
            return alike[0]
        raise ServerNotFoundError(asked, nearest(asked, servers) or list(servers))

    def connection(self, server: str) -> Connection:
        if not self.has(server):
            raise ServerNotFoundError(server, list(self.exposure.servers))
        return self.view.find(server)

    def timeout_s(self, connection: Connection) -> float:
        """Return the timeout of a client's request at that server, or 0 if the server may take any time.

        A project's setting applies to its sessions even if they use the user's process.
        """
        config = self.view.config
        shared = self.view.shared_key(connection.key)
        server = config.servers.get(self.view.name_of(shared) or "", connection.server)
        return config.settings.request_timeout if server.request_timeout is None else server.request_timeout

    # -- routes --------------------------------------------------------------------------------------------------

    def target(self, request: Request) -> Target:
        """Return a request's server, and its params with the server's own names. Raises MultiMcpError, RpcError."""
        method, params = request.method, request.params
        if not isinstance(params, dict):
            raise RpcError(INVALID_PARAMS, f"{method} needs params")
        if method == "completion/complete":
            return self._completion(params)
        member = "uri" if method == "resources/read" else "name"
        find = {"tools/call": self.exposure.find, "prompts/get": self._prompt, "resources/read": self.resource}[method]
        server, own = find(text_of(params, member, method))
        return server, {**params, member: own}

    def route(self, called: str | Key) -> Route | None:
        """Return the route of an earlier call, or None if there is none, or if its connection is new or was lost.

        `called`: the name that was called, or the tool of a call through the one tool.
        """
        route = self._routes.get(called) if self._revision == self.view.revision else None
        if route is None or route.connection.live is not route.live or route.live.transport.gone.is_set():
            return None
        return route if route.connection.used_since_connected else None

    def keep_route(
        self, called: str | Key, connection: Connection, tool: str, finish: Finishing | None, quiet: QuietTopic
    ) -> None:
        """Keep the route of a call, for later calls of `called` from all sessions of this view."""
        self._drop_outdated()
        if connection.live is not None:
            gated = self.subject(connection.key, "tools/call", tool, listed=isinstance(called, str)) is not None
            timeout_s = self.timeout_s(connection)
            server = self.view.shared_key(connection.key)
            self._routes[called] = Route(server, connection, connection.live, tool, timeout_s, finish, gated, quiet)

    def _drop_outdated(self) -> None:
        if self._revision != self.view.revision or max(len(self._routes), len(self._subjects)) >= ROUTES_MOST:
            self._revision, self._routes, self._subjects = self.view.revision, {}, {}

    # -- the user's consent --------------------------------------------------------------------------------------

    def subject(self, key: str, method: str, name: str, *, listed: bool) -> Subject | None:
        """Return the subject of the user's consent to a call or a read, or None if no consent is needed.

        `key`: the connection's key. `name`: the server's own name for the tool, or the URI. `listed`: see asks_first.
        """
        self._drop_outdated()
        asked = (key, method, name, listed)
        if asked not in self._subjects:
            self._subjects[asked] = self._find_subject(*asked)
        return self._subjects[asked]

    def _find_subject(self, key: str, method: str, name: str, listed: bool) -> Subject | None:
        """Return the subject, found in the server's definitions of the tool, both as approved and as listed now."""
        shared = self.view.shared_key(key)
        server = self.view.name_of(shared) or shared
        config = self.view.config
        mode = ask_mode(config.settings, config.servers.get(server), name)
        if method == "tools/call":
            items = self.view.definitions(server, name)
            known, callable_ = strictest(items), (server, name) in self.exposure.tools
            listed = listed and self.exposure.lists((server, name))
            item = items[-1] if items else {"name": name}
        else:
            known, callable_, item = READS, self.has(server), {"name": name}
        if not asks_first(mode, known.tool_class, listed=listed):
            return None
        return Subject(shared, server, name, known.tool_class, known.basis, definition_hash(item), mode, callable_)

    def resource(self, uri: str) -> Key:
        """Return (server, the server's own URI) for a client's URI. Raises MultiMcpError, RpcError."""
        catalog = self.exposure.catalog
        key = catalog.uris.find(uri, self.exposure.choice.has)
        if key is not None:
            if key in catalog.skill_files and key not in catalog.served_skill_files:
                why = "The skill of that file is held back until the user approves it"
                raise RpcError(INVALID_PARAMS, why, {"uri": uri})
            return key
        if not uri.startswith(SCHEME):
            # No list and no template has the URI. If only one server has resources, the URI must be that server's.
            holders = [name for name, capabilities in self.exposure.capabilities.items() if "resources" in capabilities]
            if len(holders) == 1:
                return holders[0], uri
        raise RpcError(RESOURCE_NOT_FOUND, "No server has that resource", {"uri": uri})

    def _prompt(self, asked: str) -> Key:
        key = self.exposure.find_prompt(asked)
        if key is None:
            raise RpcError(INVALID_PARAMS, self.exposure.no_prompt(asked))
        return key

    def _completion(self, params: dict[str, Any]) -> Target:
        ref = params.get("ref")
        if not isinstance(ref, dict):
            raise RpcError(INVALID_PARAMS, "completion/complete needs ref")
        if ref.get("type") == "ref/prompt":
            server, name = self._prompt(text_of(ref, "name", "ref/prompt"))
            return server, {**params, "ref": {**ref, "name": name}}
        uri = text_of(ref, "uri", "ref/resource")
        server, original = self.exposure.find_template(uri) or self.resource(uri)
        return server, {**params, "ref": {**ref, "uri": original}}

    # -- servers that have not been read yet ---------------------------------------------------------------------

    async def find_tool(
        self, asked: str, server: str | None = None, starts: Callable[[str], None] = lambda name: None
    ) -> Key:
        """Return the key of a tool, as Exposure.find does. If it is unknown, read the lists of `missing` servers.

        `starts` is called with each server before its lists are read. The server then stays connected for the call.
        Raises MultiMcpError.
        """
        unfound: MultiMcpError | None = None
        likely = self.missing()
        if server is None:
            likely = server_of(asked, likely, self.view.config.settings.tool_prefix)
        for name in (None, *(name for name in likely if server in (None, name))):
            try:
                if name is not None:
                    starts(name)
                    await self.meet(name)
                return self.exposure.find(asked, server)
            except (ToolNotFoundError, ServerError) as error:
                unfound = unfound if isinstance(unfound, ServerError) else error
        assert unfound is not None
        raise unfound

    async def meet(self, server: str) -> None:
        """Read a server's lists if they are still unread. Concurrent callers share one reading. Raises ServerError."""
        connection = self.view.get(server) if server in self.missing() else None
        if connection is not None:
            await connection.fetch(soon=True)


def _fold_name(name: str) -> str:
    return name.replace("-", "_").casefold()


class SessionViews:
    """The session views of one gateway, one for each view, set of options and kind of client."""

    def __init__(self) -> None:
        self._views: WeakKeyDictionary[View, WeakValueDictionary[tuple[SessionOptions, ClientKind | None], SessionView]]
        self._views = WeakKeyDictionary()

    def of(self, view: View, options: SessionOptions = NO_OPTIONS, kind: ClientKind | None = None) -> SessionView:
        """Return the session view for these options and clients of that kind (None: any kind). Create it if needed."""
        of_view = self._views.setdefault(view, WeakValueDictionary())
        found = of_view.get((options, kind))
        if found is None:
            found = of_view[options, kind] = SessionView(view, options, kind)
        return found
