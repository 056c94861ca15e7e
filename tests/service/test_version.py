"""Tests of the check for a newer version."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from trayapp.cli.update import look
from trayapp.model.config import Settings
from trayapp.model.errors import MultiMcpError
from trayapp.service.version import Release, is_newer, newest, releases_address


class Releases(HTTPServer):
    """A server that sends the same answer to every request and records the requests."""

    def __init__(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.body, self.headers = status, body, headers
        self.asked: list[tuple[str, dict[str, str]]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/latest"


class Handler(BaseHTTPRequestHandler):
    server: Releases

    def do_GET(self) -> None:
        self.server.asked.append((self.path, dict(self.headers)))
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, to keep the test output clean."""


@contextmanager
def releases(answer: object, status: int = 200, **headers: str) -> Iterator[Releases]:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    with Releases(status, body, headers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("other", "mine", "newer"),
    [
        ("0.2.0", "0.1.0", True),
        ("v0.10.0", "0.9.9", True),
        ("1.0", "1.0.0", False),
        ("0.1.0", "0.1.0", False),
        ("0.0.9", "0.1.0", False),
        ("0.2.0rc1", "0.1.0", False),
        ("nightly", "0.1.0", False),
        ("", "0.1.0", False),
    ],
)
def test_only_a_finished_version_above_ours_is_newer(other: str, mine: str, newer: bool) -> None:
    assert is_newer(other, mine) is newer


@pytest.mark.requirement("update-notice")
def test_nobody_is_asked_unless_the_user_switched_it_on() -> None:
    with releases({"tag_name": "v99.0.0"}) as server:
        assert look(Settings(), server.address)["asked"] is False
        assert server.asked == []
        found = look(Settings(update_check=True), server.address)
        assert found["newer"] == {"version": "99.0.0", "url": ""}
        assert len(server.asked) == 1


@pytest.mark.requirement("update-notice")
def test_the_question_holds_nothing_of_the_user() -> None:
    with releases({"tag_name": "v99.0.0"}) as server:
        newest(server.address)
    ((path, headers),) = server.asked
    assert path == "/latest"
    assert {name.lower() for name in headers} == {"accept", "user-agent", "host", "connection", "accept-encoding"}


def test_only_a_page_of_the_same_house_is_shown() -> None:
    for page, shown in (("https://evil.example/x", ""), ("javascript:x", ""), (7, "")):
        with releases({"tag_name": "2", "html_url": page}) as server:
            assert newest(server.address) == Release("2", shown)


@pytest.mark.parametrize(
    ("answer", "status"), [(b"<html>", 200), ([], 200), ({"name": 1}, 200), ({}, 404), ({}, 500), (b"", 200)]
)
def test_a_useless_answer_is_one_error(answer: object, status: int) -> None:
    with releases(answer, status) as server, pytest.raises(MultiMcpError, match="Cannot check for"):
        newest(server.address)


def test_a_way_to_an_address_without_https_is_not_gone() -> None:
    with releases({}, 302, Location="http://127.0.0.1:9/other") as server, pytest.raises(MultiMcpError):
        newest(server.address)


def test_a_program_that_nobody_published_asks_nobody(tmp_path: Path) -> None:
    assert releases_address(tmp_path) == ""
    (tmp_path / "releases").write_text("http://plain.example/latest\n")
    assert releases_address(tmp_path) == ""
    (tmp_path / "releases").write_text("https://api.example/latest\n")
    assert releases_address(tmp_path) == "https://api.example/latest"
    assert look(Settings(update_check=True), "")["asked"] is False
