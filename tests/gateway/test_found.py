"""A gateway whose runtime folder is removed restores it, or gives way to a gateway that has started there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest

from tests.cli.running import environment
from tests.e2e.client import client_of
from tests.fixtures.odd import Odd, until
from tests.patience import stretched
from trayapp.service.command_line import shim_command
from trayapp.wire.endpoint import listen
from trayapp.wire.greeting import endpoint_file, read_endpoint
from trayapp.wire.rundir import run_dir

pytestmark = pytest.mark.anyio
# A gateway that checks its runtime folder often and does not linger.
WATCHFUL = """
import sys
from trayapp.gateway import main as run
run.CHECK_S = 0.05
from trayapp.cli.run_gateway import run_here
sys.exit(run_here(False, lambda: None))
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    (home / "servers.yaml").write_text("settings: {http: {enabled: false}}\nservers: {}\n")
    return environment(home)


@asynccontextmanager
async def gateway(env: dict[str, str]) -> AsyncIterator[anyio.abc.Process]:
    """Start a gateway and yield its process once it can be found."""
    process = await anyio.open_process([sys.executable, "-c", WATCHFUL], env=env, stdout=None, stderr=None)
    async with process:
        try:
            with anyio.fail_after(stretched(30)):
                await until(lambda: (found := read_endpoint(run_dir(env))) and found.pid == process.pid)
            yield process
        finally:
            if process.returncode is None:
                process.terminate()


@pytest.mark.skipif(os.name == "nt", reason="Windows removes no folder that is in use")
async def test_what_was_removed_is_there_again_and_sessions_have_not_noticed(env: dict[str, str]) -> None:
    run = run_dir(env)
    with anyio.fail_after(stretched(60)):
        async with gateway(env) as process, client_of(list(shim_command()), env, Path(run).parent) as client:
            assert await client.request("ping", {}) == {}
            for whole in (True, False):
                shutil.rmtree(run) if whole else endpoint_file(run).unlink()
                found: Any = await until(lambda: read_endpoint(run))
                assert found.pid == process.pid
                async with client_of(list(shim_command()), env, Path(run).parent) as another:
                    assert await another.request("ping", {}) == {}
                assert await client.request("ping", {}) == {}


@pytest.mark.skipif(os.name == "nt", reason="Windows removes no folder that is in use")
async def test_another_gateway_that_began_there_is_left_in_peace(env: dict[str, str]) -> None:
    run = run_dir(env)
    with anyio.fail_after(stretched(60)):
        async with gateway(env) as first:
            first.send_signal(signal.SIGSTOP)
            shutil.rmtree(run)
            async with gateway(env) as second:
                first.send_signal(signal.SIGCONT)
                assert await first.wait() == 0
                published = read_endpoint(run)
                assert published is not None
                assert published.pid == second.pid
                async with client_of(list(shim_command()), env, Path(run).parent) as client:
                    assert await client.request("ping", {}) == {}
                assert second.returncode is None


@pytest.mark.skipif(os.name == "nt", reason="signals")
async def test_one_that_ends_is_not_found_any_more_however_long_it_takes(env: dict[str, str], tmp_path: Path) -> None:
    odd = Odd(tmp_path, switches=("--ignore-eof",))
    entry = {"command": odd.argv[0], "args": odd.argv[1:], "lifecycle": "eager"}
    file = Path(env["MULTI_MCP_HOME"]) / "servers.yaml"
    file.write_text(json.dumps({"settings": {"http": {"enabled": False}}, "servers": {"odd": entry}}))
    with anyio.fail_after(stretched(60)):
        async with gateway(env) as process:
            await until(lambda: odd.received("tools/list"))
            process.terminate()
            await until(lambda: odd.events("eof"))
            await process.wait()  # takes as long as many checks of the folder
        assert sorted(path.name for path in Path(run_dir(env)).iterdir()) == ["gateway.lock"]


async def test_over_tcp_the_endpoint_file_is_what_is_found(tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    Path(run).mkdir(mode=0o700)
    listener = await listen(run, lambda hello, link: pytest.fail("nobody comes"), "1", tcp=True)
    assert listener.is_found()
    endpoint_file(run).unlink()
    assert not listener.is_found()
    listener.close()
