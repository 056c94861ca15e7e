"""The doors through which outside bytes come in. Each function accepts any bytes and fails only on a bug of ours."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio

from trayapp.catalog import approval_store, cache
from trayapp.clients import jsonc, toml_file, yaml_file
from trayapp.clients.family import Family
from trayapp.config.problems import UnparsableError
from trayapp.config.read.parse import parse
from trayapp.model.errors import MultiMcpError
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.framing import FrameSplitter, find_answer_id
from trayapp.wire.greeting import endpoint_file, read_endpoint
from trayapp.wire.jsonio import JsonError, dumps, loads
from trayapp.wire.messages import Params

FAMILIES: tuple[Family, ...] = (jsonc, toml_file, yaml_file.MAPPED, yaml_file.LISTED)
ENTRY = {"command": "multi-mcp", "args": ["stdio"]}


def frames(data: bytes) -> None:
    """Feed a peer's data in two pieces. Check that whole frames arrive unchanged and that answers are JSON."""
    middle = len(data) // 2
    splitter = FrameSplitter()
    found = [frame for part in (data[:middle], data[middle:]) for frame in splitter.feed(part)]
    whole = FrameSplitter().feed(data)
    assert [bytes(f) for f in found if isinstance(f, bytes)] == [bytes(f) for f in whole if isinstance(f, bytes)]
    for frame in found:
        if isinstance(frame, bytes) and (place := find_answer_id(frame)) is not None:
            loads(frame[place[0] : place[1]])
    asyncio.run(_spoken(data))


async def _spoken(data: bytes) -> None:
    """Feed the data to a dispatcher and check that it still handles the next request."""
    out: list[bytes] = []
    junk: list[bytes] = []
    dispatcher = FrameDispatcher(out.append, on_junk=junk.append)
    pinged: list[str] = []

    async def on_request(method: str, params: Params) -> dict[str, Any]:
        pinged.append(method)
        return {}

    def on_notify(method: str, params: Params) -> None:
        pass

    async with anyio.create_task_group() as tasks:
        await tasks.start(dispatcher.run, on_request, on_notify)
        dispatcher.feed(data + b'\n{"jsonrpc":"2.0","id":"last","method":"still there?"}\n')
        with anyio.fail_after(5):
            while "still there?" not in pinged:
                await anyio.lowlevel.checkpoint()
        dispatcher.close()
    for frame in b"".join(out).splitlines():
        assert isinstance(loads(frame), dict)


def servers_yaml(data: bytes) -> None:
    """Parse a servers.yaml. Check that every problem of a parsable file has a message and no negative line."""
    text = data.decode("utf-8", "replace")
    try:
        config = parse(text, "servers.yaml")
    except UnparsableError:
        return
    assert all(problem.line >= 0 and problem.message for problem in config.problems)


def client_file(data: bytes) -> None:
    """Read an AI tool's file in each format, then add and remove our entry. A refusal must be a MultiMcpError."""
    text = data.decode("utf-8", "replace")
    for family in FAMILIES:
        with suppress(MultiMcpError):
            family.read(text, "file")
            after = family.put(text, ("mcpServers", "multi-mcp"), ENTRY, "file")
            family.read(after, "file")
            family.drop(after, ("mcpServers", "multi-mcp"), "file")


def cache_file(data: bytes) -> None:
    """Read a cache file, which may be unusable."""
    _in_a_folder(cache.file_name("s"), data, lambda folder: cache.load(folder, "s"))


def pin_file(data: bytes) -> None:
    """Read a file of approved definitions. Check that the definitions can be saved and read again."""

    def look(folder: Path) -> None:
        known = approval_store.load(folder, "s")
        approval_store.save(folder, "s", known.tools)
        assert approval_store.load(folder, "s").tools == known.tools

    _in_a_folder(cache.file_name("s"), data, look)


def endpoint(data: bytes) -> None:
    """Read the endpoint file, which may be unusable."""

    def look(folder: Path) -> None:
        found = read_endpoint(str(folder))
        assert found is None or found.is_sound()

    _in_a_folder(endpoint_file("").name, data, look)


def _in_a_folder(name: str, data: bytes, look: Callable[[Path], object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(data)
        look(Path(folder))


def json_text(data: bytes) -> None:
    """Read any JSON text. Check that the value stays equal when it is written and read again."""
    try:
        value = loads(data)
    except JsonError:
        return
    assert loads(dumps(value)) == value
