"""Terminal input and output of verbs: lines, JSON, tables, a spinner, questions, and decisions left to a person.

`guarded` prints a verb's error in two lines and returns its exit code. Untrusted text is cleaned before it is printed.
rich is imported only for a terminal, since its import is slow. A script that decides for a person must declare it
(MULTI_MCP_UNATTENDED).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import select
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

import click

from trayapp.cli.verbs import PROGRAM, VERBS
from trayapp.model.errors import ExitCode, MultiMcpError, UsageError
from trayapp.model.text import CONTROLS, clean, count, one_line, width, without_code
from trayapp.service.command_line import typed_command

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text


_UNSAFE_JSON = re.compile(f"{CONTROLS.pattern}|[\u2028\u2029\ud800-\udfff]")
GAP = "  "
COLUMN_KEPT = 40  # the most characters of a middle column on a narrow terminal
LAST_KEPT = 24  # with fewer characters left, the last column moves to its own line
Row = Sequence[str]
_COMMAND = re.compile(rf"(?<![\w./\\-]){PROGRAM}(?= (?:--help|VERB|{'|'.join(VERBS)})(?![\w-]))")


def say(*lines: str, styled: bool = False) -> None:
    """Print lines on stdout and flush it. Control sequences are removed unless our own code `styled` the lines."""
    for line in lines:
        print(line if styled else clean(line), flush=True)


def say_hints(*lines: str, styled: bool = False) -> None:
    """Print lines on stdout, with commands as the user has to type them. `styled`: as in `say`."""
    say(*map(as_typed, lines), styled=styled)


def note(*lines: str, styled: bool = False) -> None:
    """Print lines on stderr, so that programs that read stdout do not get them. `styled`: as in `say`.

    Commands appear as the user has to type them.
    """
    for line in map(as_typed, lines):
        print(line if styled else clean(line), file=sys.stderr, flush=True)


def as_typed(text: str) -> str:
    """Return a text with commands of this program as the user has to type them: the program may not be on PATH."""
    return _COMMAND.sub(lambda found: typed_command(), text) if PROGRAM in text else text


def print_json(value: Any, *, compact: bool = False) -> None:
    """Print one JSON document on stdout. `compact`: on one line."""
    say(json_text(value, indent=None if compact else 2))


def print_result(as_json: bool, document: Any, *lines: str, compact: bool = False) -> None:
    """Print the document if `as_json` is True, and otherwise the lines. `compact`: as in `print_json`."""
    if as_json:
        print_json(document, compact=compact)
    else:
        say(*lines)


def print_table(table: Table) -> None:
    """Print a table on stdout. On a terminal, the table has colors and fits the width."""
    if is_terminal(sys.stdout):
        from rich.console import Console

        Console(highlight=False).print(table, soft_wrap=False)
    else:
        say(*table.lines())


class Table:
    """Rows of cleaned text under headers. On a terminal, rich prints the table.

    `styles`: a cell's whole text -> its rich style. `wraps`: on a narrow terminal, the last column continues on the
    next line; otherwise it is cut.
    """

    def __init__(
        self, headers: Row, rows: Sequence[Row], styles: Mapping[str, str] | None = None, *, wraps: bool = False
    ) -> None:
        self.headers = headers
        self.rows = rows
        self.styles = styles or {}
        self.wraps = wraps

    def lines(self) -> list[str]:
        """Return the table as plain text in aligned columns."""
        widths = self.widths()
        return [
            GAP.join(cell + " " * (widths[column] - width(cell)) for column, cell in enumerate(row)).rstrip()
            for row in (self.headers, *self.rows)
        ]

    def widths(self) -> list[int]:
        """Return the width that each column needs, in characters of a terminal."""
        return [max(map(width, cells)) for cells in zip(self.headers, *self.rows, strict=True)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield one or more lines for each row, fitted to the terminal's width.

        The first column is never cut. The last one gets the remaining width, or its own line.
        """
        columns, room = self.widths(), options.max_width
        worth = min(columns.pop(), LAST_KEPT)
        if sum(columns) + len(GAP) * len(columns) + worth > room:
            columns[1:] = [min(needed, COLUMN_KEPT) for needed in columns[1:]]
            columns[0] = min(columns[0], room - sum(columns[1:]) - len(GAP) * len(columns))  # longer cells may overflow
        left = room - sum(columns) - len(GAP) * len(columns)
        yield from self._row(console, self.headers, columns, left, worth, header=True)
        for row in self.rows:
            yield from self._row(console, row, columns, left, worth)

    def _row(
        self, console: Console, row: Row, columns: list[int], left: int, worth: int, *, header: bool = False
    ) -> Iterator[Text]:
        from rich.text import Text

        *cells, last = (Text(cell, "bold" if header else self.styles.get(cell, "")) for cell in row)
        line = Text()
        for cell, room in zip(cells, columns, strict=True):
            cell.truncate(max(room, cell.cell_len if cell is cells[0] else 0), overflow="ellipsis", pad=True)
            line = line + cell + GAP
        indent, left = (line.cell_len, left) if left >= worth else (2 * len(GAP), console.width - 2 * len(GAP))
        if not self.wraps:
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


@contextlib.contextmanager
def waiting(text: str, quiet: bool = False) -> Iterator[None]:
    """Show `text` with a spinner while the block runs.

    Print nothing if `quiet` is True, or if stdout or stderr is not a terminal.
    """
    if quiet or not (is_terminal(sys.stderr) and is_terminal(sys.stdout)):
        yield
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(text)):
        yield


def await_input(source: int | None, seconds: float | None = None) -> None:
    """Wait until the descriptor `source` (None: no descriptor) is readable, for at most `seconds` (None: no limit).

    Raises BrokenPipeError as soon as the reader of stdout is gone. On Windows, where stdout cannot be watched, and in a
    process without stdout, only sleep for `seconds`, or return immediately if that is None.
    """
    if sys.platform == "win32" or sys.stdout is None:
        time.sleep(seconds or 0.0)
        return
    poll, printed = select.poll(), sys.stdout.fileno()
    poll.register(printed, 0)  # no events requested: a closed reader is always reported
    if source is not None:
        poll.register(source, select.POLLIN)
    if any(descriptor == printed for descriptor, _ in poll.poll(None if seconds is None else seconds * 1000)):
        raise BrokenPipeError


def is_terminal(stream: TextIO | None) -> bool:
    """Return True if the stream is a terminal."""
    return stream is not None and stream.isatty()


def has_colors(stream: TextIO | None, environ: Mapping[str, str]) -> bool:
    """Return True if the stream is a terminal with colors and the user allows them (https://no-color.org)."""
    return is_terminal(stream) and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def safe_streams() -> None:
    """Make stdout and stderr print escapes for characters that their encoding lacks, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def json_text(value: Any, indent: int | None = 2) -> str:
    """Return readable JSON that is safe on a terminal: invisible characters are escaped."""
    return _UNSAFE_JSON.sub(
        lambda found: json.dumps(found[0])[1:-1], json.dumps(value, indent=indent, ensure_ascii=False)
    )


def byte_size(number: int) -> str:
    """Return a size in words: `800 bytes`, `12 kB`, `3.4 MB`."""
    if number < 1000:
        return count(number, "byte")
    return f"{number / 1000:.0f} kB" if number < 1_000_000 else f"{number / 1_000_000:.1f} MB"


# --- questions

UNATTENDED = "MULTI_MCP_UNATTENDED"  # "1": a person wrote the script that runs this


def at_terminal() -> bool:
    """Return True if a person can be asked at this terminal."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def unattended() -> bool:
    """Return True if a person declared that their script runs this (MULTI_MCP_UNATTENDED=1)."""
    return os.environ.get(UNATTENDED) == "1"


def require_person(what: str) -> bool:
    """Return True if a person is at this terminal, False if a script runs unattended. Raises UsageError otherwise.

    `what`: the decision, as in "approve a tool". AI tools' shells have no terminal either, so the error does not
    mention MULTI_MCP_UNATTENDED.
    """
    if at_terminal():
        return True
    if not unattended():
        raise UsageError(f"Only the user can {what}", "Ask the user to do it in a terminal or in the tray")
    return False


def require_answers() -> None:
    """Raise UsageError if nobody can answer questions, because stdin is not a terminal."""
    if not is_terminal(sys.stdin):
        raise UsageError("Cannot ask for confirmation (no terminal)", "Pass --yes to proceed or --dry-run to preview")


def agreed(question: str, *, default: bool = False) -> bool:
    """Ask a yes-or-no question and return True for yes. Raises UsageError if nobody can answer.

    `default`: the answer for an empty line.
    """
    require_answers()
    return click.confirm(one_line(question), default=default)


OUTPUT_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # errors of stdout if they name no file
INTERRUPTED = 130  # the shell's exit code for a program ended by Ctrl-C


def guarded(work: Callable[[list[str]], object], argv: list[str]) -> int:
    """Run `work` on the arguments, report its error if it fails, and return the exit code.

    Raises BrokenPipeError, and OSError if stdout is full.
    """
    safe_streams()
    try:
        code = work(argv)
    except click.Abort:
        return INTERRUPTED
    except (MultiMcpError, click.ClickException, OSError) as error:
        return report(error, as_json="--json" in argv)
    return code if isinstance(code, int) else ExitCode.OK


def report(error: MultiMcpError | click.ClickException | OSError, *, as_json: bool) -> int:
    """Print an error and its hint on stderr, with `as_json` also on stdout. Return the exit code.

    Raises the error itself if it shows that stdout is closed or full.
    """
    safe_streams()
    if isinstance(error, OSError):
        if isinstance(error, BrokenPipeError) or (error.filename is None and error.errno in OUTPUT_FULL):
            raise error
        error = MultiMcpError(f"{error.filename or 'The system'}: {error.strerror}")
    elif isinstance(error, click.ClickException):
        error = usage_error(error)
    title, hint = one_line(error.title), one_line(error.hint)
    if as_json:
        with suppress(OSError):  # stdout itself may be the cause
            field = {"field": error.field} if error.field else {}
            print_json({"error": {"title": title, "hint": hint, "code": error.code, **field}})
    head = click.style("Error:", fg="red", bold=True) if has_colors(sys.stderr, os.environ) else "Error:"
    note(f"{head} {without_code(title)}", *([hint] if hint else []), styled=True)
    return int(error.exit_code)


def usage_error(error: click.ClickException) -> UsageError:
    """Return click's error about a command line as a UsageError."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context else "multi-mcp"
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and isinstance(error.ctx.command, click.Group):
        verbs = ", ".join(error.ctx.command.list_commands(error.ctx))
        return UsageError(f"{command} needs one of: {verbs}", f"See: {command} --help")
    takes_command = context is not None and any(one.type is click.UNPROCESSED for one in context.command.params)
    if isinstance(error, click.NoSuchOption) and takes_command:
        quoted = f"Put quotes around another program's command line, or -- before it. See: {command} --help"
        return UsageError(error.format_message().rstrip("."), quoted)
    return UsageError(error.format_message().rstrip("."), f"See: {command} --help")
