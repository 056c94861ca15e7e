"""Actions of the panel in a real browser, and their effects: approvals, asks, AI tools, search, filters."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from playwright.async_api import Browser, Page, expect

from tests.benchmarks.workloads import NULL_SERVER
from tests.e2e.client import RpcFailure
from tests.e2e.gateway import Gateway, entry
from tests.fixtures import era_server
from tests.fixtures.odd import Odd, until
from tests.panel.scene import scene
from tests.patience import stretched
from trayapp import __version__
from trayapp.model.errors import MultiMcpError
from trayapp.panel.pages import ROWS

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(stretched(120.0))]
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}}


async def serve(gateway: Gateway, shelf: Path, description: str, **settings: Any) -> None:
    """Configure one server with one tool, and no other server."""
    tools = [{"name": "drop_table", "description": description, "inputSchema": SCHEMA}]
    shelf.write_text(json.dumps({"tools": tools}))
    await only(gateway, "shop", [*NULL_SERVER, str(shelf)], **settings)


async def serve_changed(gateway: Gateway, shelf: Path) -> None:
    """Serve one tool, whose definition changes after the gateway has read it."""
    await serve(gateway, shelf, "Drops one table")
    shelf.write_text(shelf.read_text().replace("Drops one table", "Drops every table"))
    await gateway.ask("reconnect", server="shop")
    await gateway.ask("refresh", server="shop")


async def serve_notary(gateway: Gateway, notes: Path) -> None:
    """Serve tools that ask the user questions."""
    await only(gateway, "notary", [sys.executable, "-I", "-S", era_server.__file__, "2025-11-25", str(notes)])


async def only(gateway: Gateway, name: str, command: list[str], **settings: Any) -> None:
    """Configure this server and no other."""
    http = {"enabled": True, "port": urlsplit(gateway.http_url).port}
    gateway.write({name: {"command": command}}, http=http, **settings)
    await until(lambda: gateway.server_names() == [name])
    await gateway.known()


async def says(page: Page, words: str) -> None:
    """Wait until the panel's message contains `words`."""
    await expect(page.locator("#said")).to_contain_text(words)


@pytest.mark.requirement("panel-actions")
async def test_a_changed_definition_is_shown_as_a_difference_and_approved(chromium: Browser, home: Path) -> None:
    async with scene(home) as made:
        await serve_changed(made.gateway, home / "shelf.json")
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

        for label in ("Deny", "Allow once", "Allow for this session"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await page.get_by_role("button", name=label).click()
            await expect(page.get_by_text("Nothing needs your approval")).to_be_visible()
        await call()  # allowed for this session
        denied, *allowed = answers
        assert isinstance(denied, RpcFailure) or denied["isError"] is True
        assert [isinstance(one, RpcFailure) or one.get("isError", False) for one in allowed] == [False] * 3
        async with made.gateway.client() as client:  # in a new session, the user is asked again
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await page.get_by_role("button", name="Always allow").click()
            await call()
        assert (await made.gateway.ask("asks"))["always"] == [{"server": "shop", "tool": "drop_table"}]
        assert [isinstance(one, RpcFailure) or one.get("isError", False) for one in answers[4:]] == [False] * 2


@pytest.mark.requirement("ask-once", "panel-live")
async def test_an_ask_in_two_panels_is_answered_by_one_click_and_the_other_is_told(
    chromium: Browser, home: Path
) -> None:
    async with scene(home) as made, made.gateway.client() as client:
        await serve(made.gateway, home / "shelf.json", "Drops one table", ask="all")
        one, other = await made.open(chromium, "approvals"), await made.open(chromium, "approvals")
        waiting = client.ask("tools/call", {"name": "shop_drop_table", "arguments": {"id": "x"}})
        for page in (one, other):
            await expect(page.get_by_role("button", name="Allow once")).to_be_visible()
        (ask,) = (await made.gateway.ask("asks"))["asks"]
        await one.get_by_role("button", name="Deny").click()
        assert (await waiting)["result"]["isError"] is True
        await expect(one.get_by_text("Nothing needs your approval")).to_be_visible()
        await expect(other.get_by_text("Nothing needs your approval")).to_be_visible()
        await expect(other.get_by_role("button", name="Allow once")).to_have_count(0)
        await other.reload()
        await expect(other.get_by_role("button", name="Allow once")).to_have_count(0)
        with pytest.raises(MultiMcpError, match=f"{ask['id']} is over: it was denied by the panel"):
            await made.gateway.ask("allow", id=ask["id"])


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
        await page.get_by_role("switch", name="two/echo is enabled").click()
        await says(page, "Disabled: two/echo")
        await expect(page.locator("tbody tr")).to_have_count(1)  # an update keeps the search
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
async def test_each_filter_of_the_calls_narrows_them_and_older_ones_are_a_page_away(
    chromium: Browser, home: Path
) -> None:
    async with scene(home, Odd(home, "one"), Odd(home, "two")) as made, made.gateway.client() as client:
        await client.call("one_echo", text="plum")
        await client.call("two_tool_error")
        for _ in range(ROWS):
            await made.gateway.ask("call", tool="two_whoami", args={})
        page = await made.open(chromium, "activity")
        rows = page.locator("tbody tr")
        await expect(rows).to_have_count(ROWS)
        await page.get_by_role("link", name="Older calls").click()
        await expect(rows).to_have_count(2)
        await page.goto(f"{made.root}/panel/activity")
        await page.get_by_label("Server").select_option("one")
        await expect(rows).to_have_count(1)
        await page.get_by_label("Server").select_option("")
        await page.get_by_label("Tool", exact=True).fill("Tool_err")
        await expect(rows).to_have_count(1)
        await page.get_by_label("Tool", exact=True).fill("")
        await page.get_by_label("AI tool").fill("Test")
        await expect(rows).to_have_count(2)
        await page.get_by_label("Failures only").check()
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("two/tool_error")
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-actions", "panel-live")
async def test_overview_tokens_and_health_say_what_is_wrong_what_it_costs_and_what_helps(
    chromium: Browser, home: Path
) -> None:
    async with scene(home, Odd(home, "odd")) as made:
        page = await made.open(chromium)
        other = await made.open(chromium, "health")
        http = {"enabled": True, "port": int(made.root.rpartition(":")[2])}
        made.gateway.write({"odd": entry(Odd(home, "odd"), colour="red")}, http=http)
        await expect(page.get_by_label("Needs your attention")).to_contain_text("colour")
        await expect(page.get_by_label("Needs your attention").locator("code")).to_have_text(f"{made.gateway.file}:3")
        await page.get_by_role("button", name="Reconnect all", exact=True).click()
        await says(page, "Nothing to reconnect")
        await made.gateway.ask("call", tool="odd_echo", args={"text": "plum"})
        before = made.gateway.server("odd")["pid"]
        for button, words in (("Reconnect all", "Reconnected odd"), ("Refresh tools", "Refreshed odd")):
            await page.get_by_role("button", name=button, exact=True).click()
            await says(page, words)
        assert made.gateway.server("odd")["pid"] not in (None, before)
        await page.goto(f"{made.root}/panel/tokens")
        await expect(page.get_by_text("Saved at the start of a session")).to_be_visible()
        await page.locator("#cost-odd summary").click()
        await expect(page.locator("#cost-odd dd", has_text="whoami")).to_be_visible()
        unused = page.get_by_label("Never called")
        await unused.get_by_text("Show them").click()
        await expect(unused).to_contain_text("odd/whoami")
        await expect(unused).not_to_contain_text("odd/echo")
        await other.reload()
        await expect(other.get_by_label("What doctor found")).to_contain_text("colour")
        await expect(other.get_by_label("What doctor found")).to_contain_text("multi-mcp edit")
        await expect(other.locator("pre.log")).to_contain_text("ready")
        await expect(other.get_by_label("About")).to_contain_text(__version__)
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-actions", "panel-live")
async def test_a_server_shows_its_classes_prompts_resources_entry_and_its_log_live(
    chromium: Browser, home: Path
) -> None:
    async with scene(home, Odd(home, "odd", ("--full", "--say", "hello there"))) as made:
        await made.gateway.ask("call", tool="odd_echo", args={})
        page = await made.open(chromium, "server/odd")
        await expect(page.locator("#tool-echo .tag")).to_have_text("read")
        for label in ("Prompts", "Resources", "Resource templates"):
            await expect(page.locator("summary", has_text=label).first).to_be_visible()
        lines = page.locator("pre.log")
        await expect(lines).to_contain_text("hello there")
        stderr = Path(f"/proc/{made.gateway.server('odd')['pid']}/fd/2")
        stderr.write_text("".join(f"later {number}\n" for number in range(100)))
        await expect(lines).to_contain_text("later 99")
        # The log is scrolled to its end.
        assert await lines.evaluate("one => one.scrollHeight > one.clientHeight && one.scrollTop === 0")
        await expect(page.locator("pre", has_text="odd_server.py")).to_be_visible()
