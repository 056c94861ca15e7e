"""A real gateway with a panel, and a real browser before it. Never here: tests."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.e2e.gateway import Gateway, entry, gateway_in
from tests.fixtures.odd import Odd
from tests.patience import stretched
from tests.tools import require

EVIL = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>[a](javascript:alert(1))\x1b]0;x\x07'


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Scene:
    """The gateway, where its panel is, and what the browser asked for elsewhere."""

    def __init__(self, gateway: Gateway, port: int) -> None:
        self.gateway = gateway
        self.root = f"http://127.0.0.1:{port}"
        self.elsewhere: list[str] = []
        self.errors: list[str] = []

    async def link(self) -> str:
        """A link that opens the panel."""
        return str((await self.gateway.ask("panel"))["url"])

    async def signed_in(self) -> tuple[str, str]:
        """A cookie's header and the token of changes."""
        async with httpx2.AsyncClient() as http:
            came = await http.get(await self.link())
            assert came.status_code == 303
            cookie = came.headers["set-cookie"].partition(";")[0]
            page = await http.get(f"{self.root}/panel/", headers={"Cookie": cookie})
        return cookie, page.text.partition('name="panel-token" content="')[2].partition('"')[0]

    async def open(self, browser: Browser, path: str = "", **more: Any) -> Page:
        """A page of the panel in a browser's own session, which hears of news."""
        context = await browser.new_context(**more)
        page = await context.new_page()
        page.set_default_timeout(stretched(10.0) * 1000)
        page.on("request", lambda one: self.elsewhere.append(one.url) if not one.url.startswith(self.root) else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        async with page.expect_response(f"{self.root}/panel/events*"):
            await page.goto(await self.link())
        if path:
            async with page.expect_response(f"{self.root}/panel/events*"):
                await page.goto(f"{self.root}/panel/{path}")
        return page


@asynccontextmanager
async def scene(home: Path, *servers: Odd, **settings: Any) -> AsyncIterator[Scene]:
    """A gateway with these servers and its HTTP port."""
    port = free_port()
    with gateway_in(home) as gateway:
        http = {"enabled": True, "port": port}
        gateway.write({odd.name: entry(odd) for odd in servers}, http=http, **settings)
        await anyio.to_thread.run_sync(gateway.start)
        await gateway.known()
        yield Scene(gateway, port)


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """Debian's Chromium."""
    expect.set_options(timeout=stretched(10.0) * 1000)
    async with async_playwright() as made:
        found = await made.chromium.launch(executable_path=require("chromium"), args=["--no-sandbox"])
        try:
            yield found
        finally:
            await found.close()


def as_text(value: Any) -> str:
    return json.dumps(value)
