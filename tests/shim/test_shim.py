"""Tests of the shim as a client starts it: its first line, its imports, and how it finds or starts a gateway."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.running import environment
from trayapp.service.command_line import own_command
from trayapp.service.gateway_launch import await_gone, await_ready
from trayapp.shim.main import parse
from trayapp.shim.relay import EARLY_MOST, greeting, quoted
from trayapp.wire.control import SETTLE, SNAPSHOT, STOP, ControlClient
from trayapp.wire.endpoint import Link, listen
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.greeting import GREETING, Hello
from trayapp.wire.messages import Params
from trayapp.wire.rundir import run_dir, socket_path

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="the shim of Windows is another one")
LIMIT_S = 40.0


class Client:
    """The client of a shim."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._last_id = 0

    def ask(self, method: str, params: Any = None) -> Any:
        """Send a request and return its answer. Discard all other messages."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._last_id += 1
        request = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params or {}}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        while True:
            line = self.process.stdout.readline()
            assert line, "the shim ended"
            message = json.loads(line)
            if message.get("id") == self._last_id:
                return message

    def initialize(self) -> Any:
        info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        return self.ask("initialize", info)["result"]

    def end(self) -> tuple[bytes, bytes]:
        """Close the shim's stdin and wait for its end. Return the rest of its stdout and stderr."""
        return self.process.communicate(timeout=LIMIT_S)


@contextmanager
def shim(env: dict[str, str], *options: str, python: tuple[str, ...] = (), cwd: Path | None = None) -> Iterator[Client]:
    program, *arguments = own_command()
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [program, *python, *arguments, "stdio", *options], env=env, cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe
    ) as process:
        try:
            yield Client(process)
        finally:
            if process.poll() is None:
                process.kill()


@asynccontextmanager
async def gateway(run: str) -> AsyncIterator[list[Hello]]:
    """Run a gateway that answers every request with its method. Yield the first lines of its connections."""
    hellos: list[Hello] = []

    async def on_request(method: str, params: Params) -> dict[str, Any]:
        return {"method": method}

    def on_notify(method: str, params: Params) -> None:
        pass

    with anyio.fail_after(LIMIT_S):
        async with anyio.create_task_group() as tasks:

            def accept(hello: Hello, link: Link) -> FrameDispatcher:
                hellos.append(hello)
                dispatcher = FrameDispatcher(link.write)
                tasks.start_soon(dispatcher.run, on_request, on_notify)
                return dispatcher

            listener = await listen(run, accept, "1", tcp=False)
            yield hellos
            listener.close()
            tasks.cancel_scope.cancel()


# -- arguments and the first line --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        ([], {}),
        (["--expose", "tools"], {"expose": "tools"}),
        (["--expose=search"], {"expose": "search"}),
        (["--servers", "a,b", "--profile", "p"], {"servers": "a,b", "profile": "p"}),
        (["--servers=a=b"], {"servers": "a=b"}),
        (["--servers="], {"servers": ""}),
        (["--profile", "--expose"], {"profile": "--expose"}),
        (["--expose", "a", "--expose", "b"], {"expose": "b"}),
        (["--expose"], None),
        (["tools"], None),
        (["--unknown", "x"], None),
        (["-e", "tools"], None),
        (["--expose", "tools", "more"], None),
        ([""], None),
    ],
)
def test_the_words_after_the_verb_are_options_or_a_mistake(argv: list[str], options: dict[str, str] | None) -> None:
    assert parse(argv) == options


@given(st.text(st.characters(codec="utf-8")))
def test_any_text_is_quoted_as_json(text: str) -> None:
    assert json.loads(quoted(text)) == text
    assert "\n" not in quoted(text)


@given(
    st.dictionaries(st.sampled_from(["expose", "servers", "profile"]), st.text(st.characters(exclude_categories=())))
)
def test_the_first_line_is_one_line_of_json_even_for_names_that_are_no_text(options: dict[str, str]) -> None:
    line = greeting(options)
    assert line.startswith(GREETING)
    assert line.index(b"\n") == len(line) - 1
    said = json.loads(line[len(GREETING) :])
    told = {name: value.encode("utf-8", "replace").decode() for name, value in options.items()}
    assert said == {"kind": "session", "cwd": str(Path.cwd()), "pid": str(os.getpid()), **told}


@pytest.mark.requirement("shim-stdout-clean")
def test_a_wrong_word_is_said_on_stderr_only(home: Path) -> None:
    with shim(environment(home), "--expose") as client:
        out, said = client.end()
    assert (client.process.returncode, out) == (2, b"")
    assert said.startswith(b"usage: multi-mcp stdio")
    assert not (home / "run").exists()


@posix_only
@pytest.mark.anyio
async def test_the_gateway_hears_options_folder_and_process_of_the_shim(home: Path) -> None:
    env = environment(home)
    folder = home / 'a "folder" ü'
    folder.mkdir()
    async with gateway(run_dir(env)) as hellos:

        def use() -> int:
            with shim(env, "--expose", "tools", "--servers=a,b", cwd=folder) as client:
                assert client.initialize() == {"method": "initialize"}
                client.end()
                return client.process.pid

        pid = await anyio.to_thread.run_sync(use)
    (hello,) = hellos
    assert hello == Hello(
        "session", {"cwd": str(folder.resolve()), "pid": str(pid), "expose": "tools", "servers": "a,b"}
    )


@pytest.mark.skipif(sys.platform != "linux", reason="pipes are passed on Linux only")
@pytest.mark.anyio
async def test_a_session_that_lasts_goes_on_over_pipes(home: Path) -> None:
    async with gateway(run_dir(environment(home))):
        with shim(environment(home)) as client:
            assert await anyio.to_thread.run_sync(client.ask, "before") == answer_of(1, "before")
            await anyio.to_thread.run_sync(await_pipes, client.process.pid)
            for number in range(2, 5):
                assert await anyio.to_thread.run_sync(client.ask, "after") == answer_of(number, "after")
            assert client.end() == (b"", b"")


def await_pipes(pid: int) -> None:
    """Wait until the process has no open sockets, which means that it uses pipes."""
    deadline = time.monotonic() + LIMIT_S
    while any("socket:" in target for target in open_files(pid)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def open_files(pid: int) -> Iterator[str]:
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed in the meantime
            yield str(descriptor.readlink())


def answer_of(number: int, method: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": {"method": method}}


@posix_only
@pytest.mark.anyio
async def test_answers_of_any_length_arrive_whole(home: Path) -> None:
    """The lengths include lines that the shim passes on in parts, and lines after which it frees memory."""
    env = environment(home)
    async with gateway(run_dir(env)):

        def use() -> None:
            with shim(env) as client:
                for length in (*range(1, EARLY_MOST + 3), 1 << 17, 5 << 20, 1 << 17, 5 << 20, 3):
                    assert client.ask("m" * length, {})["result"] == {"method": "m" * length}
                assert client.end() == (b"", b"")

        await anyio.to_thread.run_sync(use)


SOON = "import sys; from trayapp.shim import main, relay; relay.GIVE_BACK_MS = 200; sys.exit(main.main([]))"


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's")
@pytest.mark.anyio
async def test_what_long_answers_freed_is_given_back_when_nobody_speaks(home: Path) -> None:
    env = environment(home)
    long, pipe, root = 6 << 20, subprocess.PIPE, Path(__file__).resolve().parents[2]
    async with gateway(run_dir(env)):

        def use() -> None:
            with subprocess.Popen([sys.executable, "-c", SOON], env=env, cwd=root, stdin=pipe, stdout=pipe) as process:
                client, own = Client(process), psutil.Process(process.pid)
                client.ask("m" * (1 << 17))
                before = own.memory_info().rss
                for _ in range(3):
                    assert client.ask("m" * long)["result"] == {"method": "m" * long}
                until = time.monotonic() + LIMIT_S
                while own.memory_info().rss > before + long / 2 and time.monotonic() < until:
                    time.sleep(0.05)
                assert own.memory_info().rss < before + long / 2
                client.end()

        await anyio.to_thread.run_sync(use)


FROM_NOWHERE = """
import os, sys
os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
os.execv(sys.argv[1], sys.argv[1:])
"""


@posix_only
@pytest.mark.anyio
async def test_a_folder_that_was_removed_stops_no_shim(home: Path) -> None:
    env = environment(home)
    async with gateway(run_dir(env)) as hellos:

        def use() -> None:
            command = [sys.executable, "-c", FROM_NOWHERE, *own_command(), "stdio"]
            pipe = subprocess.PIPE
            with subprocess.Popen(command, env=env, cwd=home, stdin=pipe, stdout=pipe, stderr=pipe) as process:
                client = Client(process)
                assert client.initialize() == {"method": "initialize"}
                client.end()

        await anyio.to_thread.run_sync(use)
    assert hellos[0].options["cwd"] == ""


# -- imports -----------------------------------------------------------------------------------------------------

IMPORT = re.compile(r"^import time: +\d+ \| +\d+ \| ( *)(\S+)$", re.MULTILINE)
LISTED = {"os", "sys", "select", "time", "_socket", "socket", "errno"}
OURS = {"trayapp", "trayapp.shim", "trayapp.shim.main", "trayapp.shim.relay", "trayapp.wire", "trayapp.wire.rundir"}
AFTER_THE_ANSWER = "trayapp.shim.ledger"


def imported(importtime: str) -> dict[str, str]:
    """Return the modules in the report of `python -X importtime`, each with the outermost import that loaded it.

    The report lists an inner import above the outer one, with more indentation.
    """
    found: dict[str, str] = {}
    outermost = ""
    for spaces, name in reversed(IMPORT.findall(importtime)):
        if not spaces:
            outermost = name
        found[name] = outermost
    return found


@posix_only
@pytest.mark.anyio
@pytest.mark.requirement("shim-stdlib-only")
async def test_before_the_first_answer_only_the_few_listed_modules_are_loaded(home: Path) -> None:
    env = environment(home)
    python = ("-X", "importtime")
    bare = imported((await anyio.run_process([sys.executable, *python, "-c", "pass"], env=env)).stderr.decode())

    def use() -> str:
        with shim(env, python=python) as client:
            assert client.initialize() == {"method": "initialize"}
            return client.end()[1].decode()

    async with gateway(run_dir(env)):
        loaded = imported(await anyio.to_thread.run_sync(use))
    assert {"trayapp.shim.relay", "trayapp.wire.rundir", "select"} <= loaded.keys()
    before = {name for name, outermost in loaded.items() if outermost != AFTER_THE_ANSWER}
    assert before - bare.keys() <= LISTED | OURS
    assert not any(name.split(".")[0] == "mcp" for name in loaded)


@posix_only
@pytest.mark.requirement("proc-import-weight", "cat-cache-first")
def test_neither_shim_nor_gateway_load_the_sdk_before_a_cached_list_is_served(home: Path) -> None:
    env = environment(home)
    fill_cache(env)
    with (home / "imports").open("w+b") as said:
        program, *arguments = own_command()
        command = [program, "-X", "importtime", *arguments, "start"]
        with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=said) as process:
            await_ready(run_dir(env), process=process)
            with shim(env, python=("-X", "importtime")) as client:
                client.initialize()
                assert client.ask("tools/list")["result"]["tools"]
                pids = [server["pid"] for server in snapshot(env)["servers"]]
                loaded = imported(client.end()[1].decode())
            stop(env)
            process.wait(LIMIT_S)
        said.seek(0)
        loaded |= imported(said.read().decode())
    assert pids == [None]
    assert "trayapp.gateway.gateway" in loaded
    assert [name for name in loaded if name.split(".")[0] in ("mcp", "mcp_types", "httpx2", "starlette")] == []


def fill_cache(env: dict[str, str]) -> None:
    """Run a session with the sample server and stop the gateway, so that the server's tools are cached."""
    with shim(env) as client:
        client.initialize()
        with ControlClient(run_dir(env), LIMIT_S) as control:
            control.call(SETTLE)
        assert client.ask("tools/list")["result"]["tools"]
        client.end()
    stop(env)


def snapshot(env: dict[str, str]) -> dict[str, Any]:
    with ControlClient(run_dir(env)) as control:
        found: dict[str, Any] = control.call(SNAPSHOT)
        return found


def stop(env: dict[str, str]) -> None:
    pid = snapshot(env)["gateway"]["pid"]
    with ControlClient(run_dir(env)) as control:
        control.call(STOP)
    assert await_gone(pid, LIMIT_S)


# -- starting a gateway ------------------------------------------------------------------------------------------


@pytest.mark.requirement("proc-shim-starts-gateway")
def test_without_a_gateway_one_is_started_that_outlives_the_shim(home: Path) -> None:
    env = environment(home)
    with shim(env) as client:
        assert client.initialize()["serverInfo"]["name"] == "multi-mcp"
        assert client.ask("ping")["result"] == {}
        pid = snapshot(env)["gateway"]["pid"]
        assert pid != client.process.pid
        if sys.platform != "win32":
            assert os.getsid(pid) == pid
        out, said = client.end()
        assert (client.process.returncode, out, said) == (0, b"", b"")
    latest = time.monotonic() + LIMIT_S
    while (after := snapshot(env)["gateway"])["sessions"] and time.monotonic() < latest:
        time.sleep(0.02)  # the gateway may read our request before the end of the shim's connection
    assert (after["pid"], after["sessions"]) == (pid, [])
    with shim(env) as client:
        assert client.initialize()["serverInfo"]["name"] == "multi-mcp"
        assert snapshot(env)["gateway"]["pid"] == pid
        client.end()
    stop(env)


@posix_only
@pytest.mark.requirement("proc-shim-starts-gateway")
def test_what_a_killed_gateway_left_behind_is_no_hindrance(home: Path) -> None:
    env = environment(home)
    run = Path(run_dir(env))
    run.mkdir()
    left = socket.socket(socket.AF_UNIX)
    left.bind(socket_path(str(run)))
    left.close()
    (run / "gateway.lock").write_text("1")
    (run / "endpoint.json").write_text('{"pid":1')
    with shim(env) as client:
        assert client.initialize()["serverInfo"]["name"] == "multi-mcp"
        client.end()
    stop(env)


@pytest.mark.requirement("proc-one-gateway", "proc-shim-starts-gateway")
def test_shims_that_start_at_once_share_one_gateway(home: Path) -> None:
    env = environment(home)
    clients = [shim(env) for _ in range(5)]
    running = [client.__enter__() for client in clients]
    assert [client.initialize()["serverInfo"]["name"] for client in running] == ["multi-mcp"] * 5
    assert len(snapshot(env)["gateway"]["sessions"]) == 5
    assert {client.end() for client in running} == {(b"", b"")}
    for client in clients:
        client.__exit__(None, None, None)
    stop(env)


@posix_only
def test_a_home_too_deep_for_a_socket_is_served_all_the_same(home: Path) -> None:
    env = environment(home / ("d" * 120))
    Path(env["MULTI_MCP_HOME"]).mkdir()
    place = Path(socket_path(run_dir(env))).parent
    with shim(env) as client:
        assert client.initialize()["serverInfo"]["name"] == "multi-mcp"
        client.end()
    stop(env)
    place.rmdir()


@posix_only
@pytest.mark.anyio
@pytest.mark.requirement("shim-stdout-clean")
async def test_a_client_that_does_not_read_any_more_ends_the_shim_without_a_word(home: Path) -> None:
    env = environment(home)
    async with gateway(run_dir(env)):

        def use() -> tuple[int, bytes]:
            with shim(env) as client:
                client.initialize()
                process = client.process
                assert process.stdin is not None
                assert process.stdout is not None
                assert process.stderr is not None
                process.stdout.close()
                process.stdin.write(b'{"jsonrpc":"2.0","id":9,"method":"ping"}\n')
                process.stdin.flush()
                return process.wait(LIMIT_S), process.stderr.read()

        assert await anyio.to_thread.run_sync(use) == (0, b"")
