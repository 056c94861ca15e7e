"""Hold the gateway's state, and observe its backends (backends.connection.Observer)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread

from trayapp.auth.accounts import Accounts
from trayapp.backends.clock import Clock
from trayapp.backends.confinements import Confinements
from trayapp.backends.connection import Connection
from trayapp.backends.context import BackendContext, Open
from trayapp.backends.launch import Keyring
from trayapp.backends.pool import Pool
from trayapp.backends.subscription import UPDATED
from trayapp.backends.wake.watch import await_route
from trayapp.catalog.given_names import GivenNames
from trayapp.catalog.tool_class import classify
from trayapp.config.paths import PACKAGES
from trayapp.gateway.asks import Asks
from trayapp.gateway.calls.client_capabilities import ClientCapabilities
from trayapp.gateway.calls.notifications import Notifications
from trayapp.gateway.calls.server_requests import ServerRequests
from trayapp.gateway.client import ClientPeer
from trayapp.gateway.exposure.approvals import Approvals
from trayapp.gateway.exposure.listings import Listings, ListingWriter, WriteSwitches
from trayapp.gateway.exposure.search import prepare
from trayapp.gateway.exposure.served_tools import ServedTools
from trayapp.gateway.extensions.streams import Streams
from trayapp.gateway.mcp_tool.tool_dependencies import RESULTS, CutResults, ResultFiles, ToolDependencies, WarmUp
from trayapp.gateway.scopes.connection_keys import ConnectionKeys
from trayapp.gateway.scopes.list_intake import ListIntake
from trayapp.gateway.scopes.projects import Look, Projects
from trayapp.gateway.scopes.servers import Servers
from trayapp.gateway.scopes.session_view import SessionViews
from trayapp.gateway.scopes.sharing import Sharing
from trayapp.gateway.scopes.sign_ins import SignIns
from trayapp.gateway.scopes.variant_probes import VariantProbes
from trayapp.gateway.services import ChangeFeed, Services
from trayapp.gateway.sessions.requests import ClientRequests
from trayapp.gateway.sessions.session import Session, SessionDependencies, tell_lists
from trayapp.gateway.sessions.subscriptions import Subscriptions
from trayapp.gateway.tasks import FencedTasks, fenced, kept_up
from trayapp.history.ended_call import Caller
from trayapp.history.recorder import Recorder
from trayapp.model.config import Config, ToolSwitch
from trayapp.model.errors import ConnectionLostError, Problem
from trayapp.model.lifecycle import State
from trayapp.model.offer import Offer
from trayapp.wire.messages import Call, Params

if TYPE_CHECKING:
    from trayapp.model.status import GatewayState
    from trayapp.packages.locks import Locks
    from trayapp.panel.host import PanelAccess


# Background work begins after the first list, or after this time if no client requests one. The time is short because
# a file that is saved meanwhile must be applied within a second.
CALM_AT_LATEST_S = 0.5
CALLS_TOLD_S = 5.0


class Stderr(Protocol):
    """A function that returns the sink for a process's stderr.

    `further`: the process is that of a further connection to the server, not of its first one.
    """

    def __call__(self, server: str, *, further: bool) -> Callable[[bytes], None]: ...


@dataclass(frozen=True, slots=True)
class GatewayDependencies:
    """The external dependencies of the gateway. Tests pass real ones or fakes."""

    clock: Clock
    environ: dict[str, str]
    keyring: Keyring
    open: Open
    stderr: Stderr
    cache_dir: Path
    approved_dir: Path
    state_dir: Path
    write_switches: WriteSwitches
    look: Look
    accounts: Accounts
    lock_file: Path | None = None  # None: packages are not locked
    calm: anyio.Event = field(default_factory=anyio.Event)  # set by the first list, or the first start of a server


class Gateway:
    """The state of the gateway, and the observer of its backends (backends.connection.Observer).

    Runs on the event loop. It has many methods because it builds all parts and implements the observer's four methods.
    """

    def __init__(self, dependencies: GatewayDependencies, tasks: anyio.abc.TaskGroup) -> None:
        self.state: GatewayState = "starting"
        self.http_url: str | None = None
        self.http_problem: Problem | None = None  # set while another program uses the configured port
        self.sessions: dict[Session, None] = {}  # in the order in which they began
        self.stop_wanted = anyio.Event()
        self.started = dependencies.clock.now()
        self._dependencies = dependencies
        self._tasks = tasks
        self._file_problems: tuple[Problem, ...] = ()
        self._expired_asked = False
        own = ConnectionKeys()
        self.services = services = self._make_services(own)
        self.projects = Projects(
            dependencies.look, lambda: self.config, lambda: self.servers.take_projects(), dependencies.clock
        )
        self.sharing = Sharing(services, own, self._capabilities)
        self.servers = Servers(services, own, self.sharing, self.projects, self.sessions)
        self.probes = VariantProbes(services, self.servers, self.once_calm)
        self.sign_ins = SignIns(services, dependencies.accounts, dependencies.environ)
        self.intake = ListIntake(services, self.servers, self.sign_ins)
        self.asks = Asks(services)
        files = ResultFiles(dependencies.cache_dir / RESULTS)
        self.session_dependencies = SessionDependencies(
            services,
            self.servers,
            SessionViews(),
            ServerRequests(services, own.purpose, self.asks),
            Notifications(services),
            Subscriptions(services),
            Streams(self.sessions),
            ToolDependencies(services, files, CutResults(files), WarmUp(self._spawn)),
            self.asks,
            self.probes,
            self._list_served,
        )
        services.approvals.unread = partial(self._spawn, self.once_calm, self.intake.read_words)
        services.approvals.pins.unsaved = services.writer.wake
        services.changes.listen(partial(tell_lists, self.sessions))
        services.changes.listen(self._note_names)
        dependencies.accounts.signed_in = partial(self._spawn, self.sign_ins.reconnect)

    def _make_services(self, own: ConnectionKeys) -> Services:
        """Build the services. Connections call the lambdas only after the gateway is complete."""
        dependencies = self._dependencies
        writer = ListingWriter(dependencies.cache_dir, self._write_switches, self._save_more)
        listings = Listings(dependencies.cache_dir, writer, dependencies.clock.time)
        capabilities = ClientCapabilities(self.sessions, listings, own.purpose, lambda: self.asks.someone_is_there)
        self._capabilities = capabilities
        place = dependencies.approved_dir
        approvals = Approvals(place, lambda: self.config.settings, lambda server: self.intake.tools_elsewhere(server))
        changes = ChangeFeed(dependencies.clock)
        confinements = Confinements(changes.changed)
        history = Recorder(dependencies.state_dir, lambda: self.config.settings.history, CallFacts(listings.get))
        history.changed = changes.changed
        context = BackendContext(
            clock=dependencies.clock,
            settings=lambda: self.config.settings,
            environ=dependencies.environ,
            keyring=dependencies.keyring,
            open=dependencies.open,
            stderr=lambda key: dependencies.stderr(own.shared_key(key), further=own.is_own(key)),
            hint=capabilities.revision_to_try,
            wants_offer=lambda key: (
                listings.worth_asking(own.shared_key(key)) or listings.lacks_variant(own.shared_key(key), own.kind(key))
            ),
            capabilities=capabilities.of_clients,
            subscribed=lambda name: self.session_dependencies.subscriptions.wanted(name),
            input_schema=lambda key, tool: self.intake.input_schema(key, tool),
            route=partial(await_route, dependencies.clock),
            inspect_offer=lambda key, offer: self.intake.inspect_offer(key, offer),
            sign_in=lambda launch: self.sign_ins.read(launch),
            confinements=confinements,
            locks=lambda: self._locks,
        )
        return Services(
            clock=dependencies.clock,
            state=lambda: self.state,
            settings=lambda: self.config.settings,
            pool=Pool(context, self, cast(anyio.abc.TaskGroup, FencedTasks(self._tasks))),  # the pool only starts tasks
            listings=listings,
            writer=writer,
            approvals=approvals,
            served_tools=ServedTools(approvals.judge, listings.sound),
            given_names=GivenNames(place),
            changes=changes,
            confinements=confinements,
            history=history,
            sessions=self.sessions,
            shared_key=own.shared_key,
            spawn=self._spawn,
        )

    @cached_property
    def _locks(self) -> Locks | None:
        if self._dependencies.lock_file is None:
            return None  # packages are not locked
        from trayapp.packages.lock_file import LockFile  # loaded on the first use
        from trayapp.packages.locks import Locks

        place = self._dependencies.state_dir / PACKAGES
        return Locks(LockFile(self._dependencies.lock_file), place, configured=lambda: self.config.servers)

    @cached_property
    def panel_access(self) -> PanelAccess:
        from trayapp.panel.host import PanelAccess  # loaded on its first use

        return PanelAccess(self.services.history.path.with_name("panel-cookies"))

    async def _tell_calls(self) -> None:
        """Broadcast the count of calls, at most once every CALLS_TOLD_S, because no watcher needs to see every call."""
        news = anyio.Event()
        end = self.services.history.listen(lambda: news.set())
        try:
            while True:
                await news.wait()
                await self._dependencies.clock.sleep(CALLS_TOLD_S)
                news = anyio.Event()
                self.services.changes.changed()
        finally:
            end()

    def _spawn(self, work: Callable[..., Awaitable[Any]], *args: Any) -> None:
        self._tasks.start_soon(fenced, work, *args)

    # -- configuration -------------------------------------------------------------------------------------------

    @property
    def config(self) -> Config:
        """Return the user's own configuration."""
        return self.servers.user

    def take_config(self, config: Config) -> None:
        """Apply the user's configuration. Unchanged servers keep their processes and calls."""
        old, new = self.config.settings, config.settings
        self._file_problems = config.problems
        if (old.approve_changes, old.suspicious) != (new.approve_changes, new.suspicious):
            self.services.served_tools.forget()
        self.servers.take(config)
        self._spawn(self.projects.refresh)
        self._spawn(self._prepare)

    async def _prepare(self) -> None:
        """Prepare the definitions of tools before a client requests them, with pauses for other work."""
        view = self.servers.view
        known = view.catalog
        for _ in prepare(view.exposure(), view.finder):
            await anyio.lowlevel.checkpoint()
            if view.catalog is not known:
                return  # the few new tools are prepared when a client requests them

    def _write_switches(self, found: dict[str, dict[str, ToolSwitch]]) -> None:
        """Write the tools of the user's own servers to servers.yaml. Blocks. Raises MultiMcpError."""
        users = {name: switches for name, switches in found.items() if name in self.config.servers}
        if users:
            self._dependencies.write_switches(users)

    def _note_names(self) -> None:
        """Store the names of tools. Skip this during discovery: names must not depend on which server answers first."""
        if not self.services.pool.discovering and self.servers.note_names():
            self.services.writer.wake()

    def _save_more(self) -> None:
        self.services.approvals.pins.save()
        self.services.given_names.save()

    def take_problem(self, problem: Problem) -> None:
        """Report the problem of an unusable file. The last good configuration stays in effect."""
        self._file_problems = (*self.config.problems, problem)
        self.services.changes.changed()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return all current problems: of the user's files, tool names, approvals, HTTP and the history."""
        return (
            *self._file_problems,
            *self.projects.problems,
            *self.servers.view.catalog.problems,
            *self.services.approvals.pins.problems,
            *((self.http_problem,) if self.http_problem is not None else ()),
            *((self.services.history.problem,) if self.services.history.problem is not None else ()),
        )

    # -- start ---------------------------------------------------------------------------------------------------

    def start_serving(self) -> None:
        """Start the gateway's background tasks, and read the lists of servers that have none in the cache."""
        self.state, services = "running", self.services
        for work in (services.changes.broadcast, services.writer.keep_writing, self.projects.follow, self._tell_calls):
            self._tasks.start_soon(kept_up, work, services.clock.sleep)
        self.servers.view.first_list_delay.begin()
        self.servers.ask_unknown()
        self._spawn(self.once_calm, services.history.look)
        clear_results = partial(self.session_dependencies.tool.result_files.clear, own=False)
        for clearing in (clear_results, services.listings.sweep):
            self._spawn(self.once_calm, partial(anyio.to_thread.run_sync, clearing))
        services.changes.changed()

    async def once_calm(self, work: Callable[[], Awaitable[Any]]) -> None:
        """Run `work` after the first list, or after CALM_AT_LATEST_S, so that it does not delay the first client."""
        with anyio.move_on_after(CALM_AT_LATEST_S):
            await self._dependencies.calm.wait()
        await work()

    def _list_served(self) -> None:
        """Refresh expired cached lists and let background work begin. Further calls do nothing."""
        if not self._expired_asked:
            self._expired_asked = True
            self.services.pool.discover(self.services.listings.expired())
            self._dependencies.calm.set()

    # -- backends.connection.Observer ---------------------------------------------------------------------------------

    def state_changed(self, connection: Connection) -> None:
        """Apply a connection's new state to capabilities, log levels and subscriptions, and broadcast the change."""
        if connection.state is not State.CONNECTING:
            self._capabilities.made(connection.key)
        if connection.state is State.CONNECTED:
            self.sharing.note_connected(connection)
            self.session_dependencies.notifications.set_level(connection)
            self.session_dependencies.subscriptions.renew(connection)
        elif isinstance(connection.error, ConnectionLostError) and connection.state is State.FAILED:
            self._spawn(self.session_dependencies.subscriptions.restore, connection)
        self.services.changes.changed()

    def offer_fetched(self, connection: Connection, offer: Offer) -> None:
        """Add a server's lists to the catalog, pass on its list_changed, and probe it for other kinds of clients."""
        self.intake.take(connection, offer)
        self.session_dependencies.notifications.lists_read(connection)
        self.probes.consider(connection)

    def notified(self, connection: Connection, method: str, params: Params, about: Call | None) -> None:
        """Pass a server's notification on to the sessions that it concerns."""
        if method == UPDATED:
            self.session_dependencies.subscriptions.updated(connection, params)
        elif not self.session_dependencies.streams.take(connection, method, params, about):
            self.session_dependencies.notifications.pass_on(connection, method, params, about)

    async def asked(self, connection: Connection, method: str, params: Params, about: Call | None) -> dict[str, Any]:
        """Pass a server's request on to a client or the user, and return the answer. Raises RpcError."""
        if self.sharing.note_question(connection, method):
            self.servers.forget_catalogs()  # including the routes of its tools
            self.probes.consider(connection)
        return await self.session_dependencies.server_requests.asked(connection, method, params, about)

    # -- sessions ------------------------------------------------------------------------------------------------

    def new_session(
        self, peer: ClientPeer, options: dict[str, Any], transport: str, *, lasting: bool = True
    ) -> Session:
        """Return a new session, which `serve` runs. `lasting`: False for a session of a single request."""
        return Session(self.session_dependencies, peer, options, transport, lasting=lasting)

    async def serve(self, session: Session) -> None:
        """Run one session until its client disconnects."""
        self.sessions[session] = None
        self.services.changes.changed()
        try:
            await self.projects.join(session)
            await ClientRequests(session, self.session_dependencies).run()
        finally:
            del self.sessions[session]
            self.servers.drop(session)
            self.projects.leave(session)
            self.services.changes.changed()


class CallFacts:
    """A source of facts about one gateway's callers and tools, for the history's thread.

    Implements history.recorder.CallLookup.
    """

    def __init__(self, offer_of: Callable[[str], Offer | None]) -> None:
        self._offer_of = offer_of

    def caller(self, caller: Any) -> Caller:
        if isinstance(caller, Caller):
            return caller
        return Caller(caller.client.name, f"{caller.transport} {caller.number}", caller.cwd or "")

    def kind(self, server: str, tool: str) -> str:
        offer = self._offer_of(server)
        item = next((item for item in offer.tools if item.get("name") == tool), None) if offer is not None else None
        return classify(item).tool_class if item is not None else ""
