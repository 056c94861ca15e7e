"""Tests with real server processes, which are started, watched and stopped with all their children."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import psutil
import pytest

from tests.backends.world import real_connection
from tests.fixtures.odd import Odd, alive, until
from tests.patience import stretched
from tests.tools import require
from trayapp.backends.stdio.processes import TAIL_LINE_CHARS, ServerProcess, StderrTail
from trayapp.model.config import ServerConfig
from trayapp.model.errors import ConnectFailedError, ConnectionLostError, ServerError
from trayapp.model.lifecycle import State
from trayapp.wire.messages import CONNECTION_CLOSED, RpcError

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name != "posix", reason="signals and process groups; Windows has job objects"),
]
CALL: dict[str, Any] = {"name": "whoami", "arguments": {}}


def child_of(odd: Odd) -> int:
    """Return the pid of the process that the odd server started for `--child`."""
    return int((odd.folder / "child").read_text())


# -- stopping --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("life-stop-ladder")
async def test_the_stop_ladder_ends_polite_deaf_and_stubborn_servers_and_their_children(tmp_path: Path) -> None:
    """The servers stop concurrently, because the stubborn one waits out both grace periods."""
    kinds = {
        "polite": (),
        "deaf": ("--ignore-eof",),
        "stubborn": ("--ignore-eof", "--ignore-term"),
    }
    odds = {}
    for kind, switches in kinds.items():
        folder = tmp_path / kind
        folder.mkdir()
        odds[kind] = Odd(folder, kind, (*switches, "--child", str(folder / "child")))

    async def live_and_stop(odd: Odd) -> None:
        async with real_connection(odd.config()) as (connection, _):
            await connection.request("tools/call", CALL)
            assert alive(child_of(odd))
            await connection.close()
            assert connection.state is State.IDLE
            assert not alive(odd.pids[0])
            await until(lambda: not alive(child_of(odd)))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for odd in odds.values():
                tasks.start_soon(live_and_stop, odd)
    assert {kind: [event["event"] for event in odd.events()][-1] for kind, odd in odds.items()} == {
        "polite": "eof",
        "deaf": "eof",
        "stubborn": "term",
    }
    assert [event["event"] for event in odds["stubborn"].events()][-2:] == ["eof", "term"]


@pytest.mark.requirement("life-stop-ladder")
async def test_a_shell_wrapper_that_starts_the_server_leaves_nothing(tmp_path: Path) -> None:
    bash = require("bash")
    odd = Odd(tmp_path, switches=("--ignore-term",))
    command = "sleep 600 & " + " ".join(f"'{word}'" for word in odd.argv) + "; true"
    async with real_connection(ServerConfig("odd", command=bash, args=("-c", command))) as (connection, _):
        await connection.request("tools/call", CALL)
        assert connection.pid is not None
        family = psutil.Process(connection.pid).children(recursive=True)
        assert len(family) == 2
        assert odd.pids[0] != connection.pid
        await connection.close()
        await until(lambda: not any(alive(process.pid) for process in family))


async def test_a_start_that_is_cut_off_leaves_no_process(tmp_path: Path) -> None:
    odd = Odd(tmp_path, switches=("--hang", "initialize"))
    async with real_connection(odd.config()) as (connection, _), anyio.create_task_group() as callers:

        async def call() -> None:
            with pytest.raises(ServerError):
                await connection.ensure()

        callers.start_soon(call)
        await until(lambda: odd.received("initialize"))
        await connection.close()
        assert not alive(odd.pids[0])


async def test_cancelling_everything_leaves_no_process(tmp_path: Path) -> None:
    odd = Odd(tmp_path)
    async with anyio.create_task_group() as tasks:

        async def live() -> None:
            async with real_connection(odd.config()) as (connection, _):
                await connection.ensure()
                await anyio.sleep_forever()

        tasks.start_soon(live)
        await until(lambda: odd.received("notifications/initialized"))
        tasks.cancel_scope.cancel()
    assert not alive(odd.pids[0])


# -- dying -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "words"), [("die", "exited with code 9: last words"), ("hold", "ended by SIGKILL")], ids=["exit", "kill"]
)
async def test_a_death_during_a_call_says_how_and_the_next_call_works(tmp_path: Path, tool: str, words: str) -> None:
    """A call that was running when its server died is not replayed."""
    odd = Odd(tmp_path)
    failures: list[RpcError] = []
    async with real_connection(odd.config()) as (connection, _):

        async def call() -> None:
            try:
                await connection.request("tools/call", {"name": tool, "arguments": {}})
            except RpcError as error:
                failures.append(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            if tool == "hold":
                await until(lambda: odd.events("held"))
                os.kill(odd.pids[0], signal.SIGKILL)
        (failure,) = failures
        assert failure.code == CONNECTION_CLOSED
        assert words in failure.message
        await until(lambda: connection.state is State.FAILED)
        assert isinstance(connection.error, ConnectionLostError)
        assert words in connection.error.title
        assert await connection.request("tools/call", CALL)
        assert len(odd.pids) == 2
        calls = [event["params"]["name"] for event in odd.received("tools/call")]
        assert calls == [tool, "whoami"]


async def test_killed_while_idle_the_next_call_just_works(tmp_path: Path) -> None:
    odd = Odd(tmp_path)
    async with real_connection(odd.config()) as (connection, _):
        await connection.ensure()
        os.kill(odd.pids[0], signal.SIGKILL)
        await until(lambda: connection.state is State.FAILED)
        assert await connection.request("tools/call", CALL)


@pytest.mark.parametrize(("point", "code"), [("start", 3), ("initialize", 3)])
async def test_a_server_that_dies_at_its_start_is_quoted(tmp_path: Path, point: str, code: int) -> None:
    """The error quotes the last lines of stderr."""
    odd = Odd(tmp_path, switches=("--die", point, "--say", "l1|l2|l3|l4"))
    async with real_connection(odd.config()) as (connection, _):
        with pytest.raises(ConnectFailedError) as caught:
            await connection.ensure()
        text = str(caught.value)
        assert "odd" in text
        assert f"code {code}" in text
        assert [line for line in ("l2", "l3", "l4") if line not in text] == []
        assert connection.state is State.FAILED
        assert connection.failed_at is not None


@pytest.mark.requirement("transport-both-eras")
async def test_a_server_that_dies_of_anything_before_initialize_is_met_at_the_second_start(tmp_path: Path) -> None:
    odd = Odd(tmp_path, switches=("--die", "probe"))
    async with real_connection(odd.config(), hint="") as (connection, _):
        live = await connection.ensure()
        assert live.peer.protocol == "2025-11-25"
        assert [event["method"] for event in odd.events("in")][:2] == ["server/discover", "initialize"]
        assert len(odd.pids) == 2


@pytest.mark.requirement("transport-both-eras")
async def test_a_late_answer_to_the_probe_counts_while_initialize_is_pending(tmp_path: Path) -> None:
    odd = Odd(tmp_path, switches=("--both", "--slow-probe"))
    async with real_connection(odd.config(), hint="") as (connection, _):
        live = await connection.ensure()
        assert live.peer.protocol in ("2026-07-28", "2025-11-25")
        assert await connection.request("tools/call", CALL)
        assert len(odd.pids) == 1


@pytest.mark.parametrize("point", ["spawn", "initialize"])
async def test_a_server_that_hangs_is_given_up_after_its_own_timeout(tmp_path: Path, point: str) -> None:
    odd = Odd(tmp_path, switches=("--hang", point))
    async with real_connection(odd.config(connect_timeout=0.3)) as (connection, _):
        with pytest.raises(ConnectFailedError, match=r"odd did not finish its handshake within 0\.3 s"):
            await connection.ensure()
        assert not alive(odd.pids[0])


# -- noise -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("life-junk-tolerated")
async def test_junk_on_stdout_and_a_flood_on_stderr_harm_nothing(tmp_path: Path) -> None:
    odd = Odd(tmp_path, switches=("--junk", "--flood"))
    heard = bytearray()
    async with real_connection(odd.config(), stderr=heard) as (connection, _):
        for _ in range(5):
            assert await connection.request("tools/call", CALL)
        assert len((await connection.fetch()).tools) > 5
        await until(lambda: b"noise 19999" in heard)
        assert b"[stdout] Listening!" in heard
        assert len(odd.pids) == 1


async def test_ids_that_come_back_as_text_are_understood(tmp_path: Path) -> None:
    odd = Odd(tmp_path, switches=("--text-ids",))
    async with real_connection(odd.config()) as (connection, _):
        assert await connection.request("tools/call", CALL)


@pytest.mark.parametrize(("flow", "last"), [(b"a\nb\nc\nd\n", "b | c | d"), (b"a\nb", "a | b"), (b"\n \n\n", "")])
def test_the_tail_keeps_the_last_lines(flow: bytes, last: str) -> None:
    sunk = bytearray()
    tail = StderrTail(sunk.extend)
    for byte in flow:
        tail.feed(bytes([byte]))
    assert tail.last() == last
    assert sunk == flow


def test_the_tail_stays_small_whatever_comes() -> None:
    tail = StderrTail(lambda data: None)
    for _ in range(1000):
        tail.feed(b"x" * 100_000)
    tail.feed(b"\n" + b"\xff\n" * 10_000)
    assert len(tail.last(100)) < 100 * (TAIL_LINE_CHARS + 3)


# -- failed starts ---------------------------------------------------------------------------------------------------


async def test_one_that_has_ended_before_we_hear_of_its_begin_is_no_mistake_of_ours() -> None:
    process = ServerProcess(StderrTail(lambda data: None))
    transport, _ = await asyncio.get_running_loop().subprocess_exec(lambda: process, require("true"))
    with anyio.fail_after(stretched(20)):
        await process.gone.wait()
        stdout = transport.get_pipe_transport(1)
        assert stdout is not None
        while not stdout.is_closing() or transport.get_returncode() is None:
            await anyio.lowlevel.checkpoint()
    process.connection_made(transport)  # late, as can happen on a busy machine
    assert process.pid == transport.get_pid()
    transport.close()


def script(folder: Path, name: str, text: str, mode: int) -> str:
    path = folder / name
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        pytest.param({"command": "no-such-program-anywhere"}, ["no-such-program-anywhere", "ENOENT"], id="call-04"),
        pytest.param({"command": "{folder}/nothing"}, ["nothing", "ENOENT"], id="path-without-file"),
        pytest.param({"command": "{folder}"}, ["ENOENT"], id="a-folder"),
        pytest.param({"command": "{folder}/plain"}, ["plain", "EACCES"], id="not-executable"),
        pytest.param({"command": "{folder}/shebang"}, ["shebang", "ENOENT"], id="no-interpreter"),
        pytest.param({"command": sys.executable, "cwd": "{folder}/gone"}, ["gone", "ENOENT"], id="no-cwd"),
        pytest.param({"command": sys.executable, "cwd": "{folder}/plain"}, ["plain"], id="cwd-is-a-file"),
        pytest.param({"command": "${NOT_SET}/x"}, ["NOT_SET"], id="variable-in-command"),
        pytest.param({"command": sys.executable, "args": ("${NOT_SET}",)}, ["NOT_SET"], id="variable-in-args"),
        pytest.param({"command": sys.executable, "env": {"A": "${NOT_SET}"}}, ["NOT_SET"], id="variable-in-env"),
        pytest.param({"command": sys.executable, "args": ("a\0b",)}, ["cannot be sent"], id="null-byte"),
    ],
)
async def test_what_cannot_be_started_says_which_server_and_why(
    tmp_path: Path, entry: dict[str, Any], words: list[str]
) -> None:
    script(tmp_path, "plain", "not a program", stat.S_IRUSR)
    script(tmp_path, "shebang", "#!/no/such/interpreter\n", stat.S_IRWXU)
    filled: dict[str, Any] = {
        k: v.replace("{folder}", str(tmp_path)) if isinstance(v, str) else v for k, v in entry.items()
    }
    async with real_connection(ServerConfig("broken", **filled)) as (connection, _):
        with pytest.raises(ServerError) as caught:
            await connection.ensure()
        assert [word for word in ["broken", *words] if word not in str(caught.value)] == []
        assert caught.value.hint
        assert connection.state is State.FAILED
        assert connection.failed_at is not None


async def test_a_program_is_found_on_the_entry_s_own_path_and_relative_to_its_folder(tmp_path: Path) -> None:
    odd = Odd(tmp_path)
    line = "#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in odd.argv) + "\n"
    script(tmp_path, "mine", line, stat.S_IRWXU)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    for entry in (
        ServerConfig("odd", command="mine", env={"PATH": path}),
        ServerConfig("odd", command="./mine", cwd=str(tmp_path)),
        ServerConfig("odd", command="mine", env={"PATH": path}, inherit_env=False),
    ):
        async with real_connection(entry) as (connection, _):
            assert await connection.request("tools/call", CALL)


def test_last_words_inside_of_a_private_key_are_none() -> None:
    tail = StderrTail(lambda data: None)
    tail.feed(b"-----BEGIN PRIVATE KEY-----\n" + b"MIIEvQIBADANBgkq\n" * 30 + b"hkiG9w0BAQEFAASC\n")
    assert "hkiG9w0BAQEFAASC" not in tail.last()
    assert "MIIE" not in tail.last()


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("pass", f"It printed nothing. Run it yourself: {sys.executable} -c pass"),
        ("import sys; sys.exit('no key')", "See: multi-mcp logs a"),
        ("print('no key')", "See: multi-mcp logs a"),
    ],
    ids=["nothing", "stderr", "stdout"],
)
async def test_the_log_of_a_server_that_ended_is_named_only_where_there_is_one(code: str, hint: str) -> None:
    async with real_connection(ServerConfig("a", command=sys.executable, args=("-c", code))) as (connection, _):
        with pytest.raises(ConnectFailedError) as caught:
            await connection.ensure()
    assert caught.value.hint == hint


ODD_LISTS = """
import json, sys
deep = '{"name":"deep","inputSchema":' + '{"a":' * 5000 + "{}" + "}" * 5000 + "}"
good = '{"name":"good","inputSchema":{"type":"object"},"description":"' + "x" * int(sys.argv[1]) + '"}'
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        told = json.dumps({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {}})
    else:
        told = '{"tools":[%s,%s,{"name":"nan","inputSchema":{"maximum":NaN}},{"name":"last"}]}' % (good, deep)
    if "id" in asked:
        print('{"jsonrpc":"2.0","id":%d,"result":%s}' % (asked["id"], told), flush=True)
"""


@pytest.mark.requirement("cat-each-list-apart")
@pytest.mark.parametrize("size", [1, 300_000])
async def test_an_entry_that_nobody_can_read_costs_only_itself(size: int) -> None:
    server = ServerConfig("a", command=sys.executable, args=("-I", "-S", "-c", ODD_LISTS, str(size)))
    async with real_connection(server) as (connection, _):
        offer = await connection.fetch()
        assert [tool["name"] for tool in offer.tools] == ["good", "last"]
        assert offer.failed == {}
