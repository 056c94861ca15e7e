"""Tables in plain text. Never here: what a verb shows."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from trayapp.cli.output import Table, has_colors

TABLE = Table(("NAME", "STATE"), [("漢字", "idle"), ("long name", "failed [bold]x[/bold]")], {"idle": "dim"})


def test_columns_are_aligned_by_what_they_take_on_the_screen() -> None:
    assert TABLE.lines() == ["NAME       STATE", "漢字       idle", "long name  failed [bold]x[/bold]"]


def test_the_last_column_of_a_table_that_wraps_is_told_to_its_end() -> None:
    console = Console(width=30, color_system=None)
    with console.capture() as captured:
        console.print(Table(("NAME", "NOTE"), [("server", "it failed because of this and that")], wraps=True).rich())
    words = captured.get().split()
    assert words == ["NAME", "NOTE", "server", "it", "failed", "because", "of", "this", "and", "that"]


def test_a_table_of_headers_alone_is_one_line() -> None:
    assert Table(("NAME",), []).lines() == ["NAME"]


def test_on_a_terminal_a_row_is_one_line_cut_at_its_end_and_markup_is_text() -> None:
    table = Table(("NAME", "STATE"), [("漢字", "idle"), ("long name", "failed [bold]x[/bold] because of that")])
    console = Console(width=36, color_system=None)
    with console.capture() as captured:
        console.print(table.rich())
    lines = captured.get().splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("long name  failed [bold")
    assert all(len(line) <= 36 for line in lines)


@pytest.mark.requirement("cli-names-whole")
@pytest.mark.parametrize("wraps", [True, False])
def test_where_there_is_no_room_beside_the_first_column_the_last_one_stands_below(wraps: bool) -> None:
    table = Table(("NAME", "NOTE"), [("a_name_of_20_letters", "it failed because of this and that")], wraps=wraps)
    console = Console(width=30, color_system=None)
    with console.capture() as captured:
        console.print(table.rich())
    lines = captured.get().splitlines()
    assert lines[2] == "a_name_of_20_letters"
    assert lines[3].startswith("    it failed because")
    assert len(lines) == (5 if wraps else 4)


class Terminal(io.StringIO):
    """A stream that a person looks at."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "colored"),
    [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colors_are_for_terminals_whose_user_did_not_forbid_them(environ: dict[str, str], colored: bool) -> None:
    assert has_colors(Terminal(), environ) is colored
    assert not has_colors(io.StringIO(), environ)
    assert not has_colors(None, environ)
