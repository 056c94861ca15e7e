"""The parts of a gateway process together, run in-process with real files, a real socket and fake servers."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.fixtures.fake_transport import FakeNet
from tests.patience import stretched
from trayapp.clients.servers import ClientLayers
from trayapp.config.layers.project import TRUST_NAME, TrustStore, read_project
from trayapp.config.paths import find_paths
from trayapp.gateway.main import GatewayHost, run_gateway
from trayapp.model.errors import StorageError
from trayapp.service.gateway_process import logged_end_reason
from trayapp.wire import control
from trayapp.wire.control import ControlClient, connect
from trayapp.wire.greeting import Hello
from trayapp.wire.lock import GatewayLock
from trayapp.wire.rundir import STOPPING, run_dir

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name == "nt", reason="needs Unix sockets")]
PYTHON = '"python3"'


class Running:
    """A gateway that runs in the test's event loop."""

    def __init__(self, home: Path) -> None:
        self.environ = {"MULTI_MCP_HOME": str(home), "PATH": os.environ["PATH"], "SHELL": "/bin/false"}
        self.run = run_dir(self.environ)
        self.paths = find_paths(self.environ)
        self.net = FakeNet()
        self.ended = anyio.Event()

    @property
    def file(self) -> Path:
        return self.paths.config_file

    async def ask(self, method: str, **params: Any) -> Any:
        def blocking() -> Any:
            with ControlClient(self.run) as client:
                return client.call(method, params)

        return await anyio.to_thread.run_sync(blocking)

    async def tools(self) -> list[str]:
        await self.ask(control.SETTLE)
        return [row["exposed_name"] for row in await self.ask(control.LIST)]


@asynccontextmanager
async def running(home: Path, linger: bool = False) -> AsyncIterator[Running]:
    made, ready = Running(home), anyio.Event()
    Path(made.run).mkdir(mode=0o700, parents=True, exist_ok=True)
    process = GatewayHost(made.environ, made.paths, made.run, ["python3", "-m", "sample"], ClientLayers, made.net.open)

    async def main() -> None:
        await process.main(linger, ready.set)
        made.ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(main)
        with anyio.fail_after(stretched(30.0)):
            await ready.wait()
            yield made
            if not made.ended.is_set():
                await made.ask(control.STOP)
                await made.ended.wait()


@pytest.mark.requirement("file-first-run", "cat-first-run", "cat-found-tools-written")
async def test_a_first_start_writes_the_file_asks_the_sample_and_notes_its_tools(home: Path) -> None:
    async with running(home) as made:
        assert "sample_echo" in await made.tools()
        text = made.file.read_text(encoding="utf-8")
        assert "echo: {enabled: true}" in text
        assert (made.net["sample"].opened, made.net["sample"].open_now) == (1, 0)
        snapshot = await made.ask(control.SNAPSHOT)
        assert snapshot["gateway"]["state"] == "running"


@pytest.mark.requirement("cat-cache-first", "name-stable")
async def test_a_second_start_lists_the_same_without_any_server(home: Path) -> None:
    async with running(home) as made:
        first = await made.tools()
        text = made.file.read_bytes()
    async with running(home) as made:
        assert await made.tools() == first
        assert made.net["sample"].opened == 0
        assert made.file.read_bytes() == text


@pytest.mark.requirement("file-broken-goes-on", "file-applied-on-save")
@pytest.mark.requirement("trust-content")
@pytest.mark.parametrize("mode", [0o666, 0o620])
async def test_approvals_that_others_could_write_are_not_believed_after_a_start_either(home: Path, mode: int) -> None:
    (home / "shop").mkdir()
    (home / "shop" / ".mcp.json").write_text("{}")
    file, store = read_project(home / "shop" / ".mcp.json"), TrustStore(home / TRUST_NAME)
    assert file is not None
    assert store.approve(file)
    store.path.chmod(mode)
    async with running(home):
        assert store.check(file) is None
        with pytest.raises(StorageError, match="by another user"):
            store.approve(file)


async def test_a_save_is_applied_and_a_broken_one_shows_its_line(home: Path) -> None:
    async with running(home) as made:
        await made.tools()
        made.file.write_text(f"servers:\n  one: {{command: {PYTHON}}}\n", encoding="utf-8")
        while "one_echo" not in await made.tools():
            pass
        made.file.write_text("servers:\n  one: {command\n  x: [", encoding="utf-8")
        problems = (await made.ask(control.RELOAD))["problems"]
        assert problems[0]["line"] > 1
        assert "one_echo" in await made.tools()


@pytest.mark.requirement("fault-disk-full")
async def test_a_home_without_a_config_folder_runs_without_servers_and_says_so(home: Path) -> None:
    made = Running(home)
    made.file.mkdir(parents=True)
    async with running(home) as made:
        snapshot = await made.ask(control.SNAPSHOT)
        assert snapshot["servers"] == []
        assert "not a file" in snapshot["problems"][0]["message"]


async def test_at_the_end_each_session_is_told_and_nothing_is_left(home: Path) -> None:
    async with running(home) as made:
        await made.tools()
        await made.ask(control.RECONNECT, server="sample")
        assert made.net.open_now == 1
        sock = await anyio.to_thread.run_sync(connect, made.run, Hello("session"))
        with sock:
            await made.ask(control.STOP)
            await made.ended.wait()
            said = b""
            while data := await anyio.to_thread.run_sync(sock.recv, 65536):
                said += data
        assert said == STOPPING
        assert made.net.open_now == 0
        assert not (Path(made.run) / "endpoint.json").exists()
        assert not (Path(made.run) / "gateway.sock").exists()


async def test_sessions_on_the_socket_are_served_and_one_that_speaks_junk_ends_no_other(home: Path) -> None:
    async with running(home) as made:
        await made.tools()
        junk = await anyio.to_thread.run_sync(connect, made.run, Hello("session"))
        good = await anyio.to_thread.run_sync(connect, made.run, Hello("session"))
        with junk, good:
            junk.sendall(b"\x00\xff[[[\n{}\n[]\n")
            junk.close()
            good.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n")
            assert json.loads(await anyio.to_thread.run_sync(good.recv, 65536)) == {
                "jsonrpc": "2.0",
                "id": 1,
                "result": {},
            }


@pytest.fixture
def child_watcher() -> Iterator[None]:
    """Restore the child watcher for later tests, because a gateway sets its own for the whole process."""
    if sys.version_info >= (3, 12):
        yield  # since Python 3.12, each event loop has its own
        return
    before = asyncio.get_child_watcher()
    yield
    asyncio.set_child_watcher(before)


@pytest.mark.usefixtures("child_watcher")
def test_a_start_that_cannot_listen_is_a_plain_error_and_frees_the_lock(home: Path) -> None:
    made = Running(home)
    (Path(made.run) / "gateway.sock" / "in the way").mkdir(parents=True)
    Path(made.run).chmod(0o700)
    made.file.write_text("servers: {}\n", encoding="utf-8")
    lock = GatewayLock(made.run)
    lock.acquire()
    with pytest.raises(StorageError):
        run_gateway(made.environ, lock, linger=False, sample=["python3"], layers=ClientLayers)
    words = (home / "logs" / "gateway.log").read_text(encoding="utf-8").splitlines()
    assert logged_end_reason(words).startswith("Cannot listen on ")  # the tray and users of a shim look for it there
    free = GatewayLock(made.run)
    free.acquire()
    free.release()
