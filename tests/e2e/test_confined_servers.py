"""Twenty real servers answer confined as they do without; a browser needs one line more, `sockets: true`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import servers
from tests.backends.world import real_connection
from tests.confinement.test_hostile import needs
from tests.e2e.test_more_servers import CASES, NOWHERE, OFFLINE, page
from trayapp.confinement.places import LEADING_OUT, TEMPORARY, cache_environment
from trayapp.model.servers import ServerConfig
from trayapp.model.settings import Confine, Confining
from trayapp.wire.messages import RpcError

__all__ = ["page"]  # a fixture
pytestmark = [pytest.mark.anyio, pytest.mark.requirement("confine-real"), pytest.mark.timeout(180)]
OWN: dict[str, Callable[[Path], list[str]]] = {
    "memory": lambda folder: servers.memory(),
    "sequential-thinking": lambda folder: servers.sequential_thinking(),
    "time": lambda folder: servers.time(),
    "filesystem": lambda folder: servers.filesystem(folder),
    "git": lambda folder: servers.git(folder),
    "everything": lambda folder: servers.everything(),
}
BROWSERS = ("playwright", "chrome-devtools")
# They tell how long something took, or how far a page has come: only whether they succeed is compared.
MEASURING = {
    "performance_start_trace", "lighthouse_audit", "screencast_start", "screencast_stop", "take_heapsnapshot",
    "take_screenshot", "browser_take_screenshot", "list_network_requests", "browser_network_requests",
}  # fmt: skip
# What a confined program's environment lacks or has of its own: one tool shows all of it.
ENVIRONMENT = {*LEADING_OUT, *TEMPORARY, *cache_environment("/x", {}), "PLAYWRIGHT_BROWSERS_PATH"}
NUMBERS = re.compile(r"[0-9a-f]*\d[0-9a-f]*|mcp-\w{6}")


def arguments(tool: dict[str, Any], folder: Path, page: str) -> dict[str, Any]:
    """The simplest arguments that a schema takes."""
    simple = {"string": "x", "number": 1, "integer": 1, "boolean": False, "array": [], "object": {}}
    found: dict[str, Any] = {}
    for name in tool["inputSchema"].get("required", []):
        schema = tool["inputSchema"].get("properties", {}).get(name, {})
        kind = schema.get("type")
        found[name] = schema.get("enum", [simple.get(kind if isinstance(kind, str) else "string", "x")])[0]
        if name in ("path", "repo_path"):
            found[name] = str(folder if name == "repo_path" else folder / "a.txt")
        elif name == "url":
            found[name] = page
        elif name == "action":
            found[name] = "list"
        elif name in ("width", "height"):
            found[name] = 800
    # Not through Node's package, which is fetched at first; a page in the background cannot be shown.
    known = tool["inputSchema"].get("properties", {})
    found |= {name: True for name in ("raw", "background") if name in known}
    if tool["name"] == "trigger-long-running-operation":
        found |= {"duration": 0.1, "steps": 1}
    return found


def comparable(tool: str, result: Any) -> str:
    """An answer without what differs from one process to the next."""
    if tool in MEASURING:
        return f"isError: {result.get('isError', False)}"
    if tool == "get-env":
        shown = json.loads(result["content"][0]["text"])
        return json.dumps({name: value for name, value in shown.items() if name not in ENVIRONMENT})
    return NUMBERS.sub("N", json.dumps(result))


def make_repository(folder: Path) -> None:
    """A fresh folder with a file and a commit."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "a.txt").write_text("hello")
    identity = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for command in (["init", "-q", "."], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *command], cwd=folder, env={**os.environ, **identity}, check=True)


async def answers(name: str, folder: Path, page: str, confine: Confining) -> dict[str, Any]:
    """What each tool of a server answers, without what differs from one process to the next."""
    make_repository(folder)
    offline = folder / "offline.js"
    offline.write_text(OFFLINE)
    argv = OWN[name](folder) if name in OWN else CASES[name].argv()
    env = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), NOWHERE)
    env |= {"NO_PROXY": "127.0.0.1", "NODE_OPTIONS": f"--require {offline}"}
    env |= {"MEMORY_FILE_PATH": str(folder / "memory.json"), **(CASES[name].env if name in CASES else {})}
    entry = ServerConfig(
        name, command=argv[0], args=tuple(argv[1:]), env=env, cwd=str(folder), confine=confine, connect_timeout=60
    )
    found: dict[str, Any] = {}
    environ = {**os.environ, "MULTI_MCP_HOME": str(folder.parent / "ours")}
    async with real_connection(entry, environ=environ) as (connection, _):
        for tool in (await connection.request("tools/list", {}))["tools"]:
            try:
                call = {"name": tool["name"], "arguments": arguments(tool, folder, page)}
                result = comparable(tool["name"], await connection.request("tools/call", call))
            except RpcError as error:
                result = error.message
            found[tool["name"]] = result
    return found


@pytest.mark.parametrize("name", [*OWN, *CASES])
async def test_every_tool_answers_confined_as_it_does_without(tmp_path: Path, page: str, name: str) -> None:
    confine = Confine(sockets=True) if name in BROWSERS else Confine()
    needs(confine)
    folder = tmp_path / "work"
    free = await answers(name, folder, page, False)
    confined = await answers(name, folder, page, confine)
    assert free
    assert confined == free
