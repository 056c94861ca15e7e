"""`multi-mcp start`, `stop`, and the program without a verb, with real gateways."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.cli.running import RUN_TIMEOUT_S, Launch, environment, run_cli
from tests.cli.samples import FAILED, server, snapshot
from trayapp.cli.tray import plain_lines
from trayapp.model.lifecycle import State
from trayapp.model.status import ToolCounts
from trayapp.service.command_line import own_command
from trayapp.service.gateway_launch import await_ready, is_alive
from trayapp.service.pause import PAUSE_LOCK, START_LOCK, TrayLock
from trayapp.wire.lock import GatewayLock
from trayapp.wire.rundir import run_dir


@pytest.mark.requirement("file-first-run", "cli-json-shapes")
def test_the_first_start_writes_a_file_with_a_sample_that_works(started: Path) -> None:
    assert run_cli(started, "call", "sample_add", "a=20", "b=22").stdout == "42\n"
    text = (started / "servers.yaml").read_text()
    assert "# multi-mcp:" in text
    assert "clock: {enabled: true}" in text
    document = json.loads(run_cli(started, "status", "--json").stdout)
    assert [found["name"] for found in document["servers"]] == ["sample"]


@pytest.mark.requirement("proc-one-gateway", "cli-exit-codes", "cli-error-lines")
@pytest.mark.parametrize("words", [["start"], ["start", "--detach"], []])
def test_a_second_gateway_says_so_and_exits_with_7(started: Path, words: list[str]) -> None:
    done = run_cli(started, *words)
    assert done.stderr.startswith("Error: The gateway is already running (process ")
    assert done.stderr.endswith("\nSee it with: multi-mcp status\n")
    assert done.returncode == 7


@pytest.mark.requirement("proc-one-gateway")
def test_of_several_starts_at_once_one_wins_and_the_others_say_who(home: Path, start_cli: Launch) -> None:
    starts = [start_cli("start", "--detach") for _ in range(4)]
    errors = [start.communicate(timeout=40)[1] for start in starts]
    assert sorted(start.returncode for start in starts) == [0, 7, 7, 7]
    pid = json.loads(run_cli(home, "status", "--json").stdout)["gateway"]["pid"]
    assert all(f"(process {pid})" in said for said in errors)
    assert run_cli(home, "stop").returncode == 0


@pytest.mark.requirement("cli-stop")
def test_stop_returns_once_gateway_and_servers_are_gone(started: Path) -> None:
    run_cli(started, "call", "sample_clock")
    pid = json.loads(run_cli(started, "status", "--json").stdout)["gateway"]["pid"]
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    assert len(family) == 2
    done = run_cli(started, "stop")
    assert (done.stdout, done.returncode) == (f"Stopped the gateway (process {pid})\n", 0)
    assert not any(map(is_alive, family))


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_gateway_in_the_foreground_says_when_it_is_ready_and_ends_on_a_signal(
    home: Path, start_cli: Launch, number: signal.Signals
) -> None:
    running = start_cli("start")
    assert running.stderr is not None
    assert running.stderr.readline() == f"Gateway ready (process {running.pid})\n"
    running.send_signal(number)
    out, errors = running.communicate(timeout=20)
    assert (out, errors, running.returncode) == ("", "", 0)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_without_a_verb_the_gateway_runs_here_and_tells_its_state_line_by_line(home: Path, start_cli: Launch) -> None:
    running = start_cli()
    assert running.stdout is not None
    assert running.stdout.readline().startswith("No desktop was found, so there is no tray icon")
    assert running.stdout.readline() == "First time? In another terminal: multi-mcp setup\n"
    first = running.stdout.readline()
    assert first.startswith("Gateway ready, ")
    while "1 of 1 server ready, 3 tools" not in first:
        first = running.stdout.readline()
        assert first
    running.send_signal(signal.SIGTERM)
    _, errors = running.communicate(timeout=20)
    assert (errors, running.returncode) == ("The gateway has stopped\n", 0)


def test_a_pipe_gets_a_line_for_each_change_and_each_new_trouble() -> None:
    fine = server("a")
    new = server("a", State.CONNECTING, ToolCounts())
    broken = server("a", State.FAILED, error=FAILED, failed_s_ago=3.0)
    still = server("a", State.FAILED, error=FAILED, failed_s_ago=4.0)
    waking = server("a", State.CONNECTING)
    again = server("a", State.CONNECTING, error=FAILED, failed_s_ago=5.0)  # another attempt, which gets no line
    states = (new, fine, fine, waking, fine, broken, still, again, broken, fine)
    shown = list(plain_lines(iter(snapshot(one).to_json() for one in states)))
    assert shown == [
        "Gateway ready, 0 of 1 server ready, 0 tools; starting: a",
        "Gateway ready, 1 of 1 server ready, 3 tools",
        "Gateway ready, 0 of 1 server ready, 3 tools",
        "a: npx is not installed; Install node",
        "Gateway ready, 1 of 1 server ready, 3 tools",
    ]


@pytest.mark.requirement("cli-exit-codes")
def test_a_lock_that_another_process_holds_is_respected(home: Path) -> None:
    lock = GatewayLock(run_dir(environment(home)))
    lock.acquire()
    try:
        done = run_cli(home, "start")
    finally:
        lock.release()
    assert f"already running (process {os.getpid()})" in done.stderr
    assert done.returncode == 7


@pytest.mark.skipif(sys.platform == "win32", reason="sh")
@pytest.mark.requirement("tray-first")
def test_while_a_tray_starts_a_gateway_a_shims_start_ends_and_the_trays_own_goes_on(home: Path) -> None:
    turn = TrayLock(run_dir({"MULTI_MCP_HOME": str(home)}), START_LOCK)
    turn.hold()
    start, env = [*own_command(), "start", "--linger"], environment(home)
    try:
        shims = ["sh", "-c", '"$@"; exit $?', "sh", *start]  # so that `start` is no child of the lock's holder
        assert subprocess.run(shims, env=env, timeout=RUN_TIMEOUT_S, check=False).returncode == 7
        own = subprocess.Popen(start, env=env)
        await_ready(run_dir({"MULTI_MCP_HOME": str(home)}), RUN_TIMEOUT_S, own)
        own.terminate()
        assert own.wait(RUN_TIMEOUT_S) == 0
    finally:
        turn.end()


@pytest.mark.requirement("cli-starts")
def test_a_verb_that_needs_a_gateway_starts_one_that_goes_on(home: Path) -> None:
    listed = run_cli(home, "list")
    assert ("sample_add" in listed.stdout, listed.stderr, listed.returncode) == (True, "", 0)
    assert run_cli(home, "call", "sample_add", "a=2", "b=3", "--no-start").stdout == "5\n"
    assert (
        "--linger" in psutil.Process(json.loads(run_cli(home, "status", "--json").stdout)["gateway"]["pid"]).cmdline()
    )
    run_cli(home, "stop")


@pytest.mark.requirement("cli-starts")
def test_a_call_that_starts_a_gateway_waits_for_no_other_server(home: Path) -> None:
    mute = [sys.executable, "-c", "import sys; sys.stdin.read()"]  # never answers its handshake
    servers = {"sample": {"command": [*own_command(), "sample-server"]}, "mute": {"command": mute}}
    settings = {"http": False, "connect_timeout": 9}  # shorter than the wait of listing verbs
    (home / "servers.yaml").write_text(json.dumps({"settings": settings, "servers": servers}), encoding="utf-8")
    assert run_cli(home, "call", "sample_add", "a=2", "b=3").stdout == "5\n"
    found = json.loads(run_cli(home, "status", "--json").stdout)["servers"]
    assert {one["name"]: one["state"] for one in found} == {"sample": "connected", "mute": "connecting"}
    run_cli(home, "stop")


@pytest.mark.requirement("cli-starts", "tray-pause")
def test_while_the_user_paused_multi_mcp_no_verb_starts_it(home: Path) -> None:
    pause = TrayLock(run_dir({"MULTI_MCP_HOME": str(home)}), PAUSE_LOCK)
    pause.hold()
    try:
        done = run_cli(home, "list")
    finally:
        pause.end()
    assert (done.returncode, "paused" in done.stderr) == (4, True)


def test_a_gateway_that_dies_at_its_start_is_an_error_with_its_last_words(home: Path) -> None:
    (home / "run").write_text("in the way", encoding="utf-8")
    done = run_cli(home, "start", "--detach")
    assert "The gateway ended while starting" in done.stderr
    assert "To see why, run: multi-mcp start" in done.stderr  # there is no log to show
    assert done.returncode == 4
