"""Keep the servers' stderr in rotated files of bounded size. The gateway's own log is in service/logging."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from trayapp.model.logs import log_name
from trayapp.model.redact import LineRedactor
from trayapp.model.text import StderrDecoder
from trayapp.service.logging import LOG_BYTES as LOG_BYTES
from trayapp.service.logging import RedactingFormatter as RedactingFormatter
from trayapp.service.logging import start_logging as start_logging


class StderrFiles:
    """Files `logs/servers/NAME.log`, one for each server, with whole lines from all of its processes."""

    def __init__(self, folder: Path) -> None:
        self.writes = 0  # listeners to all files
        self._folder = folder
        self._files: dict[str, RotatedFile] = {}
        self._sinks: dict[str, StderrSink] = {}
        self._listeners: list[Callable[[], None]] = []

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` whenever lines were written. Return a function that removes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _wrote(self) -> None:
        self.writes += 1
        for listener in list(self._listeners):
            listener()

    def sink(self, server: str, *, further: bool = False) -> StderrSink:
        """Return the sink for the stderr of a server, from the start to the end of one process.

        `further`: other processes of the server may run beside that one.
        """
        file = self._files.setdefault(server, RotatedFile(self._folder / log_name(server)))
        if further:
            return StderrSink(file, self._wrote)
        sink = self._sinks.setdefault(server, StderrSink(file, self._wrote))
        sink(b"")  # ends an unfinished line of the process before
        return sink


class StderrSink:
    """Sink that appends whole lines, without secrets. b"" ends the last line. Output that cannot be written is dropped:
    a server must not fail because of its log. `wrote` is called after each write.
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
    """File of bounded size, and one older file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def write(self, data: bytes) -> None:
        """Append. Raises OSError."""
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
            except OSError:  # a reader has it open (Windows), or its name is taken: losing it beats growing forever
                self._path.write_bytes(b"")

    def close(self) -> None:
        """Close; the next write opens it again. Raises OSError."""
        file, self._file = self._file, None
        if file is not None:
            file.close()
