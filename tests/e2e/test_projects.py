"""A project's file with a real shim, a real gateway and `multi-mcp trust`: ignored, approved, changed or removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from tests.cli.running import run_cli
from tests.e2e.client import client_of
from tests.e2e.gateway import Gateway, entry
from tests.e2e.test_calls import said
from tests.fixtures.odd import Odd, alive, until
from trayapp.service.command_line import own_command

pytestmark = pytest.mark.anyio


async def verb(gateway: Gateway, *words: str) -> dict[str, Any]:
    ran = await anyio.to_thread.run_sync(lambda: run_cli(gateway.home, *words, "--json"))
    assert ran.returncode == 0, ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


@pytest.mark.requirement("trust-ignored", "trust-content", "trust-verb", "project-own-servers")
async def test_a_projects_servers_come_with_its_approval_and_go_with_a_change(gateway: Gateway, tmp_path: Path) -> None:
    mine, theirs = Odd(tmp_path, "mine"), Odd(tmp_path, "theirs")
    shop = tmp_path.resolve() / "shop"
    (shop / "src").mkdir(parents=True)
    file = shop / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"theirs": entry(theirs)}}), encoding="utf-8")
    gateway.write({"mine": entry(mine)})
    gateway.start()
    await gateway.known()
    shim = [*own_command(), "stdio"]
    async with client_of(shim, gateway.env, shop / "src") as inside, gateway.client() as outside:
        assert [name for name in await inside.tools() if name.startswith("theirs")] == []
        (problem,) = gateway.snapshot()["problems"]
        assert (problem["file"], f"multi-mcp trust {shop}" in problem["hint"]) == (str(file), True)
        assert theirs.pids == []

        assert (await verb(gateway, "trust", str(shop), "--yes"))["trusted"]
        await inside.heard("notifications/tools/list_changed")
        assert "theirs_whoami" in await inside.tools()
        pid = said(await inside.call("theirs_whoami"))["pid"]
        assert "theirs_whoami" not in await outside.tools()
        (row,) = [row for row in gateway.snapshot()["servers"] if row.get("project")]
        assert (row["name"].split("@")[0], row["project"], row["pid"]) == ("theirs", str(shop), pid)
        shown = await anyio.to_thread.run_sync(lambda: run_cli(gateway.home, "status"))
        assert f"only in {shop}" in " ".join(shown.stdout.split())
        assert "theirs" not in gateway.file.read_text()

        file.write_text(file.read_text() + "\n", encoding="utf-8")
        await until(lambda: not alive(pid))
        assert [name for name in await inside.tools() if name.startswith("theirs")] == []
        assert "mine_whoami" in await inside.tools()
        (problem,) = gateway.snapshot()["problems"]
        assert problem["file"] == str(file)
    await until(lambda: not gateway.snapshot()["problems"])


@pytest.mark.requirement("project-own-servers")
async def test_with_an_approved_file_the_first_list_of_a_session_has_its_servers(
    gateway: Gateway, tmp_path: Path
) -> None:
    theirs = Odd(tmp_path, "theirs")
    (tmp_path / ".multi-mcp.yaml").write_text(f"servers:\n  theirs: {json.dumps(entry(theirs))}\n", encoding="utf-8")
    gateway.write({})
    gateway.start()
    await verb(gateway, "trust", str(tmp_path), "--yes")
    async with client_of([*own_command(), "stdio"], gateway.env, tmp_path) as client:
        assert "theirs_whoami" in await client.tools()
        pid = said(await client.call("theirs_whoami"))["pid"]
    await until(lambda: not alive(pid))


@pytest.mark.requirement("trust-scripts")
async def test_a_pull_that_changes_a_program_of_the_project_stops_it_until_the_next_approval(
    gateway: Gateway, tmp_path: Path
) -> None:
    theirs = Odd(tmp_path, "theirs")
    (shop := tmp_path.resolve() / "shop").mkdir()
    run = shop / "run.py"
    good = f"import os\nos.execv({theirs.argv[0]!r}, {theirs.argv!r})\n"
    run.write_text(good, encoding="utf-8")
    words = {"command": theirs.argv[0], "args": ["./run.py"]}
    (shop / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": words}}), encoding="utf-8")
    gateway.write({})
    gateway.start()
    await verb(gateway, "trust", str(shop), "--yes")
    async with client_of([*own_command(), "stdio"], gateway.env, shop) as client:
        pid = said(await client.call("theirs_whoami"))["pid"]
        run.write_text(f"# evil\n{good}", encoding="utf-8")
        await until(lambda: not alive(pid))  # the gateway checks the file from time to time
        assert [name for name in await client.tools() if name.startswith("theirs")] == []
        (problem,) = gateway.snapshot()["problems"]
        assert f"multi-mcp trust {shop}" in problem["hint"]
        starts = len(theirs.pids)
    async with client_of([*own_command(), "stdio"], gateway.env, shop) as client:
        assert [name for name in await client.tools() if name.startswith("theirs")] == []
    assert len(theirs.pids) == starts
    await verb(gateway, "trust", str(shop), "--yes")
    async with client_of([*own_command(), "stdio"], gateway.env, shop) as client:
        assert "theirs_whoami" in await client.tools()
