"""Undoing a move: servers return to the clients' files. A file that did not change meanwhile is restored whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.machines import file_of, samples, world_in
from trayapp.clients import connect as connecting
from trayapp.clients import files
from trayapp.clients.context import ClientsContext
from trayapp.clients.imports import move_out, put_back, record_import, recorded_moves
from trayapp.clients.servers import read_servers
from trayapp.clients.table import BY_NAME, CLIENTS, Client

pytestmark = pytest.mark.requirement("import-undo")

SAMPLES = [(client, name) for client in CLIENTS for name in samples(client) if name in ("plain", "comments")]
EACH = pytest.mark.parametrize(("client", "name"), SAMPLES, ids=[f"{c.name}-{name}" for c, name in SAMPLES])


def move(client: Client, world: ClientsContext) -> None:
    """Move the client's servers out as `import --move` does."""
    kept = [each.backup for each in recorded_moves(world)]
    record_import(world, [], move_out(read_servers(client, world.machine).servers, kept))


Step = Callable[[Client, ClientsContext], object]


def connect(client: Client, world: ClientsContext) -> None:
    connecting.connect(client.name, world)


def disconnect(client: Client, world: ClientsContext) -> None:
    connecting.disconnect(client.name, world)


def undo(client: Client, world: ClientsContext) -> None:
    put_back(world)


@EACH
@pytest.mark.parametrize(
    "steps",
    [
        (move, undo),
        (move, connect, disconnect, undo),
        (connect, move, disconnect, undo),
        (move, connect, undo, disconnect),
        (connect, move, undo, disconnect),
    ],
    ids=lambda steps: "-".join(step.__name__ for step in steps),
)
def test_the_file_has_its_bytes_again_in_whichever_order(
    tmp_path: Path, client: Client, name: str, steps: tuple[Step, ...]
) -> None:
    world = world_in(tmp_path)
    path = file_of(client, world)
    path.write_text(samples(client)[name], encoding="utf-8")
    original = path.read_bytes()
    for step in steps:
        step(client, world)
        path.read_bytes()
    assert path.read_bytes() == original
    assert recorded_moves(world) == []
    assert not files.backup_of(path, files.BACKUP_MOVED).exists()


def test_two_moves_of_one_file_are_both_undone(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    client = BY_NAME["cursor"]
    path = file_of(client, world)
    path.write_text('{"mcpServers": {"a": {"command": "x"}}}')
    original = path.read_bytes()
    move(client, world)
    path.write_text('{"mcpServers": {"b": {"command": "y"}}}')
    move(client, world)
    assert len({each.backup for each in recorded_moves(world)}) == 2
    put_back(world)
    assert json.loads(path.read_text()) == {"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}
    assert path.read_bytes() != original
    assert put_back(world) == []


def test_what_was_changed_since_stays_and_gets_its_servers_again(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    client = BY_NAME["cursor"]
    path = file_of(client, world)
    path.write_text('{"mcpServers": {"a": {"command": "x", "env": {"T": "s"}}, "b": {"command": "y"}}}')
    move(client, world)
    path.write_text('{"theme": "dark", "mcpServers": {"b": {"command": "another"}}}')
    (done,) = put_back(world)
    assert (done.whole, done.why_not) == (False, "")
    assert json.loads(path.read_text()) == {
        "theme": "dark",
        "mcpServers": {"b": {"command": "another"}, "a": {"command": "x", "env": {"T": "s"}}},
    }
    assert files.backup_of(path, files.BACKUP_MOVED).exists()


def test_half_a_surrogate_pair_comes_back_into_a_file_that_was_changed_since(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    for name in ("cursor", "claude-code"):
        path = file_of(BY_NAME[name], world)
        path.write_text('{"mcpServers": {"odd\\ud83d": {"command": "x"}}}')
        move(BY_NAME[name], world)
        path.write_text('{"theme": "dark"}')
    assert [done.why_not for done in put_back(world)] == ["", ""]
    for name in ("cursor", "claude-code"):
        held = json.loads(file_of(BY_NAME[name], world).read_text(encoding="utf-8"))
        assert held == {"theme": "dark", "mcpServers": {"odd\ud83d": {"command": "x"}}}
    assert recorded_moves(world) == []


def test_an_undo_that_was_interrupted_before_its_note_is_finished_by_the_next(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    client = BY_NAME["cursor"]
    path = file_of(client, world)
    path.write_text('{"mcpServers": {"a": {"command": "x"}}}')
    original = path.read_bytes()
    move(client, world)
    (left,) = recorded_moves(world)
    path.write_bytes(original)  # the state after an interrupted undo
    left.backup.unlink()
    (done,) = put_back(world)
    assert (done.why_not, path.read_bytes()) == ("", original)
    assert recorded_moves(world) == []


def test_without_its_backup_a_move_stays_noted_and_the_others_are_undone(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    for name in ("claude-code", "cursor"):
        path = file_of(BY_NAME[name], world)
        path.write_text('{"mcpServers": {"a": {"command": "x"}}}')
        move(BY_NAME[name], world)
    (last, first) = recorded_moves(world)
    last.backup.unlink()
    assert [done.why_not for done in put_back(world)] == ["the backup no longer exists", ""]
    assert [left.file for left in recorded_moves(world)] == [last.file]
    assert json.loads(first.file.read_text()) == {"mcpServers": {"a": {"command": "x"}}}


def test_a_file_that_cannot_be_read_is_left_alone_and_can_be_undone_later(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    client = BY_NAME["cursor"]
    path = file_of(client, world)
    path.write_text('{"mcpServers": {"a": {"command": "x"}}}')
    original = path.read_bytes()
    move(client, world)
    after = path.read_bytes()
    path.write_text("{")
    (done,) = put_back(world)
    assert (bool(done.why_not), path.read_text()) == (True, "{")
    path.write_bytes(after)
    put_back(world)
    assert path.read_bytes() == original
