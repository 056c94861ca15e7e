"""The ways to connect a client to the null server, and the gateway of our way, which has its own home.

To add a way (another gateway or transport), add a `Way`.
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
SHORT_TMP = "/tmp" if os.name == "posix" else None  # a Unix socket's path is limited to about 104 bytes
START_LIMIT_S = 20.0
POLL_S = 0.001  # polling interval during a start, and therefore the error of its figure
SETTLE_LIMIT_S = 15.0
SUCCESSOR_S = 3.0  # time within which a gateway that a shim started answers
FOREIGN = ("PYTHONPATH", "PYTHONWARNINGS", "PYTHONDONTWRITEBYTECODE", "PYTHONPROFILEIMPORTTIME", "MULTI_MCP_HOME")


@dataclass(frozen=True, slots=True)
class Way:
    """A command that a client spawns, and the name under which the client sees the null server's tool."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    tool: str

    def connect(self) -> Client:
        """Return a client that has completed the handshake and found the tool. Raises BrokenError."""
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
    """Return this process's environment without variables that would make Python start differently than for a user."""
    return {name: value for name, value in os.environ.items() if name not in FOREIGN}


def direct() -> Way:
    """Return the direct way: the client starts the server itself."""
    return Way(DIRECT, tuple(NULL_SERVER), environment(), "echo")


def through(home: Home, name: str = OURS, argv: tuple[str, ...] = (), tool: str = "null_echo") -> Way:
    """Return the way through the gateway of `home`, which has the server. `argv`: the shim's command, by default the
    usual one.
    """
    return Way(name, argv or tuple(shim_command()), home.env, tool)


def isolated_shim() -> tuple[str, ...]:
    """Return the shim's command on an isolated interpreter (`-I -S`), to measure only the shim's own work."""
    root = str(Path(trayapp.__file__).resolve().parent.parent)
    code = f"import sys; sys.path.append({root!r}); from trayapp.shim.main import main; sys.exit(main([]))"
    return (sys.executable, "-I", "-S", "-c", code)


def has_script() -> bool:
    """True if the installation made the console script. Otherwise, the program is started by its path."""
    return shim_command()[:-1] != own_command()


@dataclass(frozen=True, slots=True)
class Home:
    """A folder for MULTI_MCP_HOME."""

    path: Path

    @property
    def env(self) -> dict[str, str]:
        """The environment for all processes that use this home."""
        return {**environment(), "MULTI_MCP_HOME": str(self.path)}

    def configure(self, idle_minutes: float = 0) -> None:
        """Write a servers.yaml with the null server. `idle_minutes`: its idle timeout, where 0 means never."""
        argv = ", ".join(f"'{word}'" for word in NULL_SERVER)
        text = f"settings: {{expose: tools, idle_timeout: {idle_minutes:g}}}\nservers:\n  null: {{command: [{argv}]}}\n"
        self.write("servers.yaml", text)

    def write(self, name: str, text: str) -> None:
        """Write a file in the home folder atomically."""
        fresh = self.path / f"{name}.new"
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(self.path / name)

    def control(self) -> ControlClient:
        """Return a control connection to the home's gateway. Raises NoGatewayError."""
        return ControlClient(run_dir(self.env), SETTLE_LIMIT_S)

    def snapshot(self) -> dict[str, Any]:
        """Return the gateway's snapshot, which `status --json` prints. Raises NoGatewayError."""
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
        """Wait until all servers are in that state. Raises BrokenError."""
        deadline = time.monotonic() + SETTLE_LIMIT_S
        while (found := {server["state"] for server in self.snapshot()["servers"]}) != {state}:
            if time.monotonic() > deadline:
                raise BrokenError(f"servers are {', '.join(sorted(found))}, not {state}, after {SETTLE_LIMIT_S:g} s")
            time.sleep(0.05)


@contextmanager
def fresh_home() -> Iterator[Home]:
    """Yield an empty home that is removed after the block."""
    with tempfile.TemporaryDirectory(prefix="mm-", dir=SHORT_TMP, ignore_cleanup_errors=True) as folder:
        yield Home(Path(folder))


@dataclass(frozen=True, slots=True)
class Started:
    """A gateway that answers. `seconds`: from its spawn to its first answer."""

    pid: int
    seconds: float
    snapshot: Mapping[str, Any]


@contextmanager
def gateway(home: Home) -> Iterator[Started]:
    """Run `multi-mcp start`, and end it after the block.

    Raises BrokenError if it does not answer, or if it ended early: shims may have replaced it by then.
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
    """End the gateway, if any, that a shim started in place of ours."""
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
