"""A real gateway with a panel, and a real browser that shows it."""

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
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from tests.cli.running import quick_program
from tests.e2e.gateway import Gateway, entry, gateway_in
from tests.fixtures.odd import Odd
from tests.patience import stretched
from tests.tools import NO_CERTIFICATES, chromium, require_file

AXE = Path(__file__).resolve().parents[2] / ".cache/npm-servers/node_modules/axe-core/axe.min.js"
OF_COLORS = ("color-contrast", "link-in-text-block")  # axe-core's rules that depend on the color scheme
WIDTHS = (360, 768, 1280, 2560)
# Returns the words that a button breaks over two lines. Words of 20 characters or more are names, and may break.
CUT_WORDS = """() => [...document.querySelectorAll("button, .button")].flatMap((button) => {
  const found = [], texts = document.createTreeWalker(button, NodeFilter.SHOW_TEXT), range = document.createRange();
  while (texts.nextNode()) for (const word of texts.currentNode.data.matchAll(/\\S+/g)) {
    range.setStart(texts.currentNode, word.index);
    range.setEnd(texts.currentNode, word.index + word[0].length);
    if (word[0].length < 20 && range.getClientRects().length > 1) found.push(word[0]);
  }
  return found;
})"""
# Each session has a window, and the two pages of its address bar would triple the session's cost.
# A process kept ready for the next page costs as much as the page. This list replaces playwright's own.
NOT_SHOWN = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "SpareRendererForSitePerProcess")
NO_SPARES = ",".join(("--disable-features=HttpsUpgrades,PaintHolding,MediaRouter,Translate", *NOT_SHOWN))
# Makes axe-core report all violations, but only one example of each other kind of result.
VIOLATIONS = 'resultTypes: ["violations"]'
ONLY_HERE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"  # blocks other machines
EVIL = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>[a](javascript:alert(1))\x1b]0;x\x07'


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Scene:
    """A gateway, the address of its panel, and the browser's requests to other addresses."""

    def __init__(self, gateway: Gateway, port: int) -> None:
        self.gateway = gateway
        self.root = f"http://127.0.0.1:{port}"
        self.elsewhere: list[str] = []
        self.errors: list[str] = []
        self.contexts: list[BrowserContext] = []

    async def link(self) -> str:
        """Return a link that opens the panel."""
        return str((await self.gateway.ask("panel"))["url"])

    async def signed_in(self) -> tuple[str, str]:
        """Sign in, and return the Cookie header and the token for changes."""
        async with httpx2.AsyncClient(verify=NO_CERTIFICATES) as http:
            page = await http.get(await self.link())
        assert page.status_code == 200
        cookie = page.headers["set-cookie"].partition(";")[0]
        return cookie, page.text.partition('name="panel-token" content="')[2].partition('"')[0]

    async def open(self, browser: Browser, path: str = "", **more: Any) -> Page:
        """Open a page of the panel in a new browser session, and return it once it receives updates."""
        context = await browser.new_context(**more)
        self.contexts.append(context)
        page = await context.new_page()
        page.set_default_timeout(stretched(10.0) * 1000)
        expect.set_options(timeout=stretched(10.0) * 1000)
        page.on("request", lambda one: self.elsewhere.append(one.url) if not one.url.startswith(self.root) else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        if path:  # sign in with a plain request, because tests look only at the page at `path`
            assert (await context.request.get(await self.link())).ok
        async with page.expect_response(f"{self.root}/panel/events*"):
            await page.goto(f"{self.root}/panel/{path}" if path else await self.link())
        return page


@asynccontextmanager
async def scene(home: Path, *servers: Odd, **settings: Any) -> AsyncIterator[Scene]:
    """Start a gateway with these servers and an HTTP port, and yield the scene."""
    port = free_port()
    with gateway_in(home, forked=True) as gateway:
        gateway.verbs = quick_program()
        http = {"enabled": True, "port": port}
        gateway.write({odd.name: entry(odd) for odd in servers}, http=http, **settings)
        await anyio.to_thread.run_sync(gateway.start)
        await gateway.known()
        assert await anyio.to_thread.run_sync(lambda: gateway.http_url)
        made = Scene(gateway, port)
        try:
            yield made
        finally:
            for context in made.contexts:
                await context.close()


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """Start Chromium and yield it."""
    async with async_playwright() as made:
        options = ["--no-sandbox", ONLY_HERE, NO_SPARES]
        found = await made.chromium.launch(executable_path=chromium(), args=options)
        try:
            yield found
        finally:
            await found.close()


async def assert_accessible(page: Page, where: str) -> None:
    """Assert that axe-core finds nothing serious, that nothing exceeds the screen, and that no button breaks a word.

    In the dark scheme, only the rules about colors are checked, because the schemes differ in nothing else.
    """
    await page.evaluate(require_file(AXE, "run packaging/dev.py test").read_text(encoding="utf-8"))
    assert await _serious(page, f"axe.run({{{VIOLATIONS}}})") == [], (where, "light")
    await page.emulate_media(color_scheme="dark")
    assert await _serious(page, f"axe.run({{runOnly: {json.dumps(OF_COLORS)}, {VIOLATIONS}}})") == [], (where, "dark")
    await page.emulate_media(color_scheme="light")
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 900})
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (where, width)
        assert await page.evaluate(CUT_WORDS) == [], (where, width)


async def _serious(page: Page, expression: str) -> list[str]:
    found = await page.evaluate(expression)
    assert found["passes"], "axe-core looked at nothing"
    return [one["id"] for one in found["violations"] if one["impact"] in ("serious", "critical")]


def as_text(value: Any) -> str:
    return json.dumps(value)
