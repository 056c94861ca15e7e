"""Snapshots in words. Never here: asking for one."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from tests.cli.samples import FAILED, as_sent, full_snapshot, server, snapshot
from trayapp.cli import status_view as view
from trayapp.model.lifecycle import State
from trayapp.model.status import ConfinementStatus, KeyringState, Problem, RefusedAccess, SignInStatus, ToolCounts


def test_the_header_counts_enabled_servers_and_their_tools() -> None:
    assert view.header(full_snapshot().to_json()) == "multi-mcp: 2 of 4 servers ready, 31 tools"


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ([], "0 of 0 servers ready, 0 tools"),
        ([State.IDLE], "1 of 1 server ready, 3 tools"),
        ([State.CONNECTING], "0 of 1 server ready, 3 tools"),
        ([State.STOPPING, State.DISABLED], "1 of 1 server ready, 3 tools"),
    ],
)
def test_a_server_is_ready_when_a_call_to_it_can_be_served(states: list[State], words: str) -> None:
    servers = [server(f"s{number}", state) for number, state in enumerate(states)]
    assert view.summary(snapshot(*servers).to_json()) == words


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
    assert row[2:] == ("2 of 5", "0", "1 stale; 2 withheld")
    row = view.table(snapshot(server("a", tools=ToolCounts(3, 2, 1))).to_json()).rows[0]
    assert row[2:] == ("2", "0", "1 stale")


def test_tools_that_wait_for_the_user_are_told_once() -> None:
    waiting = replace(server("chrome", State.IDLE, tools=ToolCounts(32, 31, 0, 1)), approvals=("css",))
    row = view.table(as_sent(snapshot(waiting))).rows[0]
    assert row[2:] == ("32", "0", "1 tool waits for you: multi-mcp approve chrome")


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
    assert view.lines(snapshot().to_json())[-1] == "No servers yet: multi-mcp edit"


@pytest.mark.parametrize(
    ("auth", "words"),
    [
        (None, ""),
        (SignInStatus(False), ""),
        (SignInStatus(True), "signed in"),
        (SignInStatus(True, renews=True), "signed in, renewed by itself"),
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
    assert "2 tools wait for you: multi-mcp approve gh" in shown


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
        ["refused read ~/.ssh/id and 1 more (a secret; see multi-mcp confine b)"],
        ["NOT CONFINED: no Landlock here"],
        [],
    ]
