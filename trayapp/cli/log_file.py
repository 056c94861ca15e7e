"""The last lines of one log, and those that come: across rotation, and without keeping the file open.

Never here: which log, printing, waiting. A file that is not there has no lines; other faults raise OSError.
"""

from __future__ import annotations

import os
from pathlib import Path

from trayapp.cli.text import clean
from trayapp.model.logs import OLDER
from trayapp.model.redact import redacted

READ_LONGEST = 16 * 1024 * 1024  # bytes from a file's end; a log is set aside at an eighth of that

Identity = tuple[int, int]  # device and number of a file: it keeps them when it is set aside


class LogFile:
    """One log. On Windows an open file could not be set aside, so each look opens it anew."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._older = path.with_name(path.name + OLDER)
        self._identity: Identity | None = None
        self._position = 0
        self._unfinished = b""

    def last(self, count: int) -> list[str]:
        """The last `count` whole lines, some of the older file where this one has less; `more` goes on behind them."""
        older: list[bytes] = []
        lines = self._read_on()
        if len(lines) < count:
            older, _ = _split(_read(self._older, 0, but_not=self._identity)[0])
        return _fit([*older, *lines][-count:] if count else [])

    def unfinished(self) -> list[str]:
        """What stands behind the last whole line, if anything does."""
        return _fit([self._unfinished] if self._unfinished else [])

    def more(self) -> list[str]:
        """The lines that were finished since the last look."""
        return _fit(self._read_on())

    def _read_on(self) -> list[bytes]:
        data = self._unfinished
        if self._identity is not None and _identity(self.path) != self._identity:
            data += self._rest_of_older()
        fresh, self._identity, self._position = _read(self.path, self._position)
        lines, self._unfinished = _split(data + fresh)
        return lines

    def _rest_of_older(self) -> bytes:
        """What was written behind our place before the file was set aside."""
        is_ours = _identity(self._older) == self._identity
        rest = _read(self._older, self._position)[0] if is_ours else b""
        self._position = 0
        return rest


def _read(path: Path, position: int, but_not: Identity | None = None) -> tuple[bytes, Identity | None, int]:
    """(bytes from `position` to the end, which file it is, its length); from the start of one that became shorter."""
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
    """As a terminal may see them; redacted again, for a log may be older than a rule."""
    if not lines:
        return []
    plain = redacted("\n".join(line.decode(errors="replace") for line in lines)).split("\n")
    return [clean(line.rstrip("\r")).replace("\n", " ") for line in plain]
