"""The catalog on disk: exact and atomic storage, distrust of contents, and changes that invalidate an entry."""

from __future__ import annotations

import os
import stat
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.strategies import json_objects, servers
from trayapp.catalog.cache import (
    SOUND_RULES,
    CacheEntry,
    file_name,
    load,
    load_all,
    save,
    sweep,
    with_sound,
)
from trayapp.catalog.schema.tool import served_tool
from trayapp.model.config import ServerConfig, launch_hash
from trayapp.model.errors import StorageError
from trayapp.model.offer import Offer
from trayapp.wire.jsonio import dumps, loads

DAY_S = 86_400.0
NOW = 1_800_000_000.0
posix = pytest.mark.skipif(os.name != "posix", reason="modes and pipes are POSIX")


def entry(server: str = "github", offer: Offer | None = None, saved_at: float = NOW) -> CacheEntry:
    return CacheEntry(server, "h1", saved_at, offer or Offer(tools=({"name": "get", "x": 1},), protocol="2025-11-25"))


BASE = ServerConfig("s", command="run", env={"A": "1"}, headers={"H": "1"}, url=None)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"lifecycle": "eager"}, id="cache-10"),
        pytest.param({"request_timeout": 5.0}, id="cache-12"),
        pytest.param({"title": "T"}, id="cache-13"),
        pytest.param({"direct_tools": True}, id="cache-14"),
        pytest.param({"disabled": True}, id="cache-17"),
        pytest.param({"include_tools": ("a",)}, id="cache-26"),
        pytest.param({"exclude_tools": ("a",)}, id="cache-27"),
    ],
)
def test_settings_that_do_not_change_what_is_launched_keep_the_entry(change: dict[str, Any]) -> None:
    assert launch_hash(replace(BASE, **change)) == launch_hash(BASE)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"env": {"A": "2"}}, id="cache-20"),
        pytest.param({"cwd": "/x"}, id="cache-21"),
        pytest.param({"headers": {"H": "2"}}, id="cache-22"),
        pytest.param({"command": None, "url": "http://x/"}, id="cache-24"),
        pytest.param({"command": "other"}, id="cache-25"),
    ],
)
def test_settings_that_change_what_is_launched_end_the_entry(change: dict[str, Any]) -> None:
    assert launch_hash(replace(BASE, **change)) != launch_hash(BASE)


def test_items_come_back_exactly(tmp_path: Path) -> None:
    item = {"z": 2**70, "name": "get", "a": {"deep": [1.5, None, True, "\ud800", "名前"]}, "unknown": {}}
    offer = Offer((item,), (item,), (item,), (item,), {"tools": {}}, {"name": "x"}, "Do.", "2026-07-28", 5)
    save(tmp_path, entry(offer=offer))
    loaded = load(tmp_path, "github")
    assert loaded == entry(offer=offer)
    assert loaded is not None
    assert list(loaded.offer.tools[0]) == ["z", "name", "a", "unknown"]


@given(servers, st.lists(json_objects, max_size=3), st.none() | json_objects, st.none() | st.text())
def test_any_offer_of_any_server_survives_the_round_trip(
    server: str, items: list[dict[str, Any]], facts: dict[str, Any] | None, instructions: str | None
) -> None:
    offer = Offer(tuple(items), resources=tuple(items), capabilities=facts, instructions=instructions)
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder), entry(server, offer))
        assert load(Path(folder), server) == entry(server, offer)


@given(servers)
def test_a_files_name_stays_in_its_folder(server: str) -> None:
    name = file_name(server)
    assert set(name.removesuffix(".json").lower()) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
    assert len(name) <= 128


def test_servers_that_differ_in_case_or_in_a_late_letter_have_files_of_their_own() -> None:
    alike = ["a", "A", "a" * 300, "a" * 299 + "b", "../a", ".._a", "con", "", "-"]
    assert len({file_name(server).lower() for server in alike}) == len(alike)


def test_all_servers_are_loaded_in_the_order_asked_and_without_the_unknown(tmp_path: Path) -> None:
    for server in ("a", "b", "c"):
        save(tmp_path, entry(server))
    assert list(load_all(tmp_path, ["c", "new", "a"])) == ["c", "a"]
    assert load_all(tmp_path / "absent", ["a"]) == {}


@pytest.mark.requirement("cat-corrupt")
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"{", id="cache-31"),
        b"",
        b"null",
        b"[]",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"version": 1}',
        b'{"version": 2, "server": "github"}',
    ],
)
def test_a_file_that_is_not_ours_counts_as_absent(tmp_path: Path, data: bytes) -> None:
    (tmp_path / file_name("github")).write_bytes(data)
    assert load(tmp_path, "github") is None
    save(tmp_path, entry())
    assert load(tmp_path, "github") == entry()


@pytest.mark.requirement("cat-corrupt")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"version":1', b'"version":2'),
        (b'"server":"github"', b'"server":"gitlab"'),
        (b'"tools":[{', b'"tools":[3,{'),
        (b'"prompts":[]', b'"prompts":null'),
        (b'"hash":"h1"', b'"hash":null'),
        (b'"saved_at":1800000000.0', b'"saved_at":true'),
        (b'"capabilities":null', b'"capabilities":[]'),
        (b'"instructions":null', b'"instructions":0'),
        (b'"ttl_ms":null', b'"ttl_ms":"x"'),
        (b'"protocol":"2025-11-25",', b""),
    ],
)
def test_a_file_of_another_shape_counts_as_absent(tmp_path: Path, old: bytes, new: bytes) -> None:
    save(tmp_path, entry())
    path = tmp_path / file_name("github")
    data = path.read_bytes()
    assert data.count(old) == 1
    path.write_bytes(data.replace(old, new))
    assert load(tmp_path, "github") is None


def test_each_truncation_of_a_file_counts_as_absent(tmp_path: Path) -> None:
    save(tmp_path, entry())
    path = tmp_path / file_name("github")
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        assert load(tmp_path, "github") is None


def test_a_file_past_the_limit_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / file_name("github")).open("wb") as file:
        file.truncate(65 << 20)  # a sparse file, which takes no space
    assert load(tmp_path, "github") is None


@posix
def test_a_pipe_or_a_folder_in_a_files_place_does_not_hang_the_start(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / file_name("pipe"))
    (tmp_path / file_name("folder")).mkdir()
    assert load_all(tmp_path, ["pipe", "folder"]) == {}


@posix
def test_the_file_is_the_users_alone(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    save(folder, entry())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / file_name("github")).stat().st_mode) == 0o600


@pytest.mark.requirement("fault-disk-full")
def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    save(tmp_path, entry())
    with pytest.raises(StorageError):
        save(tmp_path, entry(offer=Offer(tools=({"name": object()},))))
    (tmp_path / file_name("taken")).mkdir()
    with pytest.raises(StorageError):
        save(tmp_path, entry("taken"))
    assert load(tmp_path, "github") == entry()
    assert {path.name for path in tmp_path.iterdir()} == {file_name("github"), file_name("taken")}


def _save_often(folder: Path, server: str) -> None:
    for size in range(60):
        save(folder, entry(server, Offer(tools=({"name": "x" * size * 100},) * size)))


def test_cache_30_processes_that_write_at_once_tear_nothing(tmp_path: Path) -> None:
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        writers = [pool.submit(_save_often, tmp_path, server) for server in ("a", "b", "b")]
        while not all(writer.done() for writer in writers):
            for server in load_all(tmp_path, ["a", "b"]).values():
                assert len(server.offer.tools) in range(60)
            assert not [p for p in ("a", "b") if (tmp_path / file_name(p)).exists() and load(tmp_path, p) is None]
        for writer in writers:
            writer.result()
    assert {name: len(e.offer.tools) for name, e in load_all(tmp_path, ["a", "b"]).items()} == {"a": 59, "b": 59}
    assert len(list(tmp_path.iterdir())) == 2


# -- the launch hash and the entry -----------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [{"direct_tools": True}, {"title": "x"}, {"tools": {}}, {"include_tools": ("a",)}])
def test_settings_of_the_view_leave_an_entry_valid(change: dict[str, Any]) -> None:
    """An entry holds the server's own lists, so settings that only change what clients see do not affect it."""
    server = ServerConfig("s", command="c")
    assert launch_hash(replace(server, **change)) == launch_hash(server)


@pytest.mark.requirement("cat-no-secrets")
def test_a_rotated_secret_behind_a_variable_keeps_the_entry(tmp_path: Path) -> None:
    """Variables count by name only, and the file contains neither their names nor their values."""
    server = ServerConfig("s", url="https://h/mcp", auth="bearer", bearer_token_env="TOKEN", headers={"X": "${KEY}"})
    entry = CacheEntry("s", launch_hash(server), 1_000.0, Offer(tools=({"name": "own.name"},)))
    save(tmp_path, entry)
    text = (tmp_path / file_name("s")).read_text()
    assert "TOKEN" not in text
    assert "KEY" not in text
    assert load(tmp_path, "s") == entry


def test_files_that_nobody_will_read_are_cleared_away(tmp_path: Path) -> None:
    old, young = NOW - 31 * DAY_S, NOW - 29 * DAY_S
    for server, moment in (("gone", old), ("gone-lately", young), ("configured", old)):
        save(tmp_path, entry(server))
        os.utime(tmp_path / file_name(server), (moment, moment))
    others = {".abc.tmp": NOW - 2 * DAY_S, ".def.tmp": NOW - 60, "notes.txt": old, ".hidden": old}
    for name, moment in others.items():
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (moment, moment))
    (tmp_path / "folder.json").mkdir()
    os.utime(tmp_path / "folder.json", (old, old))
    sweep(tmp_path, ["configured"], NOW)
    left = {path.name for path in tmp_path.iterdir()}
    ours = {file_name("gone-lately"), file_name("configured")}
    assert left == {*ours, ".def.tmp", "notes.txt", ".hidden", "folder.json"}


def test_clearing_away_in_no_folder_or_against_the_systems_will_harms_nothing(tmp_path: Path) -> None:
    sweep(tmp_path / "none", [], NOW)
    (tmp_path / "file").write_text("x")
    sweep(tmp_path / "file", [], NOW)


@pytest.mark.requirement("expose-sound")
@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"rules": SOUND_RULES, "tools": [0]}, {0}),
        ({"rules": SOUND_RULES, "tools": []}, set()),
        ({"rules": SOUND_RULES + "0", "tools": [0]}, None),
        ({"rules": SOUND_RULES}, None),
        ({"rules": SOUND_RULES, "tools": [0, "a", None]}, {0}),
        ([], None),
        (None, None),
    ],
)
def test_marks_of_other_rules_are_not_believed(tmp_path: Path, written: Any, read: set[int] | None) -> None:
    save(tmp_path, entry())
    path = tmp_path / file_name("github")
    path.write_bytes(dumps({**loads(path.read_bytes()), "sound": written}))
    found = load(tmp_path, "github")
    assert found is not None
    assert found == entry()._replace(sound=None if read is None else frozenset(read))


@given(json_objects, json_objects)
def test_a_tool_that_is_said_to_be_sound_is_served_as_it_is(schema: dict[str, Any], more: dict[str, Any]) -> None:
    for item in (
        {"name": "x", "inputSchema": schema},
        {**more, "name": "x", "inputSchema": {**schema, "type": "object"}},
    ):
        marked = with_sound(entry(offer=Offer(tools=(item,))))
        if marked.sound:
            assert served_tool(item, "y") == {**item, "name": "y"}
