"""Hold the state of one client session over the shim or HTTP: its client, view, lists and requests."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import anyio
import anyio.abc

from trayapp.backends.connection import Connection
from trayapp.gateway.asks import Asks, Subject
from trayapp.gateway.calls.errors import to_client
from trayapp.gateway.calls.notifications import Notifications
from trayapp.gateway.calls.routed_call import RoutedCall
from trayapp.gateway.calls.server_requests import ServerRequests
from trayapp.gateway.client import ClientInfo, ClientPeer
from trayapp.gateway.exposure.exposure import session_options
from trayapp.gateway.exposure.list_results import ListHints
from trayapp.gateway.extensions.results import TaskHandles
from trayapp.gateway.extensions.streams import Streams
from trayapp.gateway.mcp_tool.tool_dependencies import ToolDependencies
from trayapp.gateway.scopes.servers import Servers
from trayapp.gateway.scopes.session_view import ROUTED, SessionView, SessionViews
from trayapp.gateway.scopes.sharing import Topic, topic_of
from trayapp.gateway.scopes.variant_probes import VariantProbes
from trayapp.gateway.scopes.view import View
from trayapp.gateway.services import Services
from trayapp.gateway.sessions.handshake import SERVER_INFO
from trayapp.gateway.sessions.subscriptions import Subscriptions
from trayapp.model.errors import MultiMcpError
from trayapp.wire.capabilities import APPS, NO_KIND, declares, kind_of, with_user
from trayapp.wire.frames import INTERNAL
from trayapp.wire.messages import Params, Reply, Request, RequestId, RpcError
from trayapp.wire.revisions import as_modern, error_as_modern, with_cache_members, with_members

log = logging.getLogger(__name__)

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "templates",
}
LIST_KINDS = (*LISTS.values(), "events")  # kinds whose changes are reported
# Templates have no list_changed of their own.
NOTIFIED_AS = {kind: kind for kind in LIST_KINDS} | {"templates": "resources"}

NO_HINTS = ListHints()
_NUMBERS = itertools.count(1)  # numbers that distinguish the sessions of one gateway in the history


class SessionDependencies(NamedTuple):
    """The dependencies that all sessions of one gateway share. `list_served` is called after each sent list."""

    services: Services
    servers: Servers
    views: SessionViews
    server_requests: ServerRequests
    notifications: Notifications
    subscriptions: Subscriptions
    streams: Streams
    tool: ToolDependencies
    asks: Asks
    probes: VariantProbes
    list_served: Callable[[], None]


class Session:
    """A client session. It has many methods because calls, the one tool and the snapshot each use some of them.

    `options`: cwd, expose, servers and profile, from the shim's first line or the URL's query. `lasting`: False for a
    single request of 2026-07-28 over HTTP.
    """

    def __init__(
        self,
        dependencies: SessionDependencies,
        peer: ClientPeer,
        options: dict[str, Any],
        transport: str,
        *,
        lasting: bool = True,
    ) -> None:
        self._dependencies = dependencies
        self._keys = dependencies.servers.own
        self.peer = peer
        self.client = ClientInfo()
        self.kind = NO_KIND
        self._is_read = False  # True once the servers' lists for `kind` have been read
        self._recognized: dict[str, Any] = {}  # the capabilities that determined `kind`
        self.apart: set[str] = set()  # keys of servers to which the session has its own connection
        self.options = session_options(options)
        self.view: View
        self.seen: SessionView  # shared by all sessions of its view with the same options and kind
        self.follow(dependencies.servers.view)  # the default until the project is known
        self.cwd = options.get("cwd")
        self.transport = transport
        self.lasting: bool = lasting
        self.open_calls: dict[RequestId, RoutedCall] = {}
        self.called_servers: set[str] = set()
        self.pending = PendingRequests(self.refuse)
        self.start = self.pending.start
        self.lists = ClientLists()
        self.task_handles = TaskHandles()
        self.history = dependencies.services.history
        self.questioner = dependencies.server_requests
        self.asks = dependencies.asks
        self.number = next(_NUMBERS)

    def follow(self, view: View) -> None:
        self.view, self.seen = view, self._dependencies.views.of(view, self.options, self.kind)

    def recognize(self) -> None:
        """Switch to the view for the client's kind if the client's era or capabilities became known or have changed."""
        client = self.client
        if client.capabilities != self._recognized or client.modern != self.kind.newer:
            self._recognized = client.capabilities
            kind = kind_of(client.capabilities, newer=client.modern)
            if kind != self.kind:
                self.kind, self._is_read = kind, False
                self.follow(self.view)

    @property
    def capabilities(self) -> dict[str, Any]:
        # A client of 2026-07-28 gets a newer server's questions unchanged, so the user cannot answer in its place.
        alone = self.client.modern or not self.asks.someone_is_there
        return self.client.capabilities if alone else with_user(self.client.capabilities)

    @property
    def project(self) -> str | None:
        return str(self.view.folder) if self.view.folder else self.cwd if isinstance(self.cwd, str) else None

    def subject_of(self, connection: Connection, request: Request, *, listed: bool) -> Subject | None:
        name = request.params["name" if request.method == "tools/call" else "uri"]
        return self.seen.subject(connection.key, request.method, name, listed=listed)

    def end(self) -> None:
        """Cancel the calls of a client that has disconnected, and end its subscriptions.

        If the session was a single request, its parked calls stay, because the client may still send the answers.
        """
        for call in list(self.open_calls.values()):
            call.cancel("the client disconnected")
        self._dependencies.subscriptions.drop(self)
        if self.lasting:
            self.questioner.drop(self)

    # -- ClientSession -------------------------------------------------------------------------------------------

    def notify(self, method: str, params: Params = None, about: RequestId | None = None) -> None:
        if self.client.ready:
            self.peer.send_notification(method, params, about)

    def awaited_servers(self) -> set[str]:
        return {self.server_key(name) for name in self.pending.servers}

    # -- servers -------------------------------------------------------------------------------------------------

    def has_server(self, key: str) -> bool:
        """Return True if the session sees the server of a connection, and the connection may serve this session."""
        name = self._name_of(key)
        return name is not None and self.seen.has(name) and self._keys.serves(key, self)

    def _name_of(self, key: str) -> str | None:
        return self.view.name_of(self._keys.shared_key(key))

    def uses_another(self, connection: Connection) -> bool:
        key = self._keys.key(self, self._keys.shared_key(connection.key))
        now = self._dependencies.services.pool.get(key)
        return now is not None and now is not connection and now.is_up

    def is_switched_off(self, key: str, request: Request) -> bool:
        name = self._name_of(key) if request.method == "tools/call" else None
        return name is not None and self.seen.exposure.is_off(name, request.params["name"])

    def may_repeat(self, key: str, request: Request) -> bool:
        if request.method != "tools/call":
            return request.method in ROUTED
        name = self._name_of(key)
        tools = self.view.definitions(name, request.params["name"]) if name is not None else []
        hints = [tool.get("annotations") for tool in tools]
        return bool(hints) and all(
            isinstance(hint, dict) and (hint.get("readOnlyHint") is True or hint.get("idempotentHint") is True)
            for hint in hints
        )

    async def connected_again(self, request_id: RequestId, request: Request, connection: Connection) -> Connection:
        server = self._name_of(connection.key) or connection.name
        return await self.connected(request_id, server, topic_of(request))

    def server_key(self, name: str) -> str:
        return self._keys.key(self, self.view.key(name))

    def connection(self, server: str) -> Connection:
        """Return the connection for requests to a server, connected or not. Raises ServerNotFoundError."""
        first = self.seen.connection(server)
        return self._dependencies.servers.connection_for(self, first) or first

    def connection_now(self, server: str, topic: Topic) -> Connection | None:
        """Return the connection for a request, or None if the request has to wait. Raises ServerNotFoundError."""
        servers = self._dependencies.servers
        found = servers.connection_for(self, self.seen.connection(server), topic)
        if found is None or not found.is_up or servers.sharing.wait(self, found, topic):
            return None
        self._dependencies.subscriptions.follow(self, found)
        return found

    def present(self, server: str) -> Connection:
        """Return the connection that a call would use, without connecting it. Raises ServerNotFoundError."""
        shared = self.seen.connection(server)
        return self._dependencies.services.pool.get(self._keys.key(self, shared.key)) or shared

    async def connected(self, request_id: RequestId, server: str, topic: Topic | None = None) -> Connection:
        """Connect the server of a request on that topic, and return the connection. Raises ServerError.

        The caller must send the request before it awaits anything else.
        """
        self.pending.waits_for(request_id, server)
        found = await self._dependencies.servers.connected(self, self.seen.connection(server), topic)
        self._dependencies.subscriptions.follow(self, found)
        return found

    # -- answers -------------------------------------------------------------------------------------------------

    def send_result(self, request_id: RequestId, result: bytes) -> None:
        """Send a result of the gateway itself: JSON that already has the form of the client's revision."""
        self.peer.respond(request_id, Reply.of_result_json(result))

    def send_cacheable(self, request_id: RequestId, result: bytes, hints: ListHints = NO_HINTS) -> None:
        """Send a nonempty JSON result of the gateway itself, which a client of 2026-07-28 may cache.

        `hints`: the result's `_meta`, and how long it may be cached.
        """
        if self.client.modern:
            result = with_cache_members(result, SERVER_INFO, hints.ttl_ms, hints.meta)
        elif hints.meta:
            result = with_members(result, {"_meta": hints.meta})
        self.send_result(request_id, result)

    def send_answer(self, request_id: RequestId, result: dict[str, Any], method: str) -> None:
        """Send a result of the gateway itself for a method that servers answer, too."""
        reply = Reply.of_result(result)
        self.peer.respond(request_id, as_modern(reply, method) if self.client.modern else reply)

    def refuse(self, request_id: RequestId, error: MultiMcpError | RpcError) -> None:
        rpc = to_client(error) if isinstance(error, MultiMcpError) else error
        reply = Reply.of_error(rpc)
        self.peer.respond(request_id, error_as_modern(reply) if self.client.modern else reply)

    # -- lists ---------------------------------------------------------------------------------------------------

    def unread(self) -> list[str]:
        """Return the keys of the connections on which servers' lists must still be read for this kind of client."""
        seen = self.seen
        if seen.read_at == seen.view.revision:
            return []
        unread = self._dependencies.probes.unread(seen.running_keys, self.kind)
        if not unread:
            seen.read_at = seen.view.revision
        return unread

    def behind(self) -> list[Connection]:
        """Return the session's connections whose lists have changed and were not read again, or may be changing now."""
        pool, called = self._dependencies.services.pool, self.called_servers
        noticed = (one for one in pool if one.notice_left_s > 0 and (not self.lasting or one.key in called))
        behind = dict.fromkeys([*(one for one in pool if one.is_behind), *noticed])
        return [one for one in behind if self.has_server(one.key)]

    async def catch_up(self) -> None:
        """Wait until the lists of `behind` have been read. A client may request a list right after a call."""
        async with anyio.create_task_group() as tasks:
            for connection in self.behind():
                tasks.start_soon(connection.catch_up)

    def listings(self) -> dict[str, bytes]:
        """Return all current lists as JSON, by kind (LIST_KINDS)."""
        return {kind: self.listing(kind) for kind in LIST_KINDS}

    def listing(self, kind: str) -> bytes:
        return self.seen.results.result(kind, apps=kind == "tools" and self.shows_apps)

    @property
    def shows_apps(self) -> bool:
        """Return True if the client shows tools' user interfaces (MCP Apps)."""
        return declares(self.client.capabilities, APPS)

    def begin_lists(self) -> None:
        """Report changes of the client's lists from now on."""
        self.lists.begin(self.listings())
        self._is_read = self._is_read or not self.unread()

    def tell_lists(self) -> None:
        """Send list_changed for each list that differs from the client's. Do nothing until the client is ready."""
        if not self.client.ready:
            return
        listings = self.listings()
        if not self._is_read:
            self.lists.begin_again(listings)
            self._is_read = not self.unread()
        for kind in self.lists.changed(listings):
            self._tell_changed(kind)

    def repeat_list(self, kind: str) -> None:
        """Send list_changed for that list even if it is the same, unless a change is about to be reported anyway.

        Send nothing for the list of tools if it contains the one tool, because no server's change affects that.
        """
        of_servers = kind != "tools" or self.seen.exposure.mode == "tools"
        if of_servers and self.lists.is_current(kind, self.listing(kind)):
            self._tell_changed(kind)

    def note_given(self, kind: str, listing: bytes) -> None:
        """Record that the client receives that list.

        If the client had another list and was not notified of the change, also send list_changed: it may need to
        request related lists, too.
        """
        if self.lists.given(kind, listing) and self.client.ready:
            self._tell_changed(NOTIFIED_AS[kind])

    def _tell_changed(self, kind: str) -> None:
        if self.client.modern:
            self._dependencies.subscriptions.tell_list_changed(self, kind)
        else:
            self.notify(f"notifications/{kind}/list_changed")


def tell_lists(sessions: Mapping[Session, None]) -> None:
    """Send list_changed to each session whose lists have changed."""
    for session in list(sessions):
        session.tell_lists()


class ClientLists:
    """The lists that one client has received, as JSON, by kind (LIST_KINDS), to find changes to report."""

    def __init__(self) -> None:
        self._had: dict[str, bytes] = {}  # kind -> the list that the client last received or was notified of
        self._given: set[str] = set()  # kinds that the client requested
        self._awaited: Counter[str] = Counter()  # kinds whose requests are not answered yet

    def given(self, kind: str, listing: bytes) -> bool:
        """Record that the client receives that list. Return True if it had another list and was not notified of the
        change.
        """
        changed = kind in self._given and self._had.get(kind) != listing
        self._given.add(kind)
        self._had[kind] = listing
        return changed

    @contextmanager
    def awaiting(self, kind: str) -> Iterator[None]:
        """Suppress list_changed for this kind inside the block, because a pending answer will contain the change."""
        self._awaited[kind] += 1
        try:
            yield
        finally:
            self._awaited[kind] -= 1

    def begin(self, listings: Mapping[str, bytes]) -> None:
        """Compare later lists with these. Kinds that already have a list for comparison keep it."""
        self._had = {**listings, **self._had}

    def begin_again(self, listings: Mapping[str, bytes]) -> None:
        """Compare later lists with these, except for the kinds that the client has requested."""
        self._had |= {kind: listing for kind, listing in listings.items() if kind not in self._given}

    def is_current(self, kind: str, listing: bytes) -> bool:
        """Return True if the client has that list, or was notified of its change."""
        return self._had.get(kind) == listing

    def changed(self, listings: Mapping[str, bytes]) -> list[str]:
        """Return the kinds of list_changed to send because of these lists, and record the lists. Ignore kinds of list
        whose answers are pending.
        """
        listings = {kind: listing for kind, listing in listings.items() if not self._awaited[kind]}
        changed = [NOTIFIED_AS[kind] for kind, listing in listings.items() if self._had.get(kind, listing) != listing]
        self._had.update(listings)
        return list(dict.fromkeys(changed))


class PendingRequests:
    """The pending requests of one session, which often wait for a server to start. Each runs in a cancellable task."""

    def __init__(self, refuse: Callable[[RequestId, MultiMcpError | RpcError], None]) -> None:
        self.tasks: anyio.abc.TaskGroup | None = None
        self._refuse = refuse
        self.scopes: dict[RequestId, anyio.CancelScope] = {}  # request id -> scope of its task
        self._servers: dict[RequestId, str] = {}

    @property
    def servers(self) -> set[str]:
        return set(self._servers.values())

    def waits_for(self, request_id: RequestId, server: str) -> None:
        self._servers[request_id] = server

    def start(self, request_id: RequestId, work: Callable[[], Awaitable[None]]) -> None:
        """Start the task of a request. As its last step, a task may start another one, which takes over the request."""
        assert self.tasks is not None
        self.scopes[request_id] = scope = anyio.CancelScope()
        self.tasks.start_soon(self._carry_out, request_id, scope, work)

    def cancel(self, request_id: RequestId) -> None:
        """Cancel a request if it is pending. A cancelled request gets no answer."""
        if scope := self.scopes.get(request_id):
            scope.cancel()

    async def _carry_out(
        self, request_id: RequestId, scope: anyio.CancelScope, work: Callable[[], Awaitable[None]]
    ) -> None:
        """Run one request. Exception boundary: its failure becomes its answer. A cancelled request gets no answer."""
        error: MultiMcpError | RpcError | None = None
        try:
            with scope:
                await work()
        except (MultiMcpError, RpcError) as failure:
            error = failure
        except Exception:
            log.exception("Unexpected error in a request")
            error = INTERNAL
        finally:
            if self.scopes[request_id] is scope:
                del self.scopes[request_id]
                self._servers.pop(request_id, None)
        if error is not None:
            self._refuse(request_id, error)
