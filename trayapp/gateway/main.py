"""Build all parts of the gateway process, run them, and shut them down."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, cast

import anyio
import anyio.abc
import anyio.lowlevel

from trayapp import __version__
from trayapp.auth.accounts import Accounts
from trayapp.auth.os_keyring import secret_service_signals
from trayapp.auth.vault import Secrets, Vault, records_for
from trayapp.backends.clock import SystemClock, next_beat
from trayapp.backends.connect import open_transport
from trayapp.backends.context import Open, first_cause
from trayapp.backends.stdio.orphans import make_tracker, reap_leftovers
from trayapp.backends.stdio.shellenv import Environment
from trayapp.backends.wake.watch import watch_wake
from trayapp.catalog.approval_store import FOLDER_NAME as APPROVED
from trayapp.config.layers.project import TRUST_NAME, TrustStore
from trayapp.config.paths import SEALED_NAME, Paths, find_paths, home_folder
from trayapp.config.programs import own_environment
from trayapp.gateway.client import FramePeer
from trayapp.gateway.gateway import Gateway, GatewayDependencies
from trayapp.gateway.http.port import ClientTokens, HttpPort
from trayapp.gateway.permissions import close_to_others
from trayapp.gateway.scopes.projects import look_with
from trayapp.gateway.servers_file import Layers, Outcome, ServersFile
from trayapp.gateway.services import Services
from trayapp.gateway.tasks import fenced, kept_up
from trayapp.model.config import Config
from trayapp.model.errors import AlreadyRunningError, MultiMcpError, StorageError
from trayapp.model.lifecycle import State
from trayapp.model.logs import SERVER_LOGS
from trayapp.service.logging import StderrFiles, level_of, start_logging
from trayapp.wire.control import PANEL
from trayapp.wire.endpoint import Link, Listener, listen, raise_descriptor_limit
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.greeting import Hello
from trayapp.wire.lock import GatewayLock
from trayapp.wire.rundir import STOPPING, run_dir

if TYPE_CHECKING:
    from trayapp.gateway.control.accounts import AccountRequests
    from trayapp.gateway.control.server import Control
    from trayapp.panel.host import PanelHost

log = logging.getLogger(__name__)

CHECK_S = 5.0  # time between checks. They run together with other regular work, and take one system call at most
LAST_WRITES_S = 5.0  # a disk that hangs must not keep the gateway from ending
SETTLED_S = 3.0  # time after the first list, by which clients that start together have their lists, too
YOUNG_OBJECTS = 10_000  # new objects before a garbage collection. About a hundred calls reach Python's default of 700
MAKES_ROOM = -1  # not an exit code: the caller replaces this process with the newly installed program


def run_gateway(
    environ: Mapping[str, str],
    lock: GatewayLock,
    *,
    linger: bool,
    sample: list[str],
    layers: Callable[[], Layers],
    on_ready: Callable[[], None] | None = None,
    is_followed: Callable[[], bool] = bool,
) -> int:
    """Run the gateway until a stop is requested, then release `lock`. Return the exit code, or MAKES_ROOM.

    - `linger`: True to end the gateway `settings.linger` minutes after its last connection
    - `sample`: the command of the bundled sample server
    - `layers`: returns the reader of `settings.imports`
    - `on_ready`: called once clients can connect
    - `is_followed`: returns True once the program has been replaced. Once idle, the gateway then returns MAKES_ROOM

    Raises AlreadyRunningError, StorageError.
    """
    run, paths = run_dir(dict(environ)), find_paths(environ)
    try:
        start_logging(paths.log_dir, level_of(environ))
        raise_descriptor_limit()
        _prefer_pidfd()
        process = GatewayHost(dict(environ), paths, run, sample, layers, is_followed=is_followed, lock=lock)
        # No uvloop, because it saves little. CPU time of the gateway per call in us, with uvloop 0.23/with asyncio of
        # Python 3.11: 88/94 for 100 B, 254/300 for 50 KB, 253/301 for 100 KB, 995/1,026 for 1 MB, and 20.4/20.6 with 64
        # calls in flight. With uvloop, each start takes 3.5 ms and 2 MiB more, and a test of tests/backends never ends.
        asyncio.run(process.main(linger, on_ready or (lambda: None)))
    except (BaseExceptionGroup, MultiMcpError, OSError) as error:
        cause = first_cause(error) if isinstance(error, BaseExceptionGroup) else error
        mistake = None if isinstance(cause, MultiMcpError | OSError) else cause
        log.critical("The gateway ends: %s", cause, exc_info=mistake)  # stderr often has no reader
        raise cause from None
    finally:
        lock.release()
    return MAKES_ROOM if process.makes_room else 0


class NoLink:
    """A link for the panel's control requests. It drops all output."""

    def write(self, data: bytes) -> None:
        """Drop `data`."""


class GatewayHost:
    """The process of the gateway: its listener, connections, signals and shutdown.

    `open`: opens the transports of servers, None: as in production. Tests pass their own.
    """

    def __init__(
        self,
        environ: dict[str, str],
        paths: Paths,
        run: str,
        sample: list[str],
        layers: Callable[[], Layers],
        open: Open | None = None,
        is_followed: Callable[[], bool] = bool,
        lock: GatewayLock | None = None,
    ) -> None:
        self._lock = lock
        self.makes_room = False
        self._is_followed = is_followed
        self._environ = Environment(own_environment(environ))
        self._paths = paths
        self._run = run
        self._file = ServersFile(paths.config_file, sample, lambda: self._gateway.config, self._take, layers)
        self._links: set[Link] = set()
        self._tracker = make_tracker(run)
        self._server_logs = StderrFiles(paths.log_dir / SERVER_LOGS)
        self._open = open
        self._accounts: Accounts
        self._store: Literal["keyring", "file"] = "keyring"
        self._gateway: Gateway
        self._http_port: HttpPort
        self._listener: Listener
        self._tasks: anyio.abc.TaskGroup

    async def main(self, linger: bool, on_ready: Callable[[], None]) -> None:
        """Start the gateway, serve until a stop is requested, and shut down.

        Raises StorageError, in an ExceptionGroup.
        """
        async with anyio.create_task_group() as tasks:
            clock, records = SystemClock(), records_for(self._store, self._paths.config_file, self._environ)
            vault = Vault(records, changed=self._keyring_changed)  # opened when first needed
            self._accounts = accounts = Accounts(
                vault, tasks, clock.time, clock.sleep, lambda: self._gateway.services.changes.changed()
            )
            gateway = self._gateway = Gateway(self._dependencies(), tasks)
            self._tasks = tasks
            tasks.start_soon(fenced, gateway.once_calm, self._environ.complete)
            # Two files keep their permissions: servers.yaml, because it may be linked or shared, and trusted.json,
            # because TrustStore must notice that others could write it.
            paths = self._paths
            files = [paths.config_file.with_name(name) for name in (APPROVED, SEALED_NAME)]
            await anyio.to_thread.run_sync(close_to_others, [paths.cache_dir, paths.log_dir, *files])
            tokens, owner_token = ClientTokens(paths.config_file.parent), lambda: self._listener.endpoint.token
            self._http_port = HttpPort(gateway, self._file, tokens, owner_token, self._http_changed, self._panel_host)
            await anyio.to_thread.run_sync(self._file.create)
            await anyio.to_thread.run_sync(gateway.services.given_names.load)
            await self._file.reload()
            self._stop_on_signals(gateway)  # before `listen`: a client that can connect may also send a signal
            self._listener = await listen(self._run, self._accept, __version__)
            gateway.start_serving()
            tasks.start_soon(kept_up, self._http_port.serve, anyio.sleep)
            retry_storing = partial(accounts.vault.retry_storing, anyio.sleep)
            follow_keyring = partial(accounts.vault.follow, secret_service_signals)
            for work in (retry_storing, follow_keyring, self._file.follow, self._keep_run_dir):
                tasks.start_soon(kept_up, partial(gateway.once_calm, work), anyio.sleep)
            watch = partial(watch_wake, self._probe_servers, SystemClock())
            reap = partial(anyio.to_thread.run_sync, reap_leftovers, self._run)
            for once in (gateway.sign_ins.look, watch, reap, collect_garbage, self._end_when_replaced):
                tasks.start_soon(fenced, gateway.once_calm, once)
            if linger:
                tasks.start_soon(kept_up, self._end_when_unused, anyio.sleep)
            log.info("Gateway %s ready", __version__)
            on_ready()
            await gateway.stop_wanted.wait()
            gateway.state = "stopping"
            log.info("Gateway stopping")
            await accounts.close()
            with anyio.move_on_after(LAST_WRITES_S):
                gateway.services.writer.wake()  # saves approvals of tools whose texts have not been inspected yet
                await gateway.services.writer.written()
                await gateway.services.history.close()
            self._listener.close()
            await gateway.services.pool.stop()
            self._tracker.close()
            gateway.session_dependencies.tool.result_files.clear(own=True)
            for link in list(self._links):
                link.write(STOPPING)
                link.close()
            await anyio.lowlevel.checkpoint()
            from trayapp.panel.host import end_panel

            # This comes last, so that an open page of the panel reports the gateway's end and not the sign-in.
            await anyio.to_thread.run_sync(end_panel, gateway.panel_access)
            tasks.cancel_scope.cancel()

    def _dependencies(self) -> GatewayDependencies:
        return GatewayDependencies(
            clock=SystemClock(),
            environ=self._environ,
            keyring=self._secrets,
            open=self._open or partial(open_transport, tracker=self._tracker, accounts=self._accounts),
            stderr=self._server_logs.sink,
            cache_dir=self._paths.cache_dir,
            write_switches=self._file.note_tools,
            look=look_with(self._trust, home_folder()),
            accounts=self._accounts,
            state_dir=self._paths.state_dir,
            approved_dir=self._paths.config_file.with_name(APPROVED),
            lock_file=self._paths.lock_file,
            calm=self._environ.wanted,
        )

    async def _secrets(self, names: Sequence[str]) -> Secrets:
        """Return the secrets with these names, from the vault and approved commands (backends.launch.Keyring)."""
        from trayapp.backends.secret_commands import SecretSources  # loaded with the first entry that needs a secret

        sources = SecretSources(self._accounts.vault.secrets, self._trust.is_approved, self._environ)
        return await sources.secrets(names)

    @property
    def _trust(self) -> TrustStore:
        return TrustStore(self._paths.config_file.with_name(TRUST_NAME))

    def _keyring_changed(self) -> None:
        """Broadcast the vault's new state. If the vault is available, reconnect the servers that waited for it."""
        self._gateway.services.changes.changed()
        if self._accounts.vault.state == "available" and self._gateway.state == "running":
            self._tasks.start_soon(fenced, self._gateway.sign_ins.keyring_is_back)

    def _take(self, outcome: Outcome) -> None:
        """Apply a new configuration, or report the problem of an unusable one. Do nothing while the gateway stops."""
        if self._gateway.state == "stopping":
            return  # no server may be started now
        if isinstance(outcome, Config):
            self._gateway.take_config(outcome)
            self._http_port.follow(outcome.settings.http)
            if (store := outcome.settings.token_store) != self._store:
                self._store = store
                self._accounts.use(records_for(store, self._paths.config_file, self._environ))
                self._tasks.start_soon(fenced, self._gateway.sign_ins.look)
        else:
            self._gateway.take_problem(outcome)

    async def _reload(self) -> None:
        """Reread the files that the user may have changed: servers.yaml, projects' files and their approvals."""
        await self._file.reload()
        await self._gateway.projects.refresh()

    def _probe_servers(self, reason: str) -> None:
        log.info("Checking that every connected server still answers: %s", reason)
        self._gateway.services.pool.probe()

    # -- connections to the local socket -------------------------------------------------------------------------

    def _accept(self, hello: Hello, link: Link) -> FrameDispatcher:
        if hello.kind == "control":
            control = self._make_control(link)
            self._tasks.start_soon(self._serve_link, link, control.run)
            return control.dispatcher
        peer = FramePeer(link.write, link.write_pieces)
        session = self._gateway.new_session(peer, hello.options, "stdio")
        self._tasks.start_soon(self._serve_link, link, partial(self._gateway.serve, session))
        return peer.dispatcher

    @cached_property
    def _account_requests(self) -> AccountRequests:
        from trayapp.gateway.control.accounts import AccountRequests  # loaded on first use, like Control

        gateway = self._gateway
        return AccountRequests(gateway.services, gateway.sign_ins, self._environ, self._secrets)

    def _make_control(self, link: Link) -> Control:
        from trayapp.gateway.control.approvals import SecretCommandRequests
        from trayapp.gateway.control.server import Control  # loaded on first use: no AI tool needs it

        commands = SecretCommandRequests(self._gateway, self._trust)
        others = {**self._account_requests.handlers, PANEL: self._http_port.panel_link, **commands.handlers}
        return Control(self._gateway, others, link, self._reload)

    def _panel_host(self) -> PanelHost:
        """Return the panel's access to the gateway. The panel sends control requests without a connection."""
        from trayapp.panel.host import PanelHost

        control = self._make_control(cast(Link, NoLink()))
        services = self._gateway.services
        return PanelHost(
            ask=control.answer,
            changes=services.changes.listen,
            calls=services.history.listen,
            logs=self._server_logs.listen,
            seen=lambda: (services.changes.revision, services.history.batches, self._server_logs.writes),
            per_minute=services.history.per_minute,
            watched=self._gateway.asks.watched,
            profiles=lambda: list(self._gateway.config.settings.profiles),
            access=self._gateway.panel_access,
            paths=self._paths,
            environ=self._environ,
        )

    def _http_changed(self, url: str | None) -> None:
        """Publish the URL of the HTTP port in the snapshot and the endpoint file. `url`: None if the port is closed."""
        self._gateway.http_url = url
        self._gateway.services.changes.changed()
        if self._gateway.state != "stopping":
            self._listener.publish(url)

    async def _keep_run_dir(self) -> None:
        """Restore the runtime folder whenever it was removed. If another gateway has started in it, end when idle."""
        while True:
            await next_beat(CHECK_S)
            if self._gateway.state == "stopping":
                return  # clients must no longer find this gateway
            if self._listener.is_found():
                continue
            try:
                if self._lock is not None:
                    self._lock.release()  # the lock file may have been removed
                    self._lock.acquire()
                self._listener.close()
                self._listener = await listen(self._run, self._accept, __version__, self._listener.endpoint.token)
                if self._gateway.http_url is not None:
                    self._listener.publish(self._gateway.http_url)
            except AlreadyRunningError as error:
                log.warning("Another gateway replaced this one: %s. Ending once no call is in progress", error)
                while is_amid(self._gateway.services):
                    await next_beat(CHECK_S)
                self._gateway.stop_wanted.set()
                return
            except StorageError as error:
                log.warning("Clients cannot find this gateway: %s", error)
            else:
                log.warning("Restored the runtime folder %s, which had been removed", self._run)

    async def _serve_link(self, link: Link, work: Callable[[], Any]) -> None:
        """Serve one connection. Exception boundary: a failure does not affect other connections."""
        self._links.add(link)
        try:
            await work()
        except Exception:
            log.exception("Unexpected error in a connection")
        finally:
            self._links.discard(link)
            link.close()

    # -- shutdown ------------------------------------------------------------------------------------------------

    def _stop_on_signals(self, gateway: Gateway) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            if sys.platform == "win32":
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(gateway.stop_wanted.set))
            else:
                loop.add_signal_handler(number, gateway.stop_wanted.set)

    async def _end_when_unused(self) -> None:
        """End the gateway when it has had no connection for `settings.linger` minutes. If that is 0, never end it."""
        gateway, used = self._gateway, anyio.current_time()
        while anyio.current_time() - used < (limit_s := gateway.config.settings.linger * 60) or limit_s <= 0:
            await next_beat(min(CHECK_S, limit_s / 4) if limit_s > 0 else CHECK_S)
            if self._links or gateway.sessions:
                used = anyio.current_time()
        log.info("Stopping: the gateway was idle for %g minutes", gateway.config.settings.linger)
        gateway.stop_wanted.set()

    async def _end_when_replaced(self) -> None:
        """End the gateway once it is idle after the program was replaced. Clients continue with the new gateway."""

        def has_control_connection() -> bool:
            return len(self._links) > sum(session.transport == "stdio" for session in self._gateway.sessions)

        await await_turn(self._gateway.services, self._is_followed, has_control_connection)
        log.info("Ending: the program was replaced and nothing is in progress. Clients continue with the new gateway")
        self.makes_room = True
        self._gateway.stop_wanted.set()


def _prefer_pidfd() -> None:
    """Make Python 3.11 watch child processes by pidfd, as Python 3.12 does, instead of with a thread for each."""
    if sys.version_info < (3, 12) and sys.platform == "linux":
        try:
            asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
        except OSError:
            log.debug("pidfd is not available: a thread waits for each server's end")


async def collect_garbage() -> None:
    """Turn on garbage collection, which cli/run_gateway turned off until clients have their first answers.

    To search the objects that were created before would delay the first calls. They are therefore searched only once,
    after SETTLED_S, because a first run leaves some MiB of garbage among them.
    """
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
    gc.enable()
    await anyio.sleep(SETTLED_S)
    gc.unfreeze()
    gc.collect()
    gc.freeze()


UPGRADE_QUIET_S = 600.0  # time without a call, after which idle servers are closed and have lost their clients' state


async def await_turn(services: Services, is_followed: Callable[[], bool], is_asked: Callable[[], bool]) -> None:
    """Wait until `is_followed` (the program was replaced), the gateway is quiet, and `is_asked` returns False.

    `is_asked`: returns True while a tray or command is connected. A connected tray starts the new program itself.
    """
    began = services.clock.now()
    while not is_followed() or is_asked() or not is_quiet(services, began):
        await services.clock.beat(CHECK_S)


def is_quiet(services: Services, since: float) -> bool:
    """Return True if nothing is in progress, and no server was used for UPGRADE_QUIET_S.

    `since`: the time that counts as the last use of a server that was never used.
    """
    used = max((connection.last_used or since for connection in services.pool), default=since)
    return services.clock.now() - used >= UPGRADE_QUIET_S and not is_amid(services)


def is_amid(services: Services) -> bool:
    """Return True if a call or a server's start is in progress."""
    starting_or_busy = (one.is_busy or one.state is State.CONNECTING for one in services.pool)
    return any(starting_or_busy) or any(session.open_calls for session in services.sessions)
