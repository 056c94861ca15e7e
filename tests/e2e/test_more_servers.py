"""Fourteen more real servers: their lists and one call each are the same through the gateway as directly.

No server reaches the network. Node.js resolves no host names, and Python programs have an unreachable proxy.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests import servers
from tests.e2e.client import Conversation, RpcFailure, client_of
from tests.e2e.gateway import Gateway
from tests.e2e.test_real_servers import without_era
from tests.tools import chromium, node
from trayapp.gateway.exposure.exposure import INDEX_URI

pytestmark = pytest.mark.anyio

NOWHERE = "http://127.0.0.1:9"
KEY = "not-a-key-of-anybody-4711"
OFFLINE = """
const dns = require("dns");
dns.lookup = (host, options, done) => {
  if (!/^(localhost|127\\.|::1)/.test(host)) {
    return (done || options)(Object.assign(new Error("no network in tests"), { code: "ENOTFOUND" }));
  }
  const four = { address: "127.0.0.1", family: 4 };
  return options.all ? done(null, [four]) : (done || options)(null, four.address, four.family);
};
"""
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d-]+Z")  # part of the names of files that a browser's server writes
LISTS = {"prompts": "prompts/list", "resources": "resources/list", "resourceTemplates": "resources/templates/list"}


@dataclass(frozen=True)
class Case:
    """One server: its command, and a harmless call whose answer or error contains the words `says`."""

    argv: Callable[[], list[str]]
    tool: str
    arguments: dict[str, Any]
    says: str
    env: dict[str, str] = field(default_factory=dict)
    tools: int = 1


def package(name: str, *args: str) -> Callable[[], list[str]]:
    return lambda: [*servers.npm(name), *args]


def program(module: str, *args: str) -> Callable[[], list[str]]:
    return lambda: [*servers.quick(module), *args]


def devtools() -> list[str]:
    options = ("--headless", "--isolated", "--chromeArg=--no-sandbox", "--no-usage-statistics")
    _, program = servers.npm("chrome-devtools-mcp")  # `get_css_styles` needs Set.intersection, new in Node.js 22
    return [node(), program, *options, "--executablePath", chromium()]


def playwright() -> list[str]:
    options = ("--headless", "--isolated", "--no-sandbox", "--executable-path", chromium())
    return [*servers.npm("@playwright/mcp"), *options]


OFFICIAL = "@modelcontextprotocol/server-"
CASES = {
    # This server announces resources and prompts but has neither, which once hid all its tools.
    "tavily": Case(package("tavily-mcp"), "tavily-search", {"query": "x"}, "Error", {"TAVILY_API_KEY": KEY}, 2),
    "chrome-devtools": Case(devtools, "list_pages", {}, "about:blank", tools=20),
    "playwright": Case(playwright, "browser_navigate", {"url": "{page}"}, "page.goto", tools=15),
    "context7": Case(package("@upstash/context7-mcp"), "resolve-library-id", {}, "nvalid", tools=2),
    "github": Case(package(f"{OFFICIAL}github"), "create_issue", {}, "nvalid", tools=20),
    "gitlab": Case(
        package(f"{OFFICIAL}gitlab"), "create_issue", {}, "", {"GITLAB_PERSONAL_ACCESS_TOKEN": KEY}, tools=5
    ),
    "slack": Case(
        package(f"{OFFICIAL}slack"),
        "slack_post_message",
        {},
        "Missing required arguments",
        {"SLACK_BOT_TOKEN": KEY, "SLACK_TEAM_ID": "T0"},
        5,
    ),
    "brave-search": Case(package(f"{OFFICIAL}brave-search"), "brave_web_search", {}, "nvalid", {"BRAVE_API_KEY": KEY}),
    "google-maps": Case(
        package(f"{OFFICIAL}google-maps"),
        "maps_geocode",
        {"address": "x"},
        "",
        {"GOOGLE_MAPS_API_KEY": KEY},
        5,
    ),
    # This server has a tool, but cannot list its resources without a database.
    "postgres": Case(package(f"{OFFICIAL}postgres", "postgresql://127.0.0.1:9/none"), "query", {"sql": "select 1"}, ""),
    "fetch": Case(
        program("mcp_server_fetch", "--allow-private-ips"),
        "fetch",
        {"url": "{page}", "raw": True},
        "A page of the test",
    ),
    "duckduckgo": Case(program("duckduckgo_mcp_server.server"), "fetch_content", {"url": "{page}"}, "", tools=2),
    "notion": Case(package("@notionhq/notion-mcp-server"), "API-get-self", {}, "", {"NOTION_TOKEN": KEY}, 10),
    "everart": Case(package(f"{OFFICIAL}everart"), "generate_image", {}, "", {"EVERART_API_KEY": KEY}),
}


PAGE = b"""<html><link rel=icon href=data:,><title>A page</title><body>
<h1 ondragover="event.preventDefault()">A page of the test</h1>
<input aria-label=Name><select aria-label=Pick><option>one<option>two</select><input type=file aria-label=File>
<button onclick="alert('hello')">Alert</button></body></html>"""


class Page(BaseHTTPRequestHandler):
    """A site of a single page."""

    def do_GET(self) -> None:
        found = self.path == "/"
        body = PAGE if found else b""
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture
def page() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{site.server_address[1]}/"
        site.shutdown()


async def listed(client: Conversation, member: str) -> Any:
    """Return the whole list, or the error if it cannot be read."""
    try:
        return await client.all(member, LISTS[member])
    except RpcFailure as failure:
        return failure.error


async def answer(client: Conversation, tool: str, arguments: dict[str, Any]) -> Any:
    """Return the result or the error of a call, without the parts that differ between processes."""
    try:
        result = without_era(await client.call(tool, **arguments))
    except RpcFailure as failure:
        result = {key: value for key, value in failure.error.items() if key != "data"}
    return json.loads(TIME.sub("TIME", json.dumps(result)))


@pytest.mark.requirement("transport-twenty-servers", "cat-each-list-apart")
@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", CASES)
async def test_a_real_server_lists_and_answers_as_directly(
    gateway: Gateway, tmp_path: Path, page: str, name: str
) -> None:
    case = CASES[name]
    offline = tmp_path / "offline.js"
    offline.write_text(OFFLINE)
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), NOWHERE)
    env = {**proxies, "NO_PROXY": "127.0.0.1", "NODE_OPTIONS": f"--require {offline}", "HOME": str(tmp_path)} | case.env
    arguments = json.loads(json.dumps(case.arguments).replace("{page}", page))
    argv = case.argv()
    entry = {"command": argv, "env": env, "cwd": str(tmp_path), "connect_timeout": 60}
    entry["lifecycle"] = "keep-alive"  # one process both lists and answers, because its start takes most of the time
    gateway.write({name: entry}, approve_changes="off")
    gateway.start()
    await gateway.known()
    rows = {row["name"]: row["exposed_name"] for row in gateway.control("list")}
    async with gateway.client() as client, client_of(argv, {**os.environ, **env}, tmp_path) as direct:
        tools = await direct.all("tools")
        assert len(tools) >= case.tools
        through = {tool["name"]: tool for tool in await client.all("tools")}
        for tool in tools:
            assert {**through[rows[tool["name"]]], "name": tool["name"]} == tool
        assert len(through) == len(tools)
        for member in LISTS:
            straight = await listed(direct, member)
            behind = [item for item in await client.all(member, LISTS[member]) if item.get("uri") != INDEX_URI]
            expected = straight if isinstance(straight, list) else []  # even if the server announces the list
            assert [{**item, "name": None} for item in behind] == [{**item, "name": None} for item in expected]
        straight = await answer(direct, case.tool, arguments)
        assert await answer(client, rows[case.tool], arguments) == straight
        assert case.says in str(straight)
    status = gateway.server(name)
    assert status["state"] == "connected"
