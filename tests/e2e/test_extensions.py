"""Tasks, skills, events and Apps work through the gateway as directly, with one server and with three that collide."""

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
from tests.fixtures import extension_http, extension_server
from trayapp.service.command_line import own_command

pytestmark = [pytest.mark.anyio]

OLDER = "2025-11-25"
NAMES = ("one", "two", "three")
OF_THE_GATEWAY: dict[str, Any] = {"prompts": {"listChanged": True}, "completions": {}, "logging": {}}


def argv(revision: str, folder: Path, name: str, *, http: bool = False) -> list[str]:
    """Return the command that runs the extension server `name`.

    Its answers contain the name of its folder, so tests know which server answered. `revision` may end with ` --both`,
    which adds the other era. With `http`, the server listens on a free port.
    """
    (folder / name).mkdir(exist_ok=True)
    own, *options = revision.split()
    program = str((extension_http if http else extension_server).__file__)
    return [sys.executable, "-I", "-S", program, own, str(folder / name / "notes"), *["0"] * http, *options]


@contextmanager
def entries(names: tuple[str, ...], revision: str, folder: Path, transport: str) -> Iterator[dict[str, dict[str, Any]]]:
    """Yield entries of servers.yaml for these servers. HTTP servers run until the end of the block."""
    if transport == "stdio":
        yield {name: {"command": argv(revision, folder, name)} for name in names}
        return
    running = [Popen(argv(revision, folder, name, http=True), stdout=PIPE, encoding="utf-8") for name in names]
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


async def direct(revision: str, folder: Path, name: str, client_revision: str = "") -> dict[str, Any]:
    """Return the results of the checks with the server itself."""
    async with client_of(argv(revision, folder, name), os.environ, folder, None) as client:
        visitor = Visitor(client, client_revision or revision)
        await visitor.introduce()
        return await checks(visitor)


async def announced(command: list[str], gateway: Gateway, revision: str) -> dict[str, Any]:
    """Return the capabilities that a server, or the gateway, announces to a client of this revision."""
    async with client_of(command, gateway.env, gateway.home, None) as client:
        return await Visitor(client, revision).introduce()


@asynccontextmanager
async def visiting(gateway: Gateway, revision: str, server: str, names: tuple[str, ...]) -> AsyncIterator[Visitor]:
    """Yield a client of the gateway that checks one of its servers."""
    async with gateway.client(None) as client:
        visitor = Visitor(client, revision, f"{server}_", server)
        capabilities = await visitor.introduce()
        assert {META + "skills", META + "events", META + "ui"} <= capabilities["extensions"].keys()
        yield visitor


def failed(found: Any) -> bool:
    """True if a check ended with an error or without a result."""
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


@pytest.mark.requirement("capabilities-of-each-era")
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("order", [(OLDER, MODERN), (MODERN, OLDER)], ids=["older first", "newer first"])
async def test_a_server_of_both_eras_announces_and_gives_to_each_client_what_it_does_direct(
    gateway: Gateway, tmp_path: Path, order: tuple[str, str], transport: str
) -> None:
    """Tasks are a capability in the older era and an extension in the newer one, also after a restart."""
    both = f"{OLDER} --both"
    with entries(NAMES[:1], both, tmp_path, transport) as servers:
        expected = {revision: await announced(argv(both, tmp_path, "one"), gateway, revision) for revision in order}
        assert [found.keys() & {"tasks"} for found in (expected[OLDER], expected[MODERN])] == [{"tasks"}, set()]
        gateway.write(servers)
        gateway.start()
        await gateway.known()
        for revision in (*order, *order):
            given = await direct(both, tmp_path, "one", revision)
            assert [check for check, found in given.items() if failed(found)] == []
            async with visiting(gateway, revision, "one", NAMES[:1]) as visitor:
                await visitor.request("tools/list")  # waits until the lists have been read for this era
                found = await checks(visitor)
            assert {check: (found[check], wanted) for check, wanted in given.items() if found[check] != wanted} == {}
        shim = [*own_command(), "stdio"]
        for again in (True, False):
            for revision in order:
                assert await announced(shim, gateway, revision) == expected[revision] | OF_THE_GATEWAY
            gateway.stop()
            if again:
                gateway.start()
