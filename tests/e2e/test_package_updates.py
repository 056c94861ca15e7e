"""`outdated` and `update` with a real gateway, npm, uv, and registries on loopback. Every process is real."""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cli.running import run_cli
from tests.e2e.gateway import Gateway
from tests.fixtures.odd import alive, until
from tests.packages.loopback import running
from tests.packages.npm_registry import NpmRegistry
from tests.packages.oci_registry import OciRegistry
from tests.packages.pypi_registry import PypiRegistry
from tests.patience import stretched
from trayapp.wire.control import LIST, OUTDATED, RECONNECT

pytestmark = pytest.mark.anyio
DAY_S = 86_400.0
STATES = 12  # random states of each registry
CACHES = ("npm-cache", "uv-cache", "images")

NODE = """#!/usr/bin/env node
const tools = %s;
require("readline").createInterface({input: process.stdin}).on("line", line => {
  const m = JSON.parse(line);
  if (m.id === undefined) return;
  const about = {protocolVersion: "2025-06-18", capabilities: {tools: {}}, serverInfo: {name: "demo", version: "1"}};
  const result = m.method === "initialize" ? about : m.method === "tools/list" ? {tools} : null;
  const answer = result ? {result} : {error: {code: -32601, message: "no"}};
  console.log(JSON.stringify({jsonrpc: "2.0", id: m.id, ...answer}));
});
"""
PYTHON = """
import json, sys
def main():
    tools = %s
    about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
             "serverInfo": {"name": "demo", "version": "1"}}
    for line in sys.stdin:
        m = json.loads(line)
        if "id" not in m:
            continue
        found = {"initialize": about, "tools/list": {"tools": tools}}.get(m["method"])
        answer = {"result": found} if found else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **answer}), flush=True)
"""


def tools(**said: str) -> str:
    """Return tools with these names and descriptions, as JSON that is also valid Python."""
    return json.dumps(
        [{"name": name, "description": text, "inputSchema": {"type": "object"}} for name, text in said.items()]
    )


@dataclass
class Packaging:
    """A kind of package: the command that runs it, the versions of two releases, and how a release is published."""

    line: list[str]
    first: str
    second: str
    release: Callable[[str, str, float], None]  # parameters: version, tools, time
    registry: NpmRegistry | PypiRegistry | OciRegistry


@pytest.fixture(params=["npm", "pypi", "oci"])
def packaging(request: pytest.FixtureRequest, gateway: Gateway, tmp_path: Path) -> Iterator[Packaging]:
    """Yield a kind of package, with one release in its registry and with its package tool set up."""
    with ExitStack() as stack:
        if request.param == "npm":
            npm = stack.enter_context(running(NpmRegistry()))
            gateway.env |= npm.env(tmp_path)

            def release(version: str, offered: str, at: float) -> None:
                npm.publish_program("demo", version, NODE % offered, at)

            made = Packaging(["npx", "-y", "demo"], "1.0.0", "1.1.0", release, npm)
        elif request.param == "pypi":
            pypi = stack.enter_context(running(PypiRegistry()))
            pypi.install_uv(tmp_path)
            gateway.put_first(tmp_path)
            gateway.env |= pypi.env(tmp_path)

            def release(version: str, offered: str, at: float) -> None:
                pypi.publish("demo", version, PYTHON % offered, at)

            made = Packaging(["uvx", "demo"], "1.0.0", "1.1.0", release, pypi)
        else:
            oci = stack.enter_context(running(OciRegistry()))
            oci.install_docker(tmp_path)
            gateway.put_first(tmp_path)

            def release(version: str, offered: str, at: float) -> None:
                oci.push("demo", PYTHON % offered + "main()\n", at)

            made = Packaging(["docker", "run", "-i", "--rm", "demo"], "latest", "latest", release, oci)
        made.release(made.first, tools(stays="Stays.", goes="Goes."), time.time() - 90 * DAY_S)
        yield made


def verb(gateway: Gateway, *words: str) -> Any:
    """Run a verb of the command line and return its JSON output."""
    done = run_cli(gateway.home, *words, "--json", env=gateway.env)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.mark.requirement("lock-first", "lock-update", "lock-only")
async def test_an_update_shows_its_tools_is_taken_and_led_back(gateway: Gateway, packaging: Packaging) -> None:
    gateway.write({"demo": {"command": packaging.line}})
    gateway.start()
    await gateway.known()

    assert listed(gateway) == {"stays", "goes"}, gateway.server("demo")["error"]
    lock = json.loads((gateway.home / "servers.lock").read_text("utf-8"))
    ((first,),) = lock["servers"]["demo"].values()
    assert first["integrity"].startswith(("sha512-", "sha256:", "demo@sha256:"))
    (row,) = verb(gateway, "outdated")["rows"]
    assert (row["version"], row["newest"]) == (first["version"], None)
    assert first["version"].partition("@")[0] == packaging.first  # an image's version also has a part of its digest

    packaging.release(packaging.second, tools(stays="Stays, and deletes all.", comes="Comes."), time.time() - DAY_S)
    (row,) = verb(gateway, "outdated")["rows"]
    assert (row["newest"], row["error"]) == (None, None)  # a day old, so not offered yet

    gateway.write({"demo": {"command": packaging.line}}, min_age=0.5)
    await until(lambda: (gateway.control(OUTDATED)["rows"][0]["newest"] or "").partition("@")[0] == packaging.second)
    assert gateway.control(OUTDATED)["rows"][0]["newest"] != first["version"]
    assert listed(gateway) == {"stays", "goes"}
    (done,) = verb(gateway, "update", "demo", "--yes")["updates"]
    assert (done["added"], done["removed"], list(done["changed"])) == (["comes"], ["goes"], ["stays"])
    assert any("deletes all" in line for line in done["changed"]["stays"])
    assert (done["taken"], done["outcome"]["error"]) == (True, None)
    await until(lambda: "comes" in listed(gateway) and "goes" not in listed(gateway))

    (done,) = verb(gateway, "update", "demo", "--to", first["version"], "--yes")["updates"]
    assert (done["taken"], done["outcome"]["error"]) == (True, None)
    await until(lambda: listed(gateway) == {"stays", "goes"})

    assert run_cli(gateway.home, "remove", "demo", env=gateway.env).returncode == 0
    assert json.loads((gateway.home / "servers.lock").read_text("utf-8"))["servers"] == {}


@pytest.mark.requirement("lock-only", "lock-offline")
@pytest.mark.timeout(stretched(90.0))
async def test_in_random_states_of_its_registry_a_gateway_starts_what_is_locked(
    gateway: Gateway, packaging: Packaging, tmp_path: Path
) -> None:
    chance, started = random.Random(f"{packaging.line} 5"), 0
    gateway.write({"demo": {"command": packaging.line}})
    gateway.start()
    await gateway.known()
    for step in range(STATES):
        what = chance.choice(("release", "release", "content", "network", "files"))
        if what == "release":
            packaging.release(f"1.{step + 1}.0", tools(evil="Newer."), 0.0)
        elif what == "content":
            packaging.release(packaging.first, tools(evil="Changed."), 0.0)
        elif what == "network":
            packaging.registry.online = not packaging.registry.online
        else:
            lose_files(gateway, tmp_path)
        if reconnected(gateway):
            started += 1
            assert listed(gateway) == {"stays", "goes"}
    assert started >= STATES / 4
    packaging.registry.online = False
    lose_files(gateway, tmp_path)
    assert not reconnected(gateway)


def listed(gateway: Gateway) -> set[str]:
    """Return the names of the tools that the server currently lists."""
    return {row["name"] for row in gateway.control(LIST, server="demo") if not row["stale"]}


def reconnected(gateway: Gateway) -> bool:
    """Reconnect the server. Return True if it could be started."""
    return gateway.control(RECONNECT, server="demo")["servers"]["demo"]["error"] is None


def lose_files(gateway: Gateway, folder: Path) -> None:
    """Delete all that was fetched, as if on another machine."""
    for place in (gateway.home / "state" / "packages", *(folder / name for name in CACHES)):
        shutil.rmtree(place, ignore_errors=True)


@pytest.mark.requirement("lock-first")
async def test_a_gateway_that_ends_leaves_no_package_tool_behind(gateway: Gateway, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    npm = tmp_path / "npm"
    npm.write_text(f'#!/bin/sh\nsleep 600 &\necho "$$ $!" > {mark}.new; mv {mark}.new {mark}\nwait\n', "utf-8")
    npm.chmod(0o755)
    gateway.put_first(tmp_path)
    gateway.write({"demo": {"command": ["npx", "-y", "demo"]}})
    gateway.start()
    await until(mark.exists)
    below = [int(word) for word in mark.read_text("utf-8").split()]
    assert all(psutil.pid_exists(pid) for pid in below)
    gateway.stop()
    await until(lambda: not [pid for pid in below if alive(pid)])


@pytest.mark.requirement("lock-said")
async def test_a_package_of_an_address_starts_as_written_and_that_is_said(gateway: Gateway, tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(PYTHON % tools(one="One.") + "main()\n", "utf-8")
    uvx = tmp_path / "uvx"
    uvx.write_text(f"#!/bin/sh\nexec {sys.executable} {server}\n", "utf-8")
    uvx.chmod(0o755)
    gateway.put_first(tmp_path)
    gateway.write({"demo": {"command": ["uvx", "--from", "git+https://127.0.0.1/demo", "demo"]}})
    gateway.start()
    await gateway.known()
    assert [row["name"] for row in verb(gateway, "list", "demo")] == ["one"]
    why, hint = (
        "uvx runs a folder or an address, which may change at any start",
        "To pin one release, write: uvx PACKAGE",
    )
    assert verb(gateway, "outdated")["unlocked"] == [{"server": "demo", "why": why, "hint": hint}]
    assert verb(gateway, "status")["servers"][0]["not_locked"] == f"Not locked: {why}. {hint}"
    assert not (gateway.home / "servers.lock").exists()
    assert shutil.which("uvx", path=str(tmp_path))
