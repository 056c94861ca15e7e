"""Tests of searching, reading and caching a registry, whose answers are never trusted."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.fixtures.registry import FakeRegistry, entry, registry
from trayapp.model.errors import MultiMcpError
from trayapp.service import web
from trayapp.service.registry import FRESH_S, KEPT_S, LARGEST, PAGES_MOST, SEARCH_S, ServerRegistry


class Clock:
    """A clock that advances by `step` seconds at each call."""

    def __init__(self, step: float = 0.0) -> None:
        self.time = 1_800_000_000.0
        self.step = step

    def __call__(self) -> float:
        self.time += self.step
        return self.time


def named(server: FakeRegistry, folder: Path, clock: Clock | None = None) -> ServerRegistry:
    return ServerRegistry(server.address, folder, now=clock or Clock())


def queries(server: FakeRegistry) -> list[dict[str, str]]:
    return [{name: values[-1] for name, values in parse_qs(urlsplit(path).query).items()} for path in server.asked]


@pytest.mark.requirement("registry-find")
def test_all_pages_are_read_and_the_best_comes_first(tmp_path: Path) -> None:
    rows = [entry(f"io.github.someone{number}/files-{number}") for number in range(250)]
    with registry(*rows, entry("com.example/files", description="Reads files")) as server:
        found = named(server, tmp_path).find("Files")
        assert len(found.entries) == 251
        assert found.entries[0].name == "com.example/files"
        assert [query.get("cursor") for query in queries(server)] == [None, "at-100", "at-200"]
        assert {query["version"] for query in queries(server)} == {"latest"}
        assert found.cut == ""


@pytest.mark.requirement("registry-find")
def test_an_exact_match_behind_too_many_others_is_found_and_what_was_not_read_is_said(tmp_path: Path) -> None:
    many = [entry(f"io.github.someone{number}/my-wiki") for number in range(25)]
    named_so = [entry(f"io.github.someone{number}/wiki-{number}") for number in range(15)]
    rows = [
        *many,
        *named_so,
        entry("zz.acme/wiki"),
        entry("zz.acme/wiki-mcp"),
        entry("zz.old/wiki", status="deprecated"),
    ]
    with registry(*rows) as server:
        server.page_most = 1
        found = named(server, tmp_path).find("Wiki")
        assert [one.name for one in found.entries[:2]] == ["zz.acme/wiki", "io.github.someone0/my-wiki"]
        assert len(found.entries) == PAGES_MOST + 18
        assert (
            found.cut == "Only the first 10 names with wiki were read, and all names whose last part begins with wiki"
        )
        asked = len(server.asked)
        assert named(server, tmp_path).find("wiki").cut == found.cut  # the cached result is marked as cut, too
        assert len(server.asked) == asked
        server.rows = [*rows[:-3], *rows, *rows]
        assert named(server, tmp_path / "more").find("wiki").cut == "Only the first 10 names with wiki were read"
        whole = named(server, tmp_path / "whole").find("ZZ.acme/wiki")
        assert (whole.entries[0].name, whole.cut) == ("zz.acme/wiki", "")


@pytest.mark.requirement("registry-find")
def test_a_whole_name_is_asked_for_by_itself_behind_too_many_others(tmp_path: Path) -> None:
    with registry(*(entry(f"a.a/wiki-{number}") for number in range(11)), entry("a.a/wiki")) as server:
        server.page_most = 1
        found = named(server, tmp_path).find("a.a/wiki")
        assert (found.entries[0].name, found.cut) == ("a.a/wiki", "Only the first 10 names with a.a/wiki were read")


@pytest.mark.requirement("registry-find")
def test_a_slow_registry_is_not_asked_for_page_after_page(tmp_path: Path) -> None:
    clock = Clock(SEARCH_S * 0.6)
    with registry(*(entry(f"a.a/x-{number}") for number in range(5))) as server:
        server.page_most = 1
        found = named(server, tmp_path, clock).find("x")
    assert found.cut == "Only the first 2 names with x were read"


@pytest.mark.requirement("registry-cached")
@pytest.mark.parametrize(
    ("sends", "why"),
    [(b"", "It does not answer within 0.1 s"), (b"x", "It ends the connection without a valid answer")],
)
def test_a_registry_that_stays_silent_is_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sends: bytes, why: str
) -> None:
    monkeypatch.setattr(web, "STEP_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        answered = pool.submit(_accepted, listener, sends)
        silent = ServerRegistry(f"http://127.0.0.1:{listener.getsockname()[1]}", tmp_path)
        with pytest.raises(MultiMcpError, match=rf"Cannot query the registry .*: {why}") as caught:
            silent.find("x")
        assert "Try again later" in caught.value.hint
        answered.result().close()


def _accepted(listener: socket.socket, sends: bytes) -> socket.socket:
    """Accept a connection and return it. Send `sends` and close it, or stay silent if `sends` is empty."""
    connection, _ = listener.accept()
    if sends:
        connection.recv(4096)
        connection.sendall(sends)
        connection.close()
    return connection


@pytest.mark.requirement("registry-find")
def test_of_several_words_each_is_asked_for_and_what_fits_most_comes_first(tmp_path: Path) -> None:
    rows = (
        entry("io.github.a/postgres"), entry("io.github.b/database"), entry("io.github.c/other"),
        entry("io.github.d/pg-database", description="A database server for Postgres"),
    )  # fmt: skip
    with registry(*rows) as server:
        found = named(server, tmp_path).find("postgres database")
    assert [one.name for one in found.entries] == [
        "io.github.d/pg-database",
        "io.github.a/postgres",
        "io.github.b/database",
    ]


@pytest.mark.requirement("registry-status")
def test_deprecated_and_deleted_ones_are_told_apart_and_come_last(tmp_path: Path) -> None:
    old = entry("io.github.a/x-old", status="deprecated", why="Use b\x1b[2J", packages=[])
    rows = (
        old,
        entry("io.github.b/x"),
        entry("io.github.c/x-odd", status="burning"),
        entry("io.github.d/x-gone", status="deleted"),
    )
    with registry(*rows) as server:
        found = named(server, tmp_path)
        told = [(one.name, one.status, one.status_message) for one in found.find("x").entries]
        gone = found.entry("io.github.d/x-gone").entries[0]
    assert told == [
        ("io.github.b/x", "active", ""),
        ("io.github.a/x-old", "deprecated", "Use b"),
        ("io.github.c/x-odd", "deprecated", ""),
    ]
    assert gone.status == "deleted"


@pytest.mark.requirement("registry-cached")
def test_an_answer_is_kept_then_completed_by_what_changed_and_stands_in_for_a_registry_that_is_away(
    tmp_path: Path,
) -> None:
    clock = Clock()
    first, second = entry("io.github.a/x", updated="2026-01-02T00:00:00Z"), entry("io.github.b/x")
    with registry(first, second) as server:
        found = named(server, tmp_path, clock)
        assert len(found.find("x").entries) == 2
        assert len(found.find("x").entries) == 2
        assert len(server.asked) == 1
        server.rows = [
            entry("io.github.a/x", "2.0.0", updated="2026-03-01T00:00:00Z"),
            entry("io.github.b/x", status="deleted", updated="2026-03-01T00:00:00Z"),
            entry("io.github.c/x", updated="2026-03-01T00:00:00Z"),
        ]
        clock.time += FRESH_S + 1
        told = {one.name[-3]: (one.version, one.status) for one in found.find("x").entries}
        assert queries(server)[-1]["updated_since"] == "2026-01-02T00:00:00Z"
        assert told == {"a": ("2.0.0", "active"), "b": ("1.0.0", "deleted"), "c": ("1.0.0", "active")}
        clock.time += KEPT_S + 1
        found.find("x")
        assert "updated_since" not in queries(server)[-1]
        server.status = 503
        clock.time += FRESH_S + 1
        old = found.find("x")
        assert (len(old.entries), old.old_s, old.why) == (2, FRESH_S + 1, "It answers with HTTP status 503")
        with pytest.raises(
            MultiMcpError, match=r"Cannot query the registry .*: It answers with HTTP status 503"
        ) as caught:
            found.find("never asked before")
        assert "Try again later" in caught.value.hint
    with pytest.raises(MultiMcpError, match=r"Cannot query the registry .*: Connection refused"):
        found.find("something else")
    assert len(found.find("x").entries) == 2


@pytest.mark.requirement("registry-hostile")
@pytest.mark.parametrize(
    "raw",
    [
        b"", b"<html>", b"[]", b"7", b"null", b"{}", b'{"servers": 7}', b'{"servers": {"a": 1}}', b"\xff\xfe",
        b"[" * 100_000,
        b'{"servers": [' + b"1," * 10 + b"1]" + b" " * LARGEST + b"}",
    ],
    ids=lambda raw: repr(raw[:16]),
)  # fmt: skip
def test_an_answer_that_is_none_is_one_clear_error(tmp_path: Path, raw: bytes) -> None:
    with registry() as server:
        server.raw = raw
        found = named(server, tmp_path)
        for ask in (partial(found.find, "x"), partial(found.entry, "io.github.a/b")):
            with pytest.raises(MultiMcpError) as caught:
                ask()
            assert caught.value.hint


ODD: tuple[Any, ...] = (
    None, 7, "x", [], {}, {"server": 7}, {"server": {}}, {"server": {"name": 7}}, {"server": {"name": "no-slash x"}},
    {"server": {"name": "../../etc/x passwd"}}, {"server": {"name": "a/" + "x" * 5000}},
    {"server": {"name": "a/x\x1b[2J"}},
    {"server": {"name": "io.github.a/x-big", "description": "y" * 2_000_000}},
)  # fmt: skip
USABLE: tuple[Any, ...] = (
    {"server": {"name": "io.github.a/x1", "title": 7, "description": ["a"], "version": {}, "packages": 7,
                "remotes": "x"}},
    {"server": {"name": "io.github.a/x2", "description": "\x1b]0;own\x07 a\u202eb\nc" + "z" * 900}, "_meta": []},
    {"server": {"name": "io.github.a/x3", "packages": [7, None, {"registryType": 7}]},
     "_meta": {"io.modelcontextprotocol.registry/official": 7}},
    {"server": {"name": "../..", "version": "../../../etc"}},
)  # fmt: skip


@pytest.mark.requirement("registry-hostile")
def test_hostile_entries_are_left_out_or_become_bounded_text(tmp_path: Path) -> None:
    with registry() as server:
        server.raw = json.dumps({"servers": [*ODD, *USABLE], "metadata": {"nextCursor": 7}}).encode()
        found = named(server, tmp_path / "cache").find("x").entries
    assert {one.name for one in found} == {"io.github.a/x1", "io.github.a/x2", "io.github.a/x3", "../.."}
    for one in found:
        text = (
            f"{one.name}{one.title}{one.version}{one.description}{one.status_message}{one.updated}{''.join(one.ways)}"
        )
        assert text.isprintable()
        assert len(text) < 1000
    assert {path.parent for path in tmp_path.rglob("*.json")} == {tmp_path / "cache"}


@pytest.mark.requirement("registry-hostile")
def test_an_answer_about_another_server_is_not_taken_and_a_cursor_that_comes_again_ends(tmp_path: Path) -> None:
    with registry() as server:
        server.raw = json.dumps(entry("io.github.evil/y")).encode()
        with pytest.raises(MultiMcpError, match="is not valid"):
            named(server, tmp_path).entry("io.github.a/x")
        server.raw = json.dumps({"servers": [entry("io.github.a/x")], "metadata": {"nextCursor": "again"}}).encode()
        assert len(named(server, tmp_path).find("x").entries) == 1
        assert len(server.asked) == 3
