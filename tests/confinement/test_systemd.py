"""A gateway that runs as a systemd service, hardened or not, confines its servers or does not start them.

Each test starts its own user instance of systemd, in a cgroup of its own, so that no other process is moved.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.confinement.hostile import WAYS
from tests.confinement.test_hostile import ALONE, INHERITED, entry, needs
from tests.confinement.world import World, made_world
from tests.e2e.client import Conversation, RpcFailure
from tests.e2e.gateway import END_S, Gateway
from tests.faults.world import gateway_pid, wait_until
from tests.fixtures.odd import Odd, alive
from tests.patience import stretched
from tests.tools import require, require_file
from trayapp.service.command_line import own_command
from trayapp.service.gateway_launch import READY_TIMEOUT_S, await_ready

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="systemd"),
    pytest.mark.timeout(120),
]
HIERARCHIES = Path("/sys/fs/cgroup")
UNIT = "gateway.service"
LANDLOCK = "landlock_create_ruleset landlock_add_rule landlock_restrict_self"
HARDENED = (
    "NoNewPrivileges=yes", "SystemCallFilter=@system-service seccomp", f"SystemCallFilter={LANDLOCK}",
    "SystemCallErrorNumber=EPERM",
    "SystemCallArchitectures=native", "RestrictNamespaces=yes", "RestrictSUIDSGID=yes", "LockPersonality=yes",
)  # fmt: skip
# systemd starts only where /run/systemd/system exists. With cgroup v1, it must see only the named hierarchy.
START = """
set -e
echo $$ > "$1/cgroup.procs"
mount -t tmpfs none /run
mkdir -p /run/systemd/system /run/named
if [ -d /sys/fs/cgroup/systemd ]; then
    mount --bind /sys/fs/cgroup/systemd /run/named
    mount -t tmpfs none /sys/fs/cgroup
    mkdir /sys/fs/cgroup/systemd
    mount --move /run/named /sys/fs/cgroup/systemd
fi
exec "$2" --user "$3"
"""
WITHOUT_LANDLOCK = (
    f"SystemCallFilter=~{LANDLOCK}",
    "SystemCallErrorNumber=EPERM", "RestrictNamespaces=yes",
)  # fmt: skip


@contextmanager
def own_cgroup() -> Iterator[Path]:
    """Yield a new cgroup. Remove it afterwards, with the cgroups that systemd made in it."""
    named = HIERARCHIES / "systemd"  # cgroup v1: the named hierarchy, which has no controllers
    own = (named if named.is_dir() else HIERARCHIES) / f"multi-mcp-test-{os.getpid()}"
    try:
        own.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made for a systemd: {error}")
    try:
        yield own
    finally:
        for folder, _, _ in os.walk(own, topdown=False):
            os.rmdir(folder)  # noqa: PTH106


@contextmanager
def service(gateway: Gateway, *properties: str) -> Iterator[None]:
    """Run the gateway as a systemd service whose unit has these properties, and stop it at the end."""
    with ExitStack() as stack:
        systemd = require_file(Path("/usr/lib/systemd/systemd"), "install systemd")
        cgroup = stack.enter_context(own_cgroup())
        run = Path(tempfile.mkdtemp(prefix="mmc-"))
        stack.callback(shutil.rmtree, run)
        unit = run / "systemd" / "user" / UNIT
        unit.parent.mkdir(parents=True)
        command = " ".join(f'"{word}"' for word in (*own_command(), "start"))
        lines = ("[Unit]", "DefaultDependencies=no", "[Service]", f"ExecStart={command}", *properties, "")
        unit.write_text("\n".join(lines), "utf-8")
        env = gateway.env | {"XDG_RUNTIME_DIR": str(run)}
        begin = [require("unshare"), "--mount", "sh", "-c", START, "sh", str(cgroup), str(systemd), f"--unit={UNIT}"]
        log = run / "log"
        with log.open("wb") as file:
            process = subprocess.Popen(begin, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        stack.callback(end, process, env)
        wait_until(lambda: (run / "systemd" / "private").exists() or process.poll() is not None)
        if process.poll() is not None:
            pytest.skip(f"no systemd runs here: {log.read_text('utf-8', 'replace').strip()}")
        await_ready(gateway.run, stretched(READY_TIMEOUT_S), process, gateway.home / "logs" / "gateway.log")
        yield


def end(systemd: subprocess.Popen[bytes], env: dict[str, str]) -> None:
    """Stop the service and its systemd, as a logout does."""
    if systemd.poll() is None:
        subprocess.run([require("systemctl"), "--user", "exit"], env=env, check=True)
    systemd.wait(stretched(END_S))


def hostile(world: World, confine: Any) -> dict[str, Any]:
    """Return the hostile server's entry for servers.yaml."""
    made = entry(world, ALONE)
    home = {"HOME": str(world.home)}
    return {"command": [made.command, *made.args], "cwd": made.cwd, "env": home, "confine": confine}


async def outcome(client: Conversation, tool: str) -> str:
    """Try a way out. Return its outcome, or the error if trying it ended the server."""
    try:
        return str((await client.call(tool))["content"][0]["text"])
    except RpcFailure as failure:
        return str(failure)


@pytest.mark.requirement("confine-hostile", "confine-life")
@pytest.mark.parametrize("properties", [(), HARDENED], ids=["plain", "hardened"])
async def test_a_service_confines_its_servers_and_leaves_none(gateway: Gateway, properties: tuple[str, ...]) -> None:
    needs(ALONE)
    with made_world() as world:
        gateway.write({"kept": hostile(world, ALONE.value()), "free": hostile(world, False)})
        with service(gateway, *properties):
            await gateway.known()
            pid = gateway_pid(gateway)
            assert UNIT in Path(f"/proc/{pid}/cgroup").read_text()
            async with gateway.client() as client:
                kept = {name: await outcome(client, f"kept_{name}") for name in WAYS}
                free = {name: await outcome(client, f"free_{name}") for name in WAYS}
            assert gateway.server("kept")["confinement"]["way"] == "landlock"
            below = psutil.Process(pid).children(recursive=True)
    assert {name: said for name, said in kept.items() if said == "out"} == {}
    if not properties:
        assert {name for name, said in free.items() if said != "out"} == INHERITED
    assert len(below) >= 2
    assert [process.pid for process in below if alive(process.pid)] == []


@pytest.mark.requirement("confine-or-not")
async def test_a_service_that_may_not_confine_starts_no_confined_server(gateway: Gateway, tmp_path: Path) -> None:
    odd = Odd(tmp_path)
    gateway.write({"odd": {"command": odd.argv, "cwd": str(tmp_path), "confine": True, "lifecycle": "eager"}})
    with service(gateway, *WITHOUT_LANDLOCK):
        await gateway.state("odd", "failed")
        assert gateway.server("odd")["error"]["title"].startswith(
            "Cannot confine odd: a system call filter (of a systemd unit or a container) forbids"
        )
    assert odd.pids == []
