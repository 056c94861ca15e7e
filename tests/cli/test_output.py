"""Plain text tables, and untrusted text that is shown on a terminal."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

from trayapp.cli.output import Table, as_typed, byte_size, has_colors, json_text, note, say, say_hints
from trayapp.model.text import ago, clean, count, first_line, one_line, shortened, width

TABLE = Table(("NAME", "STATE"), [("漢字", "idle"), ("long name", "failed [bold]x[/bold]")], {"idle": "dim"})


def test_columns_are_aligned_by_what_they_take_on_the_screen() -> None:
    assert TABLE.lines() == ["NAME       STATE", "漢字       idle", "long name  failed [bold]x[/bold]"]


def test_the_last_column_of_a_table_that_wraps_is_told_to_its_end() -> None:
    console = Console(width=30, color_system=None)
    with console.capture() as captured:
        console.print(Table(("NAME", "NOTE"), [("server", "it failed because of this and that")], wraps=True))
    words = captured.get().split()
    assert words == ["NAME", "NOTE", "server", "it", "failed", "because", "of", "this", "and", "that"]


def test_a_table_of_headers_alone_is_one_line() -> None:
    assert Table(("NAME",), []).lines() == ["NAME"]


def test_on_a_terminal_a_row_is_one_line_cut_at_its_end_and_markup_is_text() -> None:
    table = Table(("NAME", "STATE"), [("漢字", "idle"), ("long name", "failed [bold]x[/bold] because of that")])
    console = Console(width=36, color_system=None)
    with console.capture() as captured:
        console.print(table)
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
        console.print(table)
    lines = captured.get().splitlines()
    assert lines[2] == "a_name_of_20_letters"
    assert lines[3].startswith("    it failed because")
    assert len(lines) == (5 if wraps else 4)


class Terminal(io.StringIO):
    """A stream that reports that it is a terminal."""

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


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("plain text, tab\tand\nline", "plain text, tab\tand\nline"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hcleared", "cleared"),
        ("\x1b[?1049h\x1b[38;2;1;2;3mx", "x"),
        ("\x1b]0;new title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;Y3VybA==\x07", ""),
        ("\x1b]0;never ended", ""),
        ("\x1bPdevice\x1b\\control", "control"),
        ("\x9b31mred\x9b0m", "red"),
        ("\x9d0;title\x9cx", "x"),
        ("\x1bc reset", " reset"),
        ("\x1b(0 charset", " charset"),
        ("bell\x07 back\x08 del\x7f null\x00", "bell back del null"),
        ("over\rwritten", "over\nwritten"),
        ("line\r\nend", "line\nend"),
        ("\u202egnp.exe", "gnp.exe"),
        ("hidden\U000e0041\U000e0042 tags", "hidden tags"),
        ("half \ud83d pair", "half ? pair"),
        ("family 👨‍👩‍👧 and ümläut 漢字", "family 👨‍👩‍👧 and ümläut 漢字"),
        ("cut \x1b", "cut "),
        ("cut \x1b[", "cut "),
    ],
)
def test_control_sequences_never_reach_a_terminal(foreign: str, shown: str) -> None:
    assert clean(foreign) == shown


def test_a_sequence_that_appears_only_once_another_is_gone_is_gone_as_well() -> None:
    assert "\x1b" not in clean("\x1b\x1b[31m[31mx") + clean("\x1b\x07[31mx")


def test_one_line_holds_all_of_it_and_first_line_the_first_words() -> None:
    assert one_line(" a\n\n b\tc\r\nd ") == "a b c d"
    assert first_line("\n  \x1b[1m \n first  words \nsecond") == "first words"
    assert first_line("") == ""


def test_width_counts_columns_and_not_letters() -> None:
    assert [width(text) for text in ("abc", "漢字", "e\u0301")] == [3, 4, 1]


def test_shortened_text_fits_and_says_so() -> None:
    assert shortened("short", 5) == "short"
    assert shortened("rather long", 9) == "rather..."
    assert width(shortened("漢字漢字漢字", 8)) <= 8


def test_json_for_a_terminal_is_the_same_json_with_escapes() -> None:
    value = {"a": "\x9b31m \u202e \U000e0041 \ud800 \x7f ü 漢 😀 \n"}
    text = json_text(value)
    assert json.loads(text) == value
    assert not set(text) & set("\x9b\u202e\U000e0041\ud800\x7f")
    assert "ü 漢 😀" in text


def test_json_in_one_line_has_no_line_end() -> None:
    assert "\n" not in json_text({"a": ["\n", "\u2028"]}, indent=None)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (99, "99 s"), (100, "2 min"), (3600, "60 min"), (7200, "2 h"), (86400 * 3, "3 days")],
)
def test_times_are_told_in_one_unit(seconds: float, words: str) -> None:
    assert ago(seconds) == words


def test_counts_and_sizes_read_as_words() -> None:
    assert [count(number, "tool") for number in (0, 1, 2)] == ["0 tools", "1 tool", "2 tools"]
    assert [byte_size(size) for size in (1, 999, 12_300, 3_400_000)] == ["1 byte", "999 bytes", "12 kB", "3.4 MB"]


@pytest.mark.skipif(sys.platform == "win32", reason="its programs end in .exe")
@pytest.mark.requirement("cli-first-screen")
def test_commands_are_told_as_they_can_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [".venv/bin/multi-mcp", "status"])
    hint = "Sign in with: multi-mcp auth a, or see multi-mcp --help (multi-mcp update-check; `multi-mcp asks`)"
    assert as_typed(hint) == hint.replace("multi-mcp", ".venv/bin/multi-mcp")
    for text in (
        "multi-mcp is paused", "multi-mcp starts it", "/opt/multi-mcp status", ".venv/bin/multi-mcp add x",
        "my-multi-mcp call", "multi-mcp listing", "multi-mcp status-x", "multi-mcp",
    ):  # fmt: skip
        assert as_typed(text) == text
    for prints in (say, say_hints, note):
        prints("See: multi-mcp list")
    shown = capsys.readouterr()
    assert shown.out.splitlines() == ["See: multi-mcp list", "See: .venv/bin/multi-mcp list"]
    assert shown.err == "See: .venv/bin/multi-mcp list\n"
    (tmp_path / "multi-mcp").touch(mode=0o755)
    assert as_typed(hint) == hint
