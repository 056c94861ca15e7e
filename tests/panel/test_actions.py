"""Actions of the panel in a real browser, and their effect: approvals, asks, AI tools, search, filters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import Browser, Page, expect

from tests.benchmarks.workloads import NULL_SERVER
from tests.e2e.client import RpcFailure
from tests.e2e.gateway import Gateway
from tests.fixtures.odd import Odd, until
from tests.panel.scene import scene
from tests.patience import stretched

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(stretched(120.0))]
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}}


async def serve(gateway: Gateway, shelf: Path, description: str, **settings: Any) -> None:
    """Make one server with one tool the only one that is configured."""
    tools = [{"name": "drop_table", "description": description, "inputSchema": SCHEMA}]
    shelf.write_text(json.dumps({"tools": tools}))
    argv = [*NULL_SERVER, str(shelf)]
    http = {"enabled": True, "port": gateway.snapshot()["gateway"]["http_url"].rpartition(":")[2].partition("/")[0]}
    gateway.write(
        {"shop": {"command": argv[0], "args": argv[1:]}}, http={**http, "port": int(http["port"])}, **settings
    )
    await until(lambda: gateway.server_names() == ["shop"])
    await gateway.known()


async def says(page: Page, words: str) -> None:
    """Wait until the panel says so of an action."""
    await expect(page.locator("#said")).to_contain_text(words)


@pytest.mark.requirement("panel-actions")
async def test_a_changed_definition_is_shown_as_a_difference_and_approved(chromium: Browser, home: Path) -> None:
    async with scene(home) as made:
        shelf = home / "shelf.json"
        await serve(made.gateway, shelf, "Drops one table")
        shelf.write_text(shelf.read_text().replace("Drops one table", "Drops every table"))
        await made.gateway.ask("reconnect", server="shop")
        await made.gateway.ask("refresh", server="shop")
        assert made.gateway.server("shop")["approvals"] == ["drop_table"]
        page = await made.open(chromium, "approvals")
        await expect(page.locator(".minus", has_text="Drops one table")).to_be_visible()
        await expect(page.locator(".plus", has_text="Drops every table")).to_be_visible()
        await page.get_by_role("button", name="Approve drop_table").click()
        await says(page, "Approved shop/drop_table")
        await expect(page.get_by_text("Nothing needs your approval")).to_be_visible()
        async with made.gateway.client() as client:
            (tool,) = (await client.request("tools/list"))["tools"]
            assert "every" in tool["description"]


@pytest.mark.requirement("panel-actions")
async def test_the_old_definition_is_kept_until_the_tool_changes_again(chromium: Browser, home: Path) -> None:
    async with scene(home) as made, made.gateway.client() as client:
        shelf = home / "shelf.json"
        await serve(made.gateway, shelf, "Drops one table")
        for words in ("Drops two tables", "Drops three tables"):
            shelf.write_text(
                json.dumps({"tools": [{**json.loads(shelf.read_text())["tools"][0], "description": words}]})
            )
            await made.gateway.ask("reconnect", server="shop")
            await made.gateway.ask("refresh", server="shop")
            page = await made.open(chromium, "approvals")
            await expect(page.locator(".plus", has_text=words)).to_be_visible()
            await page.get_by_role("button", name="Keep the old version of drop_table").click()
            await says(page, "Kept the old definition of shop/drop_table")
            await expect(page.get_by_text("Nothing needs your approval")).to_be_visible()
            assert "approvals" not in made.gateway.server("shop")
            (tool,) = (await client.request("tools/list"))["tools"]
            assert "Drops one table" in tool["description"]
            result = await client.request("tools/call", {"name": "shop_drop_table", "arguments": {}})
            assert not result.get("isError")


@pytest.mark.requirement("panel-actions", "panel-live")
async def test_a_call_that_asks_is_allowed_and_denied_in_the_panel(chromium: Browser, home: Path) -> None:
    async with scene(home) as made, made.gateway.client() as client:
        await serve(made.gateway, home / "shelf.json", "Drops one table", ask="all")
        page = await made.open(chromium, "approvals")
        answers: list[Any] = []

        async def call() -> None:
            try:
                answers.append(
                    await client.request("tools/call", {"name": "shop_drop_table", "arguments": {"id": "x"}})
                )
            except RpcFailure as error:
                answers.append(error)

        for label in ("Allow once", "Deny"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await page.get_by_role("button", name=label).click()
            await expect(page.get_by_text("Nothing needs your approval")).to_be_visible()
        allowed, denied = answers
        assert not isinstance(allowed, RpcFailure)
        assert not allowed.get("isError")
        assert isinstance(denied, RpcFailure) or denied["isError"] is True


@pytest.mark.requirement("panel-actions")
async def test_an_ai_tool_is_connected_with_a_profile_and_disconnected(
    chromium: Browser, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursor = home / "user" / ".cursor"
    cursor.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(cursor.parent))
    async with scene(home, Odd(home, "odd"), profiles={"office": {"servers": ["odd"]}}) as made:
        page = await made.open(chromium, "clients")
        card = page.locator("#client-cursor")
        await card.get_by_label("Profile").select_option("office")
        await card.get_by_role("button", name="Show the change").click()
        await says(page, "This would change in")
        await says(page, "office")
        assert not (cursor / "mcp.json").exists()
        await card.get_by_role("button", name="Connect Cursor").click()
        await says(page, "Connected Cursor")
        assert "office" in (cursor / "mcp.json").read_text()
        await expect(card.get_by_text("connected", exact=True)).to_be_visible()
        await expect(card).to_contain_text("the profile office")
        await card.get_by_role("button", name="Disconnect Cursor").click()
        await says(page, "Disconnected Cursor")
        assert not (cursor / "mcp.json").exists()


@pytest.mark.requirement("panel-search")
async def test_all_tools_are_searched_as_typed_and_switched_there(chromium: Browser, home: Path) -> None:
    async with scene(home, Odd(home, "one"), Odd(home, "two")) as made:
        page = await made.open(chromium)
        await page.keyboard.press("/")
        search = page.get_by_role("searchbox")
        await expect(search).to_be_focused()
        await search.type("two echo")
        await expect(page.locator("tbody tr")).to_have_count(1)
        await expect(page.locator("tbody .tags")).to_have_text("read")
        await page.get_by_role("switch", name="two/echo is switched on").click()
        await says(page, "Switched off: two/echo")
        await expect(page.locator("tbody tr")).to_have_count(1)  # what was typed holds for news, too
        await expect(page.get_by_role("switch")).not_to_be_checked()
        await expect(search).to_have_value("two echo")
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-live")
async def test_news_keep_the_filter(chromium: Browser, home: Path) -> None:
    async with scene(home, Odd(home, "odd")) as made:
        for text in ("plum", "pear"):
            await made.gateway.ask("call", tool="odd_echo", args={"text": text})
        page = await made.open(chromium, "activity")
        await page.get_by_label("Words").fill("pear")
        await expect(page.locator("tbody tr")).to_have_count(1)
        await made.gateway.ask("call", tool="odd_echo", args={"text": "plum"})
        await made.gateway.ask("call", tool="odd_echo", args={"text": "pear too"})
        await expect(page.locator("tbody tr")).to_have_count(2)
        await page.reload()
        await expect(page.get_by_label("Words")).to_have_value("pear")
        await expect(page.locator("tbody tr")).to_have_count(2)


@pytest.mark.requirement("panel-actions")
async def test_a_server_shows_its_classes_prompts_resources_entry_and_log(chromium: Browser, home: Path) -> None:
    async with scene(home, Odd(home, "odd", ("--full", "--say", "hello there"))) as made:
        await made.gateway.ask("call", tool="odd_echo", args={})
        page = await made.open(chromium, "server/odd")
        await expect(page.locator("#tool-echo .tag")).to_have_text("read")
        for label in ("Prompts", "Resources", "Resource templates"):
            await expect(page.locator("summary", has_text=label).first).to_be_visible()
        await expect(page.get_by_label("Log").get_by_text("hello there")).to_be_visible()
        await expect(page.locator("pre", has_text="odd_server.py")).to_be_visible()
