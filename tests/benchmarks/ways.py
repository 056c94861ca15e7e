"""The ways from a client to the null server that are compared, and the gateway that ours needs, in a home of its own.

A further way (another gateway, another transport) is one more `Way`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trayapp
from tests.benchmarks.client import STOP_GRACE_S, BrokenError, Client
from tests.benchmarks.figures import OURS
from tests.fixtures.ending import end
from trayapp.model.errors import MultiMcpError, NoGatewayError
from trayapp.service.command_line import own_command, shim_command
from trayapp.service.gateway_launch import await_gone, pauses
from trayapp.wire import control
from trayapp.wire.control import ControlClient
from trayapp.wire.rundir import run_dir

DIRECT = "direct"
NULL_SERVER = [sys.executable, "-I", "-S", str(Path(__file__).with_name("null_server.py"))]
SHORT_TMP = "/tmp" if os.name == "posix" else None  # a Unix socket's path may have about 104 bytes
START_LIMIT_S = 20.0
POLL_S = 0.001  # of a start that is waited for: the error of what is measured
SETTLE_LIMIT_S = 15.0
SUCCESSOR_S = 3.0  # by then a gateway that a shim started answers
FOREIGN = ("PYTHONPATH", "PYTHONWARNINGS", "PYTHONDONTWRITEBYTECODE", "PYTHONPROFILEIMPORTTIME", "MULTI_MCP_HOME")


@dataclass(frozen=True, slots=True)
class Way:
    """What a client spawns, and the name under which it finds the null server's tool there."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    tool: str

    def connect(self) -> Client:
        """Return a client that has shaken hands and found the tool. Raises BrokenError."""
        client = Client(self.argv, self.env)
        try:
            client.initialize()
            if self.tool not in client.tools():
                raise BrokenError(f"{self.name} does not list {self.tool}")
        except BaseException:
            client.close()
            raise
        return client


def environment() -> dict[str, str]:
    """Return this process's environment without what makes a Python start differently than at a user's."""
    return {name: value for name, value in os.environ.items() if name not in FOREIGN}


def direct() -> Way:
    """Return the server's own command: the client starts it."""
    return Way(DIRECT, tuple(NULL_SERVER), environment(), "echo")


def through(home: Home, name: str = OURS, argv: tuple[str, ...] = (), tool: str = "null_echo") -> Way:
    """Return the shim's command, by default the one that people use. The gateway of `home` has the server."""
    return Way(name, argv or tuple(shim_command()), home.env, tool)


def isolated_shim() -> tuple[str, ...]:
    """Return the shim on an interpreter that loads neither site nor environment: what its own work costs."""
    root = str(Path(trayapp.__file__).resolve().parent.parent)
    code = f"import sys; sys.path.append({root!r}); from trayapp.shim.main import main; sys.exit(main([]))"
    return (sys.executable, "-I", "-S", "-c", code)


def has_script() -> bool:
    """Return True if the installation made the console script; else the program is started by its path."""
    return shim_command()[:-1] != own_command()


@dataclass(frozen=True, slots=True)
class Home:
    """A MULTI_MCP_HOME."""

    path: Path

    @property
    def env(self) -> dict[str, str]:
        """The environment of everything that belongs to this home."""
        return {**environment(), "MULTI_MCP_HOME": str(self.path)}

    def configure(self, idle_minutes: float = 0) -> None:
        """Write a servers.yaml with the null server, connected until idle for so long; 0 is forever."""
        argv = ", ".join(f"'{word}'" for word in NULL_SERVER)
        text = f"settings: {{expose: tools, idle_timeout: {idle_minutes:g}}}\nservers:\n  null: {{command: [{argv}]}}\n"
        self.write("servers.yaml", text)

    def write(self, name: str, text: str) -> None:
        """Replace one file of it."""
        fresh = self.path / f"{name}.new"
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(self.path / name)

    def control(self) -> ControlClient:
        """Return a control connection to its gateway. Raises NoGatewayError."""
        return ControlClient(run_dir(self.env), SETTLE_LIMIT_S)

    def snapshot(self) -> dict[str, Any]:
        """Return what `status --json` prints. Raises NoGatewayError."""
        with self.control() as gateway:
            answer: dict[str, Any] = gateway.call(control.SNAPSHOT)
            return answer

    def settle(self) -> None:
        """Wait until the gateway knows its servers' tools. Raises BrokenError."""
        try:
            with self.control() as gateway:
                gateway.call(control.SETTLE)
        except MultiMcpError as error:
            raise BrokenError(f"the gateway does not settle: {error}") from None

    def await_states(self, state: str) -> None:
        """Wait until all its servers are in that state. Raises BrokenError."""
        deadline = time.monotonic() + SETTLE_LIMIT_S
        while (found := {server["state"] for server in self.snapshot()["servers"]}) != {state}:
            if time.monotonic() > deadline:
                raise BrokenError(f"servers are {', '.join(sorted(found))}, not {state}, after {SETTLE_LIMIT_S:g} s")
            time.sleep(0.05)


@contextmanager
def fresh_home() -> Iterator[Home]:
    """Yield an empty home, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="mm-", dir=SHORT_TMP, ignore_cleanup_errors=True) as folder:
        yield Home(Path(folder))


@dataclass(frozen=True, slots=True)
class Started:
    """A gateway that answers, and how long that took from its spawn."""

    pid: int
    seconds: float
    snapshot: Mapping[str, Any]


@contextmanager
def gateway(home: Home) -> Iterator[Started]:
    """Run `multi-mcp start`, from its spawn until its end.

    Raises BrokenError when it does not answer, or ends by itself: shims would have started another one by then.
    """
    null = subprocess.DEVNULL
    start = time.perf_counter()
    process = subprocess.Popen(
        [*shim_command()[:-1], "start"], env=home.env, stdin=null, stdout=null, stderr=subprocess.PIPE
    )
    try:
        snapshot = _first_answer(home, process)
        yield Started(process.pid, time.perf_counter() - start, snapshot)
        if process.poll() is not None:
            raise BrokenError(f"the gateway ended during the measurement (code {process.returncode})")
    finally:
        if process.poll() is not None:
            _stop_successor(home)
        _end(process)


def _first_answer(home: Home, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        try:
            return home.snapshot()
        except NoGatewayError:
            if process.poll() is not None:
                assert process.stderr is not None
                said = process.stderr.read().decode(errors="replace")[-500:]
                raise BrokenError(f"the gateway ended with code {process.returncode}: {said}") from None
            time.sleep(POLL_S)
    raise BrokenError(f"the gateway did not answer within {START_LIMIT_S:g} s")


def _stop_successor(home: Home) -> None:
    """End the gateway that a shim started in our gateway's place, if one did."""
    for _ in pauses(SUCCESSOR_S):
        with suppress(MultiMcpError), home.control() as successor:
            pid = successor.call(control.SNAPSHOT)["gateway"]["pid"]
            successor.call(control.STOP)
            await_gone(pid)
            return


def _end(process: subprocess.Popen[bytes]) -> None:
    end(process, STOP_GRACE_S)
    assert process.stderr is not None
    process.stderr.close()
