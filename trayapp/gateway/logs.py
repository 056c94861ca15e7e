"""Where the gateway's own words and its servers' stderr are kept: rotated files of bounded size.

Never here: what is worth a line.
"""

from __future__ import annotations

import codecs
import logging
import logging.handlers
from contextlib import suppress
from pathlib import Path
from typing import IO

from trayapp.model.logs import GATEWAY_LOG, log_name
from trayapp.model.redact import LineRedactor, redacted

LOG_BYTES = 2 * 1024 * 1024  # of one file; one older file is kept beside it


class RedactingFormatter(logging.Formatter):
    """A line of gateway.log."""

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


class _Rotating(logging.handlers.RotatingFileHandler):
    """A line that cannot be written (disk full, folder gone) is dropped, not told of on stderr line by line."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def start_logging(folder: Path, level: int = logging.INFO) -> None:
    """Send this process's log to `folder`/gateway.log; a folder that cannot be written leaves only stderr."""
    root = logging.getLogger()
    root.setLevel(level)
    formatter = RedactingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler: logging.Handler
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handler = _Rotating(folder / GATEWAY_LOG, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8")
    except OSError:
        handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    root.addHandler(handler)
    for chatty in ("mcp", "httpx2", "httpcore2"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


class StderrFiles:
    """`logs/servers/NAME.log`, one a server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, StderrFile] = {}

    def sink(self, server: str) -> StderrFile:
        """Takes the bytes of that server's stderr, from the start of one of its processes to the end."""
        file = self._files.setdefault(server, StderrFile(self._folder / log_name(server)))
        file(b"")  # an unfinished line of the process before
        return file


class StderrFile:
    """Callable: appends whole lines, without secrets; b"" says that no more comes of the last one.

    What cannot be written is dropped: a server must not fail over its own log.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._lines = LineRedactor()
        self._decoder = _decoder()

    def __call__(self, data: bytes) -> None:
        text = self._lines.feed(self._decoder.decode(data)) if data else self._rest()
        with suppress(OSError):
            if text:
                self._write(text.encode())
            if not data:
                self._close()

    def _rest(self) -> str:
        decoder, self._decoder = self._decoder, _decoder()
        return self._lines.feed(decoder.decode(b"", True)) + self._lines.end()

    def _write(self, data: bytes) -> None:
        file = self._file or self._open()
        file.write(data)
        file.flush()
        if file.tell() > LOG_BYTES:
            self._close()
            self._set_aside()

    def _set_aside(self) -> None:
        try:
            self._path.replace(self._path.with_suffix(".log.1"))
        except OSError:  # somebody reads it (Windows), or something is in the way: better lost than without bound
            self._path.write_bytes(b"")

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _open(self) -> IO[bytes]:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = self._path.open("ab")
        return self._file


def _decoder() -> codecs.IncrementalDecoder:
    """A letter may arrive in two pieces."""
    return codecs.getincrementaldecoder("utf-8")("replace")
