"""The content of the panel's pages, with canned answers of the gateway."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment
from PIL import Image, ImageChops

from tests.fixtures.odd import until
from trayapp.config.paths import Paths, find_paths
from trayapp.model.errors import MultiMcpError
from trayapp.panel import pages
from trayapp.panel.app import Panel, name_of
from trayapp.panel.host import PanelAccess, PanelHost
from trayapp.panel.pages import (
    FILES,
    SCREEN,
    Page,
    approvals,
    duration,
    entry_of,
    matching_rows,
    overview,
    render,
    server,
)
from trayapp.wire import control

pytestmark = pytest.mark.anyio
APP_ICON = Path(__file__).resolve().parents[2] / "assets/app.png"
SECRET = {"access": "read", "what": "~/.ssh", "allow": "", "secret": True}
CACHE = {"access": "write", "what": "/var/cache/<b>x", "allow": "confine: {write: [/var/cache/x]}", "secret": False}


def host(tmp_path: Path, answers: dict[str, Any]) -> PanelHost:
    """Return a panel host with canned answers of the gateway."""

    async def ask(method: str, asked: dict[str, Any]) -> Any:
        return answers[method]

    async def none(minutes: int) -> list[int]:
        return [0] * minutes

    def listen(listener: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    access = PanelAccess(tmp_path / "c")
    return PanelHost(
        ask, listen, listen, listen, lambda: (0, 0, 0), none, nullcontext, list, access, paths(tmp_path), {}
    )


def paths(tmp_path: Path) -> Paths:
    return find_paths({"MULTI_MCP_HOME": str(tmp_path)})


async def page_of(tmp_path: Path, confinement: dict[str, Any] | None) -> str:
    status = {
        "name": "odd", "state": "connected", "lifecycle": "lazy", "transport": "stdio", "calls": 0,
        "tools": {"enabled": 0, "total": 0}, "confinement": confinement,
    }  # fmt: skip
    answers = {
        control.SNAPSHOT: {"servers": [status], "gateway": {}},
        control.LIST: [],
        control.OFFER: {"version": "odd 1.2", "prompts": [], "resources": [], "templates": []},
    }
    return render(token="t", page="server", **await server(Page(host(tmp_path, answers), "odd", {})))


@pytest.mark.requirement("panel-actions")
async def test_what_a_confinement_refused_is_shown_with_the_line_that_allows_it(tmp_path: Path) -> None:
    shown = await page_of(tmp_path, {"way": "landlock", "refused": [SECRET, CACHE]})
    assert "by landlock" in shown
    assert "/var/cache/&lt;b&gt;x" in shown
    assert "confine: {write: [/var/cache/x]}" in shown
    assert "This place is protected" in shown
    assert "odd 1.2" in shown
    assert "not confined" in await page_of(tmp_path, None)
    assert "open: no Landlock" in await page_of(tmp_path, {"way": "open", "why_open": "no Landlock", "refused": []})


@pytest.mark.requirement("panel-search")
@pytest.mark.parametrize("state", ["connected", "failed", "needs_auth"])
async def test_only_a_server_that_wants_a_sign_in_needs_attention_for_it(tmp_path: Path, state: str) -> None:
    """Connected and failed servers may also lack a sign-in, but need no attention for that."""
    status = {"name": "web", "state": state, "signed_in": False, "tools": {"enabled": 0}}
    snapshot = {"servers": [status], "gateway": {"sessions": []}, "problems": []}
    shown = await overview(Page(host(tmp_path, {control.SNAPSHOT: snapshot, control.ASKS: {"asks": []}}), "", {}))
    assert ("Sign in to web" in render(page="", **shown)) is (state == "needs_auth")


@pytest.mark.requirement("secret-command")
async def test_a_server_whose_secret_waits_for_approval_leads_to_the_approvals(tmp_path: Path) -> None:
    """Until the command is approved, another attempt would fail."""
    error = {"title": "The command of a secret is not approved: `op read x`", "hint": "Review it"}
    status = {"name": "web", "state": "failed", "error": error, "needs_approval": True, "tools": {"enabled": 0}}
    snapshot = {"servers": [status], "gateway": {"sessions": []}, "problems": []}
    shown = await overview(Page(host(tmp_path, {control.SNAPSHOT: snapshot, control.ASKS: {"asks": []}}), "", {}))
    text = render(page="", **shown)
    assert 'aria-label="Review the command of web"' in text
    assert "Try again" not in text


async def test_a_problem_of_an_entry_names_its_server(tmp_path: Path) -> None:
    entry = {"file": "servers.yaml", "line": 9, "server": "web<b>", "message": "It needs a command", "fatal": True}
    named = {**entry, "message": "web<b> needs a command"}
    snapshot = {"servers": [], "gateway": {"sessions": []}, "problems": [entry, named, {**entry, "server": None}]}
    shown = await overview(Page(host(tmp_path, {control.SNAPSHOT: snapshot, control.ASKS: {"asks": []}}), "", {}))
    said = re.findall("<strong>(.*?)</strong>", render(page="", **shown))
    assert said[1:4] == ["web&lt;b&gt;: It needs a command", "web&lt;b&gt; needs a command", "It needs a command"]


async def test_why_a_server_failed_is_said_without_the_code_of_the_system(tmp_path: Path) -> None:
    error = {"title": "web cannot be started: no program npy (ENOENT)", "hint": "Check the command"}
    status = {"name": "web", "state": "failed", "error": error, "tools": {"enabled": 0}}
    snapshot = {"servers": [status], "gateway": {"sessions": []}, "problems": []}
    shown = await overview(Page(host(tmp_path, {control.SNAPSHOT: snapshot, control.ASKS: {"asks": []}}), "", {}))
    text = render(page="", **shown)
    assert "no program npy</p>" in text
    assert "ENOENT" not in text


@pytest.mark.parametrize(("tool", "switch"), [("drop", "on"), ("drop", "off"), ("(prompt) drop", None)])
async def test_only_a_tool_that_is_on_can_be_disabled_on_approvals(
    tmp_path: Path, tool: str, switch: str | None
) -> None:
    row = {"server": "shop", "tool": tool, "hash": "ab", "difference": ["+ <b>"], "findings": [], "held": True}
    known = [{"server": "shop", "name": tool, "switch": switch}] if switch else []
    nothing: dict[str, Any] = {control.ASKS: {"asks": []}, control.COMMANDS: {"rows": []}}
    answers = {control.APPROVALS: {"rows": [row]}, control.LIST: known, **nothing}
    text = render(page="approvals", **await approvals(Page(host(tmp_path, answers), "", {})))
    assert ("Approve " + tool in text, "Disable " + tool in text) == (True, switch == "on")
    assert ("It is disabled" in text) is (switch == "off")


def test_a_quick_call_did_not_take_0_ms() -> None:
    assert [duration(ms) for ms in (0.3, 1.2, 999.4, 1500)] == ["0.3 ms", "1 ms", "999 ms", "1.5 s"]


def test_tools_that_have_the_words_in_their_names_come_first() -> None:
    rows = [
        {"server": "a", "name": "list", "description": "Reads a file"},
        {"server": "files", "name": "read", "description": ""},
        {"server": "b", "name": "x", "description": "nothing"},
    ]
    assert [row["name"] for row in matching_rows(rows, "READ file")] == ["read", "list"]
    assert matching_rows(rows, "") == rows
    assert matching_rows(rows, "read nowhere") == []


Ask = Callable[[str, dict[str, Any]], Awaitable[Any]]
NEWS = (b"hx-request", b"true")


async def events_of(
    tmp_path: Path, path: str, ask: Ask, *headers: tuple[bytes, bytes], method: str = "GET"
) -> list[dict[str, Any]]:
    """Return the ASGI events of the panel's response to a request with a valid cookie."""
    canned, sent = replace(host(tmp_path, {}), ask=ask), list[dict[str, Any]]()

    async def send(event: dict[str, Any]) -> None:
        sent.append(event)

    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "server": ("127.0.0.1", 1)}
    cookie = (b"cookie", f"{name_of(scope)}={canned.access.redeem(canned.access.code())}".encode())
    await Panel(canned)({**scope, "headers": [cookie, *headers]}, None, send)
    assert [event["type"] for event in sent].count("http.response.start") == 1
    assert [bool(event.get("more_body")) for event in sent[1:]] == [True] * (len(sent) - 2) + [False]
    return sent


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(event["body"].decode() for event in events[1:])


async def nothing(method: str, _: dict[str, Any]) -> Any:
    return {"asks": []} if method == control.ASKS else []


async def test_the_first_page_compiles_nothing_and_once_it_is_open_the_other_pages_are_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = list[str | None]()
    compile_one = Environment.compile

    def note(self: Environment, source: str, name: str | None = None, filename: str | None = None) -> Any:
        compiled.append(name)
        return compile_one(self, source, name, filename)

    monkeypatch.setattr(pages, "TEMPLATES", pages.environment())
    monkeypatch.setattr(Environment, "compile", note)
    snapshot = {"servers": [], "gateway": {"sessions": []}, "problems": []}

    async def ask(method: str, _: dict[str, Any]) -> Any:
        return snapshot if method == control.SNAPSHOT else {"asks": []}

    await events_of(tmp_path, "/panel/", ask)
    assert compiled == []
    await pages_told(
        tmp_path, ask, lambda: len(compiled) == len(pages.TEMPLATES.list_templates()) - len(pages.FIRST_TEMPLATES)
    )
    await events_of(tmp_path, "/panel/tools", nothing)
    assert len(compiled) == len(set(compiled))


async def pages_told(tmp_path: Path, ask: Ask, done: Callable[[], bool]) -> None:
    """Keep the panel's event stream open until `done()`."""
    canned = replace(host(tmp_path, {}), ask=ask)

    async def receive() -> dict[str, Any]:
        await until(done)
        return {"type": "http.disconnect"}

    async def send(event: dict[str, Any]) -> None:
        pass

    scope = {"type": "http", "method": "GET", "path": "/panel/events", "query_string": b"", "server": ("127.0.0.1", 1)}
    cookie = (b"cookie", f"{name_of(scope)}={canned.access.redeem(canned.access.code())}".encode())
    await Panel(canned)({**scope, "headers": [cookie]}, receive, send)


async def test_news_are_the_content_of_a_page_alone(tmp_path: Path) -> None:
    page = text_of(await events_of(tmp_path, "/panel/tools", nothing))
    news = text_of(await events_of(tmp_path, "/panel/tools", nothing, NEWS))
    assert (page.count("<head>"), page.count('<main id="main"'), page.count("</html>")) == (1, 1, 1)
    assert ("<head>" in news, news.count('<main id="main"')) == (False, 1)
    assert text_of(await events_of(tmp_path, "/panel/tools", nothing, method="HEAD")) == ""


async def test_the_icon_of_the_tab_is_a_picture_that_a_browser_need_not_draw(tmp_path: Path) -> None:
    page = text_of(await events_of(tmp_path, "/panel/tools", nothing))
    head = page.partition("</head>")[0]
    icon = FILES["icon.png"]
    assert re.findall(r'<link rel="icon" href="([^"]*)"', head) == [f"/panel/{icon.address}"]
    assert icon.kind == "image/png"
    with Image.open(BytesIO(icon.content)) as drawn, Image.open(APP_ICON) as app:
        assert 32 <= drawn.width <= 64
        back = Image.new("RGBA", drawn.size, "white")
        pictures = [Image.alpha_composite(back, one.convert("RGBA").resize(back.size)) for one in (drawn, app)]
    differences = ImageChops.difference(*pictures).convert("L").histogram()
    assert not any(differences[32:]), "another picture than the app's"


@pytest.mark.parametrize("error", [MultiMcpError("It is <away>", "Wait"), RuntimeError("unexpected")])
async def test_the_head_of_a_page_is_sent_before_its_content_and_an_error_is_the_rest(
    tmp_path: Path, error: Exception
) -> None:
    async def fail(method: str, _: dict[str, Any]) -> Any:
        raise error

    events = await events_of(tmp_path, "/panel/tools", fail)
    head, rest = (event["body"].decode() for event in events[1:])
    assert (events[0]["status"], "<style>" in head, "<body" in head) == (200, True, False)
    assert ("It is &lt;away&gt;" if isinstance(error, MultiMcpError) else "Cannot build the page") in rest
    page = await events_of(tmp_path, "/panel/server/odd", fail)  # the status depends on the content
    assert page[0]["status"] == (400 if isinstance(error, MultiMcpError) else 500)
    assert (text_of(page).count("<head>"), len(page)) == (1, 2)


async def test_only_the_tools_that_a_page_shows_are_asked_for_with_their_classes(tmp_path: Path) -> None:
    rows = [{"server": "odd", "name": f"tool{number}", "description": ""} for number in range(SCREEN + 5)]
    asked = list[dict[str, Any]]()

    async def ask(method: str, params: dict[str, Any]) -> Any:
        if method != control.LIST:
            return {"asks": []}
        asked.append(params)
        if "tools" not in params:
            return rows
        return [row for row in rows[:-1] if (row["server"], row["name"]) in params["tools"]]

    page = text_of(await events_of(tmp_path, "/panel/tools", ask))
    assert [len(params.get("tools", [])) for params in asked] == [0, SCREEN]
    assert (page.count("<tr id="), "5 more tools" in page) == (SCREEN, True)
    news = text_of(await events_of(tmp_path, "/panel/tools", ask, NEWS))
    assert news.count("<tr id=") == len(rows) - 1  # one tool is gone by now


BLOCK = """settings: {}
servers:
  odd:
    command: x
    tools:
      search: {enabled: true}
      # a comment

    env:
      TOKEN: ghp_0123456789abcdef0123456789abcdef0123
  # of search
  search: {command: [a,
    b], tools: {
    odd: {enabled: true}
  }}
  "quo ted": {url: https://x}
  last:
    url: https://y
"""
FLOW = "x: &x {command: z}\nservers: {a: {command: x}, b: {command: y}, c: *x}\n"
MERGED = "x: &x {command: z}\nservers:\n  a: *x\n  b:\n    <<: *x\n    cwd: /\n"


@pytest.mark.requirement("panel-actions")
@pytest.mark.parametrize(
    ("text", "name", "entry"),
    [
        (BLOCK, "odd", "odd:\n  command: x\n  tools:\n    search: {enabled: true}\n    # a comment\n\n"
                       "  env:\n    TOKEN: [redacted]"),
        (BLOCK, "search", "search: {command: [a,\n  b], tools: {\n  odd: {enabled: true}\n}}"),
        (BLOCK, "quo ted", '"quo ted": {url: https://x}'),
        (BLOCK, "last", "last:\n  url: https://y"),
        (BLOCK, "enabled", ""),
        (FLOW, "a", "a: {command: x}"),
        (FLOW, "b", "b: {command: y}"),
        (MERGED, "a", "a: *x"),
        (MERGED, "b", "b:\n  <<: *x\n  cwd: /"),
        ("", "a", ""),
        ("servers:\n  a: [\n", "a", "# servers.yaml cannot be read now"),
        ("servers:\n  a: {}\n  a: {}\n", "a", "# servers.yaml cannot be read now"),
    ],
)  # fmt: skip
def test_an_entry(tmp_path: Path, text: str, name: str, entry: str) -> None:
    file = tmp_path / "servers.yaml"
    file.write_text(text)
    assert entry_of(file, name) == entry
