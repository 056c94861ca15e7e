"""Shared by the tests of this folder: counting servers, a client of a real shim, and processes left of a home."""

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
PATIENCE_S = 30.0  # a busy machine
GONE_S = 10.0  # PRODUCT 5: no descendant is left 10 s later
LOOK_S = 0.02
RECOVERY_S = 5.0  # from the end of a fault until all is well
Message = dict[str, Any]


@dataclass
class Counting:
    """One configured counting server and its log."""

    folder: Path
    name: str = "counting"
    switches: tuple[str, ...] = ()

    @property
    def log(self) -> Path:
        """One line a call."""
        return self.folder / f"{self.name}.calls"

    @property
    def argv(self) -> list[str]:
        """Program first."""
        return [sys.executable, "-I", "-S", str(PROGRAM), "--name", self.name, "--log", str(self.log), *self.switches]

    def entry(self, **more: Any) -> Message:
        """Return its entry in servers.yaml."""
        return {"command": self.argv, **more}

    def executed(self) -> Counter[str]:
        """Return how often each `n` was executed."""
        return Counter(self.log.read_text(encoding="utf-8").split()) if self.log.exists() else Counter()


def takes_long() -> None:
    """Mark a test that may take longer than pytest's limit for the whole run."""
    faulthandler.cancel_dump_traceback_later()


def wait_until(condition: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """Wait for something outside this process: the first true value of `condition()`. Fails when it stays false."""
    end = time.monotonic() + stretched(patience_s)
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {patience_s:g} s"
        time.sleep(LOOK_S)
    return value


# -- processes -------------------------------------------------------------------------------------------------------


def processes_of(home: Path) -> dict[int, str]:
    """Return every process that lives with this MULTI_MCP_HOME, except this one: id -> command line."""
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
    """Return every process of its home, and the gateway itself: a forked one has the environment of its parent."""
    found = processes_of(gateway.home)
    if gateway.process is not None and gateway.process.poll() is None:
        found[gateway.pid] = "the gateway"
    return found


def servers_of(gateway: Gateway) -> list[int]:
    """Return the processes of servers below the gateway: neither the guardian nor a login shell that is asked for its
    PATH.
    """
    found = []
    for process in psutil.Process(gateway.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found += [process.pid] if PROGRAM.name in " ".join(process.cmdline()) else []
    return found


def gateway_pid(gateway: Gateway) -> int:
    """Return the process id of the running gateway, no matter who started it."""
    return int(gateway.snapshot()["gateway"]["pid"])


def kill_gateway(gateway: Gateway, number: int = signal.SIGKILL) -> int:
    """Kill the one that runs; its process id. It is gone at the end."""
    pid = gateway_pid(gateway)
    os.kill(pid, number)
    if gateway.process is not None and gateway.process.pid == pid:
        gateway.process.wait(stretched(PATIENCE_S))
    wait_until(lambda: threads_of(pid) == 0)
    return pid


def threads_of(pid: int) -> int:
    """Return how many threads of it run; the first may have ended while others still hold its sockets open."""
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir())) - (not alive(pid))
    except OSError:
        return 0


def nothing_left(gateway: Gateway) -> None:
    """Wait until no process of its home runs. Fails with those that do."""
    try:
        wait_until(lambda: not left_of(gateway), GONE_S)
    except AssertionError:
        assert left_of(gateway) == {}, f"after {GONE_S:g} s on a machine with time"


def stop_all(gateway: Gateway) -> None:
    """End the gateway that runs, whoever started it, and wait until none of its home's processes is left."""
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
    """Return True if any process of that home is left; a gateway that answers is told to stop."""
    with suppress(MultiMcpError):  # there is none, or not yet
        gateway.control("stop")
    return bool(left_of(gateway))


# -- clients ---------------------------------------------------------------------------------------------------------


class ShimClient:
    """A client that reads only when it is told to, and looks at every byte: whole frames, one answer a request."""

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
        """Write bytes unchanged."""
        view = memoryview(data)
        while view:
            view = view[self._in.write(view) or 0 :]

    def send(self, method: str, params: Message | None = None) -> int:
        """Return a request without waiting; its id."""
        self._last_id += 1
        self.asked.append(self._last_id)
        self.write(frame(self._last_id, method, params or {}))
        return self._last_id

    def call(self, tool: str, **arguments: Any) -> int:
        """Return a call without waiting; its id."""
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def notify(self, method: str, params: Message | None = None) -> None:
        """Send a notification."""
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode() + b"\n")

    def initialize(self) -> Message:
        """Return the whole handshake."""
        about = {"name": "fault", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
        answer = self.answer(self.send("initialize", params))
        self.notify("notifications/initialized")
        return answer

    def answer(self, request_id: Any, patience_s: float = PATIENCE_S) -> Message:
        """Wait for that answer."""
        end = time.monotonic() + stretched(patience_s)
        while request_id not in self.answers:
            assert self._read(end - time.monotonic()), "the shim ended"
        return self.answers[request_id]

    def ask(self, method: str, params: Message | None = None) -> Message:
        """Return a request and its answer."""
        return self.answer(self.send(method, params))

    def text(self, tool: str, **arguments: Any) -> str:
        """Return a call's text. Fails for an error."""
        answer = self.answer(self.call(tool, **arguments))
        assert "result" in answer, answer
        return str(answer["result"]["content"][0]["text"])

    def heard(self, method: str) -> Message:
        """Wait for that notification."""
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
        """End as a client does, read to the end; the shim's exit code. All that came was whole frames."""
        self._in.close()
        while self._read(PATIENCE_S):
            pass
        assert self._rest == b""
        code = self.process.wait(stretched(PATIENCE_S))
        self._out.close()
        return code

    def kill(self) -> None:
        """Close both ends at once, as if the client was killed."""
        self._in.close()
        self._out.close()
        self.process.wait(stretched(PATIENCE_S))


def frame(request_id: Any, method: str, params: Message) -> bytes:
    """Return one request's line."""
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode() + b"\n"


@contextmanager
def shim_client(gateway: Gateway, *options: str) -> Iterator[ShimClient]:
    """Yield a client with hands shaken; at the end it closes, and the shim has to end with 0."""
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
    """Return True if it is the error of a call that was under way when the gateway ended."""
    return bool(answer.get("error", {}).get("data", {}).get("code") == "gateway_lost")


@asynccontextmanager
async def undisturbed(
    gateway: Gateway, tool: str, slowest_s: float = 5.0, pause_s: float = 0.05
) -> AsyncIterator[list[float]]:
    """Somebody else calls another server all the while; each call must succeed. Gives the seconds that each took."""
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
    """Return the answer of `RawClient.ask`, in time."""
    with anyio.fail_after(stretched(20)):
        return await answer


async def recovers(client: RawClient, tool: str, **arguments: Any) -> None:
    """Make calls until one succeeds, soon. A call to a process in its last moment fails, with a text."""
    end = anyio.current_time() + stretched(RECOVERY_S)
    while "error" in (answer := await outcome(client.ask("tools/call", calls(tool, **arguments)))):
        assert anyio.current_time() < end, answer
        await anyio.sleep(0.02)


def calls(tool: str, **arguments: Any) -> Message:
    """Return the params of tools/call."""
    return {"name": tool, "arguments": arguments}
