"""The transports for the contract suite: ways to open the same server."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from tests.backends.world import open_untracked
from tests.contract.http_servers import HttpServer
from tests.fixtures.fake_transport import FakeNet
from tests.fixtures.odd import Odd, until
from tests.patience import stretched
from trayapp.backends.context import Transport
from trayapp.backends.handshake import Peer, shake_hands
from trayapp.backends.launch import HttpLaunch, StdioLaunch
from trayapp.wire.messages import METHOD_NOT_FOUND, Call, Params, RpcError

WAYS = ("stdio", "http", "sse", "fake")


@dataclass
class Ear:
    """A transport.Inbound that records all requests and notifications."""

    told: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    # the params, and the call to which the request belongs
    asked: list[tuple[Any, Call | None]] = field(default_factory=list)
    news: anyio.Event = field(default_factory=anyio.Event)

    async def on_request(self, method: str, params: Params, about: Call | None = None) -> dict[str, Any]:
        self.asked.append((params, about))
        if method == "ping":
            return {}
        raise RpcError(METHOD_NOT_FOUND, f"{method} is not supported by this client", {"asked": method})

    def on_notification(self, method: str, params: Params, about: Call | None = None) -> None:
        self.told.append((method, dict(params or {})))
        self.news.set()
        self.news = anyio.Event()

    def input_schema(self, tool: str) -> Any:
        return None

    async def heard(self, method: str) -> dict[str, Any]:
        """Wait for a notification of this method, and return the params of the first one."""
        with anyio.fail_after(stretched(10.0)):
            while not (found := [params for heard, params in self.told if heard == method]):
                await self.news.wait()
        return found[0]


@dataclass
class Opened:
    """An open transport to a contract server, and access to that server."""

    transport: Transport
    ear: Ear
    peer: Peer
    # waits until the server has received a method, and returns its newest params
    heard_of: Callable[[str], Awaitable[dict[str, Any]]]
    die: Callable[[], None]
    stderr: bytearray

    async def request(self, method: str, params: Params = None) -> dict[str, Any]:
        """Send a request and return its result."""
        with anyio.fail_after(stretched(10.0)):
            return await self.transport.channel.send_raw_request(method, params)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its result."""
        return await self.request("tools/call", {"name": tool, "arguments": arguments})


@asynccontextmanager
async def opened(way: str, folder: Path, *switches: str) -> AsyncIterator[Opened]:
    """Yield a contract server, opened in this way and initialized. `switches` are for the odd server (stdio only)."""
    ear, stderr = Ear(), bytearray()
    if way == "stdio":
        odd = Odd(folder, switches=("--page", "3", *switches))
        launch = StdioLaunch("odd", tuple(odd.argv), dict(os.environ))

        async def heard_of(method: str) -> dict[str, Any]:
            if method == "held":
                return dict((await until(lambda: odd.events("held")))[-1])
            return dict((await until(lambda: odd.received(method)))[-1]["params"])

        async with open_untracked(launch, ear, stderr.extend) as transport:
            peer = await shake_hands(transport.channel, {}, "2025-11-25")
            assert transport.pid is not None
            pid = transport.pid
            yield Opened(transport, ear, peer, heard_of, lambda: os.kill(pid, signal.SIGKILL), stderr)
    elif way == "fake":
        net = FakeNet()
        server = net["odd"]
        async with net.open(StdioLaunch("odd", ("x",), {}), ear, stderr.extend) as transport:
            peer = await shake_hands(transport.channel, {}, "2025-11-25")
            yield Opened(transport, ear, peer, server.heard_of, server.die, stderr)
    else:
        http = HttpServer(streamable=way == "http", sse=way == "sse")
        async with (
            http.running(),
            open_untracked(
                HttpLaunch("odd", http.url("/mcp" if way == "http" else "/sse"), {"X-Team": "1"}, way),
                ear,
                stderr.extend,
            ) as transport,
        ):
            peer = await shake_hands(transport.channel, {}, "2025-11-25")
            yield Opened(transport, ear, peer, http.heard_of, http.die, stderr)
