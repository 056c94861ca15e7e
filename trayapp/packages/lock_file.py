"""servers.lock: for each server, and each package as written, what it runs and what it ran before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from trayapp.config.files import locked as lock_of
from trayapp.config.files import write_atomic
from trayapp.packages.locked import Locked, UnreadableLockError, read_locked

FORMAT = 1
KEPT_BEFORE = 2  # versions to go back to

Table = dict[str, dict[str, list[Locked]]]  # server -> package as written -> newest first


class LockFile:
    """The file. It is read again when it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int, int] | None = None
        self._table: Table = {}

    def find(self, server: str, spec: str) -> list[Locked]:
        """Return the locked package first, then those that were locked before. Raises UnreadableLockError."""
        return list(self._read().get(server, {}).get(spec, ()))

    def all(self) -> Iterator[tuple[str, str, list[Locked]]]:
        """Yield each server, its package as written, and its locks. Raises UnreadableLockError."""
        for server, specs in self._read().items():
            for spec, versions in specs.items():
                yield server, spec, list(versions)

    def add(self, server: str, spec: str, one: Locked) -> Locked:
        """Lock a package unless one is locked. Return the locked one. Raises StorageError, UnreadableLockError."""
        with lock_of(self.path):
            kept = self.find(server, spec)
            if kept:
                return kept[0]
            table = dict(self._read())
            table[server] = {**table.get(server, {}), spec: [one]}
            self._write(table)
            return one

    def put(self, server: str, spec: str, one: Locked) -> None:
        """Lock a package in place of the present one. Raises StorageError, UnreadableLockError."""
        with lock_of(self.path):
            table = dict(self._read())
            before = [old for old in table.get(server, {}).get(spec, ()) if old.content != one.content]
            table[server] = {**table.get(server, {}), spec: [one, *before[:KEPT_BEFORE]]}
            self._write(table)

    def remove(self, server: str) -> None:
        """Remove what a server has locked. Raises StorageError, UnreadableLockError."""
        with lock_of(self.path):
            table = self._read()
            if server in table:
                self._write({name: specs for name, specs in table.items() if name != server})

    def _read(self) -> Table:
        try:
            stat = self.path.stat()
            seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if seen != self._seen:
                self._table = _parsed(self.path.read_bytes())
                self._seen = seen
        except FileNotFoundError:
            self._table, self._seen = {}, None
        except OSError as error:
            raise UnreadableLockError(f"Cannot read {self.path}: {error.strerror}", "Make it readable") from None
        return self._table

    def _write(self, table: Table) -> None:
        servers = {
            server: {spec: [one.to_json() for one in versions] for spec, versions in specs.items()}
            for server, specs in sorted(table.items())
        }
        told = {"version": FORMAT, "servers": servers}
        write_atomic(self.path, orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


def _parsed(data: bytes) -> Table:
    try:
        told: Any = orjson.loads(data)
        servers: Any = told["servers"] if told["version"] == FORMAT else None
        return {
            server: {spec: [read_locked(one) for one in versions] for spec, versions in specs.items()}
            for server, specs in servers.items()
        }
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        raise UnreadableLockError("servers.lock cannot be read", "Restore the file, or remove it") from None
