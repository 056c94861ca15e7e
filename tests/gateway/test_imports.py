"""settings.imports in a running gateway: imported files are read and watched, but their tools are not saved."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from tests.gateway.test_servers_file import Taken
from trayapp.clients.files import Machine
from trayapp.clients.servers import ClientLayers
from trayapp.gateway.servers_file import ServersFile
from trayapp.model.config import Imported, ToolSwitch

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("import-layers")]
IMPORTING = "settings: {imports: [cursor]}\nservers:\n  a: {command: x}\n"


class Counted(ClientLayers):
    """The real reader, with a count of its reads."""

    reads = 0

    def read(self, names: Sequence[str], file: str) -> tuple[Imported, ...]:
        Counted.reads += 1
        return super().read(names, file)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def taken(tmp_path: Path, home: Path) -> Taken:
    made = Taken(tmp_path / "servers.yaml")
    machine = Machine(home, {}, "linux")
    Counted.reads = 0
    made.file = ServersFile(made.path, ["sample"], lambda: made.config, made._take, lambda: Counted(machine), 0.05)
    return made


def cursor(home: Path, *names: str) -> Path:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"mcpServers": {name: {"command": name} for name in names}}), encoding="utf-8")
    new.replace(path)
    return path


async def test_a_layer_is_read_with_the_file_and_only_when_it_is_named(taken: Taken, home: Path) -> None:
    cursor(home, "theirs")
    await taken.reads("servers:\n  a: {command: x}\n")
    assert (list(taken.config.servers), Counted.reads) == (["a"], 0)
    await taken.reads(IMPORTING)
    assert (list(taken.config.servers), Counted.reads) == (["a", "theirs"], 1)
    await taken.reads("servers:\n  a: {command: x}\n")
    assert list(taken.config.servers) == ["a"]


async def test_a_saved_file_of_the_client_is_applied(taken: Taken, home: Path) -> None:
    cursor(home, "one")
    taken.path.write_text(IMPORTING, encoding="utf-8")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(taken.file.follow)
        await taken.until(["a", "one"])
        cursor(home, "one", "two")
        await taken.until(["a", "one", "two"])
        cursor(home).unlink()
        await taken.until(["a"])
        tasks.cancel_scope.cancel()


async def test_a_broken_file_of_the_client_leaves_the_users_own_servers(taken: Taken, home: Path) -> None:
    path = cursor(home, "one")
    path.write_text("{", encoding="utf-8")
    await taken.reads(IMPORTING)
    assert list(taken.config.servers) == ["a"]
    assert [(problem.file, problem.fatal) for problem in taken.config.problems] == [(str(path), False)]


async def test_tools_of_an_imported_server_are_not_written_into_servers_yaml(taken: Taken, home: Path) -> None:
    cursor(home, "theirs")
    await taken.reads(IMPORTING)
    taken.file.note_tools({"theirs": {"t": ToolSwitch()}})
    assert taken.path.read_text() == IMPORTING
    taken.file.note_tools({"theirs": {"t": ToolSwitch()}, "a": {"u": ToolSwitch()}})
    assert "u: {enabled: true}" in taken.path.read_text()
    assert "theirs" not in taken.path.read_text()
