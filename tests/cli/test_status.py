"""`multi-mcp status` as a person runs it, with a fake gateway, and snapshots as text."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.cli.running import FakeGateway, Launch, run_cli
from tests.cli.samples import FAILED, as_sent, full_snapshot, server, snapshot
from trayapp.cli import status as view
from trayapp.model.errors import Problem
from trayapp.model.lifecycle import State
from trayapp.model.status import ConfinementStatus, KeyringState, RefusedAccess, SignInStatus, ToolCounts
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
    first = server("a", State.CONNECTING, ToolCounts())
    waking = server("a", State.CONNECTING)  # a start because of a call gets no line
    states = (first, first, server("a", State.CONNECTED), waking, server("a", State.CONNECTED))
    snapshots = tuple(snapshot(state, revision=n).to_json() for n, state in enumerate(states))
    with FakeGateway(home, {}, snapshots) as gateway:
        watching = start_cli("status", "--watch")
        assert watching.stdout is not None
        lines = [watching.stdout.readline() for _ in range(2)]
    rest, errors = watching.communicate(timeout=20)
    assert lines == ["0 of 1 server ready, 0 tools; starting: a\n", "1 of 1 server ready, 3 tools\n"]
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
        assert watching.stderr.read() == ""  # it ended without waiting for another change
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


def test_the_header_counts_enabled_servers_and_their_tools() -> None:
    assert view.header(full_snapshot().to_json()) == "multi-mcp: 2 of 4 servers ready, 31 tools"


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ([], "0 of 0 servers ready, 0 tools"),
        ([State.IDLE], "1 of 1 server ready, 3 tools"),
        ([State.CONNECTING], "1 of 1 server ready, 3 tools"),
        ([State.FAILED, State.NEEDS_AUTH], "0 of 2 servers ready, 6 tools"),
        ([State.STOPPING, State.DISABLED], "1 of 1 server ready, 3 tools"),
    ],
)
def test_a_server_is_ready_when_a_call_to_it_can_be_served(states: list[State], words: str) -> None:
    servers = [server(f"s{number}", state) for number, state in enumerate(states)]
    assert view.summary(snapshot(*servers).to_json()) == words


def test_a_server_that_starts_without_known_tools_or_after_a_failure_is_not_ready() -> None:
    for one in (server("a", State.CONNECTING, ToolCounts()), server("a", State.CONNECTING, error=FAILED)):
        assert view.summary(snapshot(one).to_json()).startswith("0 of 1 server ready")


def test_the_whole_view_in_a_pipe() -> None:
    assert view.lines(full_snapshot().to_json()) == [
        "multi-mcp: 2 of 4 servers ready, 31 tools",
        "Running for 3 min, process 4711, 1 client (claude-code), http://127.0.0.1:7461/mcp",
        "",
        "SERVER  STATE          TOOLS     CALLS  NOTE",
        "github  connected      24 of 26  5",
        "files   idle           3         0",
        "broken  failed         4         0      npx is not installed (12 s ago); Install node",
        "linear  needs sign-in  0         0",
        "off     disabled       0 of 2    0",
        "",
        "1 problem:",
        "/home/me/servers.yaml:12: files: Unknown key comand",
        "  Did you mean command?",
    ]


def test_stale_and_withheld_tools_are_noted() -> None:
    row = view.table(snapshot(server("a", tools=ToolCounts(5, 2, 1, 2))).to_json()).rows[0]
    assert row[2:] == (
        "2 of 5",
        "0",
        "1 tool is gone (which: multi-mcp list a --stale); 2 withheld (why: multi-mcp list a --withheld)",
    )
    row = view.table(snapshot(server("a", tools=ToolCounts(3, 2, 1))).to_json()).rows[0]
    assert row[2:] == ("2", "0", "1 tool is gone (which: multi-mcp list a --stale)")


def test_tools_that_wait_for_the_user_are_told_once() -> None:
    waiting = replace(server("chrome", State.IDLE, tools=ToolCounts(32, 31, 0, 1)), approvals=("css",))
    row = view.table(as_sent(snapshot(waiting))).rows[0]
    assert row[2:] == ("32", "0", "1 tool waits for your approval: multi-mcp approve chrome")


def test_a_problem_without_a_line_or_file_says_what_it_knows() -> None:
    problems = (
        Problem("", 0, "a/x is listed as a_x_2", server="a", fatal=False),
        Problem("/f", 0, "Unreadable"),
        Problem("/f", 3, "files has no command", server="files"),
    )
    assert view.problem_lines(snapshot(problems=problems).to_json()) == [
        "3 problems:",
        "a/x is listed as a_x_2",
        "/f: Unreadable",
        "/f:3: files has no command",
    ]


def test_what_servers_say_is_cleaned() -> None:
    hostile = server("a", State.FAILED, error={**FAILED, "title": "\x1b[2Jgone\nsecond"}, failed_s_ago=1.0)
    lines = view.lines(snapshot(hostile).to_json())
    assert "a       failed  3      0      gone second (1 s ago); Install node" in lines


def test_no_servers_at_all_says_what_to_do() -> None:
    assert view.lines(snapshot().to_json())[-1] == "No servers yet: multi-mcp setup"


@pytest.mark.parametrize(
    ("auth", "words"),
    [
        (None, ""),
        (SignInStatus(False), ""),
        (SignInStatus(True), "signed in"),
        (SignInStatus(True, renews=True), "signed in, renewed automatically"),
        (SignInStatus(True, kept=False), "signed in, lost when the gateway ends"),
    ],
)
def test_a_sign_in_is_told_in_words(auth: SignInStatus | None, words: str) -> None:
    assert view.signed_in_words(asdict(auth) if auth else None) == words


def test_a_wish_for_more_permissions_says_how_to_grant_them() -> None:
    wanting = server("web", State.CONNECTED, auth=SignInStatus(True, wanted="write"))
    row = next(line for line in view.lines(as_sent(snapshot(wanting))) if line.startswith("web"))
    assert "multi-mcp auth web" in row


@pytest.mark.requirement("vault-states")
@pytest.mark.parametrize(
    ("state", "told"), [(None, ""), ("available", ""), ("locked", "is locked"), ("missing", "is missing")]
)
def test_a_keyring_that_keeps_nothing_is_told(state: KeyringState | None, told: str) -> None:
    made = snapshot(server("web"))
    error = {"title": f"The keyring {told}", "hint": "Do something"} if told else None
    made = replace(made, gateway=replace(made.gateway, keyring=state, keyring_error=error))
    lines = "\n".join(view.lines(as_sent(made)))
    assert ("The keyring" in lines, told in lines) == (bool(told), True)


@pytest.mark.requirement("pin-verb")
def test_tools_that_wait_for_an_approval_are_a_note_with_the_command() -> None:
    waiting = replace(server("gh", State.IDLE), approvals=("a", "b"))
    shown = "\n".join(view.lines(snapshot(waiting).to_json()))
    assert "2 tools wait for your approval: multi-mcp approve gh" in shown


@pytest.mark.requirement("confine-refused", "confine-or-not")
def test_what_was_refused_and_what_runs_unconfined_stand_in_the_notes() -> None:
    first = RefusedAccess("write", "~/out", "confine: {write: [~/out]}")
    key = RefusedAccess("read", "~/.ssh/id", "confine: {read: [~/.ssh/id]}", secret=True)
    told = {
        "a": ConfinementStatus("landlock", refused=(first,)),
        "b": ConfinementStatus("landlock", refused=(first, key)),
        "c": ConfinementStatus("open", "no Landlock here"),
        "d": ConfinementStatus("landlock"),
    }
    servers = [replace(server(name, State.IDLE), confinement=status) for name, status in told.items()]
    sent = snapshot(*servers).to_json()["servers"]
    assert [view.confinement_notes(one) for one in sent] == [
        ["refused write ~/out (to allow it: confine: {write: [~/out]}; see multi-mcp confine a)"],
        ["refused read ~/.ssh/id and 1 more (protected; see multi-mcp confine b)"],
        ["NOT CONFINED: no Landlock here"],
        [],
    ]
    failed = sent[3] | {"error": {"title": "Cannot connect to d: No module named x", "hint": ""}}
    assert view.confinement_notes(failed) == ["its confinement may be the cause: multi-mcp confine d"]
