"""A gateway with fake servers behind a real HTTP port, and SDK clients that connect to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from tests.gateway.world import House, house
from tests.patience import stretched
from tests.tools import NO_CERTIFICATES
from trayapp.clients.servers import ClientLayers
from trayapp.config.read.parse import parse
from trayapp.gateway.http.port import TOKEN_NAME, ClientTokens, HttpPort
from trayapp.gateway.servers_file import Outcome, ServersFile
from trayapp.model.config import HttpSettings
from trayapp.panel.host import PanelHost

TOKEN = "the-token-of-the-tests-0123456789"
OWNER = "the-token-of-the-endpoint-file-0123456789"


class Edits:
    """The servers.yaml of a `Place`, and the outcome of every read."""

    def __init__(self, made: House, path: Path) -> None:
        path.write_text("servers: {}\n")
        self.path = path
        self.taken: list[Outcome] = []
        self.file = ServersFile(path, ["sample"], lambda: made.gateway.config, self.taken.append, ClientLayers)

    @property
    def servers(self) -> list[str]:
        """The names of the servers in the file."""
        return list(parse(self.path.read_text(), "servers.yaml").servers)


@dataclass
class Place:
    """A gateway and the address where it listens."""

    made: House
    url: str
    edits: Edits
    port: HttpPort
    urls: list[str | None]  # all addresses reported so far, the newest last; None: no longer listening

    def http(self, token: str = TOKEN, **headers: str) -> httpx2.AsyncClient:
        """Return a plain HTTP client that sends the token."""
        known = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx2.AsyncClient(verify=NO_CERTIFICATES, headers={**known, **headers}, timeout=20, base_url=self.url)

    @asynccontextmanager
    async def client(self, mode: str = "legacy", query: str = "", **more: Any) -> AsyncIterator[Client]:
        """Yield an SDK client. `mode`: legacy, 2026-07-28 or sse."""
        async with self.http() as http:
            if mode == "sse":
                headers = {"Authorization": f"Bearer {TOKEN}"}
                way: Any = sse_client(f"{self.url}/sse{query}", headers=headers)
                mode = "legacy"
            else:
                way = streamable_http_client(f"{self.url}/mcp{query}", http_client=http)
            async with Client(way, mode=mode, **more) as client:
                yield client


def no_panel() -> PanelHost:
    raise AssertionError("no test here opens the panel")


async def until(true: Callable[[], bool]) -> None:
    """Poll until the condition holds."""
    with anyio.fail_after(stretched(10.0)):
        while not true():  # noqa: ASYNC110  # there is no event for what the other end sees
            await anyio.sleep(0.01)


@asynccontextmanager
async def place(folder: Path, settings: HttpSettings | None = None) -> AsyncIterator[Place]:
    """Yield a gateway without servers that listens on a free port."""
    async with house(folder) as made:
        made.start()
        urls: list[str | None] = []
        edits = Edits(made, folder / "servers.yaml")
        tokens = folder / "tokens"
        tokens.mkdir(mode=0o700)
        (tokens / TOKEN_NAME).write_text(TOKEN)
        port = HttpPort(made.gateway, edits.file, ClientTokens(tokens), lambda: OWNER, urls.append, no_panel)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(port.serve)
            port.follow(settings or HttpSettings(port=0))
            await until(lambda: bool(urls))
            assert urls[0] is not None
            yield Place(made, urls[0].removesuffix("/mcp"), edits, port, urls)
            tasks.cancel_scope.cancel()
