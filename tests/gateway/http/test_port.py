"""The HTTP port and the tokens of AI tools. A token is bound to its port and user, and useless to other users."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from tests.gateway.http.place import TOKEN, Place, place, until
from tests.patience import stretched
from trayapp.gateway.http import server
from trayapp.gateway.http.port import TOKEN_NAME, ClientTokens, bind
from trayapp.model.config import HttpSettings

pytestmark = pytest.mark.anyio
as_root = pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0,
    reason="only root can act as another user, and only Linux shows whose connection it is",
)

NOBODY = 65534
SQUAT = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
taken = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print(taken.getsockname()[1], flush=True)
sys.stdin.read()
"""
ASK = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
sock = socket.socket()
sock.connect(("127.0.0.1", int(sys.argv[1])))
sock.sendall(sys.stdin.buffer.read())
if sys.argv[3] == "waits":
    print(sock.recv(1000).decode(), flush=True)
"""


@contextmanager
def squatter(port: int, user: int) -> Iterator[int]:
    """Run a program as `user` that listens on the port, and yield the port."""
    argv = [sys.executable, "-c", SQUAT, str(port), str(user)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.stdin.close()


async def said_to(port: int, user: int, data: bytes, then: str = "waits") -> str:
    """Send `data` to the gateway from a process of `user`, and return the answer."""
    argv = [sys.executable, "-c", ASK, str(port), str(user), then]
    done = await anyio.to_thread.run_sync(lambda: subprocess.run(argv, input=data, capture_output=True, timeout=50))
    return done.stdout.decode()


def request(port: int, token: str, verb: str = "GET", path: str = "/mcp_tools", body: bytes = b"") -> bytes:
    head = f"{verb} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def port_of(at: Place) -> int:
    url = at.urls[-1]
    assert url is not None
    return int(url.removesuffix("/mcp").rpartition(":")[2])


async def moved(at: Place, settings: HttpSettings) -> int:
    """Close the port, open it again with the settings, and return its number."""
    at.port.follow(HttpSettings(enabled=False))
    await until(lambda: at.urls[-1] is None)
    at.port.follow(settings)
    await until(lambda: at.urls[-1] is not None)
    return port_of(at)


async def status(port: int, token: str) -> int:
    answer = await said_to(port, os.getuid(), request(port, token))
    return int(answer.split()[1])


@as_root
@pytest.mark.requirement("http-token-port")
async def test_what_another_user_collected_at_the_port_is_of_no_use_anywhere(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        files = tmp_path / "tokens"
        with squatter(0, NOBODY) as wanted:
            port = await moved(at, HttpSettings(port=wanted))
            assert port != wanted
            assert await status(port, TOKEN) == 401
            assert not (files / TOKEN_NAME).exists()
            token = (files / f"{TOKEN_NAME}-{port}").read_text().strip()
            assert await status(port, token) == 200
            (problem,) = at.made.gateway.problems
            assert f"Port {wanted} is held by a program of another user (nobody, uid {NOBODY})" in problem.message
            assert "no longer valid" in problem.message
            assert "settings.http.port" in problem.hint
        assert await moved(at, HttpSettings(port=wanted)) == wanted
        assert at.made.gateway.problems == ()
        fresh = (files / TOKEN_NAME).read_text().strip()
        assert [await status(wanted, one) for one in (TOKEN, token, fresh)] == [401, 401, 200]
        assert sorted(path.name for path in files.iterdir()) == [TOKEN_NAME]


@as_root
@pytest.mark.requirement("http-token-port")
async def test_a_program_of_the_user_s_own_takes_the_port_but_not_the_token(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        with squatter(0, os.getuid()) as wanted:
            port = await moved(at, HttpSettings(port=wanted))
            assert await status(port, TOKEN) == 401
            (problem,) = at.made.gateway.problems
            assert "another program of yours" in problem.message
            assert "no longer valid" not in problem.message
        await moved(at, HttpSettings(port=wanted))
        assert await status(wanted, TOKEN) == 200


@as_root
@pytest.mark.requirement("http-token-port")
async def test_another_user_with_the_very_token_is_sent_away(tmp_path: Path) -> None:
    """Another user can get the token by listening on the port until shortly before the gateway starts."""
    async with place(tmp_path) as at:
        port = port_of(at)
        body = b'{"name": "pwned", "command": "x"}'
        for token in (TOKEN, "the-token-of-the-endpoint-file-0123456789"):
            assert " 403 " in await said_to(port, NOBODY, request(port, token))
            assert " 403 " in await said_to(port, NOBODY, request(port, token, "POST", "/mcp_servers", body))
            await said_to(port, NOBODY, request(port, token, "POST", "/mcp_servers", body), "leaves")
        async with at.http() as http:
            assert (await http.get("/health")).status_code == 200
    assert at.edits.servers == []


def test_a_token_is_the_same_after_every_start_and_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    tokens = ClientTokens(folder)
    token = tokens.take(7461, 7461, [])
    assert len(token) >= 32
    path = folder / TOKEN_NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    assert tokens.take(7461, 7461, []) == token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.requirement("http-token-port")
def test_another_port_has_another_token(tmp_path: Path) -> None:
    tokens = ClientTokens(tmp_path)
    first = tokens.take(7461, 7461, [])
    beside = tokens.take(7462, 7461, [])
    assert beside != first
    assert tokens.take(7462, 7461, []) == beside
    assert tokens.take(7461, 7461, []) == first
    assert tokens.take(7462, 7461, []) != beside  # the gateway had left the port, so another program may know the token
    assert tokens.take(8000, 8000, []) != first  # AI tools still send the old token to the old address
    assert len({tokens.take(port, 0, []) for port in (50_001, 50_002, 50_001)}) == 3


@pytest.mark.requirement("http-token-port")
def test_a_port_that_others_held_begins_again(tmp_path: Path) -> None:
    tokens = ClientTokens(tmp_path)
    first = tokens.take(7461, 7461, [])
    beside = tokens.take(7462, 7461, [])
    tokens.take(7463, 7461, [7461, 7462])
    assert {tokens.take(7461, 7461, []), tokens.take(7462, 7461, [])}.isdisjoint({first, beside})


@pytest.mark.requirement("http-token-port")
def test_the_token_of_another_gateway_that_runs_stays_and_so_does_what_no_gateway_made(tmp_path: Path) -> None:
    """Gateways with separate runtime folders share the folder of servers.yaml."""
    mine, other = ClientTokens(tmp_path), ClientTokens(tmp_path)
    (tmp_path / f"{TOKEN_NAME}-copy").write_text("kept by the user")
    beside = other.take(7462, 7461, [])
    mine.take(7461, 7461, [])
    assert (tmp_path / f"{TOKEN_NAME}-7462").read_text().strip() == beside
    other.release()  # the gateway ended or moved, so another program may hold its port
    mine.take(7461, 7461, [])
    assert sorted(file.name for file in tmp_path.iterdir()) == [TOKEN_NAME, f"{TOKEN_NAME}-copy"]
    mine.release()
    assert (tmp_path / TOKEN_NAME).read_text().strip()


@pytest.mark.parametrize("content", [b"", b"short", b"\xff\xfe", b"7462." + b"x" * 40])
def test_a_token_file_that_is_no_good_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / TOKEN_NAME).write_bytes(content)
    token = ClientTokens(tmp_path).take(7461, 7461, [])
    assert len(token) >= 32
    assert token.encode() != content
    assert ClientTokens(tmp_path).take(7461, 7461, []) == token


def test_a_token_that_cannot_be_kept_is_a_new_one(tmp_path: Path, caplog: Any) -> None:
    (tmp_path / "file").write_text("")
    assert ClientTokens(tmp_path / "file").take(7461, 7461, [])
    assert "new token" in caplog.text


@pytest.mark.requirement("safe-flood")
async def test_connections_that_say_nothing_keep_nobody_out(tmp_path: Path) -> None:
    """The same holds for connections whose first request never ends."""
    async with place(tmp_path) as at, at.http() as http:
        assert (await http.get("/health")).status_code == 200
        flood = []
        try:
            for number in range(600):
                flood.append(sock := socket.socket())
                sock.setblocking(False)
                sock.connect_ex(("127.0.0.1", port_of(at)))
                await anyio.lowlevel.checkpoint()
                if number % 2:
                    await until(lambda sock=sock: bool(sock.getpeername()))  # type: ignore[misc]
                    sock.send(b"GET /health HTTP/1.1\r\nX: ")
            assert (await http.get("/health")).status_code == 200
            async with at.http() as another:
                assert (await another.get("/health")).status_code == 200
        finally:
            for sock in flood:
                sock.close()


@pytest.mark.requirement("http-port")
def test_a_taken_port_gives_way_to_the_next_free_one() -> None:
    first = bind(0)
    assert first is not None
    with first.sock:
        second = bind(first.port)
        assert second is not None
        with second.sock:
            assert second.port != first.port
            assert second.sock.getsockname()[0] == "127.0.0.1"


@pytest.mark.requirement("http-port")
async def test_a_port_that_is_switched_off_is_closed_and_opens_again(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        async with at.http() as http:
            assert (await http.get("/health")).status_code == 200
        port = int(at.url.rpartition(":")[2])
        at.port.follow(HttpSettings(enabled=False))
        await until(lambda: at.urls[-1] is None)
        assert not is_open(port)
        at.port.follow(HttpSettings(port=port))
        await until(lambda: at.urls[-1] is not None)
        async with at.http() as http:
            assert (await http.get("/health")).status_code == 200


@pytest.mark.requirement("http-port")
async def test_a_port_that_moves_has_an_address_all_the_time_and_whoever_waits_for_it_gets_the_new_one(
    tmp_path: Path,
) -> None:
    async with place(tmp_path) as at:
        first = port_of(at)
        at.port.follow(HttpSettings(port=0, token=False))
        await at.port.settle()
        assert len(at.urls) == 2
        assert None not in at.urls
        assert (is_open(first), is_open(port_of(at))) == (False, True)
        at.port.follow(HttpSettings(enabled=False))
        await at.port.settle()
        assert at.urls[-1] is None


@pytest.mark.requirement("panel-sign-in")
async def test_whoever_waits_for_a_port_waits_on_when_the_settings_change_meanwhile(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        at.port.follow(HttpSettings(port=0, token=False))
        with anyio.fail_after(stretched(10.0)):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(at.port.settle)
                await anyio.lowlevel.checkpoint()
                at.port.follow(HttpSettings(port=0))
        assert is_open(port_of(at))


@pytest.mark.requirement("panel-sign-in")
async def test_a_link_that_is_asked_for_while_the_port_opens_leads_to_the_open_port(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        at.port.follow(HttpSettings(port=0, token=False))
        link = (await at.port.panel_link({}))["url"]
        assert link.startswith(f"http://127.0.0.1:{port_of(at)}/panel/enter?code=")


async def test_the_server_is_loaded_with_the_link_and_not_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = anyio.Event()

    async def serve(*_: Any, **__: Any) -> None:
        loaded.set()
        await anyio.sleep_forever()

    monkeypatch.setattr(server, "serve", serve)
    async with place(tmp_path) as at:
        await anyio.wait_all_tasks_blocked()
        assert not loaded.is_set()
        await at.port.panel_link({})
        with anyio.fail_after(stretched(10.0)):
            await loaded.wait()


async def test_a_port_that_closes_has_no_address_while_its_server_still_ends_its_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = anyio.Event()

    async def serve(*_: Any, **__: Any) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await ended.wait()

    monkeypatch.setattr(server, "serve", serve)
    async with place(tmp_path) as at:
        with socket.create_connection(("127.0.0.1", port_of(at))):
            await anyio.sleep(0.1)
            at.port.follow(HttpSettings(enabled=False))
            await anyio.wait_all_tasks_blocked()
            assert at.urls[-1] is None
            ended.set()


def is_open(port: int) -> bool:
    """True if a program listens on the port."""
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0
