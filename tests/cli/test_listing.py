"""`multi-mcp list`. Never here: why a tool is hidden (the gateway's business)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from tests.cli.persons import Person
from tests.cli.running import FakeGateway, run_cli
from tests.cli.samples import row
from trayapp.cli.output import Table
from trayapp.cli.tools import STYLES, cells, chosen, name_of
from trayapp.model.errors import ServerNotFoundError
from trayapp.wire.control import INDEX, LIST, SEARCH

ROWS = [
    row("search"),
    row("delete", enabled=False),
    row("old", enabled=False, stale=True, exposed_name=None),
    row("odd", enabled=False, withheld="its schema is no object", description="\x1b[31mred"),
]


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
        console.print(table.rich())
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
        said = "Without the servers of this project, for those: multi-mcp list --project ~/src/shop\n"
        assert person.says("list").stderr == said
        for words in (["list", "--json"], ["list", "github"], ["list", "--project", "."]):
            assert person.says(*words).stderr == ""
        assert "this project's own need: --project ~/src/shop" in person.says("list", "own").stderr
        (person.folder / ".mcp.json").rename(folder / ".mcp.json")
        person.folder = folder
        assert person.says("list").stderr.endswith(f"--project '{folder}'\n")
