"""`multi-mcp list`. Never here: why a tool is hidden (the gateway's business)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.persons import Person
from tests.cli.running import FakeGateway, run_cli
from tests.cli.samples import row
from trayapp.cli.listing import chosen
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
        ["github_delete", "disabled", "Does", "delete."],
        ["github/old", "stale", "Does", "old."],
        ["github_odd", "withheld:", "its", "schema", "is", "no", "object", "red"],
    ]


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
    with FakeGateway(home, {LIST: ROWS[:1], SEARCH: {"results": [[]], "text": ""}, INDEX: {"text": ""}}, (), ("a: b",)):
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
