"""Approvals with a real gateway: through every way in, by the command line alone, and when the gateway dies."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
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
from tests.faults.world import LONG
from tests.fixtures import notes_server
from tests.fixtures.notes_server import RESOURCES, TOOLS, words_of
from tests.fixtures.odd import until
from tests.patience import stretched
from tests.tools import NO_CERTIFICATES
from trayapp.model.errors import MultiMcpError
from trayapp.service.command_line import own_command
from trayapp.wire.control import ALLOW, ASKS, CALL, DENY, REFRESH, STOP

pytestmark = pytest.mark.anyio

CALLS = 10_000 if LONG else 1_000
AT_ONCE = 50
SEED = 20
ALLOWED_OF = 2  # one mark in this many is allowed
OLD = "2025-03-26"  # the revision that has batches


PREFIXES = ("server", "short", "none", "mcp")
NAMES = ("n", "notes-two")  # the server's two names, between which it is renamed
DOORS = ("shim", "shim with search", "HTTP", "SSE", "command", "batch", "2026-07-28")
EVENTS = ("killed", "renamed", "changed", "set", "", "")
HTTP = {"enabled": True, "port": 0, "token": False}


def notes(gateway: Gateway, **settings: Any) -> Path:
    """Configure a server that notes each call in a file, start the gateway, and return the file."""
    file = gateway.home / "notes.txt"
    configure(gateway, file, "n", **settings)
    gateway.start()
    return file


def configure(gateway: Gateway, file: Path, name: str, **settings: Any) -> None:
    """Save servers.yaml with the notes server under this name."""
    command = [sys.executable, notes_server.__file__, str(file)]
    gateway.write({name: {"command": command}}, ask="writes", **settings)


def executed(file: Path) -> list[tuple[str, int]]:
    """Return the tool (`read` for a resource) and the mark of each call that reached the server."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [(name, int(mark)) for name, mark in map(str.split, lines)]


@asynccontextmanager
async def terminal(gateway: Gateway) -> AsyncIterator[None]:
    """Run `multi-mcp asks --watch`, so that the gateway counts the user as present."""
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


async def answer_all(gateway: Gateway, answered: dict[str, set[int]]) -> None:
    """Answer all requests for approval as the user would: allow one mark in ALLOWED_OF and deny the others."""
    while True:
        for row in (await gateway.ask(ASKS))["asks"]:
            verb = DENY if marks(row) % ALLOWED_OF else ALLOW
            answered[verb].add(marks(row))
            await gateway.ask(verb, id=row["id"])
        await anyio.sleep(0.02)


class Doors:
    """All ways into a gateway, and events that may happen to its server."""

    def __init__(self, gateway: Gateway, file: Path, rng: random.Random) -> None:
        self.gateway, self.file, self.rng = gateway, file, rng
        self.base = gateway.http_url.removesuffix("/mcp")
        self.name = "n"
        self.changes = 0
        self.clients: list[Conversation] = []
        self.way: dict[int, str] = {}  # mark -> the door, and whether the call used the tool `mcp`

    async def open(self, stack: AsyncExitStack) -> None:
        """Open sessions at the first four doors, two of them through shims."""
        search = [*own_command(), "stdio", "--expose", "search"]
        env, home = self.gateway.env, self.gateway.home
        for door in (
            self.gateway.client(),
            client_of(search, env, home),
            http_client(f"{self.base}/mcp", "2025-11-25"),
            http_client(f"{self.base}/sse", "2024-11-05", sse=True),
        ):
            self.clients.append(await stack.enter_async_context(door))
        for client, version in zip(self.clients[2:], ("2025-11-25", "2024-11-05"), strict=True):
            await client.initialize(version)

    def spelling(self, tool: str) -> str:
        """Return a random spelling of the tool, or of a tool that reads a resource, possibly with the server's other
        name.
        """
        name = self.rng.choice((self.name, self.name, *NAMES))
        asked = self.rng.choice((tool, tool, f"read_{self.rng.choice(RESOURCES)}"))
        return self.rng.choice((f"{name}_{asked}", f"mcp__{name}__{asked}", f"{name}/{asked}", asked))

    async def call(self, mark: int) -> None:
        """Call a random tool at a random door."""
        tool, args = self.rng.choice(TOOLS), {"mark": mark}
        way, spelling = self.rng.randrange(len(DOORS)), self.spelling(tool)
        through_mcp = way < 4 and self.rng.random() < 0.5
        self.way[mark] = f"{DOORS[way]}, {'mcp' if through_mcp else 'plain'}"
        beside = self.rng.choice(({}, {"task": {"ttl": 60_000}}, {"_meta": {"progressToken": mark}}))
        with suppress(MultiMcpError, RpcFailure):
            if way < 4:
                if through_mcp:
                    given = self.rng.choice((args, f'{{"mark": {mark}}}'))
                    params = {"name": "mcp", "arguments": {"tool": spelling, "args": given}}
                else:
                    params = {"name": spelling, "arguments": args}
                await self.clients[way].request("tools/call", params | beside)
            elif way == 4:
                await self.gateway.ask(CALL, tool=tool, args=args, **self.rng.choice(({}, {"asks": True})))
            elif way == 5:
                await batch(f"{self.base}/mcp", spelling, mark)
            else:
                await modern(f"{self.base}/mcp", spelling, mark, beside)

    async def happen(self) -> None:
        """Cause a random event, or none. Events might open a way around the approvals while calls wait and run."""
        match self.rng.choice(EVENTS):
            case "killed":
                pid = self.gateway.server(self.name)["pid"]
                if pid is not None:
                    with suppress(psutil.NoSuchProcess):
                        psutil.Process(pid).kill()
            case "changed":
                self.changes += 1
                words_of(self.file).write_text(f"v{self.changes}", encoding="utf-8")
                with suppress(MultiMcpError):
                    await self.gateway.ask(REFRESH, server=self.name)
            case "renamed":
                self.name = NAMES[1 - NAMES.index(self.name)]
                configure(self.gateway, self.file, self.name, http=HTTP)
                await until(lambda: self.gateway.server_names() == [self.name])
            case "set":
                configure(self.gateway, self.file, self.name, http=HTTP, tool_prefix=self.rng.choice(PREFIXES))


@pytest.mark.timeout(stretched(1200 if LONG else 180))
@pytest.mark.requirement("ask-no-way-round", "ask-every-way")
async def test_at_no_door_a_write_passes_without_a_yes(gateway: Gateway) -> None:
    """With MULTI_MCP_LONG_TESTS=1, the test makes 10,000 calls."""
    file = notes(gateway, http=HTTP)
    await gateway.known()
    doors = Doors(gateway, file, random.Random(SEED))
    answered: dict[str, set[int]] = {ALLOW: set(), DENY: set()}
    async with task_group() as tasks, AsyncExitStack() as stack:
        await stack.enter_async_context(terminal(gateway))
        await doors.open(stack)
        tasks.start_soon(answer_all, gateway, answered)
        for first in range(0, CALLS, AT_ONCE):
            async with task_group() as calls:
                for mark in range(first, first + AT_ONCE):
                    calls.start_soon(doors.call, mark)
                calls.start_soon(doors.happen)
            await gateway.known()
        tasks.cancel_scope.cancel()
    found = [(name, mark) for name, mark in executed(file) if name != "read"]
    writes = [(name, mark) for name, mark in found if name != "get_note"]
    assert [(name, mark) for name, mark in writes if mark not in answered[ALLOW]] == []
    assert [(name, mark) for name, mark in writes if mark % ALLOWED_OF] == []
    assert max(Counter(mark for _, mark in found).values()) == 1
    tools = Counter(name for name, _ in executed(file))
    assert tools["get_note"] > CALLS // 8
    assert tools["read"] > CALLS // 200  # tool calls that read resources
    assert min(tools["write_note"], tools["delete_note"]) > CALLS // 25
    assert len(writes) > len(answered[ALLOW]) // 2
    assert len(answered[DENY]) > CALLS // 9
    ways = set(doors.way.values())
    assert len(ways) == len(DOORS) + 4
    for kind, of in (("read", found), ("written", writes), ("denied", [("", mark) for mark in answered[DENY]])):
        each = Counter(doors.way[mark] for _, mark in of)
        assert ways == each.keys(), f"never {kind}: {ways - each.keys()}"


async def batch(url: str, name: str, mark: int) -> None:
    """Open a session of OLD and make a call in a batch with other messages."""
    about = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    async with httpx2.AsyncClient(
        verify=NO_CERTIFICATES, timeout=60, trust_env=False, headers={"Accept": STREAMS}
    ) as http:
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}
        session = {"Mcp-Session-Id": (await http.post(url, json=hello)).headers["mcp-session-id"]}
        call = {"name": name, "arguments": {"mark": mark}}
        messages = [
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
        ]
        assert (await http.post(url, json=messages, headers=session)).status_code in (200, 202)


async def modern(url: str, name: str, mark: int, beside: dict[str, Any]) -> None:
    """Make a call as a single request of 2026-07-28, which is its own session."""
    meta = "io.modelcontextprotocol/"
    envelope = {f"{meta}protocolVersion": MODERN, f"{meta}clientInfo": {"name": "new", "version": "1"}}
    envelope |= {f"{meta}clientCapabilities": {}, **beside.get("_meta", {})}
    params = {"name": name, "arguments": {"mark": mark}, **beside, "_meta": envelope}
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
        assert "waits for an answer" in late.stderr
    gateway.control(STOP)
    await anyio.to_thread.run_sync(after.wait)
    assert executed(file) == [("get_note", 2)]
