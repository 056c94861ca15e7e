"""Builds every part of a gateway process, runs it, and owns its shutdown.

Never here: behaviour; each part is somewhere else.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import anyio
import anyio.abc

from trayapp import __version__
from trayapp.backends.clock import SystemClock
from trayapp.backends.keeper import make_keeper, reap_leftovers
from trayapp.backends.launch import own_environment
from trayapp.backends.shellenv import Environment
from trayapp.backends.transports import open_transport
from trayapp.backends.wake import watch_wake
from trayapp.config.parse import parse
from trayapp.config.paths import Paths, find_paths
from trayapp.config.problems import Unparsable
from trayapp.config.sample import sample_text
from trayapp.config.store import Store
from trayapp.config.watch import FolderWatch, watch_folders_of
from trayapp.gateway.admin import Control
from trayapp.gateway.core import Gateway, Parts
from trayapp.gateway.frontend import Session
from trayapp.gateway.logs import StderrFiles, start_logging
from trayapp.model.errors import MultiMcpError
from trayapp.model.plan import Config
from trayapp.model.servers import ToolSwitch
from trayapp.model.status import Problem
from trayapp.wire.endpoint import GatewayLock, Link, listen
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.greeting import Hello
from trayapp.wire.memory import keep_freed_memory
from trayapp.wire.rundir import STOPPING, run_dir

log = logging.getLogger(__name__)

WATCH_S = 0.5  # how often servers.yaml is looked at where the system tells nothing: a save is applied within 1 s
LOOK_ANYWAY_S = 5.0
SAVE_SETTLES_S = 0.05  # editors save in several steps
LINGER_CHECK_S = 5.0


def run_gateway(
    environ: Mapping[str, str], *, linger: bool, sample: list[str], on_ready: Callable[[], None] | None = None
) -> int:
    """Be the gateway until told to stop; the exit code. `sample` is the command of the bundled sample server.

    `linger`: end by itself some minutes after the last session. Raises AlreadyRunningError, StorageError.
    """
    run = run_dir(dict(environ))
    lock = GatewayLock(run)
    lock.acquire()
    paths = find_paths(environ)
    start_logging(paths.log_dir)
    try:
        _prefer_pidfd()
        asyncio.run(_Process(dict(environ), paths, run, sample).main(linger, on_ready or (lambda: None)))
    finally:
        lock.release()
    return 0


class _Process:
    """The parts of one gateway process that are not its state: file, listener, connections, end."""

    def __init__(self, environ: dict[str, str], paths: Paths, run: str, sample: list[str]) -> None:
        self._environ = Environment(own_environment(environ))
        self._paths = paths
        self._run = run
        self._store = Store(paths.config_file, first_text=lambda: sample_text(sample))
        self._links: set[Link] = set()
        self._keeper = make_keeper(run)
        self._seen: object = None
        self._emptied = False
        self._reading = anyio.Lock()

    async def main(self, linger: bool, on_ready: Callable[[], None]) -> None:
        async with anyio.create_task_group() as tasks:
            gateway = self._gateway = Gateway(self._parts(), tasks)
            self._tasks = tasks
            tasks.start_soon(self._environ.complete)
            await anyio.to_thread.run_sync(self._create_file)
            await self._reload()
            listener = await listen(self._run, self._accept, __version__)
            gateway.start_serving()
            tasks.start_soon(gateway.keep_telling)
            tasks.start_soon(gateway.offers.keep_writing)
            tasks.start_soon(self._watch_file)
            tasks.start_soon(watch_wake, self._look_around, SystemClock())
            tasks.start_soon(anyio.to_thread.run_sync, reap_leftovers, self._run)
            if linger:
                tasks.start_soon(self._linger)
            self._stop_on_signals(gateway)
            log.info("Gateway %s ready", __version__)
            on_ready()
            keep_freed_memory()
            await gateway.stop_wanted.wait()
            gateway.state = "stopping"
            log.info("Gateway stopping")
            await gateway.offers.written()
            listener.close()
            await gateway.pool.stop()
            self._keeper.close()
            for link in list(self._links):
                link.write(STOPPING)
                link.close()
            await anyio.sleep(0)
            tasks.cancel_scope.cancel()

    def _parts(self) -> Parts:
        return Parts(
            clock=SystemClock(),
            environ=self._environ,
            keyring=lambda name: None,
            open=partial(open_transport, keeper=self._keeper),
            stderr=StderrFiles(self._paths.log_dir / "servers").sink,
            cache_dir=self._paths.cache_dir,
            write_switches=self._write_switches,
        )

    # -- servers.yaml --------------------------------------------------------------------------------------------

    async def _reload(self) -> None:
        """Read servers.yaml and make it what runs; one that cannot be used leaves what runs and becomes a problem."""
        async with self._reading:
            self._seen = self._store.signature()
            outcome = await anyio.to_thread.run_sync(self._read)
            if isinstance(outcome, Problem):
                self._gateway.take_problem(outcome)
            elif self._just_emptied(outcome):
                self._seen = None  # look again
            else:
                self._gateway.take_config(outcome)

    def _just_emptied(self, config: Config) -> bool:
        """Editors truncate before they write: an emptied file is believed when it is still so at the next look."""
        emptied = not config.servers and not config.problems and bool(self._gateway.config.servers)
        self._emptied, before = emptied, self._emptied
        return emptied and not before

    def _create_file(self) -> None:
        try:
            self._store.create()
        except MultiMcpError as error:
            log.warning("%s", error)

    def _read(self) -> Config | Problem:
        file = str(self._paths.config_file)
        try:
            loaded = self._store.read()
            if not loaded.exists:
                return Problem(file, 0, "servers.yaml is missing", "Write one with: multi-mcp edit")
            return parse(loaded.text, file)
        except Unparsable as error:
            return error.problem
        except MultiMcpError as error:
            return Problem(file, 0, error.title, error.hint)

    async def _watch_file(self) -> None:
        watch = await anyio.to_thread.run_sync(watch_folders_of, self._paths.config_file)
        try:
            while True:
                await self._file_may_have_changed(watch)
                if self._store.signature() != self._seen:
                    await self._reload()
        finally:
            if watch is not None:
                watch.close()

    async def _file_may_have_changed(self, watch: FolderWatch | None) -> None:
        """Wait for news of the folder; look anyway from time to time, since network folders bring no news."""
        if watch is None or self._seen is None:
            await anyio.sleep(WATCH_S)
            return
        with anyio.move_on_after(LOOK_ANYWAY_S):
            await anyio.wait_readable(watch.descriptor)
        await anyio.sleep(SAVE_SETTLES_S)
        watch.drain()

    def _write_switches(self, switches: dict[str, dict[str, ToolSwitch]]) -> None:
        for server, why in self._store.merge_tools(switches).items():
            log.warning("Could not note the tools of %s in servers.yaml: %s", server, why)

    def _look_around(self, reason: str) -> None:
        log.info("Asking every connected server for a sign of life: %s", reason)
        self._gateway.pool.probe()

    # -- connections to the local socket -------------------------------------------------------------------------

    def _accept(self, hello: Hello, link: Link) -> FrameDispatcher:
        if hello.kind == "control":
            control = Control(self._gateway, link, self._reload)
            self._tasks.start_soon(self._hold, link, control.run)
            return control.dispatcher
        session = Session(self._gateway, link.write, hello.options, "stdio")
        self._tasks.start_soon(self._hold, link, partial(self._gateway.serve, session))
        return session.dispatcher

    async def _hold(self, link: Link, work: Callable[[], Any]) -> None:
        """One connection from start to end: the boundary at which one session's failure stops."""
        self._links.add(link)
        try:
            await work()
        except Exception:
            log.exception("A connection failed in a way that we do not know")
        finally:
            self._links.discard(link)
            link.close()

    # -- the end -------------------------------------------------------------------------------------------------

    def _stop_on_signals(self, gateway: Gateway) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            if sys.platform == "win32":
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(gateway.stop_wanted.set))
            else:
                loop.add_signal_handler(number, gateway.stop_wanted.set)

    async def _linger(self) -> None:
        """End `settings.linger` minutes after the last session."""
        gateway, unused = self._gateway, 0.0
        while unused < gateway.config.settings.linger * 60 or gateway.config.settings.linger <= 0:
            await anyio.sleep(LINGER_CHECK_S)
            unused = 0.0 if self._links else unused + LINGER_CHECK_S
        log.info("Nobody has used the gateway for %g minutes", gateway.config.settings.linger)
        gateway.stop_wanted.set()


def _prefer_pidfd() -> None:
    """Python 3.11 watches each child with a thread of its own; Linux can do better (3.12 does by itself)."""
    if sys.version_info < (3, 12) and sys.platform == "linux":
        try:
            asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
        except OSError:
            log.debug("no pidfd here; each server's end is awaited by a thread")
