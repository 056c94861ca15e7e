"""The first call within two minutes: from AI tools with their own servers to a call through the shim."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.cli.running import environment, run_cli
from tests.e2e.client import client_of
from tests.e2e.gateway import Gateway
from trayapp.service.command_line import sample_command

pytestmark = pytest.mark.anyio
TWO_MINUTES_S = 120.0
FIVE = ("files", "time", "notes", "git", "web")


def servers(*names: str) -> dict[str, Any]:
    """Return entries for the bundled sample server under these names, each with another setting."""
    program, *args = sample_command()
    return {name: {"command": program, "args": args, "env": {"NAME": name}} for name in names}


def run(home: Path, command: tuple[str, ...], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return run_cli(home, *command, env=env)


@pytest.mark.requirement("client-first-call", "import-shown")
@pytest.mark.timeout(TWO_MINUTES_S + 30)
async def test_five_servers_of_two_tools_are_called_through_the_shim_after_two_commands(
    gateway: Gateway, tmp_path: Path
) -> None:
    mine, work = tmp_path, tmp_path / "work"
    for folder in (mine / ".cursor", mine / ".claude", work):
        folder.mkdir()
    cursor, claude = mine / ".cursor" / "mcp.json", mine / ".claude.json"
    cursor.write_text(json.dumps({"mcpServers": servers(*FIVE[:3])}, indent=2), encoding="utf-8")
    claude.write_text(json.dumps({"numStartups": 3, "mcpServers": servers(*FIVE[3:])}), encoding="utf-8")
    env = environment(gateway.home) | {"HOME": str(mine), "USERPROFILE": str(mine)}
    with anyio.fail_after(TWO_MINUTES_S):
        for command in (("import", "--move", "--yes"), ("connect", "--all")):
            done = await anyio.to_thread.run_sync(run, gateway.home, command, env)
            assert (done.returncode, done.stderr) == (0, "")
        entry = json.loads(cursor.read_text(encoding="utf-8"))["mcpServers"]
        assert list(entry) == ["multi-mcp"]
        assert list(json.loads(claude.read_text(encoding="utf-8"))["mcpServers"]) == ["multi-mcp"]
        argv = [entry["multi-mcp"]["command"], *entry["multi-mcp"]["args"], "--expose", "tools"]
        async with client_of(argv, env, work) as client:
            await gateway.known()
            assert {f"{name}_add" for name in FIVE} <= set(await client.tools())
            answer = await client.call("web_add", a=2, b=3)
    assert answer["content"][0]["text"] == "5"
    run_cli(gateway.home, "stop")
