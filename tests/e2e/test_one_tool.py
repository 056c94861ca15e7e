"""The one tool `mcp`, through a real shim and a real gateway."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import tests.fixtures.replay_server as replay_server
from tests.cli.running import run_cli
from tests.e2e.client import RawClient, client_of
from tests.e2e.gateway import Gateway
from tests.fixtures.odd import until
from trayapp.service.command_line import own_command

pytestmark = pytest.mark.anyio

SERVERS, TOOLS = 6, 5


def tool(called: str, does: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": called, "description": does, "inputSchema": schema}


def catalog(folder: Path) -> Path:
    """Write a catalog of six small servers and one with long answers, and return its path."""
    things = ("invoice", "calendar", "message", "branch", "dashboard", "contact")
    verbs = ("create", "list", "delete", "export", "archive")
    servers = [
        {
            "server": f"{thing}s",
            "tools": [
                tool(f"{verb}_{thing}", f"{verb.title()} one {thing}", name={"type": "string"}) for verb in verbs
            ],
        }
        for thing in things
    ]
    big = tool("big", "Fetch a very long report", bytes={"type": "integer"})
    path = folder / "catalog.json"
    lines = [json.dumps(one) for one in [*servers, {"server": "library", "tools": [big]}]]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    return path


def configure(gateway: Gateway, folder: Path, **settings: Any) -> None:
    """Configure all servers of the catalog, each as a process that replays its tools."""
    path = catalog(folder)
    names = [one["server"] for one in json.loads(path.read_text(encoding="utf-8"))]
    script = str(replay_server.__file__)
    servers = {name: {"command": [sys.executable, script, str(path), name]} for name in names}
    gateway.write(servers, **{"expose": "auto", **settings})


async def mcp(client: RawClient, **arguments: Any) -> dict[str, Any]:
    return await client.request("tools/call", {"name": "mcp", "arguments": arguments})


async def said(client: RawClient, **arguments: Any) -> str:
    result = await mcp(client, **arguments)
    assert "isError" not in result, result
    return "\n".join(part["text"] for part in result["content"])


@pytest.mark.requirement("one-tool-search", "one-tool-call", "one-tool-result-paging", "one-tool-warm-up")
async def test_a_model_searches_describes_calls_and_reads_a_long_result_to_its_end(
    gateway: Gateway, tmp_path: Path
) -> None:
    configure(gateway, tmp_path)
    gateway.start()
    async with gateway.client() as client:
        await gateway.known()
        assert await client.tools() == ["mcp"]
        assert (await said(client)).startswith("MCP: 0/7 servers, 31 tools")
        assert (await said(client, search="make an invoice")).startswith("invoices_create_invoice(name: string)")
        assert "name (string) *required*" in await said(client, describe="invoices_create_invoice")
        await gateway.state("invoices", "connected")  # although none of its tools has been called yet
        wrong = await mcp(client, tool="invoices_create_invoice", args={"nam": "x"})
        assert wrong["isError"] is True
        got = await mcp(client, tool="invoices_create_invoice", args={"name": "x"})
        assert got["structuredContent"] == {"name": "create_invoice", "arguments": {"name": "x"}}
        first = await mcp(client, tool="library_big", args='{"bytes": 150000}')
        text, note = (part["text"] for part in first["content"])
        pages = 1
        while "More: " in note:
            more = json.loads(note[note.index("{") : note.index("}") + 1])
            page, _, note = (await said(client, **more)).rpartition("\n\n[")
            text += page
            pages += 1
        assert text == replay_server.big(150_000)
        assert pages == 3
        whole = await client.call("library_big", bytes=150_000)
        assert whole["content"] == [{"type": "text", "text": text}]
    assert gateway.server("calendars")["pid"] is None


@pytest.mark.requirement("expose-modes", "session-options")
async def test_the_shims_options_reach_the_session(gateway: Gateway, tmp_path: Path) -> None:
    profiles = {"office": {"servers": ["invoices", "calendars"], "include_tools": ["list_*"]}}
    configure(gateway, tmp_path, profiles=profiles)
    gateway.start()
    await gateway.known()

    def client(*options: str) -> Any:
        return client_of([*own_command(), "stdio", *options], gateway.env, gateway.home)

    async with client("--expose", "tools") as everything, client("--servers=messages,branchs") as two:
        assert len(await everything.tools()) == 31
        assert {name.split("_")[0] for name in await two.tools()} == {"messages", "branchs"}
        async with client("--profile", "office") as office, client("--profile=office", "--expose=search") as one:
            assert await office.tools() == ["invoices_list_invoice", "calendars_list_calendar"]
            assert await one.tools() == ["mcp"]
            rows = gateway.snapshot()["gateway"]["sessions"]
            assert sorted(row["expose"] for row in rows) == ["search", "tools", "tools", "tools"]
            configure(gateway, tmp_path, profiles={"office": {"servers": ["contacts"]}})
            await office.heard("notifications/tools/list_changed")
            assert {name.split("_")[0] for name in await office.tools()} == {"contacts"}


@pytest.mark.requirement("cli-search", "cli-describe", "cli-index", "cli-tokens")
async def test_the_verbs_speak_to_the_same_engine(gateway: Gateway, tmp_path: Path) -> None:
    configure(gateway, tmp_path)
    gateway.start()
    await gateway.known()
    home = gateway.home
    assert (
        "\ninvoices_create_invoice    Create one invoice\n" in run_cli(home, "search", "make", "an", "invoice").stdout
    )
    (home / "q.txt").write_text("make an invoice\nlong report\n", encoding="utf-8")
    lines = run_cli(home, "search", "--batch", "q.txt", "--limit", "1", "--json").stdout.splitlines()
    assert [json.loads(line)[0]["exposed_name"] for line in lines] == ["invoices_create_invoice", "library_big"]
    assert "*required*" in run_cli(home, "describe", "library_big").stdout
    assert run_cli(home, "index").stdout.startswith("# 31 tools of 7 servers\n\n## invoices\n")
    assert "31 tools" in run_cli(home, "status", "--tokens").stdout
    done = run_cli(home, "call", "library_big", "bytes=many")
    assert (done.returncode, "bytes" in done.stderr) == (2, True)
    assert run_cli(home, "call", "library_big", "bytes=100").returncode == 0
    await until(lambda: gateway.server("library")["calls"] == 1)
