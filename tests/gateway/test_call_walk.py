"""The path of a call through the gateway: its functions and modules, counted in an in-process gateway."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import pytest

import trayapp
from trayapp.clients.servers import ClientLayers
from trayapp.config.paths import find_paths
from trayapp.gateway.main import GatewayHost
from trayapp.shim.relay import greeting
from trayapp.wire import control
from trayapp.wire.control import ControlClient
from trayapp.wire.greeting import read_endpoint
from trayapp.wire.rundir import run_dir

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name == "nt", reason="needs Unix sockets")]

# For a call to the backend and back, from the first byte of the shim's frame to the last byte of the answer.
MOST_HOPS = 30
MOST_MODULES = 12
FIRST, LAST = "FrameDispatcher.feed", "Link.write"
PACKAGE = f"{Path(trayapp.__file__).parent}{os.sep}"
SERVER = Path(__file__).parents[1] / "benchmarks" / "null_server.py"
CALL = {"name": "null_echo", "arguments": {"size": 100}}
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}}


class Client:
    """A client that sends a shim's bytes over the gateway's real socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        writer.write(greeting({}))
        self._last = 0

    def send(self, message: dict[str, Any]) -> None:
        self._writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        self._last += 1
        self.send({"id": self._last, "method": method, "params": params})
        while True:
            answer = json.loads(await self._reader.readline())
            if answer.get("id") == self._last:
                return answer["result"]


@contextmanager
def walked(steps: list[tuple[str, str]]) -> Iterator[None]:
    """Collect the module and name of every function of the program that is called on this thread."""

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            steps.append((code.co_filename.removeprefix(PACKAGE), code.co_qualname))

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


@pytest.mark.requirement("call-short-walk")
async def test_a_call_of_a_running_server_passes_few_functions_and_modules_there_and_back(home: Path) -> None:
    environ = {"MULTI_MCP_HOME": str(home), "PATH": os.environ["PATH"], "SHELL": "/bin/false"}
    paths, run = find_paths(environ), run_dir(environ)
    servers = {"null": {"command": sys.executable, "args": ["-I", "-S", str(SERVER)]}}
    settings = {"expose": "tools", "http": {"enabled": False}}
    paths.config_file.write_text(json.dumps({"settings": settings, "servers": servers}), encoding="utf-8")
    Path(run).mkdir(mode=0o700, parents=True, exist_ok=True)
    host, ready = GatewayHost(environ, paths, run, ["python3"], ClientLayers), anyio.Event()
    steps: list[tuple[str, str]] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.main, False, ready.set)
        with anyio.fail_after(60):
            await ready.wait()
            endpoint = read_endpoint(run)
            assert endpoint is not None
            client = Client(*await asyncio.open_unix_connection(endpoint.socket))
            await client.ask("initialize", INITIALIZE)
            client.send({"method": "notifications/initialized"})
            for _ in range(5):  # until the server runs, the route is cached, and no other work is left
                await client.ask("tools/call", CALL)
                await anyio.sleep(0.3)
            with walked(steps):
                await client.ask("tools/call", CALL)
            await client.close()
            await anyio.to_thread.run_sync(stop, run)
    functions = [name for _, name in steps]
    there_and_back = steps[functions.index(FIRST) : len(functions) - functions[::-1].index(LAST)]
    modules = {module for module, _ in there_and_back}
    walk = "\n".join(f"{module} {name}" for module, name in there_and_back)
    assert functions.count("ServerProcess.write") == functions.count("Connection.end") == 1, walk
    assert len(there_and_back) <= MOST_HOPS, walk
    assert len(modules) <= MOST_MODULES, walk


def stop(run: str) -> None:
    with ControlClient(run) as control_client:
        control_client.call(control.STOP, {})
