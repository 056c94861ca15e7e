"""`multi-mcp history`: its requests and its output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import FakeGateway, run_cli
from trayapp.model.errors import MultiMcpError
from trayapp.wire.control import HISTORY, HISTORY_CLEAR, HISTORY_SHOW

ROW: dict[str, Any] = {
    "id": 7, "time": 1_700_000_000.0, "client": "claude\x1b[31m", "session": "stdio 1", "project": "/src",
    "server": "github", "tool": "create_issue", "kind": "write", "outcome": "error", "ms": 1234.5, "sent": 20,
    "received": 3_000, "tokens": 700, "allowed": "", "error": "no\x1b]0;x\x07 rights",
}  # fmt: skip
WHOLE = {**ROW, "arguments": '{"title":"a\\u001b[1m bug"}', "result": '{"content":[{"te'}


@pytest.mark.requirement("history-verbs")
def test_the_calls_are_a_table_the_newest_last(home: Path) -> None:
    rows = [{**ROW, "id": 8}, ROW]
    with FakeGateway(home, {HISTORY: {"rows": rows, "enabled": True, "problem": None}}) as gateway:
        done = run_cli(home, "history", "a", "bug", "--server", "github", "--failed", "--since", "2h", "--limit", "9")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["ID", "TIME", "CLIENT", "TOOL", "OUTCOME", "TOOK", "SIZE"]
    assert [line.split()[0] for line in lines[1:]] == ["7", "8"]
    assert "github/create_issue" in lines[1]
    assert "1.2 s" in lines[1]
    assert "\x1b" not in done.stdout
    asked = {"words": "a bug", "server": "github", "tool": None, "client": None, "failed": True, "limit": 9}
    assert gateway.requests == [(HISTORY, {**asked, "since_s": 7200.0})]


@pytest.mark.requirement("history-verbs", "cli-json-shapes")
def test_json_is_the_rows(home: Path) -> None:
    with FakeGateway(home, {HISTORY: {"rows": [ROW], "enabled": True, "problem": None}}):
        assert json.loads(run_cli(home, "history", "--json").stdout) == [ROW]


@pytest.mark.requirement("history-verbs")
def test_one_call_with_its_arguments_and_result(home: Path) -> None:
    with FakeGateway(home, {HISTORY_SHOW: WHOLE}) as gateway:
        done = run_cli(home, "history", "show", "7")
    assert gateway.requests == [(HISTORY_SHOW, {"id": 7})]
    assert "github/create_issue error: no rights" in done.stdout
    assert "\\u001b[1m bug" in done.stdout
    assert '{"content":[{"te ...' in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.requirement("history-verbs")
def test_clear_says_how_many(home: Path) -> None:
    with FakeGateway(home, {HISTORY_CLEAR: {"cleared": 12}}):
        assert run_cli(home, "history", "clear").stdout == "Deleted the history of 12 calls\n"


@pytest.mark.requirement("history-verbs")
def test_why_there_is_nothing(home: Path) -> None:
    problem = {"title": "The disk is full", "hint": "Make room"}
    with FakeGateway(home, {HISTORY: {"rows": [], "enabled": False, "problem": problem}}):
        done = run_cli(home, "history")
    assert done.stdout == "The history is empty\n"
    assert "switched off" in done.stderr
    assert "The disk is full" in done.stderr
    with FakeGateway(home, {HISTORY_SHOW: MultiMcpError("No call has the number 3", "See")}):
        assert run_cli(home, "history", "show", "3").returncode == 1


@pytest.mark.parametrize("words", [("show",), ("show", "x"), ("--since", "soon"), ("--limit", "0")])
def test_wrong_words_are_a_usage_error(home: Path, words: tuple[str, ...]) -> None:
    assert run_cli(home, "history", *words).returncode == 2
