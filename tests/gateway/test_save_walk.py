"""The path of a servers.yaml save through the gateway's modules: none is re-entered after it has called another."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import anyio
import anyio.to_thread
import pytest

import trayapp
from tests.gateway.test_call_walk import CALL, INITIALIZE, SERVER, Client, stop
from trayapp.clients.servers import ClientLayers
from trayapp.config.paths import find_paths
from trayapp.gateway.main import GatewayHost
from trayapp.wire.greeting import read_endpoint
from trayapp.wire.rundir import run_dir

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name == "nt", reason="needs Unix sockets")]

GATEWAY = f"{Path(trayapp.__file__).parent / 'gateway'}{os.sep}"
READ, TOLD = "servers_file.py", "services.py"  # the modules that read the save and that notify sessions


def way_to(frame: FrameType | None) -> list[str]:
    """Return the gateway's modules on the stack, outermost first, without consecutive duplicates."""
    way: list[str] = []
    while frame is not None:
        if (name := frame.f_code.co_filename).startswith(GATEWAY):
            module = name.removeprefix(GATEWAY)
            if not way or way[-1] != module:
                way.append(module)
        frame = frame.f_back
    return way[::-1]


@contextmanager
def walked(ways: dict[tuple[str, ...], str]) -> Iterator[None]:
    """Record in `ways` each chain of modules on this thread's call stack, with the first function called at its end."""

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(GATEWAY):
            ways.setdefault(tuple(way_to(frame)), frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


async def listed(client: Client, server: str) -> None:
    """Request the list until it has tools of that server."""
    names: list[str] = []
    while server not in names:
        await anyio.sleep(0.1)
        names = [str(one["name"]).split("_")[0] for one in (await client.ask("tools/list", {}))["tools"]]


@pytest.mark.requirement("save-one-way")
async def test_a_save_passes_no_module_of_the_gateway_twice(home: Path) -> None:
    environ = {"MULTI_MCP_HOME": str(home), "PATH": os.environ["PATH"], "SHELL": "/bin/false"}
    paths, run = find_paths(environ), run_dir(environ)
    entry = {"command": sys.executable, "args": ["-I", "-S", str(SERVER)]}
    content = {"settings": {"expose": "tools", "http": {"enabled": False}}, "servers": {"null": entry}}
    paths.config_file.write_text(json.dumps(content), encoding="utf-8")
    Path(run).mkdir(mode=0o700, parents=True, exist_ok=True)
    host, ready = GatewayHost(environ, paths, run, ["python3"], ClientLayers), anyio.Event()
    every: dict[tuple[str, ...], str] = {}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.main, False, ready.set)
        with anyio.fail_after(60):
            await ready.wait()
            endpoint = read_endpoint(run)
            assert endpoint is not None
            client = Client(*await asyncio.open_unix_connection(endpoint.socket))
            await client.ask("initialize", INITIALIZE)
            client.send({"method": "notifications/initialized"})
            await client.ask("tools/call", CALL)
            with walked(every):
                content["servers"] = {"other": entry, "null": {**entry, "disabled": True}}
                paths.config_file.write_text(json.dumps(content), encoding="utf-8")
                await listed(client, "other")
            await client.close()
            await anyio.to_thread.run_sync(stop, run)
    ways = {way[way.index(start) :]: name for start in (READ, TOLD) for way, name in every.items() if start in way}
    passed = {module for way in ways for module in way}
    assert passed >= {"gateway.py", "scopes/servers.py", "scopes/view.py", "exposure/catalog.py", "sessions/session.py"}
    assert [f"{' > '.join(way)}: {name}" for way, name in ways.items() if len(set(way)) < len(way)] == []
