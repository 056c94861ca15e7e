"""Tasks, skills, events and Apps through the gateway: as direct, with one server and with three that collide."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

from tests.e2e.cell import META, MODERN
from tests.e2e.client import client_of
from tests.e2e.extension_scenario import NOTHING, Visitor, checks
from tests.e2e.gateway import Gateway
from tests.fixtures import extension_server

pytestmark = [pytest.mark.anyio]

OLDER = "2025-11-25"
NAMES = ("one", "two", "three")
SCRIPT = [sys.executable, "-I", "-S", str(Path(extension_server.__file__))]


def argv(revision: str, folder: Path, name: str) -> list[str]:
    """The server of that name; its folder says who it is."""
    (folder / name).mkdir(exist_ok=True)
    return [*SCRIPT, revision, str(folder / name / "notes")]


@contextmanager
def entries(names: tuple[str, ...], revision: str, folder: Path, transport: str) -> Iterator[dict[str, dict[str, Any]]]:
    """Entries of servers.yaml for these servers; the ones over HTTP run meanwhile."""
    if transport == "stdio":
        yield {name: {"command": argv(revision, folder, name)} for name in names}
        return
    running = [Popen([*argv(revision, folder, name), "--http", "0"], stdout=PIPE, encoding="utf-8") for name in names]
    try:
        ports = [process.stdout.readline().strip() for process in running if process.stdout is not None]
        yield {
            name: {"url": f"http://127.0.0.1:{port}/mcp", "type": "http"}
            for name, port in zip(names, ports, strict=True)
        }
    finally:
        for process in running:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


async def direct(revision: str, folder: Path, name: str) -> dict[str, Any]:
    """What the checks give with the server itself."""
    async with client_of(argv(revision, folder, name), os.environ, folder, None) as client:
        visitor = Visitor(client, revision)
        await visitor.introduce()
        return await checks(visitor)


@asynccontextmanager
async def visiting(gateway: Gateway, revision: str, server: str, names: tuple[str, ...]) -> AsyncIterator[Visitor]:
    """A client of the gateway that means one of its servers."""
    async with gateway.client(None) as client:
        visitor = Visitor(client, revision, f"{server}_", server)
        capabilities = await visitor.introduce()
        assert {META + "skills", META + "events", META + "ui"} <= capabilities["extensions"].keys()
        yield visitor


def failed(found: Any) -> bool:
    """Whether a check did not come to its end."""
    return found == NOTHING or (isinstance(found, dict) and found.keys() == {"error", "says"})


@pytest.mark.requirement("extensions-as-direct")
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("names", [NAMES[:1], NAMES], ids=["one", "three"])
@pytest.mark.parametrize("revision", [OLDER, MODERN])
async def test_each_check_of_all_extensions_gives_what_it_gives_direct(
    gateway: Gateway, tmp_path: Path, revision: str, names: tuple[str, ...], transport: str
) -> None:
    with entries(names, revision, tmp_path, transport) as servers:
        gateway.write(servers)
        gateway.start()
        await gateway.known()
        for name in names:
            expected = await direct(revision, tmp_path, name)
            assert [check for check, found in expected.items() if failed(found)] == []
            async with visiting(gateway, revision, name, names) as visitor:
                found = await checks(visitor)
            assert {check: (found[check], wanted) for check, wanted in expected.items() if found[check] != wanted} == {}
