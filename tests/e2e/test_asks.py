"""The user's yes with a real gateway: every door, the command line alone, and a gateway that dies meanwhile."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import psutil
import pytest

from tests.cli.running import launch, run_cli
from tests.e2e.cell import MODERN
from tests.e2e.client import Conversation, RpcFailure, client_of, task_group
from tests.e2e.gateway import Gateway
from tests.e2e.http_client import STREAMS, http_client
from tests.fixtures import notes_server
from tests.fixtures.notes_server import TOOLS
from tests.fixtures.odd import until
from tests.patience import stretched
from trayapp.model.errors import MultiMcpError
from trayapp.service.command_line import own_command
from trayapp.wire.control import ALLOW, ASKS, CALL, DENY, STOP

pytestmark = pytest.mark.anyio

CALLS = 1_000
AT_ONCE = 50
SEED = 20
ALLOWED_OF = 7  # of so many marks one is allowed
OLD = "2025-03-26"  # the revision with batches


def notes(gateway: Gateway, **settings: Any) -> Path:
    """Configure a server that notes each call in the file."""
    file = gateway.home / "notes.txt"
    command = [sys.executable, notes_server.__file__, str(file)]
    gateway.write({"n": {"command": command}}, ask="writes", **settings)
    gateway.start()
    return file


def executed(file: Path) -> list[tuple[str, int]]:
    """The tool and mark of each call that reached the server."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [(name, int(mark)) for name, mark in map(str.split, lines)]


@asynccontextmanager
async def terminal(gateway: Gateway) -> AsyncIterator[None]:
    """Somebody who watches."""
    process = launch(gateway.home, "asks", "--watch")
    try:
        assert process.stdout is not None
        await anyio.to_thread.run_sync(process.stdout.readline)
        yield
    finally:
        process.kill()
        process.communicate()


def marks(row: dict[str, Any]) -> int:
    return next(int(one["value"]) for one in row["arguments"] if one["name"] == "mark")


async def answer_all(gateway: Gateway) -> None:
    """Be the user: allow one of ALLOWED_OF, deny the others."""
    while True:
        for row in (await gateway.ask(ASKS))["asks"]:
            verb = DENY if marks(row) % ALLOWED_OF else ALLOW
            await gateway.ask(verb, id=row["id"])
        await anyio.sleep(0.02)


@pytest.mark.timeout(stretched(120))
@pytest.mark.requirement("ask-no-way-round", "ask-every-way")
async def test_at_no_door_a_write_passes_without_a_yes(gateway: Gateway) -> None:
    file = notes(gateway, http={"enabled": True, "port": 0, "token": False})
    await gateway.known()
    base = gateway.snapshot()["gateway"]["http_url"].removesuffix("/mcp")
    rng = random.Random(SEED)
    async with task_group() as tasks, AsyncExitStack() as doors:
        await doors.enter_async_context(terminal(gateway))
        clients: list[Conversation] = [await doors.enter_async_context(gateway.client())]
        search = [*own_command(), "stdio", "--expose", "search"]
        clients.append(await doors.enter_async_context(client_of(search, gateway.env, gateway.home)))
        clients.append(await doors.enter_async_context(http_client(f"{base}/mcp", "2025-11-25")))
        clients.append(await doors.enter_async_context(http_client(f"{base}/sse", "2024-11-05", sse=True)))
        for client, version in zip(clients[2:], ("2025-11-25", "2024-11-05"), strict=True):
            await client.initialize(version)
        tasks.start_soon(answer_all, gateway)

        async def call(mark: int) -> None:
            tool, args = rng.choice(TOOLS), {"mark": mark}
            way = rng.randrange(7)
            try:
                if way < 4:
                    client = clients[way]
                    if rng.random() < 0.5:
                        await client.call(rng.choice((f"n_{tool}", f"mcp__n__{tool}", tool)), **args)
                    else:
                        given = rng.choice((args, f'{{"mark": {mark}}}'))
                        inside = {"tool": tool, "args": given}
                        await client.request("tools/call", {"name": "mcp", "arguments": inside})
                elif way == 4:
                    await gateway.ask(CALL, tool=tool, args=args, **rng.choice(({}, {"asks": True})))
                elif way == 5:
                    await batch(f"{base}/mcp", tool, mark)
                else:
                    await modern(f"{base}/mcp", tool, mark)
            except (MultiMcpError, RpcFailure):
                pass

        for first in range(0, CALLS, AT_ONCE):
            async with task_group() as calls:
                for mark in range(first, first + AT_ONCE):
                    calls.start_soon(call, mark)
        tasks.cancel_scope.cancel()
    found = executed(file)
    assert [(name, mark) for name, mark in found if name != "get_note" and mark % ALLOWED_OF] == []
    assert max(Counter(mark for _, mark in found).values()) == 1
    assert len([name for name, _ in found if name == "get_note"]) > CALLS // 5
    assert len([name for name, _ in found if name != "get_note"]) > CALLS // 40


async def batch(url: str, tool: str, mark: int) -> None:
    """A call among others in one POST."""
    about = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    async with httpx2.AsyncClient(timeout=60, trust_env=False, headers={"Accept": STREAMS}) as http:
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}
        session = {"Mcp-Session-Id": (await http.post(url, json=hello)).headers["mcp-session-id"]}
        call = {"name": f"n_{tool}", "arguments": {"mark": mark}}
        messages = [
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
        ]
        assert (await http.post(url, json=messages, headers=session)).status_code in (200, 202)


async def modern(url: str, tool: str, mark: int) -> None:
    """A request of 2026-07-28: a session of its own."""
    meta = "io.modelcontextprotocol/"
    envelope = {f"{meta}protocolVersion": MODERN, f"{meta}clientInfo": {"name": "new", "version": "1"}}
    params = {"name": f"n_{tool}", "arguments": {"mark": mark}, "_meta": {**envelope, f"{meta}clientCapabilities": {}}}
    async with http_client(url, MODERN) as client:
        await client.request("tools/call", params)


@pytest.mark.requirement("ask-cli", "ask-answers")
async def test_the_command_line_alone_asks_and_answers(gateway: Gateway) -> None:
    file = notes(gateway)
    await gateway.known()
    async with terminal(gateway), gateway.client() as client:
        waiting = client.ask("tools/call", {"name": "n_delete_note", "arguments": {"mark": 1}})
        await until(lambda: gateway.control(ASKS)["asks"])
        shown = await anyio.to_thread.run_sync(lambda: run_cli(gateway.home, "asks").stdout)
        assert "test client in" in shown
        assert "wants to call n/delete_note (destructive)" in shown
        (row,) = gateway.control(ASKS)["asks"]
        allowed = await anyio.to_thread.run_sync(lambda: run_cli(gateway.home, "allow", row["id"]))
        assert (allowed.returncode, allowed.stdout) == (0, "Allowed: n/delete_note\n")
        assert "result" in await waiting
        again = await anyio.to_thread.run_sync(lambda: run_cli(gateway.home, "deny", row["id"]))
        assert (again.returncode, "was allowed by the command line" in again.stderr) == (1, True)
    assert executed(file) == [("delete_note", 1)]


@pytest.mark.requirement("ask-refused")
async def test_a_gateway_that_dies_takes_the_ask_along_and_a_late_answer_is_told(gateway: Gateway) -> None:
    file = notes(gateway)
    await gateway.known()
    async with terminal(gateway), gateway.client() as client:
        waiting = client.ask("tools/call", {"name": "n_write_note", "arguments": {"mark": 1}})
        await until(lambda: gateway.control(ASKS)["asks"])
        (row,) = gateway.control(ASKS)["asks"]
        psutil.Process(gateway.pid).kill()
        assert gateway.process is not None
        gateway.process.wait()
        assert "error" in await waiting
        await client.call("n_get_note", mark=2)  # the shim has started another gateway
        after = psutil.Process(gateway.snapshot()["gateway"]["pid"])
        assert gateway.control(ASKS)["asks"] == []
        late = await anyio.to_thread.run_sync(lambda: run_cli(gateway.home, "allow", row["id"]))
        assert late.returncode == 1
        assert "No call waits for an answer" in late.stderr
    gateway.control(STOP)
    await anyio.to_thread.run_sync(after.wait)
    assert executed(file) == [("get_note", 2)]
