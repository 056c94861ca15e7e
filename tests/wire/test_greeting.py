"""Tests of the endpoint file: complete or absent, private, and ignored if it is invalid."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.model.errors import StorageError
from trayapp.wire.endpoint import write_endpoint
from trayapp.wire.greeting import GREETING, Endpoint, Hello, endpoint_file, greeting, read_endpoint

ENDPOINT = Endpoint(
    pid=42, version="1.2", socket="/s", port=7, token="t", started_at=1.5, http_url="http://127.0.0.1:7461/mcp"
)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_endpoint(str(tmp_path), ENDPOINT)
    assert read_endpoint(str(tmp_path)) == ENDPOINT
    write_endpoint(str(tmp_path), Endpoint(43, "2", ""))
    assert read_endpoint(str(tmp_path)) == Endpoint(43, "2", "")
    assert [path.name for path in tmp_path.iterdir()] == ["endpoint.json"]


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
@pytest.mark.requirement("path-modes")
@pytest.mark.parametrize("left_behind", [False, True])
def test_it_is_for_this_user_only(tmp_path: Path, left_behind: bool) -> None:
    if left_behind:  # by a crash, or by an attacker who wants to read the token
        (tmp_path / "endpoint.new").touch()
        (tmp_path / "endpoint.new").chmod(0o644)
    before = os.umask(0)
    try:
        write_endpoint(str(tmp_path), ENDPOINT)
    finally:
        os.umask(before)
    assert stat.S_IMODE(endpoint_file(str(tmp_path)).stat().st_mode) == 0o600


def test_a_reader_never_sees_half_of_it(tmp_path: Path) -> None:
    write_endpoint(str(tmp_path), ENDPOINT)
    ended = threading.Event()
    seen: set[int | None] = set()

    def read() -> None:
        while not ended.is_set():
            endpoint = read_endpoint(str(tmp_path))
            seen.add(endpoint.pid if endpoint else None)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(300):
        write_endpoint(str(tmp_path), Endpoint(number, "x" * 50_000, ""))
    ended.set()
    reader.join()
    assert None not in seen


@pytest.mark.requirement("fault-disk-full")
def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="Cannot write"):
        write_endpoint(str(tmp_path / "missing"), ENDPOINT)
    (tmp_path / "endpoint.json").mkdir()
    with pytest.raises(StorageError):
        write_endpoint(str(tmp_path), ENDPOINT)
    assert [path.name for path in tmp_path.iterdir()] == ["endpoint.json"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"null",
        b"5",
        b'"pid"',
        b'["pid"]',
        b"{}",
        b'{"pid":1}',
        b'{"pid":"1","version":"","socket":""}',
        b'{"pid":true,"version":"","socket":""}',
        b'{"pid":-1,"version":"","socket":""}',
        b'{"pid":1,"version":1,"socket":""}',
        b'{"pid":1,"version":"","socket":null}',
        b'{"pid":1,"version":"","socket":"","port":"x"}',
        b'{"pid":1,"version":"","socket":"","port":{}}',
        b'{"pid":1,"version":"","socket":"","token":1}',
        b'{"pid":1,"version":"","socket":"","started_at":"now"}',
        b'{"pid":1,"version":"","socket":"","http_url":[1]}',
        b"\xff\xfe\x00",
        b"[" * 100_000,
    ],
)
def test_a_file_that_is_none_of_ours_is_no_endpoint(tmp_path: Path, text: bytes) -> None:
    endpoint_file(str(tmp_path)).write_bytes(text)
    assert read_endpoint(str(tmp_path)) is None


def test_no_file_is_no_endpoint(tmp_path: Path) -> None:
    assert read_endpoint(str(tmp_path)) is None
    assert read_endpoint(str(tmp_path / "missing")) is None
    endpoint_file(str(tmp_path)).mkdir()
    assert read_endpoint(str(tmp_path)) is None


def test_fields_of_a_later_version_are_passed_over(tmp_path: Path) -> None:
    endpoint_file(str(tmp_path)).write_text('{"pid":1,"version":"9","socket":"/s","colour":"blue"}')
    assert read_endpoint(str(tmp_path)) == Endpoint(1, "9", "/s")


@given(st.dictionaries(st.text(), st.text() | st.integers()), st.text())
def test_the_first_line_is_one_line_whatever_it_says(options: dict[str, Any], token: str) -> None:
    line = greeting(Hello("session", options), token)
    assert line.startswith(GREETING)
    assert line.index(b"\n") == len(line) - 1
    said = json.loads(line[len(GREETING) :])
    expected = {"kind": "session", **options}
    assert said == ({**expected, "token": token} if token else expected)
