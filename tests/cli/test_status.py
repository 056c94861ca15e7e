"""`multi-mcp status` as a person runs it, against a control server. Never here: the words (test_status_view)."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from tests.cli.running import FakeGateway, Launch, run_cli
from tests.cli.samples import as_sent, full_snapshot, server, snapshot
from trayapp.model.lifecycle import State
from trayapp.wire.control import SNAPSHOT, WATCH


@pytest.mark.requirement("cli-json-shapes")
def test_json_is_the_snapshot_as_it_came(home: Path) -> None:
    with FakeGateway(home, {SNAPSHOT: full_snapshot().to_json()}):
        done = run_cli(home, "status", "--json")
    assert json.loads(done.stdout) == as_sent(full_snapshot())
    assert (done.returncode, done.stderr) == (0, "")


def test_json_has_the_documented_shape() -> None:
    document = full_snapshot().to_json()
    assert document.keys() == {"version", "revision", "gateway", "servers", "problems"}
    assert document["gateway"].keys() == {"state", "pid", "version", "uptime_s", "http_url", "sessions"}
    assert document["gateway"]["sessions"][0].keys() == {"client", "transport", "protocol", "expose"}
    servers = {"name", "state", "lifecycle", "transport", "protocol", "tools", "pid", "error"}
    assert document["servers"][0].keys() == servers | {"failed_s_ago", "last_used_s_ago", "calls"}
    assert document["servers"][0]["tools"].keys() == {"total", "enabled", "stale", "withheld"}
    assert document["problems"][0].keys() >= {"file", "line", "message", "hint"}


def test_text_shows_servers_and_problems_and_exits_0(home: Path) -> None:
    with FakeGateway(home, {SNAPSHOT: full_snapshot().to_json()}):
        done = run_cli(home, "status")
    assert done.stdout.startswith("multi-mcp: 2 of 4 servers ready, 31 tools\n")
    assert "/home/me/servers.yaml:12: files: Unknown key comand" in done.stdout
    assert done.returncode == 0


@pytest.mark.requirement("cli-exit-codes", "cli-error-lines")
@pytest.mark.parametrize("verb", [["status"], ["status", "--watch"], ["list", "--no-start"], ["stop"]])
def test_without_a_gateway_two_lines_on_stderr_and_exit_code_4(home: Path, verb: list[str]) -> None:
    done = run_cli(home, *verb)
    assert done.stderr == "Error: The gateway is not running\nStart it with: multi-mcp start --detach\n"
    assert (done.returncode, done.stdout) == (4, "")


@pytest.mark.requirement("cli-error-lines")
def test_an_error_with_json_is_a_document_on_stdout_and_the_lines_on_stderr(home: Path) -> None:
    done = run_cli(home, "status", "--json")
    error = {
        "title": "The gateway is not running",
        "hint": "Start it with: multi-mcp start --detach",
        "code": "no_gateway",
    }
    assert json.loads(done.stdout) == {"error": error}
    assert len(done.stderr.splitlines()) == 2
    assert done.returncode == 4


def test_watch_in_a_pipe_has_a_line_for_each_change_and_ends_with_the_gateway(home: Path, start_cli: Launch) -> None:
    states = (State.CONNECTING, State.CONNECTING, State.CONNECTED)
    snapshots = tuple(snapshot(server("a", state), revision=n).to_json() for n, state in enumerate(states))
    with FakeGateway(home, {}, snapshots) as gateway:
        watching = start_cli("status", "--watch")
        assert watching.stdout is not None
        lines = [watching.stdout.readline() for _ in range(2)]
    rest, errors = watching.communicate(timeout=20)
    assert lines == ["0 of 1 server ready, 3 tools\n", "1 of 1 server ready, 3 tools\n"]
    assert (rest, watching.returncode) == ("", 4)
    assert errors.startswith("Error: The gateway ended")
    assert gateway.requests == [(WATCH, {})]


def test_watch_with_json_has_one_document_a_line(home: Path, start_cli: Launch) -> None:
    snapshots = [snapshot(server("a"), revision=n) for n in range(3)]
    with FakeGateway(home, {}, tuple(one.to_json() for one in snapshots)):
        watching = start_cli("status", "--watch", "--json")
        assert watching.stdout is not None
        lines = [watching.stdout.readline() for _ in snapshots]
    watching.communicate(timeout=20)
    assert [json.loads(line) for line in lines] == [as_sent(one) for one in snapshots]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end in another way there")
def test_watching_ends_without_a_word_when_the_reader_goes_away(home: Path, start_cli: Launch) -> None:
    with FakeGateway(home, {}, (snapshot().to_json(),)):
        watching = start_cli("status", "--watch")
        assert watching.stdout is not None
        watching.stdout.readline()
        watching.stdout.close()
        assert watching.stderr is not None
        assert watching.stderr.read() == ""  # it does not wait for a change that would show it
        watching.wait(20)


@pytest.mark.skipif(sys.platform == "win32", reason="a console event there, not a signal")
def test_ctrl_c_ends_without_a_traceback(home: Path, start_cli: Launch) -> None:
    with FakeGateway(home, {}, (snapshot().to_json(),)):
        watching = start_cli("status", "--watch")
        assert watching.stdout is not None
        watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, errors = watching.communicate(timeout=20)
    assert (watching.returncode, errors.strip()) == (130, "")
