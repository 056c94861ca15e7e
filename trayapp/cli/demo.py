"""`multi-mcp demo`: try everything with real processes, in a temporary home folder."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import psutil

from trayapp.cli.options import verb
from trayapp.cli.output import print_result, say
from trayapp.config.paths import CONFIG_NAME, HOME_VARIABLE
from trayapp.config.store import sample_text
from trayapp.model.errors import MultiMcpError, NoGatewayError
from trayapp.model.text import count, one_line
from trayapp.service.command_line import shim_command
from trayapp.service.gateway_launch import FROM_ANYWHERE, await_gone, await_ready, is_alive, pauses, start_detached
from trayapp.wire.control import SETTLE, SNAPSHOT, STOP, ControlClient
from trayapp.wire.rundir import run_dir

PROTOCOL = "2025-11-25"
ANSWER_TIMEOUT_S = 30.0  # enough for a server's start on a busy machine; the sample server takes 0.1 s
END_TIMEOUT_S = 5.0  # time from the end of stdin to the end of the shim
Value = TypeVar("Value")
WARM_CALLS = 50
LABEL_COLUMNS = 34
SETTLE_TIMEOUT_S = 30.0
LEFT_TIMEOUT_S = 5.0  # time for processes to end once the gateway is gone
SHORT_TMP = "/tmp" if os.name == "posix" and os.access("/tmp", os.W_OK) else None  # limit of socket paths: 100 bytes


@verb("demo", "multi-mcp demo")
def demo_verb(as_json: bool) -> None:
    """Try everything out in a temporary folder.

    Starts a gateway with the bundled sample server, connects to it as an AI
    tool does, lists and calls tools, and leaves nothing behind.
    """
    report = DemoReport(as_json)
    with temporary_home() as home:
        Demo(Path(home), report).run()
    print_result(as_json, {"ok": True, "steps": report.steps}, "", "Everything worked, and nothing was left behind.")


def temporary_home() -> TemporaryDirectory[str]:
    """Return an empty folder that is deleted at the end of its context."""
    return TemporaryDirectory(prefix="multi-mcp-demo-", dir=SHORT_TMP, ignore_cleanup_errors=True)


@dataclass(slots=True)
class DemoReport:
    """The steps so far. Each has its duration in milliseconds, or None if it was not timed."""

    as_json: bool
    steps: list[dict[str, Any]] = field(default_factory=list)

    def title(self, text: str) -> None:
        """Print a heading."""
        if not self.as_json:
            say("", text)

    def step(self, name: str, label: str, ms: float | None = None, detail: str = "") -> None:
        """Report one step. `name` is its stable name in the JSON."""
        detail = one_line(detail)
        self.steps.append({"name": name, "ms": None if ms is None else round(ms, 3), "said": detail})
        if not self.as_json:
            taken = "" if ms is None else f"{ms:.2f} ms"
            say(f"  {label:<{LABEL_COLUMNS}}{taken:>10}  {detail}".rstrip())

    def timed(self, name: str, label: str, work: Callable[[], Value], detail: Callable[[Value], str]) -> Value:
        """Do the work, report how long it took, and return its value."""
        begin = time.perf_counter()
        value = work()
        self.step(name, label, (time.perf_counter() - begin) * 1000, detail(value))
        return value


class Demo:
    """One run of the demo in `home`. It leaves no process behind, even if it fails."""

    def __init__(self, home: Path, report: DemoReport) -> None:
        self._home = home
        self._report = report
        self._environ = {**os.environ, HOME_VARIABLE: str(home)}
        self._run = run_dir(self._environ)
        self._seen: dict[int, psutil.Process] = {}

    def run(self) -> None:
        """Run the demo: a first start, and a second one with a cache. Raises DemoFailed and other MultiMcpErrors."""
        (self._home / CONFIG_NAME).write_text(sample_text(), encoding="utf-8")
        try:
            self._first_start()
            self._report.title("Second start: the list comes from the cache")
            with self._gateway("start_warm"), self._session("warm") as client:
                self._list(client, "list_cached")
                self._check_idle("Sample server not running")
                self._report.timed(
                    "call_again", "First call (starts the server)", lambda: add(client, 2, 3), "2 + 3 = {}".format
                )
                self._note_processes()
        finally:
            left = self._end_all()
        if left:
            raise DemoFailed(f"These processes did not end by themselves: {', '.join(map(str, left))}")
        self._report.step("clean", "Processes left", detail="none")

    def _first_start(self) -> None:
        report = self._report
        report.title("First start: nothing is known yet")
        with self._gateway("start_cold"), self._session("cold") as client:
            report.timed("discover", "Sample server asked for its tools", lambda: self._ask(SETTLE), lambda _: "")
            self._list(client, "list")
            self._check_idle("Sample server stopped again")
            report.timed("call_cold", "First call (starts the server)", lambda: call(client, "clock"), str)
            times: list[float] = []
            for number in range(WARM_CALLS):
                begin = time.perf_counter()
                if add(client, number, 1) != str(number + 1):
                    raise DemoFailed(f"The sample server cannot add {number} and 1")
                times.append((time.perf_counter() - begin) * 1000)
            report.step("call_warm", f"Median of {WARM_CALLS} more calls", statistics.median(times))
            self._note_processes()

    @contextmanager
    def _gateway(self, name: str) -> Iterator[None]:
        def start() -> subprocess.Popen[bytes]:
            process = start_detached(self._environ, linger=False)
            self._note(process.pid)
            await_ready(self._run, process=process, log_file=self._home / "logs" / "gateway.log")
            return process

        def stop() -> None:
            self._ask(STOP)
            if not await_gone(process.pid):
                raise DemoFailed(f"The gateway (process {process.pid}) did not stop")
            process.wait()

        process = self._report.timed(name, "Gateway started", start, lambda process: f"process {process.pid}")
        yield
        self._report.timed("stop", "Gateway and servers stopped", stop, lambda _: "")

    @contextmanager
    def _session(self, name: str) -> Iterator[ShimClient]:
        def connect() -> ShimClient:
            client = ShimClient(self._environ)
            self._note(client.process.pid)
            client.initialize()
            return client

        client = self._report.timed(f"initialize_{name}", "Shim started, initialize answered", connect, lambda _: "")
        with closing(client):
            yield client

    def _list(self, client: ShimClient, name: str) -> None:
        def work() -> int:
            return len(client.request("tools/list")["tools"])

        number = self._report.timed(name, "tools/list", work, lambda number: count(number, "tool"))
        if number < 3:
            raise DemoFailed(f"The list has {count(number, 'tool')} instead of 3")

    def _check_idle(self, label: str) -> None:
        """Wait until the sample server does not run. Raises DemoFailed after SETTLE_TIMEOUT_S.

        After a list, the gateway may start it again, to ask for what only clients of older protocol revisions see.
        """
        for _ in pauses(SETTLE_TIMEOUT_S):
            (server,) = self._ask(SNAPSHOT)["servers"]
            if server["pid"] is None:
                self._report.step("idle", label, detail=f"state {server['state']}")
                return
        raise DemoFailed(f"The sample server is {server['state']}, but should not run")

    def _ask(self, method: str) -> Any:
        with ControlClient(self._run, SETTLE_TIMEOUT_S) as control:
            return control.call(method)

    # -- processes -----------------------------------------------------------------------------------------------

    def _note(self, pid: int) -> None:
        with suppress(psutil.NoSuchProcess):
            self._seen[pid] = psutil.Process(pid)

    def _note_processes(self) -> None:
        """Remember all descendants of the known processes, among them the servers, so that none is left behind."""
        for process in list(self._seen.values()):
            with suppress(psutil.NoSuchProcess):
                self._seen.update((child.pid, child) for child in process.children(recursive=True))

    def _end_all(self) -> list[int]:
        """Stop the gateway if it still runs, and wait for all processes to end. Kill the rest, and return their ids."""
        self._note_processes()
        with suppress(NoGatewayError):
            self._ask(STOP)
        left: list[psutil.Process] = []
        for _ in pauses(LEFT_TIMEOUT_S):
            # The guardian detaches itself and briefly outlives its gateway: only its environment shows that it is ours.
            self._seen.update((process.pid, process) for process in processes_of(self._home))
            left = [process for process in self._seen.values() if is_alive(process)]
            if not left:
                break
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        return [process.pid for process in left]


class DemoFailed(MultiMcpError):
    """Raised if a step of the demo fails."""

    code = "demo_failed"

    def __init__(self, title: str) -> None:
        super().__init__(title, "Try again. To see what a gateway logs at its start: multi-mcp start")


class ShimClient:
    """A real shim process with us as its client."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        self.process = subprocess.Popen(
            shim_command(), env=dict(environ), cwd=FROM_ANYWHERE, stdin=pipe, stdout=pipe, stderr=null
        )
        self._last_id = 0

    def initialize(self) -> dict[str, Any]:
        """Do the handshake and return the gateway's result."""
        about = {"name": "multi-mcp-demo", "version": "1"}
        params = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": about}
        result = self.request("initialize", params)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return its result.

        Raises DemoFailed if the answer is an error or takes longer than ANSWER_TIMEOUT_S, or if the shim ends.
        """
        self._last_id += 1
        deadline = threading.Timer(ANSWER_TIMEOUT_S, self.process.kill)
        deadline.daemon = True
        deadline.start()
        try:
            self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params or {}})
            assert self.process.stdout is not None
            for line in self.process.stdout:
                message: dict[str, Any] = json.loads(line)
                if message.get("id") == self._last_id and "method" not in message:  # skip notifications and requests
                    break
            else:
                raise DemoFailed(f"{method} got no answer")
        finally:
            deadline.cancel()
        if "error" in message:
            raise DemoFailed(f"{method} was answered with an error: {message['error'].get('message')}")
        result: dict[str, Any] = message["result"]
        return result

    def close(self) -> None:
        """End the session as a client does, by closing stdin, and wait for the shim's end."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.close()
            self.process.wait(END_TIMEOUT_S)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise DemoFailed("The shim ended before its client did") from None


def processes_of(home: Path) -> Iterator[psutil.Process]:
    """Yield every process started with this home (gateway, shims, servers), except this one."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(HOME_VARIABLE) == str(home):
                yield process


def call(client: ShimClient, tool: str, **arguments: Any) -> str:
    """Call a tool of the sample server and return its text."""
    params = {"name": f"sample_{tool}", "arguments": arguments}
    return str(client.request("tools/call", params)["content"][0]["text"])


def add(client: ShimClient, a: int, b: int) -> str:
    """Have the sample server add two numbers, and return its answer."""
    return call(client, "add", a=a, b=b)
