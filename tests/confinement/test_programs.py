"""Confined servers of a real gateway: run by npx, uvx or a script, one per session, or left by a killed gateway."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.confinement.test_hostile import ALONE, IN_NAMESPACES, needs
from tests.e2e.gateway import Gateway, entry
from tests.faults.world import GONE_S, kill_gateway, stop_all, wait_until
from tests.fixtures.odd import Odd, alive, until
from tests.packages.loopback import running
from tests.packages.npm_registry import NpmRegistry
from tests.packages.pypi_registry import PypiRegistry
from tests.servers import pypi
from tests.tools import require
from trayapp.model.config import Confine

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.requirement("confine-life"),
    pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp"),
    pytest.mark.timeout(120),
]
# Servers whose tool `read` returns a file's text, or the error code if the file cannot be read.
NODE = """#!/usr/bin/env node
const fs = require("fs");
require("readline").createInterface({input: process.stdin}).on("line", line => {
  const {id, method, params} = JSON.parse(line);
  if (id === undefined) return;
  let result = {tools: [{name: "read", inputSchema: {type: "object"}}]};
  if (method === "initialize")
    result = {protocolVersion: params.protocolVersion, capabilities: {tools: {}},
              serverInfo: {name: "n", version: "1"}};
  if (method === "tools/call") {
    let text;
    try { text = fs.readFileSync(params.arguments.path, "utf8"); } catch (error) { text = error.code; }
    result = {content: [{type: "text", text}]};
  }
  console.log(JSON.stringify({jsonrpc: "2.0", id, result}));
});
"""
PYTHON = """#!/usr/bin/env python3
import errno, json, sys
def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError as error:
        return errno.errorcode[error.errno]
def main():
    for line in sys.stdin:
        frame = json.loads(line)
        if "id" not in frame:
            continue
        params = frame.get("params") or {}
        result = {"tools": [{"name": "read", "inputSchema": {"type": "object"}}]}
        if frame["method"] == "initialize":
            result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                      "serverInfo": {"name": "p", "version": "1"}}
        if frame["method"] == "tools/call":
            result = {"content": [{"type": "text", "text": read(params["arguments"]["path"])}]}
        print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": result}), flush=True)
"""


class Home:
    """A user's home folder with a secret key, and a project folder in which the servers run."""

    def __init__(self, gateway: Gateway, folder: Path) -> None:
        self.gateway = gateway
        self.folder = folder / "home"
        self.key, self.project = self.folder / ".ssh" / "id", self.folder / "src"
        for path, text in ((self.key, "hush"), (self.project / "mine", "mine")):
            path.parent.mkdir(parents=True)
            path.write_text(text)
        gateway.env |= {"HOME": str(self.folder)}

    def script(self, name: str, text: str) -> str:
        """Write an executable file and return its path. `name` is relative to the project folder."""
        path = self.project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    async def reads(self, servers: dict[str, dict[str, Any]]) -> dict[str, tuple[str, str]]:
        """Start these servers confined. Return what each reads from the project's file and from the key."""
        common = {"cwd": str(self.project), "confine": True, "connect_timeout": 60}
        self.gateway.write({name: common | more for name, more in servers.items()})
        self.gateway.start()
        await self.gateway.known()
        found = {}
        async with self.gateway.client() as client:
            for name in servers:
                answers = [
                    await client.call(f"{name}_read", path=str(path)) for path in (self.project / "mine", self.key)
                ]
                assert self.gateway.server(name)["confinement"]["way"] == "landlock"
                found[name] = (answers[0]["content"][0]["text"], answers[1]["content"][0]["text"])
        return found


@pytest.fixture
def user(gateway: Gateway, tmp_path: Path) -> Home:
    needs(ALONE)
    return Home(gateway, tmp_path)


async def test_scripts_are_confined_with_the_interpreters_of_their_first_line(user: Home) -> None:
    env = {"PATH": f"{Path(require('node')).parent}:/usr/bin:/bin"}  # these interpreters are outside any home folder
    server = user.script("server.py", PYTHON + "main()\n")
    servers = {
        "python": server,
        "node": user.script("server", NODE),
        "shell": user.script("run.sh", f"#!/bin/sh\nexec {server}\n"),
        "venv": user.script("../tools/own.py", f"#!{sys.executable}\n{PYTHON}main()\n"),
    }
    found = await user.reads({name: {"command": [path], "env": env} for name, path in servers.items()})
    assert found == dict.fromkeys(servers, ("mine", "EACCES"))


@pytest.mark.parametrize("lock", [True, False], ids=["locked", "as-written"])
async def test_a_package_that_npx_runs_is_confined(user: Home, lock: bool) -> None:
    require("npx")
    with running(NpmRegistry()) as registry:
        registry.publish_program("demo", "1.0.0", NODE)
        user.gateway.env |= {"npm_config_registry": registry.url, "npm_config_update_notifier": "false"}
        found = await user.reads({"npx": {"command": ["npx", "-y", "demo"], "lock": lock}})
    assert found == {"npx": ("mine", "EACCES")}


@pytest.mark.parametrize("lock", [True, False], ids=["locked", "as-written"])
async def test_a_package_that_uvx_runs_is_confined(user: Home, tmp_path: Path, lock: bool) -> None:
    for name in ("uv", "uvx"):
        (tmp_path / name).symlink_to(pypi(name)[0])
    with running(PypiRegistry()) as registry:
        user.gateway.env |= {"PATH": f"{tmp_path}:{user.gateway.env['PATH']}"}
        registry.publish("demo", "1.0.0", PYTHON)
        user.gateway.env |= {
            "UV_DEFAULT_INDEX": f"{registry.url}/simple", "UV_PYTHON": "/usr/bin/python3",
            "UV_PYTHON_DOWNLOADS": "never", "UV_NO_CONFIG": "1",
        }  # fmt: skip
        found = await user.reads({"uvx": {"command": ["uvx", "demo"], "lock": lock}})
    assert found == {"uvx": ("mine", "EACCES")}


@pytest.mark.parametrize("confine", [ALONE, IN_NAMESPACES], ids=["landlock", "bubblewrap"])
async def test_each_session_has_a_confined_process_and_a_killed_gateway_leaves_none(
    gateway: Gateway, tmp_path: Path, confine: Confine
) -> None:
    needs(confine)
    odd = Odd(tmp_path, "odd", ("--child", str(tmp_path / "child")))
    gateway.write({"odd": entry(odd, cwd=str(tmp_path), confine=confine.value(), scope="session")})
    gateway.start()
    await gateway.known()
    async with gateway.client() as one:
        await one.call("odd_whoami")
        first = set(gateway.children())
        async with gateway.client() as other:
            await other.call("odd_whoami")
            second = set(gateway.children()) - first
        assert len(second) >= 2  # the server and its child processes
        await until(lambda: not any(map(alive, second)))
        assert all(map(alive, first))
        assert gateway.server("odd")["confinement"]["way"] == ("bubblewrap" if confine.sockets else "landlock")
        kill_gateway(gateway)
        wait_until(lambda: not any(map(alive, first)), GONE_S)
    stop_all(gateway)
