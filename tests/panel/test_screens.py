"""A new page contains one screen of its list. The rest follows after painting, and the scroll position is kept."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2
import pytest
from playwright.async_api import Browser, expect

from tests.benchmarks.workloads import NULL_SERVER
from tests.fixtures.odd import until
from tests.panel.scene import Scene, scene
from tests.patience import stretched
from tests.tools import NO_CERTIFICATES
from trayapp.panel.pages import ROWS, SCREEN

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(stretched(120.0))]
MANY = 2 * ROWS


async def serve_many(made: Scene, shelf: Path) -> None:
    """Configure only a server with many tools, and call one of the tools many times."""
    shelf.write_text(
        json.dumps({"tools": [{"name": f"tool_{number:03}", "inputSchema": {}} for number in range(MANY)]})
    )
    argv = [*NULL_SERVER, str(shelf)]
    http = {"enabled": True, "port": int(made.root.rpartition(":")[2])}
    made.gateway.write({"shop": {"command": argv[0], "args": argv[1:]}}, http=http)
    await until(lambda: made.gateway.server_names() == ["shop"])
    await made.gateway.known()
    for _ in range(MANY):
        await made.gateway.ask("call", tool="shop_tool_000", args={})


@pytest.mark.requirement("panel-screen")
async def test_a_new_page_has_a_screen_of_rows_then_all_and_one_who_comes_back_is_where_they_were(
    chromium: Browser, home: Path
) -> None:
    async with scene(home) as made:
        await serve_many(made, home / "shelf.json")
        cookie, _ = await made.signed_in()
        page = await made.open(chromium)
        for path, marked, count in (
            ("tools", "Show all", ROWS), ("tools?all=yes", "", MANY), ("server/shop", "Show all", ROWS),
            ("activity", "Older calls", ROWS),
        ):  # fmt: skip
            async with httpx2.AsyncClient(verify=NO_CERTIFICATES) as http:
                first = (await http.get(f"{made.root}/panel/{path}", headers={"Cookie": cookie})).text
            assert first.count("<tr id=") == SCREEN, path
            assert marked in first, path
            assert "data-rest" in first, path
            await page.goto(f"{made.root}/panel/{path}")
            await expect(page.locator("tbody tr")).to_have_count(count)
            await expect(page.locator("[data-rest]")).to_have_count(0)
        await page.goto(f"{made.root}/panel/tools?all=yes")
        await expect(page.locator("tbody tr")).to_have_count(MANY)
        await page.locator("tbody tr").last.scroll_into_view_if_needed()
        await page.evaluate("new Promise(requestAnimationFrame)")  # scrolling is noticed with the next frame
        place = await page.evaluate("scrollY")
        assert place > await page.evaluate("innerHeight")
        await page.goto(f"{made.root}/panel/health")
        await page.go_back()
        await page.wait_for_function("place => Math.abs(scrollY - place) < 2", arg=place)
        assert made.errors == []
