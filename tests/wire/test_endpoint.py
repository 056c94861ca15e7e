"""Tests of the listening end: the peers that may connect, the first line, and the files that are left behind."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest

from tests.wire.processes import line_of, start
from trayapp.model.errors import StorageError
from trayapp.wire.endpoint import GREETING_LIMIT, PLACES_MOST, Link, Listener, PendingConnections, listen, peer_is_us
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.greeting import Hello, endpoint_file, greeting, read_endpoint
from trayapp.wire.messages import Params
from trayapp.wire.rundir import SOCKET_PATH_LIMIT, socket_folder, socket_path

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets and modes"),
]

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{"kind":"%b"}}\n'


class House:
    """A gateway that answers every request with the kind of its connection."""

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self._tasks = tasks
        self.hellos: list[Hello] = []
        self.links: list[Link] = []
        self.ended = 0

    def accept(self, hello: Hello, link: Link) -> FrameDispatcher:
        self.hellos.append(hello)
        self.links.append(link)
        dispatcher = FrameDispatcher(link.write)
        self._tasks.start_soon(self._serve, dispatcher, hello)
        return dispatcher

    async def _serve(self, dispatcher: FrameDispatcher, hello: Hello) -> None:
        async def on_request(method: str, params: Params) -> dict[str, Any]:
            return {"kind": hello.kind}

        def on_notify(method: str, params: Params) -> None:
            pass

        await dispatcher.run(on_request, on_notify)
        self.ended += 1


def nobody(hello: Hello, link: Link) -> FrameDispatcher:
    raise AssertionError("nobody can have come in")


@asynccontextmanager
async def listening(run: str, tcp: bool = False) -> AsyncIterator[tuple[House, Listener]]:
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            house = House(tasks)
            listener = await listen(run, house.accept, "1.0", tcp=tcp)
            try:
                yield house, listener
            finally:
                listener.close()
                for link in house.links:
                    link.close()
                tasks.cancel_scope.cancel()


async def open_to(listener: Listener) -> anyio.abc.ByteStream:
    endpoint = listener.endpoint
    if endpoint.port:
        return await anyio.connect_tcp("127.0.0.1", endpoint.port)
    return await anyio.connect_unix(endpoint.socket)


async def said_back(listener: Listener, *pieces: bytes) -> bytes:
    """Send the pieces, and return the answer, or nothing if the connection is closed instead."""
    async with await open_to(listener) as stream:
        try:
            for piece in pieces:
                await stream.send(piece)
            return await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return b""


@pytest.mark.requirement("safe-flood")
@pytest.mark.parametrize("tcp", [True, pytest.param(False, marks=pytest.mark.skipif(os.name == "nt", reason="no"))])
async def test_connections_without_a_first_line_keep_nobody_out(home: Path, tcp: bool) -> None:
    (home / "run").mkdir(mode=0o700)
    async with listening(str(home / "run"), tcp) as (_, listener), AsyncExitStack() as stack:
        line = greeting(Hello("session"), listener.endpoint.token)
        first = await stack.enter_async_context(await open_to(listener))
        await first.send(line + PING)
        for _ in range(PLACES_MOST + 20):
            stream = await stack.enter_async_context(await open_to(listener))
            await stream.send(line[:5])
        assert await said_back(listener, line + PING) == PONG % b"session"
        assert await first.receive() == PONG % b"session"


# -- the first line ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["session", "control"])
async def test_the_first_line_says_what_a_connection_is_for(home: Path, kind: str) -> None:
    async with listening(str(home / "run")) as (house, listener):
        line = greeting(Hello(kind, {"cwd": "/ü", "pid": "5"}))
        assert await said_back(listener, line + PING) == PONG % kind.encode()
        assert house.hellos == [Hello(kind, {"cwd": "/ü", "pid": "5"})]


async def test_it_may_come_in_pieces(home: Path) -> None:
    async with listening(str(home / "run")) as (_, listener):
        line = greeting(Hello("session")) + PING
        async with await open_to(listener) as stream:
            for byte in line:
                await stream.send(bytes([byte]))
            assert await stream.receive() == PONG % b"session"


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"GET / HTTP/1.1\r\n",
        PING,
        b"multi-mcp/2 {}\n",
        b"multi-mcp/1 \n",
        b"multi-mcp/1 {\n",
        b"multi-mcp/1 []\n",
        b'multi-mcp/1 "session"\n',
        b"multi-mcp/1 {}\n",
        b'multi-mcp/1 {"kind":"tray"}\n',
        b'multi-mcp/1 {"kind":null}\n',
        b'multi-mcp/1 {"kind":["session"]}\n',
        b'multi-mcp/1 {"kind":{"a":1}}\n',
        b"multi-mcp/1 " + b"[" * 5000 + b"\n",
        b"\xff\xfe\n",
        b"x" * GREETING_LIMIT,  # without a newline
        b'multi-mcp/1 {"kind":"session","x":"' + b"y" * GREETING_LIMIT + b'"}\n',
        b"x" * (4 * GREETING_LIMIT),
    ],
)
async def test_any_other_first_line_ends_the_connection_and_nothing_else(home: Path, line: bytes) -> None:
    async with listening(str(home / "run")) as (house, listener):
        assert await said_back(listener, line, PING) == b""
        assert house.hellos == []
        assert await said_back(listener, greeting(Hello("session")) + PING) == PONG % b"session"


async def test_half_a_first_line_keeps_nobody_waiting(home: Path) -> None:
    async with listening(str(home / "run")) as (house, listener), await open_to(listener) as slow:
        await slow.send(b"multi-mcp/1 {")
        assert await said_back(listener, greeting(Hello("control")) + PING) == PONG % b"control"
        assert len(house.hellos) == 1


async def test_a_connection_that_ends_ends_its_dispatcher(home: Path) -> None:
    async with listening(str(home / "run")) as (house, listener):
        assert await said_back(listener, greeting(Hello("session")) + PING)
        await house.links[0].lost.wait()
        while not house.ended:
            await anyio.lowlevel.checkpoint()
        house.links[0].write(b"nobody hears this\n")


@pytest.mark.parametrize("in_pieces", [False, True])
async def test_a_large_answer_reaches_a_reader_that_is_slow(home: Path, in_pieces: bool) -> None:
    async with listening(str(home / "run")) as (house, listener), await open_to(listener) as stream:
        await stream.send(greeting(Hello("session")) + PING)
        assert await stream.receive() == PONG % b"session"
        data = os.urandom(1 << 20).hex().encode() + b"\n"
        for _ in range(10):
            if in_pieces:
                house.links[0].write_pieces([data[:70], data[70:-1], data[-1:]])
            else:
                house.links[0].write(data)
        house.links[0].close()
        received = bytearray()
        async for piece in stream:
            received += piece
        assert received == data * 10
        house.links[0].write_pieces([b"nobody", b" hears this"])


async def test_a_reader_that_is_behind_leaves_no_room_until_it_reads(home: Path) -> None:
    async with listening(str(home / "run")) as (house, listener), await open_to(listener) as stream:
        await stream.send(greeting(Hello("control")) + PING)
        assert await stream.receive() == PONG % b"control"
        (link,) = house.links
        assert link.room.is_set()
        await link.room.wait()
        link.write(b"x" * (32 << 20))
        assert not link.room.is_set()
        received = 0
        while received < 32 << 20:
            received += len(await stream.receive())
        await link.room.wait()
        assert link.room.is_set()


# -- TCP with a token, as on Windows -----------------------------------------------------------------------------


async def test_over_tcp_the_token_of_the_endpoint_file_opens(home: Path) -> None:
    (home / "run").mkdir()
    async with listening(str(home / "run"), tcp=True) as (house, listener):
        endpoint = read_endpoint(str(home / "run"))
        assert endpoint is not None
        assert endpoint.port
        assert len(endpoint.token) > 30
        hello = Hello("session", {"cwd": "/"})
        assert await said_back(listener, greeting(hello, endpoint.token) + PING) == PONG % b"session"
        assert house.hellos == [hello]  # does not contain the token


@pytest.mark.parametrize("token", ["", "wrong", "ü", "x" * 43])
async def test_over_tcp_any_other_token_is_refused(home: Path, token: str) -> None:
    (home / "run").mkdir()
    async with listening(str(home / "run"), tcp=True) as (house, listener):
        assert await said_back(listener, greeting(Hello("session"), token) + PING) == b""
        for odd in (b"null", b"true", b"[]", b"0", b'{"a":1}'):
            assert await said_back(listener, b'multi-mcp/1 {"kind":"session","token":' + odd + b"}\n" + PING) == b""
        assert house.hellos == []


async def test_every_start_has_a_token_of_its_own_and_only_loopback_is_listened_on(home: Path) -> None:
    (home / "run").mkdir()
    tokens = set()
    for _ in range(2):
        async with listening(str(home / "run"), tcp=True) as (_, listener):
            tokens.add(listener.endpoint.token)
            assert [sock.getsockname()[0] for sock in listener.server.sockets] == ["127.0.0.1"]
    assert len(tokens) == 2


# -- the peer's user ---------------------------------------------------------------------------------------------


async def test_the_other_end_of_our_own_socket_is_us() -> None:
    left, right = socket.socketpair()
    with left, right:
        assert peer_is_us(left)
    assert peer_is_us(None)


CONNECT = """
import os, socket, sys
if sys.argv[2] != "0":
    os.setuid(int(sys.argv[2]))
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
try:
    sock.sendall(b'multi-mcp/1 {"kind":"session"}\\n{"jsonrpc":"2.0","id":1,"method":"ping"}\\n')
    print(sock.recv(1000))
except OSError:
    print(b"")
"""


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can act as another user")
async def test_another_user_is_sent_away_even_where_the_folder_lets_him_in(home: Path) -> None:
    home.chmod(0o777)
    path = home / "open.sock"
    async with anyio.create_task_group() as tasks:
        house = House(tasks)
        loop = asyncio.get_running_loop()
        server = await loop.create_unix_server(lambda: Link(house.accept, "", PendingConnections()), str(path))
        path.chmod(0o777)
        theirs = start(CONNECT, str(path), "65534")
        assert await anyio.to_thread.run_sync(line_of, theirs) == "b''"
        ours = start(CONNECT, str(path), "0")
        assert "result" in await anyio.to_thread.run_sync(line_of, ours)
        assert len(house.hellos) == 1
        for process in (theirs, ours):
            process.communicate()
        server.close()
        await house.links[0].lost.wait()
        tasks.cancel_scope.cancel()


# -- files in the folder -----------------------------------------------------------------------------------------


@pytest.mark.requirement("path-modes")
async def test_socket_and_endpoint_file_are_private_and_gone_at_the_end(home: Path) -> None:
    run = home / "run"
    before = os.umask(0)
    try:
        async with listening(str(run)) as (_, listener):
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (run, *run.iterdir())}
            assert modes == {"run": 0o700, "gateway.sock": 0o600, "endpoint.json": 0o600}
            endpoint = read_endpoint(str(run))
            assert endpoint == listener.endpoint
            assert endpoint is not None
            assert (endpoint.pid, endpoint.version, endpoint.port) == (os.getpid(), "1.0", 0)
    finally:
        os.umask(before)
    assert list(run.iterdir()) == []


async def test_what_a_killed_gateway_left_behind_is_replaced(home: Path) -> None:
    run = home / "run"
    run.mkdir()
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(run / "gateway.sock"))
    left.close()
    endpoint_file(str(run)).write_text("{half")
    async with listening(str(run)) as (_, listener):
        assert await said_back(listener, greeting(Hello("session")) + PING) == PONG % b"session"
    (run / "gateway.sock").write_text("a plain file")
    async with listening(str(run)) as (_, listener):
        assert await said_back(listener, greeting(Hello("session")) + PING) == PONG % b"session"


@pytest.fixture
def long_run(home: Path) -> Any:
    run = home / ("d" * SOCKET_PATH_LIMIT) / "run"
    run.mkdir(parents=True)
    yield str(run)
    place = Path(socket_folder(str(run)))
    if place.is_symlink():
        place.unlink()
    elif place.exists():
        place.rmdir()


@pytest.mark.requirement("path-modes")
@pytest.mark.parametrize("mode", [None, 0o700, 0o777])
async def test_a_folder_too_deep_for_a_socket_has_it_in_a_private_place(long_run: str, mode: int | None) -> None:
    place = Path(socket_folder(long_run))
    if mode is not None:
        place.mkdir()
        place.chmod(mode)
    async with listening(long_run) as (_, listener):
        assert listener.endpoint.socket == socket_path(long_run) == str(place / "gateway.sock")
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        assert stat.S_IMODE((place / "gateway.sock").stat().st_mode) == 0o600
        assert await said_back(listener, greeting(Hello("control")) + PING) == PONG % b"control"
    assert list(place.iterdir()) == []


async def test_no_socket_is_made_in_a_place_that_is_a_link(long_run: str, tmp_path: Path) -> None:
    Path(socket_folder(long_run)).symlink_to(tmp_path)
    with pytest.raises(StorageError, match="link"):
        await listen(long_run, nobody, "1.0")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("fault-disk-full")
async def test_an_endpoint_file_that_cannot_be_written_leaves_nothing_listening(home: Path) -> None:
    run = home / "run"
    endpoint_file(str(run)).mkdir(parents=True)
    with pytest.raises(StorageError, match="Cannot write"):
        await listen(str(run), nobody, "1.0")
    assert [path.name for path in run.iterdir()] == ["endpoint.json"]


async def test_a_socket_that_cannot_be_bound_is_a_clear_error(home: Path) -> None:
    (home / "run" / "gateway.sock").mkdir(parents=True)
    with pytest.raises(StorageError, match="Cannot listen"):
        await listen(str(home / "run"), nobody, "1.0")
