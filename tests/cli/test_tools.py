"""`multi-mcp list`, `search`, `describe`, `index` and `status --tokens`: their requests and their output."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.cli.persons import Person
from tests.cli.running import FakeGateway, run_cli
from tests.cli.samples import row
from trayapp.cli.output import Table
from trayapp.cli.status import cost_lines
from trayapp.cli.tools import STYLES, cells, chosen, name_of
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


ROWS = [
    row("search"),
    row("delete", enabled=False),
    row("old", enabled=False, stale=True, exposed_name=None),
    row("odd", enabled=False, withheld="its schema is no object", description="\x1b[31mred"),
]


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
    assert said[-2] == "In 30 days of history, 22 tools (1,969 tokens) had no call:"
    assert said[-1].startswith("  fs/tool_0, fs/tool_1, ")
    assert said[-1].endswith("fs/tool_19, 2 more")
    assert "\x1b" not in said[-1]
    today = {**COST, "unused": {"since": time.time() - 21, "tools": tools, "tokens": 1_969}}
    assert cost_lines(today) == cost_lines(COST)  # 21 s of history is too little to judge


def test_the_break_even_is_said_in_searches_only_where_one_pays() -> None:
    (said,) = (line for line in cost_lines(COST) if "Break-even" in line)
    assert said.endswith("from 6 tools of this size, the tool mcp and one search cost less than the list. For your"
                         " tools: up to 127 searches in a session")  # fmt: skip
    (few,) = (line for line in cost_lines({**COST, "break_even": {"tools": 5, "searches": 0}}) if "Break-even" in line)
    assert few.endswith("less than the list")


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


@pytest.mark.requirement("cli-json-shapes")
def test_json_is_the_rows_as_they_came(home: Path) -> None:
    with FakeGateway(home, {LIST: ROWS}) as gateway:
        done = run_cli(home, "list", "github", "--json")
    assert json.loads(done.stdout) == ROWS
    assert gateway.requests == [(LIST, {"server": "github"})]
    keys = {"server", "name", "exposed_name", "enabled", "stale", "withheld", "description"}
    assert all(found.keys() == keys for found in json.loads(done.stdout))


def test_text_has_a_line_a_tool_with_what_keeps_it_from_clients(home: Path) -> None:
    with FakeGateway(home, {LIST: ROWS}):
        done = run_cli(home, "list")
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["TOOL", "NOTE", "DESCRIPTION"],
        ["github_search", "Does", "search."],
        ["github_delete", "off", "Does", "delete."],
        ["github/old", "stale", "Does", "old."],
        ["github_odd", "withheld", "red"],
        [],
        ["github_odd", "is", "withheld:", "its", "schema", "is", "no", "object"],
    ]


@pytest.mark.requirement("cli-names-whole")
@pytest.mark.parametrize("columns", [60, 80, 100, 120, 160, 200])
def test_on_a_terminal_of_any_width_every_name_and_note_is_whole_and_every_description_begins(columns: int) -> None:
    why = "orders.override: with [overloaded]. " * 5
    long = row("x" * 50, description="Retrieve matched CSS rules, inline styles and more. " * 5)
    rows = [*ROWS, long, row("get_css_styles", enabled=False, withheld=why, description=long["description"])]
    table = Table(("TOOL", "NOTE", "DESCRIPTION"), [cells(one) for one in rows], STYLES)
    console = Console(width=columns, color_system=None)
    with console.capture() as captured:
        console.print(table)
    lines = captured.get().splitlines()
    assert all(len(line) <= columns for line in lines)
    words = [line.split() for line in lines]
    assert {name_of(one) for one in rows} <= {line[0] for line in words}
    assert ["github_get_css_styles", "withheld"] in [line[:2] for line in words]
    assert sum("Retrieve matched" in line for line in lines) == 2


@pytest.mark.parametrize(
    ("disabled", "stale", "withheld", "names"),
    [
        (False, False, False, ["search", "delete", "old", "odd"]),
        (True, False, False, ["delete", "old"]),
        (False, True, False, ["old"]),
        (False, False, True, ["odd"]),
        (False, True, True, ["old", "odd"]),
    ],
)
def test_filters_add_up(disabled: bool, stale: bool, withheld: bool, names: list[str]) -> None:
    assert [found["name"] for found in chosen(ROWS, disabled=disabled, stale=stale, withheld=withheld)] == names


def test_nothing_to_list_says_so(home: Path) -> None:
    with FakeGateway(home, {LIST: ROWS[:1]}):
        done = run_cli(home, "list", "--stale")
    assert (done.stdout, done.returncode) == ("No such tools\n", 0)


@pytest.mark.requirement("cli-exit-codes")
def test_an_error_of_the_gateway_keeps_its_words_and_exit_code(home: Path) -> None:
    with FakeGateway(home, {LIST: ServerNotFoundError("nix", ["github"])}):
        done = run_cli(home, "list", "nix")
    assert done.stderr == "Error: No server is named nix\nKnown servers: github\n"
    assert done.returncode == 5


@pytest.mark.requirement("cli-lacking")
def test_what_the_list_lacks_is_said_below_it_and_not_in_json(home: Path) -> None:
    with FakeGateway(
        home, {LIST: ROWS[:1], SEARCH: {"results": [[]], "hits": [], "missed": []}, INDEX: {"text": ""}}, (), ("a: b",)
    ):
        for words in (["list"], ["search", "x"], ["index"]):
            assert run_cli(home, *words).stderr == "a: b\n"
            assert run_cli(home, *words, "--json").stderr == ""


@pytest.mark.requirement("cli-project")
def test_in_a_project_the_way_to_its_servers_is_named(person: Person) -> None:
    folder = person.folder.parent / "two words"
    folder.mkdir()
    missing = ServerNotFoundError("own", ["github"])
    with FakeGateway(person.home, {LIST: lambda asked: missing if asked["server"] == "own" else ROWS}):
        assert person.says("list").stderr == ""
        assert "--project" not in person.says("list", "own").stderr
        (person.folder / ".mcp.json").write_text("{}", encoding="utf-8")
        said = "The servers of this project are not listed. To list them: multi-mcp list --project ~/src/shop\n"
        assert person.says("list").stderr == said
        for words in (["list", "--json"], ["list", "github"], ["list", "--project", "."]):
            assert person.says(*words).stderr == ""
        assert "for this project, pass --project ~/src/shop" in person.says("list", "own").stderr
        (person.folder / ".mcp.json").rename(folder / ".mcp.json")
        person.folder = folder
        assert person.says("list").stderr.endswith(f"--project '{folder}'\n")
