"""The panel's page for adding servers, in a real browser: it shows what would run, and starts it only if confirmed."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.fixtures.odd import Odd, until
from tests.fixtures.registry import entry, registry
from tests.packages.bundles import launched, make_bundle, manifest
from tests.panel.scene import EVIL, assert_accessible, scene
from tests.patience import stretched

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(stretched(120.0))]
STARTED_MS = stretched(60.0) * 1000
SECRET = "Teal-47-heron"
EVIL_QUERY = "%3Cscript%3Ewindow.hit=1%3C/script%3E%20%7B%22mcpServers%22"
SAMPLE = [sys.executable, "-m", "trayapp", "sample-server"]


def snippet(**more: object) -> str:
    server = {
        "command": SAMPLE[0],
        "args": SAMPLE[1:],
        "env": {"PYTHONPATH": str(Path.cwd()), "API_TOKEN": "<YOUR_TOKEN>"},
    }
    return json.dumps({"mcpServers": {"sample": server | more}})


@pytest.fixture(autouse=True)
def vault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULTI_MCP_PASSPHRASE", "of the tests")


@pytest.mark.requirement("panel-add", "source-asked", "source-secrets")
async def test_a_pasted_snippet_is_shown_asked_for_added_and_tried(chromium: Browser, home: Path) -> None:
    async with scene(home, Odd(home, "odd"), token_store="file") as made:
        page = await made.open(chromium)
        await page.get_by_role("link", name="Add", exact=True).click()
        await page.get_by_label("A snippet from any AI tool").fill(snippet())
        await page.get_by_role("button", name="Show what would run").click()
        shown = page.get_by_label("What would run: sample")
        await expect(shown).to_contain_text("-m trayapp sample-server", timeout=STARTED_MS)
        await expect(shown).to_contain_text("PYTHONPATH=")
        await expect(shown).to_contain_text("(decides which code is loaded)")
        assert "sample" not in made.gateway.file.read_text()
        assert [one["name"] for one in (await made.gateway.ask("snapshot"))["servers"]] == ["odd"]
        await made.gateway.ask("reconnect", server="odd")  # an update does not clear a form
        field = page.get_by_label("API_TOKEN")
        assert await field.get_attribute("type") == "password"
        await field.fill(SECRET)
        await page.get_by_role("button", name="Add sample").click()
        await expect(page.locator("#found")).to_contain_text("Added sample:", timeout=STARTED_MS)
        assert SECRET not in await page.content()
        assert "${keyring:sample.API_TOKEN}" in made.gateway.file.read_text()
        assert "cwd" not in made.gateway.file.read_text().partition("sample:")[2]
        await page.get_by_role("link", name="See its tools").click()
        await expect(page.get_by_role("heading", name="sample")).to_be_visible(timeout=STARTED_MS)
        assert (made.elsewhere, made.errors) == ([], [])
    said = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert SECRET.encode() not in said


@pytest.mark.requirement("panel-add", "source-asked")
async def test_what_is_in_the_clipboard_reaches_an_ai_tool_with_two_clicks(
    chromium: Browser, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = home / "user"
    (user / ".cursor").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(user))
    text = "Add this:\n\n```json\n" + snippet(env={"PYTHONPATH": str(Path.cwd())}) + "\n```\n"
    async with scene(home) as made:
        page = await made.open(chromium, "add", permissions=["clipboard-read", "clipboard-write"])
        await page.evaluate("text => navigator.clipboard.writeText(text)", text)
        await page.get_by_label("A snippet from any AI tool").focus()
        await page.keyboard.press("ControlOrMeta+V")
        await expect(page.get_by_label("What would run: sample")).to_be_visible(timeout=STARTED_MS)
        assert "sample" not in made.gateway.file.read_text()
        await page.get_by_role("button", name="Add sample").click()
        await page.get_by_role("button", name="Connect Cursor").click(timeout=STARTED_MS)
        await expect(page.get_by_role("status")).to_contain_text("Connected Cursor", timeout=STARTED_MS)
        assert '"multi-mcp"' in (user / ".cursor" / "mcp.json").read_text(encoding="utf-8")
        assert "sample" in made.gateway.file.read_text()
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-add", "bundle-added", "source-secrets")
async def test_a_refused_form_stays_as_it_was_filled_in_with_the_message_beside_the_value(
    chromium: Browser, home: Path
) -> None:
    wants = {
        "num": {"type": "number", "title": "Number", "description": "", "min": 1, "max": 10, "required": True},
        "place": {"type": "string", "title": "Place", "description": "A place", "required": True},
        "token": {"type": "string", "title": "Token", "description": "A token", "sensitive": True, "required": True},
    }
    server = launched("${user_config.num}", "${user_config.place}", env={"B_TOKEN": "${user_config.token}"})
    path = make_bundle(home / "demo.mcpb", manifest(server=server, user_config=wants))
    async with scene(home, Odd(home, "odd"), token_store="file") as made:
        page = await made.open(chromium, "add")
        await page.get_by_label("A snippet from any AI tool").fill(str(path))
        await page.get_by_role("button", name="Show what would run").click()
        number, place, token = (page.get_by_label(name, exact=False) for name in ("num", "place", "token"))
        await number.fill("99", timeout=STARTED_MS)
        await place.fill("Reading room")
        await token.fill(SECRET)
        name = page.get_by_label("Name", exact=True)
        add = page.get_by_role("button", name="Add demo-bundle")
        for field, wrong, words in (
            (number, "99", "num must be a number, at least 1, at most 10"),
            (name, "odd", "A server named odd already exists"),
            (name, "a/b", "A server's name"),
        ):
            await field.fill(wrong)
            await add.click()
            await expect(field).to_have_accessible_description(re.compile(words), timeout=STARTED_MS)
            await expect(field).to_be_focused()
            await expect(page.locator("[aria-invalid]")).to_have_count(1)
            await expect(place).to_have_value("Reading room")
            await expect(token).to_have_value(SECRET)
            assert SECRET not in await page.content()
            assert "demo-bundle" not in made.gateway.file.read_text()
            await assert_accessible(page, words)
            await field.fill("9" if field is number else "demo")
        await add.click()
        await expect(page.locator("#found")).to_contain_text("Added demo", timeout=STARTED_MS)
        assert "${keyring:demo.token}" in made.gateway.file.read_text()
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-add", "source-asked")
async def test_each_server_of_a_snippet_stays_with_what_was_typed_until_it_is_added_or_dismissed(
    chromium: Browser, home: Path
) -> None:
    entry = {"command": SAMPLE[0], "args": SAMPLE[1:], "env": {"PYTHONPATH": str(Path.cwd()), "PLACE": "<PLACE>"}}
    async with scene(home, Odd(home, "odd"), token_store="file") as made:
        page = await made.open(chromium, "add")
        what = page.get_by_label("A snippet from any AI tool")
        await what.fill(json.dumps({"mcpServers": {"one": entry, "two": entry, "three": entry}}))
        await page.get_by_role("button", name="Show what would run").click()
        one, two, three = (page.get_by_role("region", name=name, exact=True) for name in ("one", "two", "three"))
        await one.get_by_label("PLACE").fill("Attic", timeout=STARTED_MS)
        await two.get_by_label("PLACE").fill("Cellar")
        await page.get_by_role("button", name="Dismiss three").click()
        await expect(three).to_have_count(0)
        await page.get_by_role("button", name="Add one").click()
        added = page.locator("#found .note", has_text="Added one:")
        await expect(added).to_be_focused(timeout=STARTED_MS)
        tools = await made.gateway.ask("list", server="one", classes=True)
        for row in tools:
            await expect(added).to_contain_text(row["name"])
        assert {row["class"] for row in tools} == set(await added.locator(".tag").all_inner_texts())
        await assert_accessible(page, "one added")
        await expect(one).to_have_count(0)
        await expect(two.get_by_label("PLACE")).to_have_value("Cellar")
        await page.get_by_role("button", name="Add two").click()
        await expect(page.locator("#found .note", has_text="Added two:")).to_be_visible(timeout=STARTED_MS)
        await expect(added).to_be_visible()
        assert "${keyring:one.PLACE}" in made.gateway.file.read_text()
        assert "${keyring:two.PLACE}" in made.gateway.file.read_text()
        await page.get_by_role("button", name="Show what would run").click()
        name = one.get_by_label("Name", exact=True)
        words = "A server named one already exists"
        await expect(name).to_have_accessible_description(re.compile(words), timeout=STARTED_MS)
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-add", "source-secrets")
async def test_without_a_keyring_it_is_said_before_a_secret_is_typed_and_what_was_typed_stays(
    chromium: Browser, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MULTI_MCP_PASSPHRASE")
    async with scene(home, Odd(home, "odd")) as made:
        page = await made.open(chromium, "add")
        await page.get_by_label("A snippet from any AI tool").fill(snippet())
        await page.get_by_role("button", name="Show what would run").click()
        field = page.get_by_label("API_TOKEN")
        await expect(field).to_be_visible(timeout=STARTED_MS)
        note = page.locator("#proposal-0 .note", has_text="There is no keyring")
        await expect(note).to_contain_text("token_store: file")
        await expect(page.locator("#proposal-0")).not_to_contain_text("stored in the keyring")
        await expect(field).to_have_accessible_description(re.compile("There is no keyring"))
        await assert_accessible(page, "no keyring")
        await field.fill(SECRET)
        await page.get_by_role("button", name="Add sample").click()
        answer = page.locator("#proposal-0 .answer")
        await expect(answer).to_contain_text("not kept", timeout=STARTED_MS)
        await expect(field).to_have_value(SECRET)
        assert "sample" not in made.gateway.file.read_text()


@pytest.mark.requirement("panel-add", "secret-command", "pin-person")
async def test_a_command_for_a_secret_is_shown_whole_and_approved_after_add_and_on_its_page(
    chromium: Browser, home: Path
) -> None:
    command = f"echo {'far ' * 90}Teal"
    env = {"PYTHONPATH": str(Path.cwd()), "PLACE": f"${{cmd:{command}}}"}
    async with scene(home, Odd(home, "odd")) as made:
        page = await made.open(chromium, "add")
        await page.get_by_label("A snippet from any AI tool").fill(snippet(env=env))
        await page.get_by_role("button", name="Show what would run").click()
        await expect(page.get_by_label("What would run: sample")).to_contain_text(
            f"runs for a secret: {command}", timeout=STARTED_MS
        )
        await page.get_by_role("button", name="Add sample").click()
        shown = page.get_by_label("Commands of sample")
        await expect(shown).to_have_text(command, timeout=STARTED_MS)
        await assert_accessible(page, "added")
        approvals = await made.open(chromium, "approvals")
        await expect(approvals.get_by_label("Commands of sample")).to_have_text(command)
        await assert_accessible(approvals, "approvals")
        assert made.gateway.server("sample")["state"] == "failed"
        overview = await made.open(chromium, "")
        await overview.get_by_role("link", name="Review the command of sample").click()
        await expect(overview.get_by_label("Commands of sample")).to_have_text(command)
        link = await made.gateway.ask("panel", page="approvals")
        await overview.goto(link["url"])
        await expect(overview.get_by_label("Commands of sample")).to_have_text(command)
        await page.get_by_role("button", name="Approve the command of sample").click()
        await expect(page.locator("#found")).to_contain_text("Approved", timeout=STARTED_MS)
        await expect(page.locator("#found")).to_contain_text("clock")
        await expect(shown).to_have_count(0)
        await expect(approvals.get_by_text("Nothing needs your approval")).to_be_visible()
        made.gateway.save(made.gateway.file.read_text().replace("Teal", "Jade"))
        await approvals.reload()
        await expect(approvals.get_by_label("Commands of sample")).to_have_text(command.replace("Teal", "Jade"))
        # Without its updates, the page keeps showing the old command.
        await approvals.route(f"{made.root}/panel/approvals", lambda route: route.abort())
        made.gateway.save(made.gateway.file.read_text().replace("Jade", "Opal"))
        await until(lambda: "Opal" in str(made.gateway.control("commands")))
        approve = approvals.get_by_role("button", name="Approve the command of sample")
        await approve.evaluate("(one, vals) => one.setAttribute('hx-vals', vals)", json.dumps(
            {"server": "sample", "commands": [command.replace("Teal", "Jade")]}
        ))  # fmt: skip
        await approve.click()
        await expect(approvals.get_by_role("status")).to_contain_text("The commands changed in the meantime")
        assert made.errors == []


@pytest.mark.requirement("panel-add", "registry-find", "registry-status")
async def test_the_registry_is_searched_and_what_is_not_what_was_shown_is_not_added(
    chromium: Browser, home: Path
) -> None:
    package = {"registryType": "npm", "identifier": "wiki-mcp", "version": "1.0.0", "transport": {"type": "stdio"}}
    remote = {"type": "streamable-http", "url": "https://wiki.example/mcp"}
    wiki = entry("com.acme/wiki", packages=[package], remotes=[remote])
    old = entry("io.github.a/wiki-old", status="deprecated", why="Use com.acme/wiki")
    with registry(wiki, old) as asked:
        async with scene(home, Odd(home, "odd"), registry=asked.address) as made:
            page = await made.open(chromium, "add")
            assert asked.asked == []
            await page.get_by_label("Words to find").fill("wiki")
            await page.get_by_role("button", name="Search").click()
            await expect(page.get_by_text("deprecated", exact=True)).to_be_visible(timeout=STARTED_MS)
            await page.get_by_role("link", name="Review com.acme/wiki", exact=True).click()
            await expect(page.locator("#found")).to_contain_text("2 ways to run it", timeout=STARTED_MS)
            await expect(page.locator("#found")).to_contain_text("npx -y wiki-mcp@1.0.0", timeout=STARTED_MS)
            await expect(page.locator("#found")).to_contain_text("https://wiki.example/mcp", timeout=STARTED_MS)
            asked.rows[0]["server"]["packages"][0]["identifier"] = "evil-mcp"
            await page.get_by_role("button", name="Add wiki").first.click()
            await expect(page.locator("#found")).to_contain_text(
                "The server changed after it was shown", timeout=STARTED_MS
            )
            assert "wiki" not in made.gateway.file.read_text()
            asked.status = 503
            await page.goto(f"{made.root}/panel/add?find=unheard")
            await expect(page.locator("#found")).to_contain_text(
                ": It answers with HTTP status 503", timeout=STARTED_MS
            )
            assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-hostile", "panel-accessible", "panel-add")
async def test_hostile_entries_and_texts_are_text_and_the_page_is_accessible(chromium: Browser, home: Path) -> None:
    bad = entry("io.github.evil/wiki", packages=[{"registryType": "npm", "identifier": "x", "environmentVariables": [
        {"name": "A_TOKEN", "isSecret": True, "isRequired": True, "description": EVIL},
        {"name": "B", "isRequired": True, "choices": [EVIL, "x" * 300]}]}], description=EVIL, title=EVIL)  # fmt: skip
    with registry(bad, entry("io.github.gone/wiki", status="deprecated", why=EVIL)) as asked:
        async with scene(home, Odd(home, "odd"), registry=asked.address) as made:
            page = await made.open(chromium, color_scheme="light")
            for path in ("add", "add?find=wiki", "add?find=wiki&what=io.github.evil/wiki", "add?what=" + EVIL_QUERY):
                await page.goto(f"{made.root}/panel/{path}")
                assert await page.evaluate("window.hit") is None, path
                assert await page.locator("#main img, #main script, #main iframe").count() == 0, path
                await assert_accessible(page, path)
            assert (made.elsewhere, made.errors) == ([], [])
