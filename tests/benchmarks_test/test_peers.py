"""The command lines of peers, and the reasons taken from an installer's output."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.benchmarks.client import BrokenError
from tests.benchmarks.installs import reason
from tests.benchmarks.peers import PEERS, SERVER, Peer, config_text, filled, free_port, listening, running
from tests.benchmarks.workloads import trivial
from tests.fixtures.odd import alive

ONE = {"null": {"command": "python", "args": ["-I", "a b.py"]}}
TWO = {**ONE, "other": {"command": "node", "args": ["{port}"]}}
CONFIG = Path("home", "mcp.json")


@pytest.mark.parametrize(
    ("words", "argv"),
    [
        (("run", "{config}"), ["run", str(CONFIG)]),
        (("--port", "{port}", "{url}"), ["--port", "8", "http://127.0.0.1:8/mcp"]),
        (("--", SERVER), ["--", "python", "-I", "a b.py"]),
        (("--stdio", "{command}"), ["--stdio", "python -I 'a b.py'"]),
        (("-e", "import { a } from 'b'"), ["-e", "import { a } from 'b'"]),
        (("{unknown}",), ["{unknown}"]),
    ],
)
def test_words_are_filled(words: tuple[str, ...], argv: list[str]) -> None:
    assert filled(words, ONE, CONFIG, 8, "/mcp") == argv


def test_a_servers_own_words_are_left_as_they_are() -> None:
    only = {"other": TWO["other"]}
    assert filled((SERVER,), only, CONFIG, 8, "/mcp") == ["node", "{port}"]


@pytest.mark.parametrize("word", [SERVER, "{command}"])
def test_a_peer_for_one_server_refuses_two(word: str) -> None:
    with pytest.raises(BrokenError, match="one server only"):
        filled((word,), TWO, CONFIG, 8, "/mcp")


def test_all_of_them_read_the_same_file(tmp_path: Path) -> None:
    work = trivial(tmp_path)
    assert json.loads(config_text(work.entries()))["mcpServers"]["null"]["command"] == work.argv[0]


def test_every_peer_that_gathers_takes_its_servers_from_the_file() -> None:
    for peer in PEERS:
        assert peer.gathers == any("{config}" in word for word in (*peer.gateway, *peer.client)), peer.name
        assert (peer.shape == "stdio") != bool(peer.gateway), peer.name
        assert (peer.shape in ("http", "sse")) != bool(peer.client), peer.name


def test_names_of_tools_differ_where_there_are_more_servers() -> None:
    peer = Peer("some", (), "stdio")
    assert (peer.tool("a", "echo", 1), peer.tool("a", "echo", 2)) == ("echo", "a_echo")


def test_a_gateway_that_ends_at_once_says_what_it_said(tmp_path: Path) -> None:
    broken = Peer("broken", (), "http", (sys.executable, "-c", "import sys; sys.exit('no such option')"))
    with pytest.raises(BrokenError, match="code 1: no such option"), running(broken, ONE, tmp_path):
        pass


def test_a_gateway_ends_with_the_servers_that_it_put_into_sessions_of_their_own(tmp_path: Path) -> None:
    port = free_port()
    code = (
        "import socket, subprocess, sys\n"
        "sleeper = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)\n"
        "print(sleeper.pid, flush=True)\n"
        f"door = socket.create_server(('127.0.0.1', {port}))\n"
        "while True: door.accept()\n"
    )
    with listening([sys.executable, "-c", code], {}, tmp_path, port):
        pass
    assert not alive(int((tmp_path / "gateway.log").read_text()))


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            "npm error code E404\nnpm error 404 Not Found - GET https://host/x\n"
            "npm error 404  'x' could not be found or is not yours\n",
            "404 'x' could not be found or is not yours",
        ),
        (
            "WARNING: odd\nERROR: No matching distribution found for x==1\n",
            "ERROR: No matching distribution found for x==1",
        ),
        ("", "no word why"),
    ],
)
def test_an_installers_reason_is_one_line_without_places(said: str, why: str) -> None:
    assert reason(said) == why
