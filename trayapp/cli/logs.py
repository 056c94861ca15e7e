"""`multi-mcp logs`: the last lines of the gateway's log or of a server's stderr, and new lines with --follow.

No file stays open between two reads, because Windows cannot rotate an open file. A missing file counts as empty. Other
errors raise OSError.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import click

from trayapp.cli.edit import no_such_server, own_store, written_servers
from trayapp.cli.options import ask, verb
from trayapp.cli.output import await_input, note, print_result
from trayapp.config.paths import find_paths
from trayapp.config.read.parse import parse
from trayapp.model.errors import NoGatewayError
from trayapp.model.logs import GATEWAY_LOG, OLDER, SERVER_LOGS, log_name, names_server, warns_about
from trayapp.model.redact import redacted
from trayapp.model.text import clean, one_line
from trayapp.wire.control import SNAPSHOT, ControlError

READ_LONGEST = 16 * 1024 * 1024  # the most bytes to read from a file's end; logs are rotated at an eighth of this size
Identity = tuple[int, int]  # device and inode of a file, which do not change when it is rotated
LINES = 50
LOOKED_THROUGH = 10_000  # how many of the last lines of the gateway's log are searched for a server's name
WARNINGS = 5  # the most warnings of the gateway's log about a server, shown below the server's own lines
FOLLOW_S = 0.3  # pause between two reads; short enough to look immediate


@verb("logs", "multi-mcp logs github -f")
@click.argument("server", required=False)
@click.option("-f", "--follow", is_flag=True, help="Keep running and show new lines.")
@click.option("-n", "--lines", "count", type=click.IntRange(min=0), default=LINES, show_default=True, help="How many.")
def logs_verb(server: str | None, follow: bool, count: int, as_json: bool) -> None:
    """Show the last lines of the gateway's log, or of what SERVER wrote to its stderr.

    With --follow and --json, print one document per line, one for each batch of new lines.
    """
    log = LogFile(log_path(server))

    def show(lines: list[str]) -> None:
        document = {"server": server, "file": str(log.path), "lines": lines}
        print_result(as_json, document, *lines, compact=follow)

    lines = log.last(count)
    if not follow:
        lines = [*lines, *log.unfinished()][-count:] if count else []
    about = lines_about(server) if server is not None and count and not (follow or as_json) else []
    warnings = [line for line in about if warns_about(line, server or "")][-WARNINGS:] if lines else []
    if about and not lines:
        lines = about[-count:]
        note(f"{one_line(server or '')} has written nothing to its log. The gateway's log has these lines about it:")
    if not log.path.exists() and not lines:
        note(f"There is no log of {one_line(server) if server else 'the gateway'} yet")
    if lines or as_json:
        show(lines)
    if warnings:  # only the gateway logs that a server hangs
        note("", "The gateway's log has these warnings about it:", *warnings)
    for came in followed(log, pause) if follow else ():
        show(came)


def lines_about(server: str) -> list[str]:
    """Return the lines that name this server, among the last lines of the gateway's log.

    They are the only ones about a server at a URL, which has no log of its own.
    """
    log = LogFile(find_paths(os.environ).log_dir / GATEWAY_LOG)
    return [line for line in log.last(LOOKED_THROUGH) if names_server(line, server)]


def log_path(server: str | None) -> Path:
    """Return the path of a server's log, or of the gateway's log if `server` is None.

    Raises ServerNotFoundError for a server that is not configured and has no log.
    """
    folder = find_paths(os.environ).log_dir
    if server is None:
        return folder / GATEWAY_LOG
    path = folder / SERVER_LOGS / log_name(server)
    known = [] if path.exists() else known_servers()
    if not path.exists() and server not in known:
        raise no_such_server(server, known)
    return path


def known_servers() -> list[str]:
    """Return the servers in servers.yaml, including invalid ones, and those of the gateway if it runs."""
    store = own_store()
    names = written_servers(parse(store.read() or "", str(store.path)))
    with suppress(NoGatewayError, ControlError):
        names += [server["name"] for server in ask(SNAPSHOT)["servers"]]
    return list(dict.fromkeys(names))


def followed(log: LogFile, wait: Callable[[], None]) -> Iterator[list[str]]:
    """Yield each batch of new lines, until `wait` raises an exception. It is called before each read."""
    while True:
        wait()
        lines = log.more()
        if lines:
            yield lines


def pause() -> None:
    """Wait FOLLOW_S seconds. Raises BrokenPipeError as soon as the reader of stdout is gone (not on Windows)."""
    await_input(None, FOLLOW_S)


class LogFile:
    """A log file. Each read opens the file again, because Windows cannot rotate an open file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._older = path.with_name(path.name + OLDER)
        self._identity: Identity | None = None
        self._position = 0
        self._unfinished = b""

    def last(self, count: int) -> list[str]:
        """Return the last `count` complete lines, including lines of the rotated file if this one has fewer.

        The next call of `more` returns the lines after them.
        """
        older: list[bytes] = []
        lines = self._read_on()
        if len(lines) < count:
            older = _read(self._older, 0, but_not=self._identity)[0].split(b"\n")[:-1]
        return _fit([*older, *lines][-count:] if count else [])

    def unfinished(self) -> list[str]:
        """Return the text after the last complete line as a list of one line, or [] if there is none."""
        return _fit([self._unfinished] if self._unfinished else [])

    def more(self) -> list[str]:
        """Return the lines completed since the last read, even if the file was rotated in between."""
        return _fit(self._read_on())

    def _read_on(self) -> list[bytes]:
        data = self._unfinished
        if self._identity is not None and _identity(self.path) != self._identity:
            # read the lines that were written after our last read and before the rotation
            is_ours = _identity(self._older) == self._identity
            data += _read(self._older, self._position)[0] if is_ours else b""
            self._position = 0
        fresh, self._identity, self._position = _read(self.path, self._position)
        *lines, self._unfinished = (data + fresh).split(b"\n")
        return lines


def _read(path: Path, position: int, but_not: Identity | None = None) -> tuple[bytes, Identity | None, int]:
    """Return the bytes from `position` to the end, the file's identity, and the position after them.

    A file that became shorter is read from its start. At most the last READ_LONGEST bytes are returned, and none from
    the file with the identity `but_not`. Return (b"", None, 0) for a missing file.
    """
    try:
        with path.open("rb") as file:
            facts = os.fstat(file.fileno())
            identity = (facts.st_dev, facts.st_ino)
            start = position if position <= facts.st_size else 0
            start = max(start, facts.st_size - READ_LONGEST)
            file.seek(start)
            data = b"" if identity == but_not else file.read(READ_LONGEST)
    except FileNotFoundError:
        return b"", None, 0
    return data, identity, start + len(data)


def _identity(path: Path) -> Identity | None:
    try:
        facts = path.stat()
    except FileNotFoundError:
        return None
    return facts.st_dev, facts.st_ino


def _fit(lines: list[bytes]) -> list[str]:
    """Return lines cleaned for a terminal and redacted again, because a log may be older than a redaction rule."""
    if not lines:
        return []
    plain = redacted("\n".join(line.decode(errors="replace") for line in lines)).split("\n")
    return [clean(line.rstrip("\r")).replace("\n", " ") for line in plain]
