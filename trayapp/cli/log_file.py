"""Reading the last lines of one log and new ones, across rotation and without keeping the file open.

A missing file has no lines; other errors raise OSError. Never here: which log, printing, waiting.
"""

from __future__ import annotations

import os
from pathlib import Path

from trayapp.cli.text import clean
from trayapp.model.logs import OLDER
from trayapp.model.redact import redacted

READ_LONGEST = 16 * 1024 * 1024  # bytes from a file's end; logs are rotated at an eighth of that

Identity = tuple[int, int]  # device and inode of a file, which it keeps when rotated


class LogFile:
    """One log. Each read opens its file again, as Windows cannot rotate an open file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._older = path.with_name(path.name + OLDER)
        self._identity: Identity | None = None
        self._position = 0
        self._unfinished = b""

    def last(self, count: int) -> list[str]:
        """Return the last `count` complete lines, and let `more` continue after them.

        If the file has fewer, lines of the rotated file come first.
        """
        older: list[bytes] = []
        lines = self._read_on()
        if len(lines) < count:
            older, _ = _split(_read(self._older, 0, but_not=self._identity)[0])
        return _fit([*older, *lines][-count:] if count else [])

    def unfinished(self) -> list[str]:
        """Return the text after the last complete line as one line, if there is any."""
        return _fit([self._unfinished] if self._unfinished else [])

    def more(self) -> list[str]:
        """Return the lines completed since the last read."""
        return _fit(self._read_on())

    def _read_on(self) -> list[bytes]:
        data = self._unfinished
        if self._identity is not None and _identity(self.path) != self._identity:
            data += self._rest_of_older()
        fresh, self._identity, self._position = _read(self.path, self._position)
        lines, self._unfinished = _split(data + fresh)
        return lines

    def _rest_of_older(self) -> bytes:
        """Return what was written after our position before the file was rotated."""
        is_ours = _identity(self._older) == self._identity
        rest = _read(self._older, self._position)[0] if is_ours else b""
        self._position = 0
        return rest


def _read(path: Path, position: int, but_not: Identity | None = None) -> tuple[bytes, Identity | None, int]:
    """Return the bytes from `position` to the end, the file's identity, and the position after them.

    A file that became shorter is read from its start. At most READ_LONGEST bytes are read.
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


def _split(data: bytes) -> tuple[list[bytes], bytes]:
    *lines, unfinished = data.split(b"\n")
    return lines, unfinished


def _fit(lines: list[bytes]) -> list[str]:
    """Return lines cleaned for a terminal. They are redacted again, as a log may be older than a redaction rule."""
    if not lines:
        return []
    plain = redacted("\n".join(line.decode(errors="replace") for line in lines)).split("\n")
    return [clean(line.rstrip("\r")).replace("\n", " ") for line in plain]
