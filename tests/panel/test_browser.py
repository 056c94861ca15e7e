"""The panel in a real browser: every action with its effect, live updates, keyboard, axe-core, hostile servers."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import anyio.to_thread
import httpx2
import pytest
from playwright.async_api import Browser, Page, expect

from tests.benchmarks.workloads import NULL_SERVER
from tests.fixtures.odd import Odd, until
from tests.panel.scene import EVIL, assert_accessible, scene
from tests.patience import stretched
from tests.tools import NO_CERTIFICATES
from trayapp.panel.pages import SCREEN

LONG = "x" * 200  # a name without a place to break
FORM = {"type": "object", "properties": {EVIL: {"type": "string", "title": EVIL, "description": EVIL}}}
pytestmark = [pytest.mark.anyio, pytest.mark.timeout(stretched(120.0))]
PAGES = (
    "",
    "server/odd",
    "server/odd?tool=odd_echo",
    "server/dead",
    "tools",
    "tools?q=echo",
    "activity",
    "activity/1",
    "approvals",
    "clients",
    "tokens",
    "health",
    "setup",
    "help",
    "help/verbs",
    "help/ai-tools",
    "add?what=npx%20-y%20notes-mcp%20/tmp",
    "nothing",
)
HOSTILE_PAGES = ("server/%3Cscript%3E", "activity?words=%3Cscript%3Ewindow.hit=1%3C/script%3E")


@pytest.mark.requirement("panel-actions")
async def test_switches_reach_servers_yaml_the_gateway_and_a_client(chromium: Browser, home: Path) -> None:
    async with scene(home, Odd(home, "odd")) as made, made.gateway.client() as client:
        page = await made.open(chromium, "server/odd")
        await page.get_by_role("switch", name="echo is enabled", exact=True).click()
        await expect(page.get_by_role("status")).to_contain_text("Disabled: odd/echo")
        await expect(page.get_by_role("switch", name="echo is enabled", exact=True)).not_to_be_checked()
        assert "echo" in made.gateway.file.read_text()
        listed = [tool["name"] for tool in (await client.request("tools/list"))["tools"]]
        assert listed
        assert "odd_echo" not in listed
        await page.goto(f"{made.root}/panel/")
        await page.get_by_role("switch", name="odd is enabled").click()
        await expect(page.get_by_text("disabled", exact=True)).to_be_visible()
        assert made.gateway.server("odd")["state"] == "disabled"
        await page.get_by_role("switch", name="odd is enabled").click()
        await expect(page.get_by_text("ready, idle")).to_be_visible()
        # The message may arrive after the update.
        await expect(page.get_by_role("status")).to_contain_text("Enabled: odd")
        await page.get_by_role("button", name="Reconnect odd").click()
        await expect(page.get_by_role("status")).to_contain_text("Reconnected odd")
        assert made.gateway.server("odd")["state"] == "connected"
        await page.get_by_role("button", name="Refresh tools of odd").click()
        await expect(page.get_by_role("status")).to_contain_text("Refreshed odd")
        assert made.elsewhere == []
        assert made.errors == []


@pytest.mark.requirement("panel-actions", "panel-live")
async def test_a_tool_is_tried_and_its_call_opened_and_called_again_in_two_panels(
    chromium: Browser, home: Path
) -> None:
    async with scene(home, Odd(home, "odd")) as made, made.gateway.client() as client:
        other = await made.open(chromium, "activity")
        page = await made.open(chromium, "server/odd")
        await page.get_by_role("link", name="Try echo", exact=True).click()
        await page.get_by_text("More arguments, as JSON").click()
        await page.get_by_label("Arguments as JSON").fill('{"text": "plum"}')
        await page.get_by_role("button", name="Call it").click()
        await expect(page.get_by_role("status")).to_contain_text("The call succeeded")
        await expect(page.get_by_role("status")).to_contain_text("plum")
        await expect(other.locator("tbody tr")).to_have_count(1)
        await client.request("tools/call", {"name": "odd_echo", "arguments": {"text": "pear"}})
        await expect(other.locator("tbody tr")).to_have_count(2)
        await other.get_by_label("Words").fill("pear")
        await expect(other.locator("tbody tr")).to_have_count(1)
        # wait for the update: it would replace the link between the press and the release of the button
        await expect(other.locator(".htmx-request, .htmx-settling")).to_have_count(0)
        await other.get_by_role("link", name="odd/echo").click()
        await expect(other.get_by_label("Arguments")).to_contain_text("pear")
        await other.get_by_role("button", name="Call again").click()
        await expect(other.get_by_role("status")).to_contain_text("The call succeeded")
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-live")
async def test_a_page_says_that_the_gateway_is_gone_and_goes_on_when_it_is_back(chromium: Browser, home: Path) -> None:
    async with scene(home, Odd(home, "odd")) as made:
        page = await made.open(chromium)
        await expect(page.get_by_text("ready, idle")).to_be_visible()
        assert made.gateway.process is not None
        made.gateway.process.kill()
        made.gateway.process.wait()
        await expect(page.get_by_text("The gateway is not running.")).to_be_visible()
        await page.evaluate("document.querySelector('main').style.minHeight = '9000px'")
        await page.evaluate("scrollTo(0, 5000)")
        await expect(page.get_by_text("The gateway is not running.")).to_be_in_viewport()
        await anyio.to_thread.run_sync(made.gateway.start)
        await expect(page.get_by_text("The gateway is not running.")).to_be_hidden()
        await made.gateway.ask("reconnect", server="odd")
        await expect(page.get_by_text("connected", exact=True)).to_be_visible()


@pytest.mark.requirement("panel-live")
async def test_a_new_page_has_a_screen_of_servers_and_shows_the_others_by_itself(chromium: Browser, home: Path) -> None:
    names = [f"s{number:02}" for number in range(SCREEN + 5)]
    names[1] = "a-name-that-takes-more-than-one-line-" * 3
    async with scene(home) as made:
        http = {"enabled": True, "port": int(made.root.rpartition(":")[2])}
        entries = {name: {"command": "nothing", "enabled": False} for name in names}
        made.gateway.write(entries, http=http)
        await until(lambda: made.gateway.server_names() == names)
        page = await made.open(chromium)
        await expect(page.locator(".cards > .card")).to_have_count(len(names))
        laid_out = "all => all.map(one => getComputedStyle(one).contentVisibility === 'visible')"
        found = await page.locator(".cards > .card").evaluate_all(laid_out)
        assert found == [number < SCREEN for number in range(len(names))]  # the first screen is laid out immediately
        switch, name = page.get_by_role("switch", name=names[1]), page.get_by_role("heading", name=names[1])
        # The switch is beside the name, however long the name is.
        assert await switch.evaluate("one => one.getBoundingClientRect().top") < await name.evaluate(
            "one => one.getBoundingClientRect().bottom"
        )
        made.gateway.write({**entries, names[-1]: {"command": "nothing"}}, http=http)
        # An update shows every server.
        await expect(page.get_by_role("switch", name=names[-1])).to_be_checked()
        await expect(page.locator(".cards > .card")).to_have_count(len(names))
        cookie, _ = await made.signed_in()
        async with httpx2.AsyncClient(verify=NO_CERTIFICATES) as plain:
            new = await plain.get(f"{made.root}/panel/", headers={"Cookie": cookie})
        assert new.text.count("<article") == SCREEN
        assert "5 more servers" in new.text
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-accessible")
async def test_by_keyboard_alone(chromium: Browser, home: Path) -> None:
    async with scene(home, Odd(home, "odd")) as made:
        page = await made.open(chromium)
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
        switch = page.get_by_role("switch", name="odd is enabled")
        for _ in range(40):
            await page.keyboard.press("Tab")
            if await switch.evaluate("one => one === document.activeElement"):
                break
        await page.keyboard.press("Space")
        await expect(switch).not_to_be_checked()
        await expect(switch).to_be_focused()  # an update does not take the focus away
        await expect(page.get_by_role("status")).to_contain_text("Disabled: odd")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("status")).to_be_empty()
        await expect(switch).to_be_focused()
        assert made.gateway.server("odd")["state"] == "disabled"
        await page.goto(f"{made.root}/panel/server/odd")
        await page.get_by_role("button", name="Enable").focus()
        for label, state in (("Disable", "ready, idle"), ("Enable", "disabled")):
            await page.keyboard.press("Enter")
            await expect(page.get_by_text(state, exact=True)).to_be_visible()
            await expect(page.get_by_role("button", name=label)).to_be_focused()
        await page.goto(f"{made.root}/panel/activity")
        await page.keyboard.press("/")
        await expect(page.get_by_label("Words")).to_be_focused()


@pytest.mark.requirement("panel-accessible", "panel-hostile")
async def test_on_each_page_what_a_hostile_server_says_is_text_and_axe_finds_nothing_serious(
    chromium: Browser, home: Path
) -> None:
    dead = Odd(home, "dead", ("--die", "initialize"))
    async with scene(home, Odd(home, "odd", ("--say", EVIL)), dead) as made:
        await made.gateway.state("dead", "failed")
        await made.gateway.ask("call", tool="odd_echo", args={"text": EVIL, "more": EVIL + "x" * 1_000_000})
        page = await made.open(chromium, color_scheme="light")
        for path in (*PAGES, *HOSTILE_PAGES, "enter?code=used"):  # the last one is the sign-in page
            await page.goto(f"{made.root}/panel/{path}")
            await expect(page.locator("#slow[aria-busy]")).to_have_count(0)  # slow parts have loaded
            assert await page.evaluate("window.hit") is None, path
            assert await page.locator("#main img, #main script, #main iframe").count() == 0, path
            assert "\x1b" not in await page.content()
            if path not in HOSTILE_PAGES:  # PAGES has the same pages with other words
                await assert_accessible(page, path)
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-hostile")
async def test_the_error_and_the_question_of_a_hostile_server_are_text(chromium: Browser, home: Path) -> None:
    asked = {"method": "elicitation/create", "params": {"message": EVIL, "requestedSchema": FORM}}
    dead = Odd(home, "dead", ("--say", EVIL, "--die", "initialize"))
    async with scene(home, Odd(home, "odd"), dead) as made, made.gateway.client() as client:
        await made.gateway.state("dead", "failed")
        page = await made.open(chromium)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.request, "tools/call", {"name": "odd_ask", "arguments": asked})
            await expect(page.get_by_role("heading", name="odd asks you, while")).to_be_visible()
            for path in ("", "approvals", "server/dead"):
                await page.goto(f"{made.root}/panel/{path}")
                await expect(page.get_by_text("window.hit=1").first).to_be_visible()
                assert await page.evaluate("window.hit") is None, path
                assert await page.locator("#main img, #main script, #main iframe").count() == 0, path
                assert "\x1b" not in await page.locator("body").inner_text()
            tasks.cancel_scope.cancel()
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-hostile")
async def test_names_and_descriptions_of_a_megabyte_of_html_break_nothing(chromium: Browser, home: Path) -> None:
    async with scene(home) as made:
        shelf = home / "shelf.json"
        schema = {"type": "object", "properties": {EVIL: {}, LONG: {}}}
        words = {"description": EVIL + "x" * 1_000_000, "inputSchema": schema}
        tools = [{"name": name, **words} for name in ("plain", EVIL)]
        shelf.write_text(json.dumps({"tools": tools}))
        http = {"enabled": True, "port": int(made.root.rpartition(":")[2])}
        argv = [*NULL_SERVER, str(shelf)]
        made.gateway.write({"evil": {"command": argv[0], "args": argv[1:]}}, http=http, suspicious="off")
        await until(lambda: made.gateway.server_names() == ["evil"])
        await made.gateway.known()
        assert made.gateway.server("evil")["tools"]["total"] >= 1
        page = await made.open(chromium)
        for path in ("", "tools", "server/evil", "server/evil?tool=evil_plain", "approvals", "tokens"):
            await page.goto(f"{made.root}/panel/{path}")
            if path == "tokens":
                await expect(page.get_by_role("heading", name="What each server and tool costs")).to_be_visible()
            assert await page.evaluate("window.hit") is None, path
            assert await page.locator("#main img, #main script, #main iframe").count() == 0, path
            assert len(await page.content()) < 300_000, path
            for width in (360, 1280):
                await page.set_viewport_size({"width": width, "height": 900})
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, width)
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-sign-in")
async def test_a_link_is_answered_with_the_first_page_which_can_be_loaded_again(chromium: Browser, home: Path) -> None:
    async with scene(home, Odd(home, "odd")) as made:
        context = await chromium.new_context()
        made.contexts.append(context)
        page, asked = await context.new_page(), list[str]()
        page.on("request", lambda one: asked.append(one.url) if one.is_navigation_request() else None)
        link = await made.link()
        await page.goto(link)
        assert asked == [link]  # a redirect would add a second request
        assert (page.url, await page.evaluate("history.length")) == (f"{made.root}/panel/", 2)
        await page.reload()
        await expect(page.get_by_role("heading", name="Overview")).to_be_visible()


@pytest.mark.requirement("panel-guarded")
async def test_no_other_page_shows_the_panel_in_a_frame(chromium: Browser, home: Path) -> None:
    async with scene(home, Odd(home, "odd")) as made:
        page = await made.open(chromium)
        await page.goto("about:blank")
        await page.set_content(f'<iframe src="{made.root}/panel/"></iframe>')
        await until_framed(page)
        assert [frame.url for frame in page.frames[1:]] == ["chrome-error://chromewebdata/"]


async def until_framed(page: Page) -> None:
    """Wait until the frame has loaded or has been refused."""
    with anyio.fail_after(stretched(10.0)):
        while len(page.frames) < 2 or page.frames[1].url in ("", "about:blank"):  # noqa: ASYNC110 (no event)
            await anyio.sleep(0.05)
