"""`multi-mcp search`, `describe`, `index`, `status --tokens`: what is asked, and what is printed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import FakeGateway, run_cli
from trayapp.cli.status import cost_lines
from trayapp.model.errors import ServerNotFoundError, ToolNotFoundError
from trayapp.wire.control import COSTS, DESCRIBE, INDEX, LIST, SEARCH

ROW = {"server": "fs", "name": "read", "exposed_name": "fs_read", "score": 2.5}
FOUND = {
    "results": [[ROW]],
    "hits": [
        {"name": "fs_read", "description": "Reads a file\x1b[31m", "away": ""},
        {"name": "todo_read", "description": "Reads a task", "away": "needs sign-in: multi-mcp auth todo"},
    ],
    "missed": ["quickly"],
}
SHOWN = """\
TOOL       WHAT IT DOES
fs_read    Reads a file
todo_read  [needs sign-in: multi-mcp auth todo] Reads a task
No tool matches: quickly
More about one: multi-mcp describe fs_read
"""
COST: dict[str, Any] = {
    "mode": "search",
    "tools": {"count": 527, "tokens": 61_234},
    "search": {"tokens": 215, "direct": 0, "answer_tokens": 480},
    "break_even": {"tools": 6, "searches": 127},
    "servers": [{"name": f"s{n}", "tokens": 9_000 - n} for n in range(9)],
    "unused": {"since": 0, "tools": [], "tokens": 0},
}


@pytest.mark.requirement("cli-search")
def test_the_words_are_one_search_and_its_hits_are_printed_for_people(home: Path) -> None:
    with FakeGateway(home, {SEARCH: FOUND}) as gateway:
        done = run_cli(home, "search", "read", "a", "file", "--limit", "3", "--server", "fs")
    assert (done.returncode, done.stdout) == (0, SHOWN)
    assert gateway.requests == [(SEARCH, {"words": "read a file", "limit": 3, "server": "fs", "regex": False})]


@pytest.mark.requirement("cli-search")
def test_a_search_that_finds_nothing_says_where_all_tools_are(home: Path) -> None:
    with FakeGateway(home, {SEARCH: {"results": [[]], "hits": [], "missed": []}}):
        done = run_cli(home, "search", "zzz")
    assert (done.returncode, done.stdout) == (0, "No tool matches 'zzz'\nSee all of them: multi-mcp list\n")


@pytest.mark.requirement("cli-search", "cli-json-shapes")
def test_json_is_the_rows(home: Path) -> None:
    with FakeGateway(home, {SEARCH: FOUND}):
        done = run_cli(home, "search", "read", "--json")
    assert json.loads(done.stdout) == [ROW]


@pytest.mark.requirement("cli-search", "cli-json-shapes")
@pytest.mark.parametrize("stdin", [False, True])
def test_a_batch_prints_one_list_a_line(home: Path, stdin: bool) -> None:
    text = "read a file\n\nwrite ü\n"
    (home / "queries.txt").write_text(text, encoding="utf-8")
    with FakeGateway(home, {SEARCH: {"results": [[ROW], [], [ROW, ROW]], "text": ""}}) as gateway:
        done = run_cli(home, "search", "--batch", "-" if stdin else "queries.txt", "--json", stdin=text)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [[ROW], [], [ROW, ROW]]
    assert gateway.requests[0][1]["batch"] == ["read a file", "", "write ü"]


@pytest.mark.parametrize(
    "words", [("search", "x", "--batch", "q"), ("search", "--limit", "0"), ("search", "--batch", "no")]
)
def test_words_that_do_not_go_together_are_a_usage_error(home: Path, words: tuple[str, ...]) -> None:
    with FakeGateway(home, {}) as gateway:
        assert run_cli(home, *words).returncode in (1, 2)
    assert gateway.requests == []


def test_an_unknown_server_is_an_error_with_its_exit_code(home: Path) -> None:
    with FakeGateway(home, {SEARCH: ServerNotFoundError("nope", ["fs"])}):
        done = run_cli(home, "search", "x", "--server", "nope")
    assert (done.returncode, "fs" in done.stderr) == (5, True)


@pytest.mark.requirement("cli-describe")
def test_a_description_is_printed_and_json_is_the_definition(home: Path) -> None:
    found = {
        "server": "fs",
        "name": "read",
        "exposed_name": "fs_read",
        "tool": {"name": "fs_read"},
        "text": "fs_read\x07",
    }
    with FakeGateway(home, {DESCRIBE: found}) as gateway:
        shown = run_cli(home, "describe", "read", "--server", "fs").stdout
        assert shown == "fs_read\n\nExample: multi-mcp call fs_read\n"
        assert json.loads(run_cli(home, "describe", "read", "--json").stdout) == {
            key: found[key] for key in ("server", "name", "exposed_name", "tool")
        }
    assert gateway.requests[0] == (DESCRIBE, {"tool": "read", "server": "fs"})
    with FakeGateway(home, {DESCRIBE: ToolNotFoundError("raed", ["fs_read"])}):
        done = run_cli(home, "describe", "raed")
    assert (done.returncode, "Did you mean fs_read?" in done.stderr) == (1, True)


@pytest.mark.requirement("cli-index")
def test_the_index_is_printed_as_it_is(home: Path) -> None:
    with FakeGateway(home, {INDEX: {"text": "# 1 tool\n\n- `a`: b\n"}}):
        assert run_cli(home, "index").stdout == "# 1 tool\n\n- `a`: b\n"
        assert json.loads(run_cli(home, "index", "--json").stdout) == {"markdown": "# 1 tool\n\n- `a`: b\n"}


@pytest.mark.requirement("cli-tokens")
def test_the_costs_are_said_in_a_few_lines(home: Path) -> None:
    with FakeGateway(home, {COSTS: COST}):
        done = run_cli(home, "status", "--tokens")
        assert json.loads(run_cli(home, "status", "--tokens", "--json").stdout) == COST
    said = done.stdout
    for words in ("61,234 tokens for 527 tools", "215 tokens", "480", "6 tools", "127 searches", "s0 9,000"):
        assert words in said, words
    assert len(said.splitlines()) == 5
    assert run_cli(home, "status", "--tokens", "--watch").returncode == 2


@pytest.mark.requirement("history-unused")
def test_tools_that_nobody_called_are_named_where_tokens_are_counted() -> None:
    since = time.time() - 30 * 86_400
    tools = [{"server": "fs", "name": f"tool_{n}\x1b[31m", "tokens": 100 - n} for n in range(22)]
    said = cost_lines({**COST, "unused": {"since": since, "tools": tools, "tokens": 1_969}})
    assert said[-2] == "Not called for 30 days (the history): 22 tools, 1,969 tokens"
    assert said[-1].startswith("  fs/tool_0, fs/tool_1, ")
    assert said[-1].endswith("fs/tool_19, 2 more")
    assert "\x1b" not in said[-1]


def test_nothing_to_compare_leaves_the_break_even_out() -> None:
    empty = {**COST, "tools": {"count": 0, "tokens": 0}, "break_even": None, "servers": []}
    assert not [line for line in cost_lines(empty) if "Break-even" in line or "Most" in line]


@pytest.mark.requirement("cli-project")
@pytest.mark.parametrize(
    ("words", "method"),
    [(("list",), LIST), (("search", "x"), SEARCH), (("describe", "x"), DESCRIBE), (("index",), INDEX)],
)
def test_a_project_is_sent_as_the_folder_that_it_is(home: Path, words: tuple[str, ...], method: str) -> None:
    (home / "shop").mkdir()
    with FakeGateway(home, {}) as gateway:
        run_cli(home, *words, "--project", "shop")
    assert gateway.requests[0][1]["project"] == str((home / "shop").resolve())
    assert run_cli(home, *words, "--project", "nowhere").returncode == 2
