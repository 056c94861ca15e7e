"""Upgrades: when a gateway hands over to the new program, and how its clients continue."""

from __future__ import annotations

import io
import os
import shutil
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.cli.running import environment
from tests.e2e.client import client_of
from tests.fixtures.odd import until
from tests.gateway.world import house, server
from tests.patience import stretched
from trayapp import __file__ as program
from trayapp.cli.run_gateway import stays
from trayapp.gateway.main import CHECK_S, UPGRADE_QUIET_S, await_turn
from trayapp.wire.greeting import read_endpoint
from trayapp.wire.rundir import run_dir

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("package-upgrade")]
# A gateway of a copy of this program that waits neither for an installer nor for ten quiet minutes.
HASTY = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from trayapp.gateway import main as succession
from trayapp.service import version as installed
succession.CHECK_S, succession.UPGRADE_QUIET_S, installed.SETTLED_S = 0.05, 0.0, 0.0
from trayapp.cli.run_gateway import run_start
run_start(True)
"""


async def test_room_is_made_once_nothing_was_called_for_long_and_nobody_asks(tmp_path: Path) -> None:
    followed, asked, turn = False, True, anyio.Event()

    async def wait() -> None:
        await await_turn(made.gateway.services, lambda: followed, lambda: asked)
        turn.set()

    async with house(tmp_path) as made, anyio.create_task_group() as tasks:
        made.apply(server("files"))
        client = await made.ready()
        tasks.start_soon(wait)
        await made.clock.pass_(UPGRADE_QUIET_S)
        followed = True
        await made.clock.pass_(CHECK_S)
        assert not turn.is_set()  # a tray is connected, and starts the new program itself
        await client.call("files_echo", text="x")
        asked = False
        await made.clock.pass_(UPGRADE_QUIET_S - CHECK_S)
        assert not turn.is_set()  # a client may still need the server's state
        connection = made.gateway.services.pool.find("files")
        connection.begin()
        await made.clock.pass_(UPGRADE_QUIET_S * 2)
        assert not turn.is_set()  # a call is still in progress
        connection.end()
        await made.clock.pass_(UPGRADE_QUIET_S + CHECK_S)
        assert turn.is_set()


@pytest.mark.skipif(os.name == "nt", reason="Windows replaces no program that runs")
async def test_sessions_go_on_with_the_new_program(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "servers.yaml").write_text("settings: {http: {enabled: false}}\nservers: {}\n")
    copy = tmp_path / "new"
    shutil.copytree(Path(program).parent, copy / "trayapp")
    env = environment(home)
    run = run_dir(env)
    with anyio.fail_after(stretched(60)):
        old = await anyio.open_process(
            [sys.executable, "-c", HASTY, str(copy), "start", "--linger"], env=env, stdout=None, stderr=None
        )
        async with old:
            first = await until(lambda: read_endpoint(run))
            async with client_of([sys.executable, str(copy / "trayapp" / "__main__.py"), "stdio"], env, home) as client:
                assert await client.request("ping", {}) == {}
                (copy / "trayapp" / "__init__.py").touch()  # as an installer does
                second = await until(lambda: (e := read_endpoint(run)) and e.started_at > first.started_at and e)
                assert second.pid == first.pid == old.pid  # the process id stays the same
                assert "tools" in await client.request("tools/list", {})
            old.terminate()
            await old.wait()


def test_on_a_terminal_and_on_windows_a_gateway_stays_what_it_is() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert stays(Terminal(), "linux")
    assert stays(None, "win32")
    assert not stays(None, "linux")
    assert not stays(io.StringIO(), "darwin")
