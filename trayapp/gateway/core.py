"""The gateway's state in one place: configuration, servers, offers, sessions; what changes is told on from here.

Never here: sockets, files' formats, one session's or one connection's own business.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread

from trayapp.auth.accounts import Accounts
from trayapp.backends.clock import Clock
from trayapp.backends.connection import Connection
from trayapp.backends.launch import Keyring
from trayapp.backends.pool import Pool
from trayapp.backends.route import await_route
from trayapp.backends.transports import Open
from trayapp.backends.world import World
from trayapp.catalog.pins import FOLDER_NAME
from trayapp.gateway.approvals import Approvals
from trayapp.gateway.boundary import FencedTasks, fenced, kept_up
from trayapp.gateway.bridge import Bridge
from trayapp.gateway.clientele import Clientele
from trayapp.gateway.copies import FOLDER as RESULTS
from trayapp.gateway.copies import Copies
from trayapp.gateway.expose import Exposure
from trayapp.gateway.finder import prepare
from trayapp.gateway.frontend import Session
from trayapp.gateway.given_names import GivenNames
from trayapp.gateway.introductions import SERVER_INFO
from trayapp.gateway.known import ONE_TOOL
from trayapp.gateway.news import News
from trayapp.gateway.offers import Offers, WriteSwitches
from trayapp.gateway.own import OwnServers
from trayapp.gateway.prepared import Prepared
from trayapp.gateway.projects import Look, Projects, no_projects
from trayapp.gateway.report import snapshot_of
from trayapp.gateway.router import Router
from trayapp.gateway.running import Running
from trayapp.gateway.sign_in import SignIns
from trayapp.gateway.subscriptions import Subscriptions
from trayapp.gateway.telling import Telling
from trayapp.gateway.warm import WarmUp
from trayapp.model.late import late_module
from trayapp.model.lifecycle import State
from trayapp.model.offer import Offer
from trayapp.model.plan import Config
from trayapp.model.servers import ToolSwitch
from trayapp.model.status import GatewayState, Problem, Snapshot
from trayapp.wire.messages import Call, Params

if TYPE_CHECKING:
    from trayapp.gateway import paging
else:
    paging = late_module("trayapp.gateway.paging")

log = logging.getLogger(__name__)

# What no client waits for is done once the first one has its list; without one after this. A file that is saved before
# that is to be applied within a second, too.
CALM_AT_LATEST_S = 0.5


@dataclass(frozen=True, slots=True)
class Parts:
    """What the gateway is built from; tests pass fakes of the same shapes."""

    clock: Clock
    environ: dict[str, str]
    keyring: Keyring
    open: Open
    stderr: Callable[[str], Callable[[bytes], None]]
    cache_dir: Path
    write_switches: WriteSwitches
    look: Look = no_projects
    accounts: Accounts | None = None
    approved_dir: Path | None = None  # None: beside the cache
    calm: anyio.Event = field(default_factory=anyio.Event)  # the first client has its list, or something is started


class Gateway:
    """Implements backends.world.Observer. Lives inside `tasks`."""

    def __init__(self, parts: Parts, tasks: anyio.abc.TaskGroup) -> None:
        self.config = Config()  # the user's own
        self.own = OwnServers()
        self.state: GatewayState = "starting"
        self.http_url: str | None = None
        self.http_problem: Problem | None = None  # another program holds the port that HTTP clients know
        self.sessions: dict[Session, None] = {}  # in the order in which they came
        self.telling = Telling(parts.clock, self.sessions)
        self.changed = self.telling.changed
        self.offers = Offers(parts.cache_dir, lambda: self.shared, self._write_switches, parts.clock.time)
        self.clientele = Clientele(self.sessions, self.offers)
        self.clock = parts.clock
        self._parts = parts
        self._tasks = tasks
        self._started = parts.clock.now()
        world = World(
            clock=parts.clock,
            settings=lambda: self.config.settings,
            environ=parts.environ,
            keyring=parts.keyring,
            open=parts.open,
            stderr=parts.stderr,
            observer=self,
            hint=self.clientele.hint,
            wants_offer=lambda key: self.offers.worth_asking(self.own.base(key)),
            capabilities=self.clientele.capabilities,
            subscribed=lambda name: self.subscriptions.wanted(name),
            input_schema=self._input_schema,
            route=partial(await_route, parts.clock),
            look_over=self._look_over,
            sign_in=lambda launch: self.sign_ins.read(launch),
        )
        self.pool = Pool(world, cast(anyio.abc.TaskGroup, FencedTasks(tasks)))  # it only ever starts tasks
        place = parts.approved_dir or parts.cache_dir.with_name(FOLDER_NAME)
        self.approvals = Approvals(place, lambda: self.config.settings, self._offered_elsewhere)
        self.approvals.unsaved = self.offers.wake
        self.given_names = GivenNames(place)
        self.offers.write_more = self._save_more
        self.prepared = Prepared(self.approvals.judge, self.offers.sound)
        self.copies = Copies(parts.cache_dir / RESULTS)
        self.warm_up = WarmUp(self.spawn)
        self.running = Running(self, self.own)
        self.view = self.running.view
        self.projects = Projects(parts.look, lambda: self.config, self.running.take_projects, parts.clock)
        self.bridge = Bridge(self)
        self.subscriptions = Subscriptions(self)
        self.news = News(self)
        self.stop_wanted = anyio.Event()
        self.telling.watch(self._note_names)
        self.sign_ins = SignIns(self, parts.accounts, parts.environ, parts.keyring)
        if parts.accounts is not None:
            parts.accounts.signed_in = self._signed_in
        self._expired_asked = False
        self._file_problems: tuple[Problem, ...] = ()

    @cached_property
    def cut_results(self) -> paging.CutResults:
        """Of sessions that last for one request."""
        return paging.CutResults(self.copies)

    def _signed_in(self, url: str) -> None:
        self._tasks.start_soon(fenced, self.sign_ins.reconnect, url)

    # -- configuration -------------------------------------------------------------------------------------------

    def take_config(self, config: Config) -> None:
        """Make `config` the one that runs; untouched servers keep their process and their calls."""
        old, new = self.config.settings, config.settings
        renewed = (old.approve_changes, old.suspicious) != (new.approve_changes, new.suspicious)
        self.config = config
        self._file_problems = config.problems
        if renewed:
            self.prepared.forget()
        self.running.take(config)
        self._tasks.start_soon(fenced, self.projects.refresh)
        self._tasks.start_soon(fenced, self._prepare)

    async def _prepare(self) -> None:
        """Make the tools ready for clients before somebody waits for that, other work in between."""
        known = self.view.known
        for _ in prepare(self.view.exposure, self.view.finder):
            await anyio.lowlevel.checkpoint()
            if self.view.known is not known:
                return  # what is new is made ready when it is asked for: it is little

    def _write_switches(self, found: dict[str, dict[str, ToolSwitch]]) -> None:
        """Note tools in servers.yaml: of the user's own servers. Blocks. Raises MultiMcpError."""
        users = {name: switches for name, switches in found.items() if name in self.config.servers}
        if users:
            self._parts.write_switches(users)

    def _note_names(self) -> None:
        """Keep the names that tools have now. While servers are asked for the first time, nobody has one for good: they
        do not depend on which server answers first."""
        if not self.pool.discovering and self.running.note_names():
            self.offers.wake()

    def _save_more(self) -> None:
        """Write approvals and names. Blocks."""
        self.approvals.save()
        self.given_names.save()

    def take_problem(self, problem: Problem) -> None:
        """The file cannot be used as a whole: what runs goes on, and the problem is shown."""
        self._file_problems = (*(p for p in self.config.problems), problem)
        self.changed()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All that is wrong in the user's files now."""
        return (
            *self._file_problems,
            *self.projects.problems,
            *self.view.known.problems,
            *self.approvals.problems,
            *((self.http_problem,) if self.http_problem is not None else ()),
        )

    @property
    def shared(self) -> Config:
        """The user's servers and those of all projects with sessions, by key."""
        return self.running.shared

    # -- the catalog ---------------------------------------------------------------------------------------------

    @property
    def exposure(self) -> Exposure:
        """What clients see now that belong to no project and asked for nothing."""
        return self.view.exposure

    @property
    def router(self) -> Router:
        """By that exposure."""
        return self.view.router

    def _offered_elsewhere(self, server: str) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield every other server, as sessions see it, with the names of its tools, and the gateway itself."""
        yield SERVER_INFO["name"], frozenset({ONE_TOOL})
        own = self.running.plain_name(server)
        for other in self.shared.servers:
            plain = self.running.plain_name(other)
            if plain != own and (offer := self.offers.get(other)) is not None:
                yield plain, frozenset(str(item.get("name")) for item in offer.tools)

    async def _look_over(self, key: str, offer: Offer) -> None:
        """What is found in many definitions is found in a thread: the gateway's clients come first."""
        base = self.own.base(key)
        if base in self.shared.servers and self.approvals.takes_long(offer):
            for look_ahead in (self.approvals.look_ahead, self.offers.look_ahead):
                await fenced(_in_thread, look_ahead, base, offer)  # a mistake in there decides no server's life

    def _judge(self, server: str) -> None:
        offer = self.offers.get(server)
        if offer is not None:
            _ = self.prepared.of(server, offer).tools

    def approved(self) -> None:
        """Something was approved: it is served from now on."""
        self.prepared.forget()
        self.running.forget_exposures()
        self.changed()

    def list_served(self) -> None:
        """A session has had a list: now servers with an old cache may be asked, without anybody waiting."""
        if not self._expired_asked:
            self._expired_asked = True
            self.pool.discover(self.offers.expired())
            self._parts.calm.set()

    async def once_calm(self, work: Callable[[], Awaitable[Any]]) -> None:
        """Do what no client waits for: at the start each moment of it would be one that the first client waits."""
        with anyio.move_on_after(CALM_AT_LATEST_S):
            await self._parts.calm.wait()
        await work()

    def start_serving(self) -> None:
        """Sessions may come: begin to tell and to write, and ask servers that are not known."""
        self.state = "running"
        for work in (self.telling.keep_telling, self.offers.keep_writing, self.projects.follow):
            self._tasks.start_soon(kept_up, work, self.clock.sleep)
        self.view.await_first_lists()
        self.pool.discover(self.offers.missing())
        for clearing in (partial(self.copies.clear, own=False), self.offers.sweep):
            self._tasks.start_soon(fenced, self.once_calm, partial(anyio.to_thread.run_sync, clearing))
        self.changed()

    # -- backends.world.Observer ---------------------------------------------------------------------------------

    def state_changed(self, connection: Connection) -> None:
        """See Observer."""
        if connection.state is State.CONNECTED:
            self.news.set_level(connection)
            self.subscriptions.renew(connection)
        self.changed()

    def offer_fetched(self, connection: Connection, offer: Offer) -> None:
        """See Observer."""
        server = self.shared.servers.get(self.own.base(connection.name))
        if server is None or self.pool.get(connection.name) is not connection:
            return  # removed or launched anew meanwhile
        offer = replace(offer, signed=self.sign_ins.is_signed_in(server))
        self._judge(server.name)  # nobody may have seen what it offered until now: that is what was approved
        if self.offers.take(server, offer):
            self.running.forget_exposures()
        self._judge(server.name)
        self.changed()

    def notified(self, connection: Connection, method: str, params: Params, about: Call | None) -> None:
        """See Observer."""
        self.news.notified(connection, method, params, about)

    async def asked(self, connection: Connection, method: str, params: Params, about: Call | None) -> dict[str, Any]:
        """See Observer."""
        return await self.bridge.asked(connection, method, params, about)

    # -- towards servers -----------------------------------------------------------------------------------------

    def _input_schema(self, key: str, tool: str) -> Any:
        base = self.own.base(key)
        offer = self.offers.get(base)
        prepared = self.prepared.of(base, offer).tools.get(tool) if offer is not None else None
        return prepared.item.get("inputSchema") if prepared is not None else None

    def tell_servers(self, session: Session, method: str, params: Params) -> None:
        """A notification of a client's, for the older servers of its own that run."""
        for connection in self.pool:
            live = connection.live
            if live is not None and not live.peer.modern and session.has_server(connection.name):
                self.spawn(live.channel.notify, method, params)

    def spawn(self, work: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Start something that ends by itself; its failure is logged."""
        self._tasks.start_soon(fenced, work, *args)

    # -- sessions ------------------------------------------------------------------------------------------------

    async def serve(self, session: Session) -> None:
        """Run one session to its end."""
        self.sessions[session] = None
        self.changed()
        try:
            await self.projects.join(session)
            await session.run()
        finally:
            del self.sessions[session]
            self.running.drop(session)
            self.projects.leave(session)
            self.changed()

    def set_log_levels(self) -> None:
        """A session chose a level."""
        self.news.set_levels()

    # -- snapshot ------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The whole state as of now."""
        return snapshot_of(self, self._started, self.telling.revision)


async def _in_thread(work: Callable[..., Any], *args: Any) -> None:
    await anyio.to_thread.run_sync(work, *args, abandon_on_cancel=True)
