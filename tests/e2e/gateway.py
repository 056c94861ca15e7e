"""A real gateway process in a temporary home, controlled and observed from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread
import psutil

from tests.cli.running import environment
from tests.e2e.client import RawClient, client_of
from tests.e2e.forked import Forked, start_forked
from tests.fixtures.odd import LOOK_S, Odd, alive, until
from tests.patience import stretched
from trayapp.backends.stdio.guardian import __file__ as GUARDIAN
from trayapp.backends.stdio.shellenv import RESOLVING
from trayapp.service.command_line import own_command
from trayapp.service.gateway_launch import READY_TIMEOUT_S, await_ready
from trayapp.wire.control import STOP, ControlClient
from trayapp.wire.rundir import run_dir

PASSING_S = 5.0  # limit for the guardian to detach from the gateway, and for ended children to be reaped
END_S = 20.0  # the stop ladder of a stubborn server takes 4 s
EXPOSED = "expose: tools"


def is_login_shell(process: psutil.Process) -> bool:
    """True if the gateway started the process to read the user's environment.

    A zombie does not count, so that tests notice it. A process that no longer exists counts.
    """
    try:
        return RESOLVING in process.environ()
    except psutil.ZombieProcess:
        return False
    except psutil.NoSuchProcess:
        return True


def is_passing(process: psutil.Process, gateway: psutil.Process) -> bool:
    """True if a child of the gateway is the guardian, has not yet executed its own program, or has ended."""
    try:
        words = process.cmdline()
        return GUARDIAN in words or words in ([], gateway.cmdline())
    except psutil.NoSuchProcess:  # includes zombies, for which their parent may be about to wait
        return True


class Gateway:
    """The home of a gateway, running or not. If `forked`, its process is a fork of one that has loaded the program."""

    def __init__(self, home: Path, *, forked: bool = False) -> None:
        self.home = home
        self.forked = forked and sys.platform == "linux"
        self.verbs: list[str] = []  # with what a forked gateway's panel runs verbs; []: with the program
        self.file = home / "servers.yaml"
        self.env = environment(home)
        self.process: subprocess.Popen[bytes] | Forked | None = None

    # -- servers.yaml ------------------------------------------------------------------------------------------------

    def write(self, servers: dict[str, dict[str, Any]], **settings: Any) -> None:
        """Save servers.yaml. Entries and settings are written as JSON, which is valid YAML."""
        known = {"expose": "tools", "http": {"enabled": False}, **settings}
        self.save(f"settings: {json.dumps(known)}\nservers:\n" + self._lines(servers))

    @staticmethod
    def _lines(servers: dict[str, dict[str, Any]]) -> str:
        return "".join(f"  {name}: {json.dumps(entry)}\n" for name, entry in servers.items()) or "  {}\n"

    def save(self, text: str) -> None:
        """Save servers.yaml as an editor does: a new file replaces the old one."""
        new = self.file.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        new.replace(self.file)

    def put_first(self, folder: Path) -> None:
        """Make the gateway find programs in `folder` first, even after it has read the login shell's environment.

        That shell reads /etc/profile, which may put other folders first. It reads the user's own file last.
        """
        (folder / ".profile").write_text(f'PATH="{folder}:$PATH"\n', "utf-8")
        self.env |= {"HOME": str(folder), "PATH": f"{folder}{os.pathsep}{self.env['PATH']}"}

    # -- the process -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the gateway and wait until it answers."""
        self.process = self.launch()
        process = cast("subprocess.Popen[bytes]", self.process)
        await_ready(self.run, stretched(READY_TIMEOUT_S), process, self.home / "logs" / "gateway.log")

    def launch(self) -> subprocess.Popen[bytes] | Forked:
        """Start and return a new gateway process, which may not answer yet."""
        if self.forked:
            return start_forked(["start"], self.env, self.home, self.verbs)
        null = subprocess.DEVNULL
        return subprocess.Popen(
            [*own_command(), "start"], env=self.env, cwd=self.home, stdin=null, stdout=null, stderr=null
        )

    def stop(self) -> int:
        """Stop the gateway as a person would, and return its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.control(STOP)
        return self.process.wait(stretched(END_S))

    @property
    def run(self) -> str:
        """The gateway's runtime folder."""
        return run_dir(self.env)

    @property
    def pid(self) -> int:
        """The gateway's process id."""
        assert self.process is not None
        return self.process.pid

    @property
    def http_url(self) -> str:
        """The URL of the HTTP server. Reading it waits for the server, which starts later than the shims' socket."""
        end = time.monotonic() + stretched(READY_TIMEOUT_S)
        while not (url := self.snapshot()["gateway"]["http_url"]):
            assert time.monotonic() < end, "no HTTP server"
            time.sleep(LOOK_S)
        return str(url)

    def children(self) -> list[int]:
        """Return the ids of all descendants of the gateway except the login shell and the guardian.

        The login shell runs only briefly, after the first client has received its list. The guardian's first process
        is a child until the gateway has reaped it, so wait for that. A zombie that is never reaped is listed.
        """
        itself = psutil.Process(self.pid)
        end = time.monotonic() + stretched(PASSING_S)
        while True:
            below = [child for child in itself.children(recursive=True) if not is_login_shell(child)]
            if not any(is_passing(child, itself) for child in below) or time.monotonic() > end:
                return [child.pid for child in below]
            time.sleep(LOOK_S)

    # -- control -----------------------------------------------------------------------------------------------------

    def control(self, method: str, **params: Any) -> Any:
        """Send a control request, as the tray and the command line do, and return its result."""
        with ControlClient(self.run, stretched(30.0)) as client:
            return client.call(method, params)

    async def ask(self, method: str, **params: Any) -> Any:
        """Call `control` without blocking the event loop."""
        return await anyio.to_thread.run_sync(lambda: self.control(method, **params))

    def snapshot(self) -> dict[str, Any]:
        """Return the snapshot, which `status --json` prints."""
        result: dict[str, Any] = self.control("snapshot")
        return result

    def server(self, name: str) -> dict[str, Any]:
        """Return one server's row of the snapshot."""
        return next(row for row in self.snapshot()["servers"] if row["name"] == name)

    def server_names(self) -> list[str]:
        """Return the names of all servers in the snapshot."""
        return [row["name"] for row in self.snapshot()["servers"]]

    async def state(self, name: str, state: str) -> None:
        """Wait until the server is in this state."""
        await until(lambda: self.server(name)["state"] == state)

    async def known(self) -> None:
        """Wait until discovery has finished and its results are saved."""
        await self.ask("settle")

    async def settled(self, condition: Callable[[], Any]) -> None:
        """Wait until the condition is true."""
        await until(condition)

    # -- clients -----------------------------------------------------------------------------------------------------

    def client(self, version: str | None = "2025-11-25") -> AbstractAsyncContextManager[RawClient]:
        """Return a client that is connected through a real shim process."""
        return client_of([*own_command(), "stdio"], self.env, self.home, version)


@contextmanager
def gateway_in(home: Path, *, forked: bool = False) -> Iterator[Gateway]:
    """Yield a gateway. If it runs at the end, stop it and assert that none of its processes is left."""
    made = Gateway(home, forked=forked)
    try:
        yield made
    finally:
        if made.process is not None and made.process.poll() is None:
            below = made.children()
            made.stop()
            assert [pid for pid in below if alive(pid)] == []


def entry(odd: Odd, **more: Any) -> dict[str, Any]:
    """Return the odd server's entry for servers.yaml, with `more` added."""
    return {"command": odd.argv, **more}


@asynccontextmanager
async def serving(gateway: Gateway, *odds: Odd, known: bool = True, **settings: Any) -> AsyncIterator[RawClient]:
    """Configure these servers, start the gateway, wait for discovery if `known`, and yield a client."""
    gateway.write({odd.name: entry(odd) for odd in odds}, **settings)
    gateway.start()
    if known:
        await gateway.known()
    async with gateway.client() as client:
        yield client
