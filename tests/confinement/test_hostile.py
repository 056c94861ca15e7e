"""Programs that try to escape: every way out works without `confine`, and none works with it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.world import real_connection
from tests.confinement.hostile import WAYS
from tests.confinement.world import PROGRAM, World, made_world
from tests.tools import missing
from trayapp.confinement import bubblewrap, landlock
from trayapp.model.config import Confine, ServerConfig
from trayapp.model.errors import ServerError

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp")]
NO_LANDLOCK = landlock.abi() < landlock.LEAST_ABI
# ways that need inherited descriptors, which our servers never get
INHERITED = {"inherited_descriptor", "folder_descriptor_inherited"}
ALONE = Confine(network=False)
IN_NAMESPACES = Confine(network=False, sockets=True)  # runs in bubblewrap, which Unix sockets require
A_BROWSERS = Confine(sockets=True)  # what a browser needs: Unix sockets and the network
THE_NETWORK = {
    "connect_out", "connect_to_the_gateway", "connect_by_ipv6", "connect_by_fast_open", "listen",
    "listen_without_a_name", "send_udp", "ask_dns",
}  # fmt: skip


def needs(confine: Confine) -> None:
    """Skip the test if this machine lacks the mechanism that `confine` needs. With CI=true, fail instead."""
    reason = bubblewrap.fault() if confine.sockets else "this kernel has no Landlock 6" if NO_LANDLOCK else ""
    if reason:
        missing(reason)


def entry(world: World, confine: Confine | bool) -> ServerConfig:
    """Return the hostile server's configuration. Its program is copied into its working folder, which it may read."""
    program = world.cwd / "hostile.py"
    if not program.exists():
        shutil.copy(PROGRAM, program)
    return ServerConfig(
        "hostile",
        command=sys.executable,
        args=(str(program), str(world.facts_file)),
        cwd=str(world.cwd),
        confine=Confine() if confine is True else confine,
    )


async def outcomes(world: World, confine: Confine | bool, names: list[str]) -> dict[str, str]:
    """Return the outcome of each way. If trying one ends the server, a new server tries the remaining ones."""
    found: dict[str, str] = {}
    while len(found) < len(names):
        async with real_connection(entry(world, confine), environ=world.environment()) as (connection, _):
            for name in names[len(found) :]:
                try:
                    result = await connection.request("tools/call", {"name": name, "arguments": {}})
                    found[name] = result["content"][0]["text"]
                except ServerError as error:
                    found[name] = str(error)
                    break
    return found


@pytest.mark.requirement("confine-hostile")
@pytest.mark.timeout(240)
async def test_every_way_leads_out_of_a_server_that_is_not_confined() -> None:
    assert len(WAYS) >= 40
    with made_world() as world:
        found = await outcomes(world, False, [name for name in WAYS if name not in INHERITED])
        found |= without_closing(world)
    assert {name: said for name, said in found.items() if said != "out"} == {}


@pytest.mark.requirement("confine-hostile")
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("confine", "abi"),
    [(ALONE, 7), (IN_NAMESPACES, 7), (A_BROWSERS, 7), (ALONE, 0)],
    ids=["landlock", "bubblewrap", "browser", "bubblewrap-without-landlock"],
)
async def test_no_way_leads_out_of_a_confined_server(
    confine: Confine, abi: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs(confine if abi else IN_NAMESPACES)
    if not abi:
        monkeypatch.setattr(landlock, "abi", lambda: 0)
    with made_world() as world:
        found = await outcomes(world, confine, list(WAYS))
        found |= {f"write_{name}": "in vain" for name in in_vain(world, found)}
    assert {name for name, said in found.items() if said == "out"} == (THE_NETWORK if confine.network else set())
    assert found.keys() == WAYS.keys()


def in_vain(world: World, found: dict[str, str]) -> list[str]:
    """Return the files whose write succeeded but changed nothing, because the server's namespace has its own /tmp."""
    said = [
        name.removeprefix("write_") for name, words in found.items() if name.startswith("write_") and words == "out"
    ]
    places = {name: Path(world.facts["targets"][name]) for name in said}
    return [name for name, place in places.items() if not place.exists() or "hostile" not in place.read_text()]


def without_closing(world: World) -> dict[str, str]:
    """Return the outcomes of the ways in INHERITED, tried by a process that inherits our descriptors."""
    command = [sys.executable, str(PROGRAM), str(world.facts_file), *INHERITED]
    done = subprocess.run(command, capture_output=True, close_fds=False, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found
