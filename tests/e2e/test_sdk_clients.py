"""Clients written by others, over the shim and HTTP: the TypeScript and Python SDKs, and the Inspector's CLI."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from devtools.places import NPM_CLIENTS
from tests.e2e.cell import MODERN
from tests.e2e.gateway import Gateway, gateway_in
from tests.servers import REMEDY
from tests.tools import NO_CERTIFICATES, node, require_file
from trayapp.service.command_line import own_command

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("sdk-clients")]

MODULES = NPM_CLIENTS / "node_modules"
PATIENCE_S = 50.0
WAYS = ["stdio", "http"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Yield a gateway for shim and HTTP clients, with one server of each protocol era."""
    folder = tmp_path_factory.mktemp("sdk")
    program = str(Path(__file__).parent.parent / "fixtures" / "era_server.py")
    servers = {
        name: {"command": [sys.executable, "-I", "-S", program, revision, str(folder / "notes")]}
        for name, revision in (("old", "2025-11-25"), ("new", MODERN))
    }
    with gateway_in(folder) as made:
        made.write(servers, http={"enabled": True, "port": 0})
        made.start()
        made.control("settle")
        yield made


def url_of(site: Gateway) -> str:
    return site.http_url


def headers_of(site: Gateway) -> dict[str, str]:
    """Return the headers that authorize an HTTP client."""
    return {"Authorization": "Bearer " + (site.home / "http-token").read_text().strip()}


async def printed(argv: list[str], site: Gateway) -> str:
    """Run a program and return its stdout. Fails if the exit code is not 0."""
    done = await anyio.to_thread.run_sync(
        lambda: subprocess.run(
            argv, env=site.env, cwd=site.home, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
    return done.stdout


@pytest.mark.parametrize("way", WAYS)
async def test_the_typescript_sdk(site: Gateway, way: str) -> None:
    require_file(MODULES / "@modelcontextprotocol" / "sdk" / "package.json", REMEDY)
    program, *arguments = [*own_command(), "stdio"]
    settings: dict[str, Any] = {"command": program, "args": arguments, "env": site.env, "cwd": str(site.home)}
    if way == "http":
        settings = {"url": url_of(site), "headers": headers_of(site)}
    script = str(Path(__file__).parent / "sdk_client.mjs")
    seen = json.loads(await printed([node(), script, str(MODULES), way, json.dumps(settings)], site))
    assert {"old_echo", "new_echo"} <= set(seen.pop("tools"))
    assert seen == {
        "server": "multi-mcp",
        "echo": {"got": {"x": 1}},
        "steps": [1, 2, 3],
        "old_asked": {"action": "accept", "content": {"said": "who?"}},
        "new_asked": {"action": "accept", "content": {"said": "who?"}},
        "resource": "read",
        "prompt": "Hello you",
        "completion": ["y!"],
        "cancelled": True,
        "changed": True,
    }


@pytest.mark.parametrize("mode", ["legacy", MODERN])
@pytest.mark.parametrize("way", WAYS)
async def test_the_python_sdk(site: Gateway, way: str, mode: str) -> None:
    async def elicit(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"said": params.message})

    program, *arguments = [*own_command(), "stdio"]
    async with httpx2.AsyncClient(verify=NO_CERTIFICATES, headers=headers_of(site), timeout=PATIENCE_S) as http:
        transport: Any = (
            stdio_client(StdioServerParameters(command=program, args=arguments, env=site.env))
            if way == "stdio"
            else streamable_http_client(url_of(site), http_client=http)
        )
        async with Client(transport, mode=mode, elicitation_callback=elicit) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert {"old_echo", "new_echo"} <= names
            assert (await client.call_tool("old_echo", {"x": 1})).structured_content == {"got": {"x": 1}}
            asked = {
                "message": "who?",
                "requestedSchema": {"type": "object", "properties": {"said": {"type": "string"}}},
            }
            for server in ("old", "new"):
                arguments_of = {"method": "elicitation/create", "params": asked}
                answer: Any = await client.call_tool(f"{server}_ask", arguments_of)
                said = json.loads(answer.content[0].text)["result"]
                assert {key: said[key] for key in ("action", "content")} == {
                    "action": "accept", "content": {"said": "who?"},
                }  # fmt: skip
            read: Any = await client.read_resource("multi-mcp://old/era://x")
            assert read.contents[0].text == "read"


@pytest.mark.parametrize("way", WAYS)
async def test_the_inspectors_command_line(site: Gateway, way: str) -> None:
    launcher = MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
    argv = [node(), str(require_file(launcher, REMEDY)), "--cli"]
    if way == "http":
        headers = [part for name, value in headers_of(site).items() for part in ("--header", f"{name}: {value}")]
        where = [url_of(site), "--transport", "http", *headers]
    else:
        where = [*own_command(), "stdio", "-e", f"MULTI_MCP_HOME={site.home}"]
    listed = json.loads(await printed([*argv, *where, "--method", "tools/list"], site))
    assert {"old_echo", "new_echo"} <= {tool["name"] for tool in listed["tools"]}
    call = ["--method", "tools/call", "--tool-name", "new_echo", "--tool-arg", "x=1"]
    assert "echo" in json.dumps(json.loads(await printed([*argv, *where, *call], site)))
