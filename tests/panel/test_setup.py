"""The panel's pages for a new user, in a real browser: setup, its undo, and the guide."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.fixtures.odd import Odd
from tests.panel.scene import EVIL, Scene, scene
from tests.patience import stretched
from trayapp.panel.pages import anchor, guide_html
from trayapp.service.guide import page as text_of
from trayapp.service.guide import topics

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(stretched(120.0))]
DONE_MS = stretched(30.0) * 1000
SECRET = "ghp_Teal47heronTeal47heronTeal47heron00"
SERVERS = {
    "notes": {"command": "notes-server", "args": ["--quick"], "env": {"GITHUB_TOKEN": SECRET}},
    "wiki": {"url": "https://wiki.example/mcp"},
}


@pytest.fixture
def files(home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Create the files of two AI tools, one of them with servers, and return their paths."""
    user = home / "user"
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("MULTI_MCP_PASSPHRASE", "of the tests")
    found = {"cursor": user / ".cursor" / "mcp.json", "codex": user / ".codex" / "config.toml"}
    for path in found.values():
        path.parent.mkdir(parents=True)
    found["cursor"].write_text(json.dumps({"mcpServers": SERVERS}, indent=2), encoding="utf-8")
    found["codex"].write_text("# mine\n", encoding="utf-8")
    return found


async def opened(made: Scene, page: Page) -> None:
    await page.goto(f"{made.root}/panel/setup")
    await expect(page.get_by_role("heading", name="2. Your AI tools")).to_be_visible(timeout=DONE_MS)


@pytest.mark.requirement("panel-setup", "setup")
async def test_the_first_run_and_its_way_back(chromium: Browser, home: Path, files: dict[str, Path]) -> None:
    before = {name: path.read_bytes() for name, path in files.items()}
    async with scene(home, Odd(home, "odd"), token_store="file") as made:
        page = await made.open(chromium)
        await page.get_by_role("link", name="Setup", exact=True).click()
        await expect(page.get_by_label("What notes starts")).to_have_text("notes-server --quick", timeout=DONE_MS)
        assert {name: path.read_bytes() for name, path in files.items()} == before  # nothing happens before a click
        assert SECRET not in await page.content()
        await page.get_by_role("checkbox", name="wiki").uncheck()
        await page.get_by_role("checkbox", name="Codex").uncheck()
        await page.get_by_role("button", name="Import them").click()
        await expect(page.get_by_role("status")).to_contain_text("Imported 1 server", timeout=DONE_MS)
        await expect(page.get_by_label("What notes starts")).to_have_count(0)
        written = made.gateway.file.read_text()
        assert ("notes-server" in written, "wiki" in written, SECRET in written) == (True, False, False)
        left = files["cursor"].read_text(encoding="utf-8")
        assert ("notes" in left, "wiki" in left) == (False, True)
        await expect(page.get_by_role("checkbox", name="Codex")).not_to_be_checked()  # the next step keeps the choice
        await page.get_by_role("button", name="Connect them").click()
        await expect(page.get_by_role("status")).to_contain_text("Connected 1 AI tool", timeout=DONE_MS)
        await expect(page.get_by_text("Restart Cursor and ask")).to_be_visible()
        assert "multi-mcp" in files["cursor"].read_text(encoding="utf-8")
        assert files["codex"].read_bytes() == before["codex"]
        await page.get_by_role("button", name="Show what would be undone").click()
        await expect(page.get_by_role("status")).to_contain_text("notes is removed from multi-mcp", timeout=DONE_MS)
        assert "notes-server" in made.gateway.file.read_text()
        await page.get_by_role("button", name="Undo everything").click()
        await expect(page.get_by_role("status")).to_contain_text("Setup is undone", timeout=DONE_MS)
        assert {name: path.read_bytes() for name, path in files.items()} == before
        assert "notes-server" not in made.gateway.file.read_text()
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-setup")
async def test_what_changed_since_it_was_shown_is_not_taken_over(
    chromium: Browser, home: Path, files: dict[str, Path]
) -> None:
    async with scene(home, Odd(home, "odd")) as made:
        page = await made.open(chromium)
        await opened(made, page)
        changed = {**SERVERS, "notes": {"command": "evil-server"}}
        files["cursor"].write_text(json.dumps({"mcpServers": changed}), encoding="utf-8")
        await page.get_by_role("button", name="Import them").click()
        await expect(page.get_by_role("status")).to_contain_text("changed after they were shown", timeout=DONE_MS)
        assert "evil" not in made.gateway.file.read_text()
        assert "evil-server" in files["cursor"].read_text(encoding="utf-8")


@pytest.mark.requirement("panel-setup", "panel-hostile")
async def test_what_stands_in_an_ai_tools_file_is_text(chromium: Browser, home: Path, files: dict[str, Path]) -> None:
    hostile = {EVIL: {"command": EVIL, "args": [EVIL], "env": {EVIL: EVIL}, "cwd": EVIL}}
    files["cursor"].write_text(json.dumps({"mcpServers": hostile}), encoding="utf-8")
    async with scene(home, Odd(home, "odd")) as made:
        page = await made.open(chromium)
        await opened(made, page)
        await expect(page.get_by_role("checkbox", name="img src")).to_be_visible()
        assert await page.evaluate("window.hit") is None
        assert await page.locator("#main img, #main script, #main iframe").count() == 0
        for width in (360, 1280, 2560):
            await page.set_viewport_size({"width": width, "height": 900})
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-help")
async def test_the_guide_is_read_in_the_panel(chromium: Browser, home: Path) -> None:
    async with scene(home, Odd(home, "odd")) as made:
        page = await made.open(chromium)
        await page.get_by_role("link", name="Help", exact=True).click()
        chapters = page.get_by_role("navigation", name="Guide").get_by_role("link")
        await expect(chapters).to_have_text(list(topics().values()))
        await page.get_by_role("link", name="Verbs", exact=True).click()
        await expect(page.get_by_role("heading", name="reconnect", exact=True)).to_be_visible()
        await page.goto(f"{made.root}/panel/help/nothing")
        await expect(page.get_by_text("The guide has no page nothing")).to_be_visible()
        assert (made.elsewhere, made.errors) == ([], [])


@pytest.mark.requirement("panel-help")
@pytest.mark.parametrize("topic", list(topics()))
def test_every_page_of_the_guide_becomes_html_with_its_sections(topic: str) -> None:
    html, sections = guide_html(text_of(topic))
    headings = [line.removeprefix("## ") for line in text_of(topic).splitlines() if line.startswith("## ")]
    assert [where for where, _ in sections] == [anchor(words) for words in headings]
    assert len({anchor(words) for words in headings}) == len(headings)
    assert html.count("<table>") == html.count('<div class="table"')
    assert "|---" not in html
