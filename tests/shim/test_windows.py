"""Tests of the Windows shim on any system: loopback TCP with a token, and threads instead of poll."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest

from trayapp.shim.ledger import NOT_REPEATED, UNRESPONSIVE
from trayapp.wire.endpoint import Link, Listener, listen
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.greeting import Hello
from trayapp.wire.lock import private_folder
from trayapp.wire.messages import Params, Reply, Request
from trayapp.wire.rundir import STOPPING

pytestmark = pytest.mark.anyio
PROGRAM = Path(__file__).with_name("windows_client.py")
LIMIT_S = 20.0


class EchoGateway:
    """A gateway that answers each request except `silent` with the request's method and the gateway's number."""

    def __init__(self, run: str, number: int) -> None:
        self._run = run
        self._number = number
        self.links: list[Link] = []
        self.seen: list[str] = []
        self.options: dict[str, Any] = {}
        self.silent_asked = anyio.Event()
        self.initialized = anyio.Event()
        self._listener: Listener | None = None
        self._tasks: anyio.abc.TaskGroup | None = None

    async def start(self, tasks: anyio.abc.TaskGroup) -> None:
        self._tasks = tasks
        self._listener = await listen(self._run, self._accept, "0", tcp=True)
        tasks.start_soon(self._until_cancelled)

    async def _until_cancelled(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self.vanish()

    def vanish(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for link in self.links:
            link.close()

    def _accept(self, hello: Hello, link: Link) -> FrameDispatcher:
        assert self._tasks is not None
        self.links.append(link)
        self.options = hello.options
        dispatcher = FrameDispatcher(link.write)

        def answer(request: Request) -> bool:
            request_id, method, _ = request
            self.seen.append(method)
            if method == "initialize":
                self.initialized.set()
            if method == "silent":
                self.silent_asked.set()
            else:
                dispatcher.respond(request_id, Reply.of_result({"method": method, "gateway": self._number}))
            return True

        async def unheard(method: str, params: Params) -> dict[str, Any]:
            return {}

        dispatcher.request_intercept = answer
        self._tasks.start_soon(dispatcher.run, unheard, lambda method, params: None)
        return dispatcher


@pytest.fixture
async def tasks() -> AsyncIterator[anyio.abc.TaskGroup]:
    async with anyio.create_task_group() as group:
        with anyio.fail_after(LIMIT_S):
            yield group
        group.cancel_scope.cancel()


@pytest.fixture
async def client(home: Path, tasks: anyio.abc.TaskGroup) -> AsyncIterator[tuple[anyio.abc.Process, EchoGateway]]:
    private_folder(home / "run")
    first = EchoGateway(str(home / "run"), 1)
    await first.start(tasks)
    process = await anyio.open_process([sys.executable, str(PROGRAM)], stderr=subprocess.DEVNULL)
    yield process, first
    if process.returncode is None:
        process.kill()
    await process.aclose()


async def ask(process: anyio.abc.Process, request_id: int, method: str) -> None:
    assert process.stdin is not None
    await process.stdin.send(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method}).encode() + b"\n")


async def answers(process: anyio.abc.Process, count: int) -> list[dict[str, Any]]:
    assert process.stdout is not None
    text = b""
    while text.count(b"\n") < count:
        text += await process.stdout.receive()
    return [json.loads(line) for line in text.splitlines()]


Client = tuple[anyio.abc.Process, EchoGateway]


async def test_requests_travel_with_the_token_of_the_endpoint_file(client: Client) -> None:
    process, gateway = client
    await ask(process, 1, "initialize")
    assert (await answers(process, 1))[0]["result"] == {"method": "initialize", "gateway": 1}
    assert "cwd" in gateway.options
    assert "token" not in gateway.options


async def test_a_lost_gateway_costs_open_calls_one_error_and_the_next_one_goes_on(
    client: Client, home: Path, tasks: anyio.abc.TaskGroup
) -> None:
    process, first = client
    await ask(process, 1, "initialize")
    await answers(process, 1)
    await ask(process, 2, "silent")
    await first.silent_asked.wait()
    second = EchoGateway(str(home / "run"), 2)
    first.vanish()
    await second.start(tasks)
    (lost,) = await answers(process, 1)
    assert (lost["id"], lost["error"]["data"]["code"]) == (2, "gateway_lost")
    await ask(process, 3, "tools/list")
    (served,) = await answers(process, 1)
    assert served == {"jsonrpc": "2.0", "id": 3, "result": {"method": "tools/list", "gateway": 2}}
    assert second.seen == ["initialize", "tools/list"]


async def test_a_gateway_stopped_on_purpose_is_joined_again_when_it_is_back(
    client: Client, home: Path, tasks: anyio.abc.TaskGroup
) -> None:
    process, first = client
    await ask(process, 1, "initialize")
    await answers(process, 1)
    first.links[0].write(STOPPING)
    first.vanish()
    second = EchoGateway(str(home / "run"), 2)
    await second.start(tasks)
    await second.initialized.wait()
    await ask(process, 2, "ping")
    assert (await answers(process, 1))[0]["result"]["gateway"] == 2


@pytest.mark.requirement("shim-mute-gateway")
async def test_a_gateway_that_says_nothing_is_given_up(home: Path, tasks: anyio.abc.TaskGroup) -> None:
    private_folder(home / "run")
    mute = EchoGateway(str(home / "run"), 1)
    await mute.start(tasks)
    process = await anyio.open_process([sys.executable, str(PROGRAM), "impatient"], stderr=subprocess.DEVNULL)
    await ask(process, 1, "silent")
    (told,) = await answers(process, 1)
    assert (told["id"], told["error"]["message"]) == (1, f"{UNRESPONSIVE}. {NOT_REPEATED}")
    assert mute.seen == ["silent"]
    process.kill()
    await process.aclose()


async def test_the_shim_ends_with_its_client(client: Client) -> None:
    process, _ = client
    assert process.stdin is not None
    await process.stdin.aclose()
    assert await process.wait() == 0
