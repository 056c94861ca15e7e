"""The panel in a real browser while something changes: clicks in quick succession, a restart, and removed servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from playwright.async_api import Browser, expect

from tests.fixtures.odd import Odd, until
from tests.panel.scene import scene
from tests.panel.test_actions import says, serve, serve_notary
from tests.patience import stretched
from trayapp.model.redact import REDACTED

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(stretched(120.0))]


async def never(route: Any) -> None:
    """Hold the answer back until the test is over."""


@pytest.mark.requirement("panel-actions", "panel-live")
async def test_a_switch_pressed_while_its_first_request_is_under_way_is_switched_back(
    chromium: Browser, home: Path
) -> None:
    """The page shows the effect of the first press before its answer arrives.

    A second press must count both before and after that answer.
    """
    async with scene(home, Odd(home, "odd")) as made:
        page = await made.open(chromium)
        let = anyio.Event()

        async def hold(route: Any) -> None:
            done = await route.fetch()
            await let.wait()
            await route.fulfill(response=done)

        await page.route("**/panel/do/switch", hold)
        switch = page.get_by_role("switch", name="odd is enabled")
        await switch.click()
        await expect(page.get_by_text("disabled", exact=True)).to_be_visible()
        await switch.click()
        let.set()
        await says(page, "Enabled: odd")
        await expect(page.get_by_text("disabled", exact=True)).to_have_count(0)
        await expect(switch).to_be_checked()
        assert made.gateway.server("odd")["state"] != "disabled"
        let = anyio.Event()
        await switch.click()
        await expect(page.get_by_text("disabled", exact=True)).to_be_visible()
        await page.route(f"{made.root}/panel/", never)  # no more updates, so that only the answer arrives
        let.set()
        await says(page, "Disabled: odd")
        await expect(switch).not_to_be_checked()
        await switch.click()
        await says(page, "Enabled: odd")
        await expect(switch).to_be_checked()
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-live", "panel-sign-in")
async def test_a_page_of_a_gateway_that_was_stopped_and_started_says_how_to_open_it(
    chromium: Browser, home: Path
) -> None:
    async with scene(home, Odd(home, "odd")) as made:
        page = await made.open(chromium)
        await anyio.to_thread.run_sync(made.gateway.stop)
        await expect(page.get_by_text("The gateway is not running.")).to_be_visible()
        await anyio.to_thread.run_sync(made.gateway.start)
        await expect(page.get_by_text("The gateway was restarted")).to_be_visible()
        await expect(page.get_by_text("multi-mcp panel", exact=True)).to_be_visible()
        await page.goto(await made.link())
        await expect(page.get_by_role("switch", name="odd is enabled")).to_be_visible()


@pytest.mark.requirement("panel-live")
async def test_the_page_of_a_server_that_is_removed_says_so(chromium: Browser, home: Path) -> None:
    async with scene(home, Odd(home, "odd")) as made:
        page = await made.open(chromium, "server/odd")
        made.gateway.write({}, http={"enabled": True, "port": int(made.root.rpartition(":")[2])})
        await expect(page.get_by_role("heading", name="No server is named odd")).to_be_visible()
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-live")
async def test_every_page_counts_the_calls_that_wait_for_an_answer(chromium: Browser, home: Path) -> None:
    async with scene(home) as made, made.gateway.client() as client:
        await serve(made.gateway, home / "shelf.json", "Drops one table", ask="all")
        page = await made.open(chromium, "add")
        counted = page.get_by_role("link", name="Approvals").locator(".count")
        await expect(counted).to_have_count(0)
        waiting = client.ask("tools/call", {"name": "shop_drop_table", "arguments": {"id": "x"}})
        await expect(counted).to_have_text("1")
        await expect(page).to_have_title("(1) Add a server - multi-mcp")
        await page.reload()
        await expect(counted).to_have_text("1")
        (ask,) = (await made.gateway.ask("asks"))["asks"]
        await made.gateway.ask("deny", id=ask["id"])
        await waiting
        await expect(counted).to_have_count(0)
        await expect(page).to_have_title("Add a server - multi-mcp")


@pytest.mark.requirement("panel-actions")
async def test_a_page_that_a_server_asks_for_is_opened(chromium: Browser, home: Path) -> None:
    async with scene(home) as made, made.gateway.client() as client:
        await serve_notary(made.gateway, home / "notes")
        page = await made.open(chromium, "approvals")
        there = f"{made.root}/health"  # any page on this machine
        asked = {"mode": "url", "elicitationId": "1", "message": "Sign here", "url": there}
        call = {"name": "notary_ask", "arguments": {"method": "elicitation/create", "params": asked}}
        waiting = client.ask("tools/call", call)
        await expect(page.get_by_text(there)).to_be_visible()
        async with page.context.expect_page() as opened:
            await page.get_by_role("button", name="Open the page").click()
        assert (await opened.value).url == there
        assert '"accept"' in (await waiting)["result"]["content"][0]["text"]


@pytest.mark.requirement("panel-actions")
async def test_only_a_call_whose_arguments_were_kept_whole_is_called_again(chromium: Browser, home: Path) -> None:
    async with scene(home, Odd(home, "odd")) as made:
        page = await made.open(chromium)
        for number, text in enumerate(("plum", "x" * 5_000, "password=hunter2-hunter2"), 1):
            await made.gateway.ask("call", tool="odd_echo", args={"text": text})
            await until(lambda number=number: len(made.gateway.control("history", limit=9)["rows"]) == number)
            await page.goto(f"{made.root}/panel/activity/{number}")
            await expect(page.get_by_role("button", name="Call again")).to_have_count(int(number == 1))
        await expect(page.get_by_label("Arguments")).to_contain_text(REDACTED)
        await page.get_by_role("link", name="Try it").click()
        await expect(page.get_by_role("heading", name="Try echo")).to_be_visible()


@pytest.mark.requirement("panel-actions")
async def test_a_switch_shows_servers_yaml_also_for_a_tool_that_is_held_back_or_left_out(
    chromium: Browser, home: Path
) -> None:
    async with scene(home) as made:
        await serve(made.gateway, home / "shelf.json", "Drops \u202eone\u202c table")
        page = await made.open(chromium, "approvals")
        await expect(page.get_by_text("No AI tool sees it until you approve it.")).to_be_visible()
        await page.goto(f"{made.root}/panel/server/shop")
        switch = page.get_by_role("switch", name="drop_table is enabled")
        await expect(switch).to_be_checked()
        await expect(page.get_by_role("link", name="Review drop_table")).to_be_visible()
        await switch.click()
        await says(page, "Disabled: shop/drop_table")
        await expect(switch).not_to_be_checked()
        text = made.gateway.file.read_text()
        made.gateway.save(
            text.replace('"shop": {', '"shop": {"exclude_tools": ["drop_*"], ').replace(
                "  shop: {", '  shop: {"exclude_tools": ["drop_*"], '
            )
        )
        await expect(page.get_by_text("excluded", exact=True)).to_be_visible()
        await expect(switch).to_have_count(0)


@pytest.mark.requirement("panel-live", "panel-actions")
async def test_overview_names_what_failed_and_tries_it_again(chromium: Browser, home: Path) -> None:
    async with scene(home, Odd(home, "good")) as made:
        http, token = {"enabled": True, "port": int(made.root.rpartition(":")[2])}, home / "token"
        start = 'test -e "$0" && exec "$@"; echo no token >&2'
        made.gateway.write({"bad": {"command": ["sh", "-c", start, str(token), *Odd(home, "bad").argv]}}, http=http)
        await until(lambda: made.gateway.server_names() == ["bad"])
        await made.gateway.state("bad", "failed")
        page = await made.open(chromium)
        wants = page.get_by_role("region", name="Needs your attention")
        await expect(wants).to_contain_text("no token")
        await page.set_viewport_size({"width": 360, "height": 300})
        await page.evaluate("scrollTo(0, document.body.scrollHeight)")
        await page.get_by_role("button", name="Reconnect bad").click()
        await says(page, "no token")
        await expect(page.locator("#said .note")).to_be_in_viewport()
        token.touch()
        await wants.get_by_role("button", name="Try again: bad").click()
        await says(page, "Reconnected bad")
        await page.get_by_role("button", name="Close this message").press("Enter")
        await expect(page.locator("#said")).to_be_empty()
        await expect(wants).to_have_count(0)
