"""How verbs print: JSON, lines, tables, and a sign of life while something takes its time.

Never here: what is printed. rich is imported for a terminal only: in a pipe nobody pays for it.
"""

from __future__ import annotations

import contextlib
import select
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from trayapp.cli.text import clean, json_text, width

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

GAP = "  "
COLUMN_KEPT = 40  # columns that a cell between the first and the last may have on a narrow terminal
LAST_KEPT = 24  # columns that are worth beginning the last one beside the others

Row = Sequence[str]


class Table:
    """Rows of cleaned text under headers. `styles`: how rich draws a cell of just that text.

    `wraps`: on a narrow terminal the last column goes on in the next line; else it is cut.
    """

    def __init__(
        self, headers: Row, rows: Sequence[Row], styles: Mapping[str, str] | None = None, *, wraps: bool = False
    ) -> None:
        self.headers = headers
        self.rows = rows
        self.styles = styles or {}
        self.wraps = wraps

    def lines(self) -> list[str]:
        """Plain text in aligned columns."""
        widths = self.widths()
        return [
            GAP.join(cell + " " * (widths[column] - width(cell)) for column, cell in enumerate(row)).rstrip()
            for row in (self.headers, *self.rows)
        ]

    def rich(self) -> Fitted:
        """The same for a terminal, within its width."""
        return Fitted(self)

    def widths(self) -> list[int]:
        """Return what each column needs."""
        return [max(map(width, cells)) for cells in zip(self.headers, *self.rows, strict=True)]


class Fitted:
    """A table for rich. The first column stays whole; the last one gets the room that is left, or a line of its own."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield a line, or several, for each row."""
        table = self._table
        columns, room = table.widths(), options.max_width
        worth = min(columns.pop(), LAST_KEPT)
        if sum(columns) + len(GAP) * len(columns) + worth > room:
            columns[1:] = [min(needed, COLUMN_KEPT) for needed in columns[1:]]
            columns[0] = min(columns[0], room - sum(columns[1:]) - len(GAP) * len(columns))  # a longer one sticks out
        left = room - sum(columns) - len(GAP) * len(columns)
        yield from self._row(console, table.headers, columns, left, worth, header=True)
        for row in table.rows:
            yield from self._row(console, row, columns, left, worth)

    def _row(
        self, console: Console, row: Row, columns: list[int], left: int, worth: int, *, header: bool = False
    ) -> Iterator[Text]:
        from rich.text import Text

        *cells, last = (Text(cell, "bold" if header else self._table.styles.get(cell, "")) for cell in row)
        line = Text()
        for cell, room in zip(cells, columns, strict=True):
            cell.truncate(max(room, cell.cell_len if cell is cells[0] else 0), overflow="ellipsis", pad=True)
            line = line + cell + GAP
        indent, left = (line.cell_len, left) if left >= worth else (2 * len(GAP), console.width - 2 * len(GAP))
        if not self._table.wraps:
            last.truncate(left, overflow="ellipsis")
        first, *more = last.wrap(console, left, overflow="fold") or [Text()]
        if indent < line.cell_len:
            line.rstrip()
            yield line
            line = Text(" " * indent)
        line = line + first
        line.rstrip()
        if line:
            yield line
        yield from (Text(" " * indent) + rest for rest in more)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person looks at it."""
    return stream is not None and stream.isatty()


def has_colours(stream: TextIO | None, environ: Mapping[str, str]) -> bool:
    """Whether it may be coloured: a terminal that can, and whose user did not forbid it (https://no-color.org)."""
    return is_terminal(stream) and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def print_json(value: Any, *, compact: bool = False) -> None:
    """One JSON document on stdout; `compact`: in one line."""
    say(json_text(value, indent=None if compact else 2))


def say(*lines: str, styled: bool = False) -> None:
    """Lines on stdout, seen at once; without control sequences, whatever they hold, unless they are `styled` by us."""
    for line in lines:
        print(line if styled else clean(line), flush=True)


def note(*lines: str, styled: bool = False) -> None:
    """Lines on stderr: for people, never for programs that read stdout. `styled`: see `say`."""
    for line in lines:
        print(line if styled else clean(line), file=sys.stderr, flush=True)


def note_lacking(lines: Sequence[str], *, as_json: bool) -> None:
    """What the gateway says that its answer lacks, below it; with --json nothing."""
    note(*([] if as_json else lines))


def await_input(source: int | None, seconds: float | None = None) -> None:
    """Wait until the descriptor `source` has something to read, `seconds` at most. Not for Windows.

    Raises BrokenPipeError as soon as nobody reads what we print.
    """
    poll, printed = select.poll(), sys.stdout.fileno()
    poll.register(printed, 0)  # no event is asked for: those of a closed reader come unasked
    if source is not None:
        poll.register(source, select.POLLIN)
    if any(descriptor == printed for descriptor, _ in poll.poll(None if seconds is None else seconds * 1000)):
        raise BrokenPipeError


def print_table(table: Table) -> None:
    """The table on stdout; with colours, and cut to the width, on a terminal."""
    if is_terminal(sys.stdout):
        from rich.console import Console

        Console(highlight=False).print(table.rich(), soft_wrap=False)
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
