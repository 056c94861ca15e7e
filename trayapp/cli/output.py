"""How verbs print: JSON, lines, tables, and a sign of life while something takes its time.

Never here: what is printed. rich is imported for a terminal only: in a pipe nobody pays for it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from trayapp.cli.text import json_text, width

if TYPE_CHECKING:
    from rich.table import Table as RichTable

GAP = "  "

Row = Sequence[str]


class Table:
    """Rows of cleaned text under headers. `styles`: how rich draws a cell of just that text."""

    def __init__(self, headers: Row, rows: Sequence[Row], styles: Mapping[str, str] | None = None) -> None:
        self.headers = headers
        self.rows = rows
        self.styles = styles or {}

    def lines(self) -> list[str]:
        """Plain text in aligned columns."""
        rows = [self.headers, *self.rows]
        widths = [max(width(row[column]) for row in rows) for column in range(len(self.headers))]
        return [
            GAP.join(cell + " " * (widths[column] - width(cell)) for column, cell in enumerate(row)).rstrip()
            for row in rows
        ]

    def rich(self) -> RichTable:
        """The same for a terminal: one line a row, cut at its width."""
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(box=None, pad_edge=False, padding=(0, len(GAP), 0, 0), header_style="bold")
        for header in self.headers:
            last = header is self.headers[-1]
            table.add_column(header, no_wrap=True, overflow="ellipsis", min_width=None if last else min(len(header), 8))
        for row in self.rows:
            table.add_row(*(Text(cell, style=self.styles.get(cell, "")) for cell in row))
        return table


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person looks at it."""
    return stream is not None and stream.isatty()


def print_json(value: Any, *, compact: bool = False) -> None:
    """One JSON document on stdout; `compact`: in one line."""
    say(json_text(value, indent=None if compact else 2))


def say(*lines: str) -> None:
    """Lines on stdout, seen at once."""
    for line in lines:
        print(line, flush=True)


def note(*lines: str) -> None:
    """Lines on stderr: for people, never for programs that read stdout."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def print_table(table: Table) -> None:
    """The table on stdout; with colours, and cut to the width, on a terminal."""
    if is_terminal(sys.stdout):
        from rich.console import Console

        Console(highlight=False).print(table.rich())
    else:
        say(*table.lines())


@contextlib.contextmanager
def waiting(text: str, quiet: bool = False) -> Iterator[None]:
    """Says what goes on while it does, on a terminal; in a pipe or with `quiet` nothing."""
    if quiet or not (is_terminal(sys.stderr) and is_terminal(sys.stdout)):
        yield
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(text)):
        yield


def safe_streams() -> None:
    """A terminal or a file in an old encoding gets escapes for letters that it lacks, not an error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
