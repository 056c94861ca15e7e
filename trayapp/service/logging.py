"""Logs of the gateway, the tray and the servers (their stderr): rotated files of limited size, without secrets."""

from __future__ import annotations

import logging
import logging.handlers
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from trayapp.config.files import make_folder
from trayapp.model.logs import GATEWAY_LOG, log_name
from trayapp.model.redact import LineRedactor, redacted
from trayapp.model.text import StderrDecoder

LOG_BYTES = 2 * 1024 * 1024  # size at which a log file is rotated; one older file is kept
LEVELS = {"debug": logging.DEBUG, "warning": logging.WARNING, "error": logging.ERROR}
# Libraries that log only warnings, whatever the level, because their other messages contain whole requests.
CHATTY = ("mcp", "httpx2", "httpcore2", "PIL", "Xlib")


def level_of(environ: Mapping[str, str]) -> int:
    """Return the log level set in MULTI_MCP_LOG, or INFO by default."""
    return LEVELS.get(environ.get("MULTI_MCP_LOG", "").strip().lower(), logging.INFO)


class RedactingFormatter(logging.Formatter):
    """A log formatter that removes secrets and control sequences.

    It indents all lines of a message but the first, so text from a server cannot look like one of our log records.
    """

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record)).replace("\n", "\n    ")


class _Rotating(logging.handlers.RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """Drop a line that cannot be written (disk full, folder gone)."""


def start_logging(folder: Path, level: int = logging.INFO, name: str = GATEWAY_LOG) -> None:
    """Send this process's log to `folder`/`name`, or to stderr if the folder cannot be written."""
    root = logging.getLogger()
    root.setLevel(level)
    handler: logging.Handler
    try:
        make_folder(folder)
        handler = _Rotating(folder / name, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8")
    except OSError:
        handler = logging.StreamHandler()
    handler.setFormatter(RedactingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root.addHandler(handler)
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(logging.WARNING)


class StderrFiles:
    """The files `logs/servers/NAME.log`, one for each server, with whole lines from all of the server's processes."""

    def __init__(self, folder: Path) -> None:
        self.writes = 0  # number of writes, to all files
        self._folder = folder
        self._files: dict[str, RotatedFile] = {}
        self._sinks: dict[str, StderrSink] = {}
        self._listeners: list[Callable[[], None]] = []

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after each write. Return a function that removes the listener."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _wrote(self) -> None:
        self.writes += 1
        for listener in list(self._listeners):
            listener()

    def sink(self, server: str, *, further: bool = False) -> StderrSink:
        """Return the server's sink for stderr, or a new one if other processes of it may be running (`further`)."""
        sink = StderrSink(self._files.setdefault(server, RotatedFile(self._folder / log_name(server))), self._wrote)
        if not further:
            sink = self._sinks.setdefault(server, sink)
            sink(b"")  # ends an unfinished line of the previous process
        return sink


class StderrSink:
    """A sink that appends whole lines to a file, without secrets. Passing b"" ends the last line.

    Output that cannot be written is dropped, because a server must not fail because of its log. `wrote` is called after
    each write.
    """

    def __init__(self, file: RotatedFile, wrote: Callable[[], None] = lambda: None) -> None:
        self._file = file
        self._wrote = wrote
        self._lines = LineRedactor()
        self._decoder = StderrDecoder()

    def __call__(self, data: bytes) -> None:
        text = self._lines.feed(self._decoder.decode(data, final=not data))
        if not data:
            text, self._decoder = text + self._lines.end(), StderrDecoder()
        with suppress(OSError):
            if text:
                self._file.write(text.encode())
                self._wrote()
            if not data:
                self._file.close()


class RotatedFile:
    """A file of limited size, with one older file in the same folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def write(self, data: bytes) -> None:
        """Append `data`. Rotate the file when it exceeds LOG_BYTES. Raises OSError."""
        if self._file is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = self._path.open("ab")
        file = self._file
        file.write(data)
        file.flush()
        if file.tell() > LOG_BYTES:
            self.close()
            try:
                self._path.replace(self._path.with_suffix(".log.1"))
            except OSError:  # open elsewhere (Windows), or a folder has the new name: empty the file
                self._path.write_bytes(b"")

    def close(self) -> None:
        """Close the file; the next write opens it again. Raises OSError."""
        file, self._file = self._file, None
        if file is not None:
            file.close()
