"""Tests of a session's pipes: passed once, in order with the socket's data, and closed with either side."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.wire.test_endpoint import PING, PONG, House, listening
from trayapp.wire.endpoint import PIPES_AFTER_S, Link, Listener
from trayapp.wire.greeting import Hello, greeting
from trayapp.wire.rundir import PIPES

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="pipes are passed on Linux only"),
]

ANSWER = PONG % b"session"


class Shim:
    """A session that requests pipes. All methods block."""

    def __init__(self, path: str, options: dict[str, str]) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        self.socket.connect(path)
        self.socket.sendall(greeting(Hello("session", options)))
        self.pipes: list[int] = []  # one to read from and one to write to

    def receive_pipes(self) -> bytes:
        """Receive the pipes, and return the data that arrived before them."""
        data = b""
        while not self.pipes:
            received, self.pipes, _, _ = socket.recv_fds(self.socket, 1 << 16, 2)
            assert received
            data += received
        assert data.endswith(PIPES)
        return data.removesuffix(PIPES)

    def receive(self, size: int) -> bytes:
        """Return this many bytes from the pipe, or fewer if it ends."""
        data = b""
        while len(data) < size and (part := os.read(self.pipes[0], 1 << 16)):
            data += part
        return data

    def send(self, data: bytes) -> None:
        os.write(self.pipes[1], data)

    def end(self) -> None:
        self.socket.close()
        for descriptor in self.pipes:
            with suppress(OSError):
                os.close(descriptor)


@contextmanager
def connected(listener: Listener, options: dict[str, str]) -> Iterator[Shim]:
    shim = Shim(listener.endpoint.socket, options)
    try:
        yield shim
    finally:
        shim.end()


in_thread = anyio.to_thread.run_sync


async def link_of(house: House) -> Link:
    with anyio.fail_after(10):
        while True:
            if house.links:
                return house.links[0]
            await anyio.sleep(0.01)


async def test_what_was_sent_over_the_socket_comes_before_what_is_sent_over_the_pipes(home: Path) -> None:
    async with listening(str(home / "run")) as (house, listener):
        with connected(listener, {"pipes": "1", "cwd": "/"}) as shim:
            shim.socket.sendall(PING)
            before = await in_thread(shim.receive_pipes)  # on a busy machine the pipes come before the answer
            first = before + await in_thread(shim.receive, len(ANSWER) - len(before))
            assert first == ANSWER
            assert house.hellos == [Hello("session", {"cwd": "/"})]
            shim.socket.sendall(PING.replace(b"1", b"8") + PING[:20])
            shim.send(PING[20:] + PING.replace(b"1", b"9"))
            shim.socket.close()
            expected = [ANSWER.replace(b'"id":1', b'"id":%d' % number) for number in (8, 1, 9)]
            received = await in_thread(shim.receive, len(b"".join(expected)))
            assert sorted(received.splitlines(True)) == sorted(expected)
            assert received.startswith(expected[0])


@pytest.mark.parametrize("takes", [True, False])
async def test_a_shim_that_ends_ends_its_session(home: Path, takes: bool) -> None:
    async with listening(str(home / "run")) as (house, listener):
        with connected(listener, {"pipes": "1"}) as shim:
            link = await link_of(house)
            if takes:
                await in_thread(shim.receive_pipes)
                shim.socket.close()
                shim.send(PING)
                assert await in_thread(shim.receive, len(ANSWER)) == ANSWER
            else:
                await anyio.sleep(PIPES_AFTER_S * 2)
            shim.end()
            await link.lost.wait()


@pytest.mark.parametrize("takes", [True, False])
async def test_what_was_written_arrives_before_the_end(home: Path, takes: bool) -> None:
    async with listening(str(home / "run")) as (house, listener):
        with connected(listener, {"pipes": "1"}) as shim:
            link = await link_of(house)
            if takes:
                await in_thread(shim.receive_pipes)
                shim.socket.close()
            else:
                await anyio.sleep(PIPES_AFTER_S * 2)
            large = b"x" * (5 << 20) + b"\n"
            link.write(large)
            link.close()
            if not takes:
                await in_thread(shim.receive_pipes)
            assert await in_thread(shim.receive, len(large) + 1) == large
            await link.lost.wait()


async def test_a_reader_that_is_behind_leaves_no_room_until_it_reads(home: Path) -> None:
    async with listening(str(home / "run")) as (house, listener):
        with connected(listener, {"pipes": "1"}) as shim:
            link = await link_of(house)
            await in_thread(shim.receive_pipes)
            shim.socket.close()
            parts = [bytes([byte]) * (1 << 20) for byte in b"abcd"]
            for part in parts:
                link.write_pieces((part[:100], memoryview(part)[100:]))
            assert not link.room.is_set()
            assert await in_thread(shim.receive, 4 << 20) == b"".join(parts)
            await link.room.wait()
            assert link.room.is_set()


async def test_a_request_larger_than_a_pipe_arrives(home: Path) -> None:
    async with listening(str(home / "run")) as (_, listener):
        with connected(listener, {"pipes": "1"}) as shim:
            await in_thread(shim.receive_pipes)
            shim.socket.close()
            padding = b" " * (3 << 20)
            await in_thread(shim.send, PING[:-2] + padding + PING[-2:])
            assert await in_thread(shim.receive, len(ANSWER)) == ANSWER


async def test_nobody_gets_pipes_who_did_not_ask(home: Path) -> None:
    async with listening(str(home / "run")) as (house, listener):
        with connected(listener, {}) as shim:
            await link_of(house)
            await anyio.sleep(PIPES_AFTER_S * 2)
            shim.socket.sendall(PING)
            assert await in_thread(shim.socket.recv, 1000) == ANSWER
