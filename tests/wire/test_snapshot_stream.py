"""Tests of the snapshot stream against a listening socket: its contents, and how it ends."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trayapp.model.errors import NoGatewayError
from trayapp.wire.control import SnapshotStream
from trayapp.wire.rundir import STOPPING, socket_path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no Unix sockets here")


class Other:
    """The gateway's end of the socket, on the test's thread. New connections wait in the backlog."""

    def __init__(self, run: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(socket_path(run))
        self._listener.listen()
        self.peer = socket.socket()

    def accept(self) -> list[str]:
        self.peer.close()
        self.peer, _ = self._listener.accept()
        return self.peer.recv(4096).decode().splitlines()

    def say(self, *messages: dict[str, Any]) -> None:
        self.peer.sendall(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def close(self) -> None:
        self.peer.close()
        self._listener.close()


@pytest.fixture
def run(home: Path) -> str:
    (home / "run").mkdir(mode=0o700)
    return str(home / "run")


@pytest.fixture
def other(run: str) -> Iterator[Other]:
    made = Other(run)
    yield made
    made.close()


@pytest.fixture
def watch(run: str, other: Other) -> Iterator[SnapshotStream]:
    made = SnapshotStream(run, 0.5)
    yield made
    made.close()


def snapshot(number: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "snapshot", "params": {"revision": number}}


BEAT = {"jsonrpc": "2.0", "method": "beat", "params": {}}


def test_it_asks_for_signs_of_life_and_knows_whether_they_were_promised(other: Other, watch: SnapshotStream) -> None:
    greeting, request = other.accept()
    assert greeting.startswith("multi-mcp/1 ")
    asked = json.loads(request)
    assert (asked["method"], asked["params"]) == ("watch", {"beat_s": 0.5})
    assert not watch.beats
    other.say({"jsonrpc": "2.0", "id": asked["id"], "result": {"beat": 0.5}})
    assert watch.read() is None
    assert watch.beats


def test_an_older_gateway_promises_none(other: Other, watch: SnapshotStream) -> None:
    other.accept()
    other.say({"jsonrpc": "2.0", "id": 1, "result": {}}, snapshot(1))
    assert watch.read() == {"revision": 1}
    assert not watch.beats


def test_of_many_snapshots_the_newest_is_given_and_a_beat_is_none(other: Other, watch: SnapshotStream) -> None:
    other.accept()
    other.say(snapshot(1), BEAT, snapshot(2), snapshot(3), BEAT)
    assert watch.read() == {"revision": 3}
    other.say(BEAT)
    assert watch.read() is None


def test_junk_is_passed_over(other: Other, watch: SnapshotStream) -> None:
    other.accept()
    other.peer.sendall(b'nonsense\n[1]\n{"method":"snapshot","params":3}\n')
    other.say(snapshot(4))
    assert watch.read() == {"revision": 4}


def test_the_end_is_told_after_what_came_before_it(other: Other, watch: SnapshotStream) -> None:
    other.accept()
    other.say(snapshot(5))
    other.peer.sendall(STOPPING)
    other.peer.close()
    assert watch.read() == {"revision": 5}
    assert watch.stopping
    with pytest.raises(NoGatewayError):
        watch.read()


def test_a_gateway_that_is_not_there_is_said_so(run: str) -> None:
    with pytest.raises(NoGatewayError):
        SnapshotStream(run, 0.5)
