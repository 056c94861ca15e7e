"""Each client on each platform is connected twice, then disconnected. Its file ends up the same, byte for byte."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.clients.machines import COMMAND, PLATFORMS, broken, file_of, samples, world_in
from trayapp.clients import connect as connecting
from trayapp.clients import files
from trayapp.clients.connect import (
    MAIN,
    ClientNotFoundError,
    ForeignEntryError,
    OwnEntry,
    apply,
    client_state,
    connect,
    disconnect,
    found_clients,
    plan_connect,
    plan_disconnect,
)
from trayapp.clients.context import ClientsContext, recorded_connection
from trayapp.clients.entry import wanted_entry, words_of
from trayapp.clients.family import lookup
from trayapp.clients.table import BY_NAME, CLIENTS, NAME, Client
from trayapp.config.problems import UnparsableError
from trayapp.config.yaml.splices import EditRefusedError
from trayapp.model.errors import FileChangedError, StorageError, UsageError

EVERYWHERE = [(client, platform) for client in CLIENTS for platform in PLATFORMS]
SAMPLES = [(client, name) for client in CLIENTS for name in samples(client)]
# The platform decides where a file is, not what is in it. So all files are tested on one platform, and one file on the
# others.
PLACED_SAMPLES = [(client, name, PLATFORMS[0]) for client, name in SAMPLES]
PLACED_SAMPLES += [(client, "comments", platform) for client, platform in EVERYWHERE if platform != PLATFORMS[0]]
CURSOR = BY_NAME["cursor"]


class Desk(NamedTuple):
    """A client on a machine, with its file."""

    client: Client
    world: ClientsContext
    path: Path


def desk_of(client: Client, folder: Path, platform: str = PLATFORMS[0]) -> Desk:
    world = world_in(folder, platform)
    return Desk(client, world, file_of(client, world))


@pytest.fixture(params=EVERYWHERE, ids=[f"{client.name}-{platform}" for client, platform in EVERYWHERE])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    """Return a client on a platform. Tests run for every combination."""
    client, platform = request.param
    return desk_of(client, tmp_path, platform)


@pytest.fixture
def cursor(tmp_path: Path) -> Desk:
    """Return one client for tests in which the client does not matter."""
    return desk_of(CURSOR, tmp_path)


def entry_in(client: Client, path: Path) -> object:
    document = client.family.read(path.read_text(encoding="utf-8"), "f")
    entry = lookup(document, (*client.holder, NAME))
    return {key: value for key, value in entry.items() if key != "name"} if isinstance(entry, dict) else entry


def wanted(client: Client) -> object:
    return {key: value for key, value in wanted_entry(client, COMMAND).items() if key != "name"}


def beside(path: Path) -> list[Path]:
    """Return the file, and its backups and leftovers of writes."""
    return sorted(other for other in path.parent.iterdir() if path.name in other.name)


def written(path: Path, text: str) -> bytes:
    path.write_bytes(text.encode("utf-8"))
    return path.read_bytes()


@pytest.mark.requirement("client-round-trip")
@pytest.mark.parametrize(
    ("client", "name", "platform"),
    PLACED_SAMPLES,
    ids=[f"{c.name}-{name}-{where}" for c, name, where in PLACED_SAMPLES],
)
def test_connect_then_disconnect_gives_the_original_bytes(
    tmp_path: Path, client: Client, name: str, platform: str
) -> None:
    world = world_in(tmp_path, platform)
    path = file_of(client, world)
    original = written(path, samples(client)[name])
    before = client.family.read(original.decode(), "f")

    assert connect(client.name, world).changes
    assert entry_in(client, path) == wanted(client)
    after = client.family.read(path.read_text(encoding="utf-8"), "f")
    assert lookup(after, (*client.holder, "other")) == lookup(before, (*client.holder, "other"))
    assert files.backup_of(path).read_bytes() == original
    once = path.read_bytes()
    assert not connect(client.name, world).changes
    assert path.read_bytes() == once
    assert client_state(client.name, world).state == "connected"

    assert disconnect(client.name, world).changes
    assert path.read_bytes() == original
    assert client_state(client.name, world).state == "not connected"
    assert beside(path) == [path]  # neither a backup nor a temporary file
    assert not disconnect(client.name, world).changes


@pytest.mark.requirement("client-round-trip")
def test_a_missing_file_is_made_and_taken_away_again(desk: Desk) -> None:
    client, world, path = desk
    for sign in client.installed:
        world.machine.path(sign).mkdir(parents=True, exist_ok=True)
    assert client_state(client.name, world).state == "not connected"
    connect(client.name, world)
    assert entry_in(client, path) == wanted(client)
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
    disconnect(client.name, world)
    assert not path.exists()


@pytest.mark.parametrize(("client", "platform"), EVERYWHERE)
def test_a_client_that_is_not_there_is_said_to_be_missing(tmp_path: Path, client: Client, platform: str) -> None:
    world = world_in(tmp_path, platform)
    with pytest.raises(ClientNotFoundError, match=client.title.split()[0]) as caught:
        connect(client.name, world)
    assert str(tmp_path) in caught.value.hint
    assert (client_state(client.name, world).state, found_clients(world)) == ("not found", [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("client-left-alone")
def test_a_file_that_cannot_be_read_is_left_alone_with_the_line(desk: Desk) -> None:
    client, world, path = desk
    original = written(path, broken(client))
    for work in (connect, disconnect):
        with pytest.raises(UnparsableError, match="line 3") as caught:
            work(client.name, world)
        assert caught.value.problem.file == str(path)
    assert path.read_bytes() == original
    assert beside(path) == [path]
    state = client_state(client.name, world)
    assert (state.state, "line 3" in state.reason) == ("unreadable", True)


@pytest.mark.parametrize("data", [b"\xff\xfe{\x00}\x00", b'{"a": "\xe4"}', b"[1]", b"5", b'{"mcpServers": []}'])
def test_a_file_of_another_kind_is_left_alone(cursor: Desk, data: bytes) -> None:
    _, world, path = cursor
    path.write_bytes(data)
    with pytest.raises((UnparsableError, EditRefusedError)):
        connect("cursor", world)
    assert path.read_bytes() == data


@pytest.mark.requirement("client-left-alone")
def test_a_read_only_file_is_refused(desk: Desk) -> None:
    client, world, path = desk
    original = written(path, samples(client)["plain"])
    path.chmod(0o444)
    with pytest.raises(StorageError, match="read-only"):
        connect(client.name, world)
    assert path.read_bytes() == original
    assert beside(path) == [path]


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
@pytest.mark.parametrize(("client", "platform"), EVERYWHERE)
def test_a_link_is_followed_and_stays_one(tmp_path: Path, client: Client, platform: str) -> None:
    world = world_in(tmp_path / "home", platform)
    path = file_of(client, world)
    target = tmp_path / "dotfiles" / "it"
    target.parent.mkdir()
    original = written(target, samples(client)["comments"])
    target.chmod(0o640)
    path.symlink_to(target)
    connect(client.name, world)
    assert path.is_symlink()
    assert entry_in(client, target) == wanted(client)
    assert target.stat().st_mode & 0o777 == 0o640
    disconnect(client.name, world)
    assert (path.is_symlink(), target.read_bytes()) == (True, original)
    assert beside(target) == [target]


@pytest.mark.requirement("client-left-alone")
def test_a_file_that_was_saved_meanwhile_is_not_overwritten(desk: Desk) -> None:
    client, world, path = desk
    written(path, samples(client)["plain"])
    change = plan_connect(client.name, world)
    saved = written(path, samples(client)["comments"])
    with pytest.raises(FileChangedError):
        apply(change, world)
    assert path.read_bytes() == saved
    assert beside(path) == [path]


@pytest.mark.requirement("client-left-alone")
def test_an_entry_is_not_written_if_it_cannot_be_recorded_nor_recorded_if_it_cannot_be_written(cursor: Desk) -> None:
    client, world, path = cursor
    before = written(path, samples(client)["plain"])
    full = replace(world, record=path / "clients.json")  # the folder is a file, so the record cannot be written
    with pytest.raises(StorageError, match="Cannot write"):
        connect(client.name, full)
    assert path.read_bytes() == before
    change = plan_connect(client.name, world)
    written(path, samples(client)["comments"])
    with pytest.raises(FileChangedError):
        apply(change, world)
    assert recorded_connection(world, client.name) is None


@pytest.mark.requirement("client-left-alone")
@pytest.mark.parametrize(("client", "platform"), EVERYWHERE)
def test_a_file_that_is_half_written_is_waited_for(tmp_path: Path, client: Client, platform: str) -> None:
    text = samples(client)["comments"]

    def finish(path: Path) -> None:
        written(path, text)

    world = replace(world_in(tmp_path, platform), settle=finish)
    path = file_of(client, world)
    written(path, text[: len(text) // 2])
    connect(client.name, world)
    assert entry_in(client, path) == wanted(client)
    assert files.backup_of(path).read_bytes() == text.encode()


def test_a_client_that_saves_once_at_the_same_moment_loses_nothing(cursor: Desk) -> None:
    _, world, path = cursor
    texts = [samples(CURSOR)["plain"], samples(CURSOR)["one line"]]
    seen: list[str] = []

    def plan() -> connecting.Change:
        written(path, texts[min(len(seen), 1)])
        change = plan_connect("cursor", world)
        seen.append(change.before or "")
        if len(seen) == 1:
            written(path, texts[1])
        return change

    assert files.retried(lambda: apply(plan(), world)).before == texts[1]
    assert len(seen) == 2
    assert entry_in(CURSOR, path) == wanted(CURSOR)


@pytest.mark.requirement("client-round-trip")
def test_what_was_changed_since_stays_when_our_entry_goes(desk: Desk) -> None:
    client, world, path = desk
    written(path, samples(client)["comments"])
    connect(client.name, world)
    more = client.family.put(path.read_text(encoding="utf-8"), (*client.holder, "later"), {"command": "later"}, "f")
    written(path, more)
    disconnect(client.name, world)
    expected = client.family.put(samples(client)["comments"], (*client.holder, "later"), {"command": "later"}, "f")
    assert client.family.read(path.read_text(encoding="utf-8"), "f") == client.family.read(expected, "f")
    for line in samples(client)["comments"].splitlines():
        assert line.rstrip(",") in path.read_text(encoding="utf-8")


@pytest.mark.requirement("client-drift")
def test_an_entry_of_an_older_place_is_drift_and_is_set_right(desk: Desk) -> None:
    client, world, path = desk
    original = written(path, samples(client)["comments"])
    old = replace(world, command=["/gone/multi-mcp", "stdio"])
    connect(client.name, old)
    state = client_state(client.name, world)
    assert (state.state, state.reason) == ("drifted", "it points to /gone/multi-mcp, which does not exist")
    connect(client.name, world)
    assert entry_in(client, path) == wanted(client)
    disconnect(client.name, world)
    assert path.read_bytes() == original


@pytest.mark.requirement("client-drift")
def test_an_entry_that_vanished_is_drift(desk: Desk) -> None:
    client, world, path = desk
    written(path, samples(client)["plain"])
    connect(client.name, world)
    written(path, samples(client)["plain"])
    state = client_state(client.name, world)
    assert (state.state, state.reason) == ("drifted", "its file has no multi-mcp entry")
    connect(client.name, world)
    assert client_state(client.name, world).state == "connected"
    disconnect(client.name, world)
    assert client_state(client.name, world).state == "not connected"


@pytest.mark.requirement("client-drift")
def test_what_the_user_wrote_into_our_entry_stays_when_it_is_set_right(desk: Desk) -> None:
    client, world, path = desk
    written(path, samples(client)["plain"])
    connect(client.name, replace(world, command=["/gone/multi-mcp", "stdio", "--profile", "office"]))
    text = client.family.put(path.read_text(encoding="utf-8"), (*client.holder, NAME, "note"), "mine", "f")
    written(path, client.family.put(text, (*client.holder, NAME, "disabled"), True, "f"))
    assert client_state(client.name, world).state == "drifted"
    connect(client.name, world)
    state = client_state(client.name, world)
    assert (state.state, state.reason) == ("connected", "multi-mcp is disabled there")
    entry = entry_in(client, path)
    assert isinstance(entry, dict)
    assert (entry["note"], entry["disabled"]) == ("mine", True)
    assert words_of(entry) == [*COMMAND, "--profile", "office"]
    assert not connect(client.name, world).changes


@pytest.mark.parametrize(
    "words",
    [
        ["/old/multi-mcp", "stdio", "--profile", "office"],
        ["/old/multi-mcp-shim", "--profile", "office"],
        ["python3", "-m", "trayapp", "stdio", "--profile", "office"],
        ["multi-mcp stdio --profile office"],
    ],
)
def test_an_entry_of_any_older_form_keeps_its_further_arguments(cursor: Desk, words: list[str]) -> None:
    _, world, path = cursor
    written(path, json.dumps({"mcpServers": {"multi-mcp": {"command": words[0], "args": words[1:]}}}))
    connect("cursor", world)
    entry = entry_in(CURSOR, path)
    assert isinstance(entry, dict)
    assert words_of(entry) == [*COMMAND, "--profile", "office"]


@pytest.mark.requirement("client-foreign-entry")
@pytest.mark.parametrize("entry", [{"command": "docker", "args": ["run", "x"]}, {"url": "https://a.test/mcp"}])
def test_another_server_of_our_name_is_neither_replaced_nor_taken_away_unasked(
    cursor: Desk, entry: dict[str, object]
) -> None:
    _, world, path = cursor
    original = written(path, json.dumps({"mcpServers": {"multi-mcp": entry | {"env": {"A": "b"}}}}, indent=1))
    state = client_state("cursor", world)
    assert (state.state, state.reason.startswith("its file has another server named")) == ("not connected", True)
    with pytest.raises(ForeignEntryError, match="has another server named multi-mcp"):
        connect("cursor", world)
    assert not disconnect("cursor", world).changes
    assert path.read_bytes() == original
    connect("cursor", world, replace=True)
    assert entry_in(CURSOR, path) == wanted(CURSOR)
    disconnect("cursor", world)
    assert path.read_bytes() == original


@pytest.mark.requirement("client-round-trip")
def test_an_old_entry_of_codex_with_an_environment_is_as_it_was_after_connect_and_disconnect(tmp_path: Path) -> None:
    _, world, path = desk_of(BY_NAME["codex"], tmp_path)
    head = "[mcp_servers.multi-mcp]\ncommand = '/old/multi-mcp'\nargs = ['stdio']\n\n"
    text = f'{head}[mcp_servers.multi-mcp.env]\nA = "b"\n'
    original = written(path, text)
    connect("codex", world)
    assert 'A = "b"' in path.read_text()
    disconnect("codex", world)
    assert path.read_bytes() == original


@pytest.mark.requirement("client-round-trip")
@pytest.mark.parametrize("more", ["", "\n[tui]\nx = 1\n"])
@pytest.mark.parametrize("head", ["", "[mcp_servers.multi-mcp]\nstartup_timeout_sec = 9\n"])
def test_what_stood_beside_our_entry_in_codex_stays(tmp_path: Path, more: str, head: str) -> None:
    client, world, path = desk_of(BY_NAME["codex"], tmp_path)
    original = written(path, f'model = "x"\n\n{head}[mcp_servers.multi-mcp.env]\nA = "b"\n')
    before = client.family.read(original.decode(), "f")
    connect("codex", world)
    assert client_state("codex", world).state == "connected"
    written(path, path.read_text() + more)
    disconnect("codex", world)
    left = client.family.read(path.read_text(), "f")
    assert left["mcp_servers"] == before["mcp_servers"]
    assert more or path.read_bytes() == original


OFFICE = OwnEntry("office", ("--profile", "office"))
GITHUB = OwnEntry("github", ("--servers", "github,git"))
# One client stands for all that write the same form. Each of its files is tested with three entries. One file of every
# client is tested with entries in several orders. The tests above cover each file with a single entry.
ALIKE = {(one.family, one.format, one.holder, one.inner, one.fresh, one.entry): one for one in reversed(CLIENTS)}
ENTRIES: list[tuple[Client, str, tuple[OwnEntry, ...]]] = [
    (client, name, (GITHUB, OFFICE, MAIN))
    for client in ALIKE.values()
    for name in samples(client)
    if name != "comments"
]
ENTRIES += [
    (client, "comments", own)
    for client in CLIENTS
    for own in ((GITHUB, OFFICE, MAIN), (MAIN, OFFICE), (OFFICE, MAIN), (OFFICE,))
]


@pytest.mark.requirement("client-entries", "client-round-trip")
@pytest.mark.parametrize(
    ("client", "name", "own"), ENTRIES, ids=[f"{c.name}-{name}-{len(own)}" for c, name, own in ENTRIES]
)
def test_each_profile_has_an_entry_and_disconnect_gives_the_original_bytes(
    tmp_path: Path, client: Client, name: str, own: tuple[OwnEntry, ...]
) -> None:
    world = world_in(tmp_path)
    path = file_of(client, world)
    original = written(path, samples(client)[name])
    for one in own:
        assert connect(client.name, world, one).changes
        assert not connect(client.name, world, one).changes
        assert files.backup_of(path).read_bytes() == original
    document = client.family.read(path.read_text(encoding="utf-8"), "f")
    for one in own:
        entry = lookup(document, (*client.holder, one.name))
        assert words_of(entry) == [*COMMAND, *(one.options or ())]
        assert entry.get("name", one.name) == one.name
    assert client_state(client.name, world).state == "connected"
    assert disconnect(client.name, world).changes
    assert path.read_bytes() == original
    assert beside(path) == [path]
    assert client_state(client.name, world).state == "not connected"


@pytest.mark.requirement("client-entries")
def test_an_entry_takes_the_options_that_are_asked_for_and_keeps_them(cursor: Desk) -> None:
    _, world, path = cursor
    original = written(path, '{"mcpServers": {}}')
    connect("cursor", world)
    assert connect("cursor", world, OwnEntry(NAME, ("--profile", "office"))).changes
    assert json.loads(path.read_text())["mcpServers"][NAME]["args"] == [*COMMAND[1:], "--profile", "office"]
    assert not connect("cursor", world).changes, "a plain connect keeps them"
    disconnect("cursor", world)
    assert path.read_bytes() == original


@pytest.mark.requirement("client-entries", "client-drift")
def test_an_entry_of_a_profile_that_vanished_is_drift(cursor: Desk) -> None:
    _, world, path = cursor
    written(path, '{"mcpServers": {}}')
    connect("cursor", world, MAIN)
    connect("cursor", world, OFFICE)
    text = path.read_text()
    path.write_text(CURSOR.family.drop(text, ("mcpServers", "office"), "f"))
    state = client_state("cursor", world)
    assert (state.state, state.reason) == ("drifted", "its file has no multi-mcp entry named office")


@pytest.mark.requirement("client-entries", "client-foreign-entry")
def test_another_server_of_the_entrys_name_stays_unless_it_is_replaced(cursor: Desk) -> None:
    _, world, path = cursor
    original = written(path, '{"mcpServers": {"office": {"command": "x"}}}')
    with pytest.raises(ForeignEntryError, match="another server named office: x"):
        connect("cursor", world, OFFICE)
    connect("cursor", world, MAIN)
    disconnect("cursor", world)
    assert path.read_bytes() == original
    assert connect("cursor", world, OFFICE, replace=True).changes
    disconnect("cursor", world)
    assert path.read_bytes() == original


def test_options_behind_the_shim_are_the_users_own(cursor: Desk) -> None:
    _, world, path = cursor
    words = [*COMMAND, "--expose", "tools"]
    entry = {"command": words[0], "args": words[1:]}
    original = written(path, json.dumps({"mcpServers": {"multi-mcp": entry}}))
    assert client_state("cursor", world).state == "connected"
    assert not connect("cursor", world).changes
    assert path.read_bytes() == original


def test_an_entry_that_is_no_mapping_is_replaced(cursor: Desk) -> None:
    _, world, path = cursor
    written(path, '{"mcpServers": {"multi-mcp": "oops", "other": {}}}')
    assert client_state("cursor", world).reason == "its entry is not a mapping"
    connect("cursor", world)
    assert entry_in(CURSOR, path) == wanted(CURSOR)


def test_an_entry_by_address_becomes_the_shim(cursor: Desk) -> None:
    _, world, path = cursor
    written(path, '{"mcpServers": {"multi-mcp": {"url": "http://127.0.0.1:7461/mcp", "note": 1}}}')
    connect("cursor", world)
    assert entry_in(CURSOR, path) == {"note": 1, "type": "stdio", "command": COMMAND[0], "args": ["stdio"]}


def test_an_entry_that_cline_wrote_in_its_own_form_is_known_and_set_right(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    path = file_of(BY_NAME["cline"], world)
    transport = {"type": "stdio", "command": COMMAND[0], "args": COMMAND[1:]}
    written(path, json.dumps({"mcpServers": {"multi-mcp": {"transport": transport}}}))
    assert client_state("cline", world).state == "connected"
    written(path, json.dumps({"mcpServers": {"multi-mcp": {"transport": {**transport, "command": "/gone/multi-mcp"}}}}))
    assert client_state("cline", world).state == "drifted"
    connect("cline", world)
    assert entry_in(BY_NAME["cline"], path) == wanted(BY_NAME["cline"])


def test_a_dry_run_changes_nothing_and_shows_the_difference(cursor: Desk) -> None:
    _, world, path = cursor
    original = written(path, samples(CURSOR)["plain"])
    change = plan_connect("cursor", world)
    assert any(line.startswith("+") and '"multi-mcp"' in line for line in change.diff())
    assert not any(line.startswith("-") and "other" not in line for line in change.diff()[2:])
    assert path.read_bytes() == original
    assert not plan_disconnect("cursor", world).changes
    assert recorded_connection(world, "cursor") is None


def test_found_clients_are_those_that_are_here_in_the_order_of_the_table(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    for name in ("goose", "codex", "cursor"):
        file_of(BY_NAME[name], world)
    connect("codex", world)
    assert [(state.name, state.state) for state in found_clients(world)] == [
        ("codex", "connected"), ("cursor", "not connected"), ("goose", "not connected"),
    ]  # fmt: skip


def test_a_wrong_name_is_a_usage_error_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Did you mean cursor"):
        connect("curser", world_in(tmp_path))


def test_a_backup_is_never_of_a_file_with_our_entry_in_it(cursor: Desk) -> None:
    _, world, path = cursor
    original = written(path, samples(CURSOR)["plain"])
    connect("cursor", replace(world, command=["/gone/multi-mcp", "stdio"]))
    connect("cursor", world)
    assert files.backup_of(path).read_bytes() == original


def test_a_note_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    world.record.parent.mkdir()
    for data in (
        b"{",
        b"[]",
        b'{"version": 9}',
        b'{"version": 1, "connected": 5}',
        b'{"version":1,"connected":{"cursor":5}}',
    ):
        world.record.write_bytes(data)
        assert recorded_connection(world, "cursor") is None
    file_of(CURSOR, world)
    connect("cursor", world)
    assert recorded_connection(world, "cursor") is not None
