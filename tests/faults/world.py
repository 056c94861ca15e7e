"""Fixtures of the fault tests: counting servers, clients of a real shim, and the processes that belong to a home."""

from __future__ import annotations

import asyncio
import faulthandler
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import psutil

from tests.e2e.client import RawClient, task_group
from tests.e2e.gateway import Gateway
from tests.fixtures.odd import alive, until
from tests.patience import stretched
from tests.tools import processes_with
from trayapp.model.errors import MultiMcpError
from trayapp.service.command_line import own_command

PROGRAM = Path(__file__).with_name("servers.py")
LONG = os.environ.get("MULTI_MCP_LONG_TESTS") == "1"
PATIENCE_S = 30.0  # enough for a busy machine
GONE_S = 10.0  # no descendant may be left 10 s after the gateway's end
LOOK_S = 0.02
RECOVERY_S = 5.0  # from the end of a fault until calls succeed again
Message = dict[str, Any]


@dataclass
class Counting:
    """A configured counting server and its log."""

    folder: Path
    name: str = "counting"
    switches: tuple[str, ...] = ()

    @property
    def log(self) -> Path:
        """The file to which the server appends one line per call."""
        return self.folder / f"{self.name}.calls"

    @property
    def argv(self) -> list[str]:
        """The command line that starts the server."""
        return [sys.executable, "-I", "-S", str(PROGRAM), "--name", self.name, "--log", str(self.log), *self.switches]

    def entry(self, **more: Any) -> Message:
        """Return the server's entry for servers.yaml."""
        return {"command": self.argv, **more}

    def executed(self) -> Counter[str]:
        """Return how many calls were executed for each `n`."""
        return Counter(self.log.read_text(encoding="utf-8").split()) if self.log.exists() else Counter()


def takes_long() -> None:
    """Let a test take longer than pytest's limit for the whole run."""
    faulthandler.cancel_dump_traceback_later()


def wait_until(condition: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """Wait for the first true value of `condition()` and return it. Fails if there is none within `patience_s`."""
    end = time.monotonic() + stretched(patience_s)
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {patience_s:g} s"
        time.sleep(LOOK_S)
    return value


# -- processes -------------------------------------------------------------------------------------------------------


def processes_of(home: Path) -> dict[int, str]:
    """Return the command lines of the other processes with this MULTI_MCP_HOME in their environment, by process id."""
    found = {}
    for process in processes_with(f"MULTI_MCP_HOME={home}", "environ"):
        try:
            if process.environ().get("MULTI_MCP_HOME") == str(home) and process.status() != psutil.STATUS_ZOMBIE:
                found[process.pid] = " ".join(process.cmdline())[-150:]
        except psutil.Error:
            continue
    found.pop(os.getpid(), None)
    return found


def left_of(gateway: Gateway) -> dict[int, str]:
    """Return the processes of the gateway's home, including a forked gateway, which has its parent's environment."""
    found = processes_of(gateway.home)
    if gateway.process is not None and gateway.process.poll() is None:
        found[gateway.pid] = "the gateway"
    return found


def servers_of(gateway: Gateway) -> list[int]:
    """Return the ids of the server processes below the gateway, without the guardian and login shells."""
    found = []
    for process in psutil.Process(gateway.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found += [process.pid] if PROGRAM.name in " ".join(process.cmdline()) else []
    return found


def gateway_pid(gateway: Gateway) -> int:
    """Return the process id of the running gateway, no matter who started it."""
    return int(gateway.snapshot()["gateway"]["pid"])


def kill_gateway(gateway: Gateway, number: int = signal.SIGKILL) -> int:
    """Send the gateway the signal `number` and wait until it is gone. Return its process id."""
    pid = gateway_pid(gateway)
    os.kill(pid, number)
    if gateway.process is not None and gateway.process.pid == pid:
        gateway.process.wait(stretched(PATIENCE_S))
    wait_until(lambda: threads_of(pid) == 0)
    return pid


def threads_of(pid: int) -> int:
    """Return how many threads of a process run. They can hold its sockets open after the first thread has ended."""
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir())) - (not alive(pid))
    except OSError:
        return 0


def nothing_left(gateway: Gateway) -> None:
    """Wait until no process of the gateway's home runs. Fails if some are left after GONE_S."""
    try:
        wait_until(lambda: not left_of(gateway), GONE_S)
    except AssertionError:
        assert left_of(gateway) == {}, f"after {GONE_S:g} s on a machine with time"


def stop_all(gateway: Gateway) -> None:
    """Stop the running gateway and wait until no process of its home is left. If some stay, kill them and fail."""
    try:
        wait_until(lambda: not still_runs(gateway), GONE_S + 5)
    except AssertionError:
        left = left_of(gateway)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        raise AssertionError(f"left behind: {left}") from None
    if gateway.process is not None:
        gateway.process.wait(stretched(PATIENCE_S))


def still_runs(gateway: Gateway) -> bool:
    """Stop a gateway that answers. Return True if any process of its home is left."""
    with suppress(MultiMcpError):  # perhaps no gateway listens
        gateway.control("stop")
    return bool(left_of(gateway))


# -- clients ---------------------------------------------------------------------------------------------------------


class ShimClient:
    """A client of the shim that reads only on demand and checks all output: whole frames, one answer per request."""

    def __init__(self, gateway: Gateway, *options: str) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [*own_command(), "stdio", *options],
            env=gateway.env,
            cwd=gateway.home,
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        self._rest = b""
        self._last_id = 0
        self.told: list[Message] = []
        self.answers: dict[Any, Message] = {}
        self.asked: list[Any] = []

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._in.write(view) or 0 :]

    def send(self, method: str, params: Message | None = None) -> int:
        """Send a request without waiting for its answer. Return its id."""
        self._last_id += 1
        self.asked.append(self._last_id)
        self.write(frame(self._last_id, method, params or {}))
        return self._last_id

    def call(self, tool: str, **arguments: Any) -> int:
        """Call a tool without waiting for the answer. Return the id of the request."""
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def notify(self, method: str, params: Message | None = None) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode() + b"\n")

    def initialize(self) -> Message:
        """Perform the whole handshake and return the answer to `initialize`."""
        about = {"name": "fault", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
        answer = self.answer(self.send("initialize", params))
        self.notify("notifications/initialized")
        return answer

    def answer(self, request_id: Any, patience_s: float = PATIENCE_S) -> Message:
        """Wait for the answer to a request and return it."""
        end = time.monotonic() + stretched(patience_s)
        while request_id not in self.answers:
            assert self._read(end - time.monotonic()), "the shim ended"
        return self.answers[request_id]

    def ask(self, method: str, params: Message | None = None) -> Message:
        """Send a request and return its answer."""
        return self.answer(self.send(method, params))

    def text(self, tool: str, **arguments: Any) -> str:
        """Call a tool and return the text of its result. Fails on an error."""
        answer = self.answer(self.call(tool, **arguments))
        assert "result" in answer, answer
        return str(answer["result"]["content"][0]["text"])

    def heard(self, method: str) -> Message:
        """Wait for a notification and return it."""
        end = time.monotonic() + stretched(PATIENCE_S)
        while not (found := [message for message in self.told if message["method"] == method]):
            assert self._read(end - time.monotonic()), "the shim ended"
        return found[0]

    def _read(self, patience_s: float) -> bool:
        ready, _, _ = select.select([self._out], [], [], max(0.0, patience_s))
        assert ready, "silence"
        data = os.read(self._out.fileno(), 1 << 20)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(json.loads(line))
        return bool(data)

    def _take(self, message: Message) -> None:
        assert message["jsonrpc"] == "2.0"
        if "method" in message:
            self.told.append(message)
            return
        assert ("result" in message) != ("error" in message)
        assert message["id"] in self.asked, f"an answer to nothing: {str(message)[:200]}"
        assert message["id"] not in self.answers, f"answered twice: {str(message)[:200]}"
        self.answers[message["id"]] = message

    def close(self) -> int:
        """Close stdin, read to the end and return the shim's exit code. Fails if the output ends within a frame."""
        self._in.close()
        while self._read(PATIENCE_S):
            pass
        assert self._rest == b""
        code = self.process.wait(stretched(PATIENCE_S))
        self._out.close()
        return code

    def kill(self) -> None:
        """Close both pipes, as if the client had been killed, and wait until the shim exits."""
        self._in.close()
        self._out.close()
        self.process.wait(stretched(PATIENCE_S))


def frame(request_id: Any, method: str, params: Message) -> bytes:
    """Return a request as one line of JSON."""
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode() + b"\n"


@contextmanager
def shim_client(gateway: Gateway, *options: str) -> Iterator[ShimClient]:
    """Yield an initialized client. At the end, close it and check that the shim exits with 0."""
    client = ShimClient(gateway, *options)
    try:
        assert "result" in client.initialize()
        yield client
        if client.process.poll() is None:
            assert client.close() == 0
    finally:
        if client.process.poll() is None:
            client.process.kill()
            client.process.wait()
        client._in.close()
        client._out.close()


def is_lost(answer: Message) -> bool:
    """True if `answer` is the error of a call that was in flight when the gateway ended."""
    return bool(answer.get("error", {}).get("data", {}).get("code") == "gateway_lost")


@asynccontextmanager
async def undisturbed(
    gateway: Gateway, tool: str, slowest_s: float = 5.0, pause_s: float = 0.1
) -> AsyncIterator[list[float]]:
    """Keep calling a tool of another server during the block, and yield the calls' durations in seconds.

    Fails if a call fails or takes longer than `slowest_s`.
    """
    took: list[float] = []

    async def call_on(client: RawClient) -> None:
        while True:
            began = time.monotonic()
            with anyio.fail_after(stretched(slowest_s)):
                await client.call(tool, n=f"other-{len(took)}")
            took.append(time.monotonic() - began)
            await anyio.sleep(pause_s)

    async with gateway.client() as client:
        await client.call(tool, n="first")
        async with task_group() as tasks:
            tasks.start_soon(call_on, client)
            yield took
            enough = len(took) + 2
            await until(lambda: len(took) >= enough)
            tasks.cancel_scope.cancel()
        client._open.clear()


async def outcome(answer: asyncio.Future[Message]) -> Message:
    """Wait for an answer to `RawClient.ask` and return it. Fails after 20 s."""
    with anyio.fail_after(stretched(20)):
        return await answer


async def recovers(client: RawClient, tool: str, **arguments: Any) -> None:
    """Make calls until one succeeds. Fails after RECOVERY_S."""
    end = anyio.current_time() + stretched(RECOVERY_S)
    while "error" in (answer := await outcome(client.ask("tools/call", calls(tool, **arguments)))):
        assert anyio.current_time() < end, answer
        await anyio.sleep(0.02)


def calls(tool: str, **arguments: Any) -> Message:
    """Return the params of a tools/call request."""
    return {"name": tool, "arguments": arguments}
