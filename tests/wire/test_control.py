"""Tests of the control client against a real socket: answers, errors, and listeners that are not gateways."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest

from trayapp.model.errors import NoGatewayError
from trayapp.wire.control import SNAPSHOT, WATCH, ControlClient, ControlError, connect
from trayapp.wire.endpoint import Link, listen, write_endpoint
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.greeting import Endpoint, Hello
from trayapp.wire.messages import Params, RpcError
from trayapp.wire.rundir import socket_folder

WAYS = [
    pytest.param(False, id="unix", marks=pytest.mark.skipif(sys.platform == "win32", reason="no Unix sockets here")),
    pytest.param(True, id="tcp"),
]
unix_only = pytest.mark.skipif(sys.platform == "win32", reason="a Unix socket's folder")
pytestmark = pytest.mark.anyio


async def answers(dispatcher: FrameDispatcher, method: str, params: Params) -> Any:
    """Answer a request as the gateways in these tests do."""
    if method == "fails":
        raise RpcError(-32000, "It failed", (params or {}).get("data"))
    if method == WATCH:
        for number in range(3):
            dispatcher.send_notification("noise", {})
            asyncio.get_running_loop().call_soon(
                dispatcher.send_notification, SNAPSHOT, {"revision": number, "text": "x" * 300_000}
            )
        return {}
    return {"method": method, "params": params}


@asynccontextmanager
async def gateway(run: str, tcp: bool) -> AsyncIterator[None]:
    Path(run).mkdir(parents=True, exist_ok=True)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:

            def on_notify(method: str, params: Params) -> None:
                pass

            def accept(hello: Hello, link: Link) -> FrameDispatcher:
                assert hello.kind == "control"
                dispatcher = FrameDispatcher(link.write)
                tasks.start_soon(dispatcher.run, partial(answers, dispatcher), on_notify)
                return dispatcher

            listener = await listen(run, accept, "1", tcp=tcp)
            yield
            listener.close()
            tasks.cancel_scope.cancel()


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def impostor(run: str, talk: Talk) -> AsyncIterator[None]:
    """Listen at the gateway's endpoint, and hand each connection to `talk` after its first line."""
    Path(run).mkdir(parents=True, exist_ok=True)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        await talk(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    write_endpoint(run, Endpoint(1, "1", "", server.sockets[0].getsockname()[1], "t"))
    with anyio.fail_after(20):
        yield
    server.close()


async def ask(run: str, tcp: bool, method: str, params: Any = None, patience: float = 10.0) -> Any:
    def work() -> Any:
        with ControlClient(run, patience, tcp) as client:
            return client.call(method, params)

    return await anyio.to_thread.run_sync(work)


# -- answers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tcp", WAYS)
async def test_a_call_returns_the_answer(home: Path, tcp: bool) -> None:
    run = str(home / "run")
    async with gateway(run, tcp):
        assert await ask(run, tcp, "list", {"server": "ü", "n": 2**70}) == {
            "method": "list",
            "params": {"server": "ü", "n": 2**70},
        }
        big = {"text": "x" * 3_000_000}
        assert (await ask(run, tcp, "big", big))["params"] == big


@pytest.mark.parametrize("tcp", WAYS)
async def test_several_calls_go_over_one_connection(home: Path, tcp: bool) -> None:
    run = str(home / "run")

    def work() -> list[Any]:
        with ControlClient(run, 10.0, tcp) as client:
            return [client.call(str(number))["method"] for number in range(5)]

    async with gateway(run, tcp):
        assert await anyio.to_thread.run_sync(work) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("tcp", WAYS)
async def test_an_error_carries_title_hint_code_and_exit_code(home: Path, tcp: bool) -> None:
    run = str(home / "run")
    async with gateway(run, tcp):
        data = {"hint": "Do this", "code": "server_not_found", "exit_code": 5}
        with pytest.raises(ControlError) as caught:
            await ask(run, tcp, "fails", {"data": data})
    error = caught.value
    assert (error.title, error.hint, error.code, int(error.exit_code)) == (
        "It failed",
        "Do this",
        "server_not_found",
        5,
    )


@pytest.mark.parametrize("data", [None, "text", [1], {"exit_code": "five"}, {"exit_code": None, "hint": None}, 5])
async def test_an_error_with_odd_data_is_an_error_all_the_same(home: Path, data: Any) -> None:
    run = str(home / "run")
    async with gateway(run, tcp=True):
        with pytest.raises(ControlError) as caught:
            await ask(run, True, "fails", {"data": data})
    assert (caught.value.title, int(caught.value.exit_code)) == ("It failed", 1)


@pytest.mark.parametrize("error", ["null", '"text"', "[]", "{}", '{"message":5}'])
async def test_an_odd_error_is_an_error_all_the_same(home: Path, error: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(f'{{"jsonrpc":"2.0","id":1,"error":{error}}}\n'.encode())

    async with impostor(str(home / "run"), talk):
        with pytest.raises(ControlError) as caught:
            await ask(str(home / "run"), True, "x")
        assert caught.value.title


@pytest.mark.parametrize("tcp", WAYS)
async def test_watch_yields_snapshots_until_the_gateway_ends(home: Path, tcp: bool) -> None:
    run = str(home / "run")
    seen: list[int] = []

    def work() -> None:
        with ControlClient(run, 10.0, tcp) as client:
            for snapshot in client.watch():
                seen.append(snapshot["revision"])
                if len(seen) == 3:
                    return

    async with gateway(run, tcp):
        await anyio.to_thread.run_sync(work)
    assert seen == [0, 1, 2]


async def test_watch_waits_longer_than_an_answer_may_take_and_ends_with_the_gateway(home: Path) -> None:
    run = str(home / "run")
    first, shown = json.dumps({"method": SNAPSHOT, "params": {"revision": 1}}), anyio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
        await asyncio.sleep(0.2)  # longer than the client's limit for answers
        writer.write(first.encode() + b"\n")
        await writer.drain()
        await shown.wait()

    def work() -> list[Any]:
        with ControlClient(run, 0.1, tcp=True) as client:
            seen = []
            for snapshot in client.watch():
                seen.append(snapshot)
                anyio.from_thread.run_sync(shown.set)
            return seen

    async with impostor(run, talk):
        assert await anyio.to_thread.run_sync(work) == [{"revision": 1}]


# -- missing and ended gateways ----------------------------------------------------------------------------------


@pytest.mark.parametrize("tcp", WAYS)
def test_where_nothing_listens_there_is_no_gateway(home: Path, tcp: bool) -> None:
    for run in (home / "run", home / "missing" / "run"):
        with pytest.raises(NoGatewayError) as caught:
            ControlClient(str(run), tcp=tcp)
        assert caught.value.exit_code == 4


@pytest.mark.parametrize("port", [0, 1, 70_000, 2**40])
def test_an_endpoint_file_that_leads_nowhere_is_no_gateway(tmp_path: Path, port: int) -> None:
    write_endpoint(str(tmp_path), Endpoint(1, "1", "", port, "t"))
    with pytest.raises(NoGatewayError):
        ControlClient(str(tmp_path), tcp=True)


async def test_a_socket_file_that_was_left_behind_is_no_gateway(home: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("no Unix sockets here")
    run = home / "run"
    run.mkdir()
    server = await asyncio.start_unix_server(lambda reader, writer: None, run / "gateway.sock")
    server.close()
    await server.wait_closed()
    (run / "gateway.sock").touch()
    with pytest.raises(NoGatewayError):
        connect(str(run), Hello("session"))


@pytest.mark.parametrize("said", [b"", b'{"jsonrpc":"2.0","id":1,"resu', b'{"method":"noise"}\n'])
async def test_a_gateway_that_ends_during_a_call_is_no_gateway(home: Path, said: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(said)

    async with impostor(str(home / "run"), talk):
        with pytest.raises(NoGatewayError) as caught:
            await ask(str(home / "run"), True, "x")
        assert "ended before it answered" in caught.value.title or "went away" in caught.value.title


async def test_a_gateway_that_refuses_the_token_is_no_gateway(home: Path) -> None:
    run = str(home / "run")
    async with gateway(run, tcp=True):
        write_endpoint(str(home), Endpoint(1, "1", "", _port_of(run), "wrong"))
        with pytest.raises(NoGatewayError):
            await ask(str(home), True, "x")
        assert (await ask(run, True, "x"))["method"] == "x"


def _port_of(run: str) -> int:
    port: int = json.loads((Path(run) / "endpoint.json").read_text())["port"]
    return port


async def test_a_silent_gateway_is_given_up(home: Path) -> None:
    ended = anyio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()

    async with impostor(str(home / "run"), talk):
        with pytest.raises(NoGatewayError, match="does not answer") as caught:
            await ask(str(home / "run"), True, "x", patience=0.05)
        assert "doctor" in caught.value.hint  # no hint to start a gateway, because one is running
        with pytest.raises(NoGatewayError, match="does not answer"):
            await ask(str(home / "run"), True, "x", {"more": "x" * 20_000_000}, patience=0.05)
        ended.set()


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n", b"[]\n", b"5\n", b"\xff\n", b"[" * 5000 + b"\n"])
async def test_what_does_not_speak_as_a_gateway_is_none(home: Path, said: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(said)

    async with impostor(str(home / "run"), talk):
        with pytest.raises(NoGatewayError, match="is not a gateway"):
            await ask(str(home / "run"), True, "x")


# -- a folder too deep for a socket ------------------------------------------------------------------------------


@unix_only
async def test_a_gateway_in_a_folder_too_deep_for_a_socket_is_found(long_run: str) -> None:
    async with gateway(long_run, tcp=False):
        assert (await ask(long_run, False, "x"))["method"] == "x"


@unix_only
@pytest.mark.parametrize("trick", ["link", "open to others"])
async def test_nothing_is_said_in_a_short_place_that_is_not_ours_alone(long_run: str, home: Path, trick: str) -> None:
    place = Path(socket_folder(long_run))
    if trick == "link":
        (home / "trap").mkdir(mode=0o700)
        place.symlink_to(home / "trap")
    else:
        place.mkdir()
        place.chmod(0o777)
    heard: list[Any] = []
    server = await asyncio.start_unix_server(lambda reader, writer: heard.append(writer), place / "gateway.sock")
    with pytest.raises(NoGatewayError):
        await anyio.to_thread.run_sync(partial(connect, long_run, Hello("session"), False))
    assert heard == []
    server.close()
    await server.wait_closed()
    (place / "gateway.sock").unlink(missing_ok=True)
