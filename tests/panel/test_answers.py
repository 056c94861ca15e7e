"""The panel's interactive parts in a real browser: sign-in and sign-out, servers' questions, the keyboard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.auth.issuer import guarded
from tests.e2e.client import RpcFailure
from tests.e2e.gateway import Gateway
from tests.fixtures.odd import Odd, until
from tests.panel.scene import scene
from tests.panel.test_actions import says, serve, serve_changed, serve_notary
from tests.patience import stretched

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(stretched(120.0))]
TABS_MOST = 150  # enough presses of Tab to reach any control of a page
FORM = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "title": "Your name", "description": "As it stands on the letter"},
        "copies": {"type": "integer"},
        "color": {"type": "string", "enum": ["red", "green"]},
        "sure": {"type": "boolean"},
        "paper": {"type": "string", "oneOf": [{"const": "a4", "title": "A4 sheet"}, {"const": "a5", "title": "Half"}]},
        "extras": {"type": "array", "items": {"enum": ["seal", "ribbon"]}},
    },
}


@pytest.mark.requirement("panel-actions", "panel-live")
async def test_a_server_is_signed_in_to_and_out_of_and_two_panels_show_it(chromium: Browser, home: Path) -> None:
    async with guarded() as server, scene(home) as made:
        http = {"enabled": True, "port": int(made.root.rpartition(":")[2])}
        made.gateway.write({"web": {"url": server.url()}}, http=http)
        await until(lambda: made.gateway.server_names() == ["web"])
        await made.gateway.state("web", "needs_auth")
        other = await made.open(chromium)
        page = await made.open(chromium, "server/web")
        await expect(other.get_by_role("button", name="Sign in to web")).to_be_visible()
        async with page.context.expect_page() as opened:
            await page.get_by_role("button", name="Sign in").click()
        await says(page, "Continue on the sign-in page of web")
        there = await opened.value
        await expect(there.get_by_role("heading")).to_be_visible()
        await expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        await expect(other.get_by_role("button", name="Sign in to web")).to_have_count(0)
        async with made.gateway.client() as client:
            assert "still here" in (await client.call("web_echo", text="still here"))["content"][0]["text"]
        await page.get_by_role("button", name="Sign out").click()
        await says(page, "Signed out of web")
        await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        await expect(other.get_by_role("button", name="Sign in to web")).to_be_visible()
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-actions")
async def test_a_changed_tool_is_disabled_on_approvals(chromium: Browser, home: Path) -> None:
    async with scene(home) as made, made.gateway.client() as client:
        await serve_changed(made.gateway, home / "shelf.json")
        page = await made.open(chromium, "approvals")
        await page.get_by_role("button", name="Disable drop_table").click()
        await says(page, "Disabled: shop/drop_table")
        await expect(page.get_by_text("It is disabled: no AI tool sees it.")).to_be_visible()
        await expect(page.get_by_role("button", name="Disable drop_table")).to_have_count(0)
        assert "enabled: false" in made.gateway.file.read_text() or '"enabled": false' in made.gateway.file.read_text()
        assert (await client.request("tools/list"))["tools"] == []
        assert "approvals" not in made.gateway.server("shop")


async def ask(client: Any, answers: list[Any]) -> None:
    """Call a tool that asks the user a question, from a client that cannot show it."""
    asked = {"method": "elicitation/create", "params": {"message": "Who signs?", "requestedSchema": FORM}}
    try:
        answers.append(await client.request("tools/call", {"name": "notary_ask", "arguments": asked}))
    except RpcFailure as error:
        answers.append(error)


@pytest.mark.requirement("panel-actions", "panel-live")
async def test_a_question_of_a_server_is_answered_and_declined_by_its_form(chromium: Browser, home: Path) -> None:
    async with scene(home) as made, made.gateway.client() as client:
        await serve_notary(made.gateway, home / "notes")
        page = await made.open(chromium, "approvals")
        answers: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, client, answers)
            await expect(page.get_by_text("Who signs?")).to_be_visible()
            await expect(page.get_by_text("As it stands on the letter")).to_be_visible()
            await page.get_by_label("name").fill("Ada")
            await page.get_by_label("copies").fill("3")
            await page.get_by_label("color").select_option("green")
            await page.get_by_label("sure").select_option("true")
            await page.get_by_label("paper").select_option("A4 sheet")
            await expect(page.get_by_text('Any of ["seal", "ribbon"]')).to_be_visible()
            await page.get_by_label("extras").fill('["seal"]')
            await page.get_by_role("button", name="Send").click()
        await says(page, "Answered")
        assert said(answers[0]) == {
            "action": "accept",
            "content": {
                "name": "Ada",
                "copies": 3,
                "color": "green",
                "sure": True,
                "paper": "a4",
                "extras": ["seal"],
            },
        }
        await expect(page.get_by_text("Nothing needs your approval")).to_be_visible()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, client, answers)
            await page.get_by_role("button", name="Deny").click()
        assert said(answers[1])["action"] in ("decline", "cancel")
        assert (made.elsewhere, made.errors) == ([], [])


def said(result: Any) -> Any:
    """Return the user's answer that the server received."""
    assert not isinstance(result, RpcFailure), result
    return json.loads(result["content"][0]["text"])["result"]


@pytest.mark.requirement("panel-actions")
async def test_a_tool_is_tried_with_the_values_of_its_form(chromium: Browser, home: Path) -> None:
    async with scene(home) as made:
        await serve(made.gateway, home / "shelf.json", "Drops one table", ask="off")
        page = await made.open(chromium, "server/shop?tool=shop_drop_table")
        for text in ("5", '"5"', "plum"):
            await page.get_by_label("id", exact=True).fill(text)
            await page.get_by_role("button", name="Call it").click()
            await says(page, "The call succeeded")
            await until(lambda text=text: [text] == given(made.gateway))


@pytest.mark.requirement("panel-actions", "ask-every-way")
async def test_a_tool_that_asks_is_confirmed_by_one_click_in_the_panel(chromium: Browser, home: Path) -> None:
    async with scene(home) as made:
        await serve(made.gateway, home / "shelf.json", "Drops one table", ask="all")
        page = await made.open(chromium, "server/shop?tool=shop_drop_table")
        await expect(page.get_by_text("Your click is the answer")).to_be_visible()
        await page.get_by_label("id", exact=True).fill("plum")
        await page.get_by_role("button", name="Call it").click()
        await says(page, "The call succeeded")
        await until(lambda: given(made.gateway) == ["plum"])
        await page.goto(f"{made.root}/panel/activity")
        await page.get_by_role("link", name="shop/drop_table").click()
        await page.get_by_role("button", name="Call again").click()
        await says(page, "Call shop/drop_table? It is a destructive tool")
        await says(page, "plum")
        assert len(made.gateway.control("history", limit=9)["rows"]) == 1
        await page.locator("#said").get_by_role("button", name="Call it").click()
        await says(page, "The call succeeded")
        await until(lambda: len(made.gateway.control("history", limit=9)["rows"]) == 2)
        assert given(made.gateway) == ["plum"]
        assert (made.elsewhere, made.errors) == ([], [])


def given(gateway: Gateway) -> list[Any]:
    """Return a list with the argument `id` of the last recorded call."""
    rows = gateway.control("history", limit=1)["rows"]
    found = [json.loads(gateway.control("history_show", id=row["id"])["arguments"]) for row in rows]
    return [arguments.get("id") for arguments in found]


async def go(page: Page, control: Locator, key: str = "Enter") -> None:
    """Reach a control with Tab alone and press a key on it."""
    await expect(control).to_be_visible()
    for _ in range(TABS_MOST):
        if await control.evaluate("one => one === document.activeElement"):
            await page.keyboard.press(key)
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {control}")


@pytest.mark.requirement("panel-accessible")
async def test_each_page_is_worked_by_keyboard_alone(
    chromium: Browser, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursor = home / "user" / ".cursor"
    cursor.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(cursor.parent))
    async with scene(home, Odd(home, "odd")) as made:
        page = await made.open(chromium)
        await go(page, page.get_by_role("link", name="Tools", exact=True))
        await go(page, page.get_by_role("searchbox"), "e")
        await page.keyboard.type("cho")
        await expect(page.locator("tbody tr")).to_have_count(1)
        await go(page, page.get_by_role("switch"), "Space")
        await says(page, "Disabled: odd/echo")
        await expect(page.get_by_role("switch")).not_to_be_checked()
        # wait for the update: a person would not press a key again so soon
        await expect(page.locator(".htmx-request, .htmx-settling")).to_have_count(0)
        await expect(page.get_by_role("switch")).to_be_focused()  # an update of the page leaves the focus where it is
        await page.keyboard.press("Space")
        await says(page, "Enabled: odd/echo")
        await go(page, page.get_by_role("link", name="Try odd/echo"))
        await go(page, page.get_by_text("More arguments, as JSON"))
        await go(page, page.get_by_label("Arguments as JSON"), "{")
        await page.keyboard.type('"text": "plum"}')
        await go(page, page.get_by_role("button", name="Call it"))
        await says(page, "The call succeeded")
        await go(page, page.get_by_role("link", name="Activity"))
        await go(page, page.get_by_role("link", name="odd/echo").first)
        await expect(page.get_by_label("Arguments")).to_contain_text("plum")
        await go(page, page.get_by_role("button", name="Call again"))
        await says(page, "The call succeeded")
        await go(page, page.get_by_role("link", name="AI tools"))
        await go(page, page.get_by_role("button", name="Show the change in Cursor"))
        await says(page, "This would change in")
        await go(page, page.get_by_role("button", name="Connect Cursor"))
        await says(page, "Connected Cursor")
        assert (cursor / "mcp.json").exists()
        await go(page, page.get_by_role("link", name="Tokens"))
        await go(page, page.locator("#cost-odd summary"))
        await expect(page.locator("#cost-odd dd").first).to_be_visible()
        await go(page, page.get_by_role("link", name="Health"))
        await go(page, page.locator('pre[aria-labelledby="log"]'), "End")
        await go(page, page.get_by_role("link", name="Add", exact=True))
        await go(page, page.get_by_role("textbox", name="A snippet"), "n")
        await page.keyboard.type("px -y nothing")
        await go(page, page.get_by_role("button", name="Show what would run"))
        await expect(page.locator("#found")).to_contain_text("nothing")
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-accessible")
async def test_a_changed_tool_is_approved_by_keyboard_alone(chromium: Browser, home: Path) -> None:
    async with scene(home) as made:
        await serve_changed(made.gateway, home / "shelf.json")
        page = await made.open(chromium)
        await go(page, page.get_by_role("link", name="Approvals"))
        await go(page, page.get_by_role("button", name="Approve drop_table"))
        await says(page, "Approved shop/drop_table")


@pytest.mark.requirement("panel-actions", "panel-live")
async def test_a_switch_pressed_again_before_news_arrive_is_switched_back(chromium: Browser, home: Path) -> None:
    async with scene(home, Odd(home, "odd")) as made:
        page = await made.open(chromium, "tools?q=echo")

        async def hold(route: Any) -> None:
            """Hold back updates until the test is over."""

        await page.route("**/panel/tools?*", hold)
        for words in ("Disabled: odd/echo", "Enabled: odd/echo"):
            await go(page, page.get_by_role("switch"), "Space")
            await says(page, words)
        await expect(page.get_by_role("switch")).to_be_checked()
        assert made.gateway.server("odd")["tools"]["enabled"] == made.gateway.server("odd")["tools"]["total"]


@pytest.mark.requirement("panel-live")
async def test_what_changed_while_a_page_was_loading_is_shown(chromium: Browser, home: Path) -> None:
    """No update is lost between the page and its event stream."""
    async with scene(home, Odd(home, "odd")) as made:
        page = await made.open(chromium)
        began = anyio.Event()

        async def hold(route: Any) -> None:
            began.set()
            await made.gateway.ask("reconnect", server="odd")
            await route.continue_()

        await page.route("**/panel/events*", hold)
        await page.goto(f"{made.root}/panel/")
        await began.wait()
        await expect(page.get_by_text("connected", exact=True)).to_be_visible()


@pytest.mark.requirement("panel-actions")
async def test_what_is_pressed_before_the_page_is_ready_is_done_once_it_is(chromium: Browser, home: Path) -> None:
    async with scene(home, Odd(home, "odd")) as made:
        page = await made.open(chromium)
        let = anyio.Event()

        async def hold(route: Any) -> None:
            await let.wait()
            await route.continue_()

        await page.context.route("**/htmx.min.js*", hold)
        fresh = await page.context.new_page()
        await fresh.goto(f"{made.root}/panel/", wait_until="commit")
        switch = fresh.get_by_role("switch", name="odd is enabled")
        await switch.click()
        assert made.gateway.server("odd")["state"] != "disabled"
        let.set()
        await says(fresh, "Disabled: odd")
        assert fresh.url == f"{made.root}/panel/"
        await expect(switch).not_to_be_checked()


@pytest.mark.requirement("panel-actions")
async def test_a_filter_that_is_set_before_the_page_is_ready_holds_once_it_is(chromium: Browser, home: Path) -> None:
    async with scene(home, Odd(home, "one"), Odd(home, "two")) as made, made.gateway.client() as client:
        await client.call("one_echo", text="plum")
        await client.call("two_tool_error")
        page = await made.open(chromium)
        let = anyio.Event()

        async def hold(route: Any) -> None:
            await let.wait()
            await route.continue_()

        await page.context.route("**/htmx.min.js*", hold)
        for label, value in (("Server", "one"), ("Failures only", None)):
            fresh = await page.context.new_page()
            let = anyio.Event()
            await fresh.goto(f"{made.root}/panel/activity", wait_until="commit")
            await expect(fresh.locator("tbody tr")).to_have_count(2)
            field = fresh.get_by_label(label)
            await (field.check() if value is None else field.select_option(value))
            let.set()
            await expect(fresh.locator("tbody tr")).to_have_count(1)
