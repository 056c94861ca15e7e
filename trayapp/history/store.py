"""The history file: one SQLite database, limited in size and in the age of its calls.

Only one thread at a time may use it. SQLite's errors are raised as StorageError.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trayapp.history.ended_call import FAILURES
from trayapp.history.record import Row
from trayapp.model.errors import StorageError

LOCKED_S = 1.0  # time to wait for another program's lock. After that, the file is set aside
PRUNED_PART = 10  # when the file is full, the oldest tenth of its rows is deleted
FULL = 0.95  # share of the size limit at which the file is full: indexes and the write-ahead log need the rest
WAL_BYTES = 1 << 20
CACHE_KIB = 256  # page cache. The default of 2 MiB is not needed: rows are appended, and the system caches the file
DAY_S = 86_400.0
INSERTED_AT_ONCE = 50  # rows per statement: SQLite before 3.32 accepts at most 999 values in one
LIST_MOST = 500
# Parts of SQLite's messages for a file that is damaged, is no database, has other tables, or is locked for too long.
_UNUSABLE = ("malformed", "not a database", "corrupt", "locked", "has no column", "no such table")
FEW = 1000  # the most calls that are looked up by id in the word index. For more, the index is searched in order

_COLUMNS = Row._fields[:-2]  # all but `arguments` and `result`, which have a separate table
_SETUP = f"""
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA journal_size_limit = {WAL_BYTES};
PRAGMA wal_autocheckpoint = {WAL_BYTES >> 12};
PRAGMA cache_size = -{CACHE_KIB};
CREATE TABLE IF NOT EXISTS calls (id INTEGER PRIMARY KEY, {", ".join(_COLUMNS)});
CREATE INDEX IF NOT EXISTS calls_by_time ON calls (time);
CREATE TABLE IF NOT EXISTS texts (id INTEGER PRIMARY KEY, arguments TEXT, result TEXT);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, content='', detail=none, columnsize=0);
"""
_ADD = f"INSERT INTO calls (id, {', '.join(_COLUMNS)})"
_SEARCHED = ("client", "project", "server", "tool", "error", "arguments", "result")
_WORDS = " || ' ' || ".join(f"coalesce({name}, '')" for name in _SEARCHED)
_UNLEARN = f"""INSERT INTO words (words, rowid, text)
SELECT 'delete', id, {_WORDS} FROM calls LEFT JOIN texts USING (id) WHERE """
_FAILED = ", ".join(f"'{one}'" for one in FAILURES)


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions for finding calls. At most `limit` are found: the newest or, with `after`, the oldest.

    - `words`: up to 8 words that must all occur in the call
    - `tool`: the name of a tool, or SERVER/TOOL
    - `typed`: True if `tool` and `client` may be parts of names, as a user types them
    - `after`, `before`: find only calls with a higher id than `after` and a lower id than `before`
    """

    words: str = ""
    server: str = ""
    tool: str = ""
    client: str = ""
    failed: bool = False
    typed: bool = False
    since: float = 0.0  # Unix seconds
    after: int = 0
    before: int = 0
    limit: int = 50


class HistoryFile:
    """The history file. `limits`: returns the days and bytes to keep. Methods block and raise StorageError."""

    def __init__(self, path: Path, limits: Callable[[], tuple[float, int]]) -> None:
        self.path = path
        self._limits = limits
        self._open: sqlite3.Connection | None = None
        self._inode = 0  # inode of the open file
        self._pruned_at = 0.0
        self.set_aside: Path | None = None  # the path to which an unusable file was renamed

    def close(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            with suppress(sqlite3.Error):
                opened.close()

    def add(self, rows: Sequence[Row]) -> None:
        """Add all calls or none, in the order in which they ended. Make room first if the file is full."""
        with self._written() as file:
            self._make_room(file)
            first = (file.execute("SELECT max(id) FROM calls").fetchone()[0] or 0) + 1
            numbered = list(enumerate(rows, first))
            _insert(file, _ADD, [(number, *row[: len(_COLUMNS)]) for number, row in numbered])
            texts = [(number, row.arguments, row.result) for number, row in numbered if row.arguments or row.result]
            _insert(file, "INSERT INTO texts", texts)
            words = [(number, " ".join(getattr(row, name) for name in _SEARCHED)) for number, row in numbered]
            _insert(file, "INSERT INTO words (rowid, text)", words)

    def find(self, wanted: Filter) -> list[dict[str, Any]]:
        """Return the calls that match, newest first, without their texts."""
        match, (parts, values) = _match(wanted.words), _conditions(wanted)
        if match and parts:
            # A word may occur in every call. If few calls meet the other conditions, search only these for the words.
            sql = f"SELECT id FROM calls WHERE {' AND '.join(parts)} ORDER BY id DESC LIMIT {FEW + 1}"
            few = [row[0] for row in self._query(sql, *values)]
            if not few:
                return []
            if len(few) <= FEW:
                ids = ", ".join(map(str, few))
                parts, values = [f"words.rowid BETWEEN {few[-1]} AND {few[0]} AND +words.rowid IN ({ids})"], []
        table, number = "calls", "id"
        if match:  # the word index is in call order, so reading stops at the limit
            table, number = "words CROSS JOIN calls ON id = words.rowid", "words.rowid"
            parts, values = [*parts, "words MATCH ?"], [*values, match]
        where = f"WHERE {' AND '.join(parts)}" if parts else ""
        order, most = "ASC" if wanted.after else "DESC", max(1, min(wanted.limit, LIST_MOST))
        sql = f"SELECT id, {', '.join(_COLUMNS)} FROM {table} {where} ORDER BY {number} {order} LIMIT {most}"
        rows = [dict(row) for row in self._query(sql, *values)]
        return rows[::-1] if wanted.after else rows

    def get(self, number: int) -> dict[str, Any] | None:
        """Return the call with that id and its texts, or None if it does not exist."""
        sql = f"SELECT calls.id, {', '.join(_COLUMNS)}, arguments, result FROM calls LEFT JOIN texts USING (id)"
        rows = self._query(f"{sql} WHERE calls.id = ?", number)
        return dict(rows[0]) if rows else None

    def count_since(self, moment: float) -> tuple[int, int]:
        """Return the number of calls that ended since `moment` (Unix seconds), and how many of them failed."""
        sql = f"SELECT count(*), coalesce(sum(outcome IN ({_FAILED})), 0) FROM calls WHERE time >= ?"
        rows = self._query(sql, moment)
        return (int(rows[0][0]), int(rows[0][1])) if rows else (0, 0)

    def per_minute(self, moment: float, minutes: int) -> list[int]:
        """Return the number of calls in each of the `minutes` before `moment` (Unix seconds), oldest first."""
        counts = [0] * minutes
        sql = "SELECT cast((? - time) / 60 AS INTEGER) AS ago, count(*) FROM calls WHERE time > ? GROUP BY ago"
        for ago, number in self._query(sql, moment, moment - minutes * 60):
            if 0 <= ago < minutes:
                counts[minutes - 1 - ago] = number
        return counts

    def used(self, moment: float) -> tuple[float, set[tuple[str, str]]]:
        """Return the later of `moment` and the first call's time, and the tools called since `moment`.

        Times are in Unix seconds; the returned one is 0 if there are no calls. Each tool is (server, tool).
        """
        first = [row[0] for row in self._query("SELECT min(time) FROM calls") if row[0] is not None]
        rows = self._query("SELECT DISTINCT server, tool FROM calls WHERE time >= ?", moment)
        return (max(float(first[0]), moment) if first else 0.0), {(row[0], row[1]) for row in rows}

    def clear(self) -> int:
        """Delete the history file. Return the number of calls that it held."""
        count = sum(int(row[0]) for row in self._query("SELECT count(*) FROM calls"))
        self.close()
        for part in _parts(self.path):
            try:
                part.unlink(missing_ok=True)
            except OSError as error:
                hint = "Check its owner and permissions"
                raise StorageError(f"Cannot delete {part}: {error.strerror}", hint) from None
        return count

    @contextmanager
    def _written(self) -> Iterator[sqlite3.Connection]:
        with self._guarded():
            file = self._opened()
            file.execute("BEGIN IMMEDIATE")
            try:
                yield file
            except BaseException:
                with suppress(sqlite3.Error):
                    file.execute("ROLLBACK")
                raise
            file.execute("COMMIT")

    def _query(self, sql: str, *values: object) -> list[sqlite3.Row]:
        """Run a query. Return its rows, or none if the file does not exist yet."""
        with self._guarded():
            if self._open is None and not self.path.exists():
                return []
            return self._opened().execute(sql, values).fetchall()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            self.close()
            words = str(error)
            hint = "Calls continue without a history"
            if isinstance(error, sqlite3.DatabaseError) and any(sign in words for sign in _UNUSABLE):
                self._set_aside()
                hint = "Calls continue, and a new history has begun"
            elif "full" in words:
                hint = f"Free some space. {hint}"
            raise StorageError(f"Cannot use {self.path}: {words}", hint) from None
        except OSError as error:
            self.close()
            hint = "Check the folder's owner and permissions"
            raise StorageError(f"Cannot use {self.path}: {error.strerror}", hint) from None

    def _opened(self) -> sqlite3.Connection:
        """Return the open file. Open or create it first if necessary.

        If the open file was deleted or moved, reopen it by its path: anything written to the old one would be lost.
        """
        if self._open is not None and _inode(self.path) != self._inode:
            self.close()
        if self._open is None:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self.path.exists():
                for part in _parts(self.path)[1:]:  # left by a deleted file: SQLite would apply them to the new one
                    part.unlink(missing_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            self._inode = _inode(self.path)
            file = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=LOCKED_S)
            self._open = file
            file.row_factory = sqlite3.Row
            file.executescript(_SETUP)
        return self._open

    def _set_aside(self) -> None:
        """Rename the unusable file, and keep its new path in `set_aside`. The next `add` creates a new file."""
        aside = self.path.with_name(f"{self.path.stem}-{time.strftime('%Y%m%d-%H%M%S')}.broken.db")
        for part in _parts(self.path):
            with suppress(OSError):
                part.replace(aside.with_name(part.name.replace(self.path.name, aside.name)))
        self.set_aside = aside

    def _make_room(self, file: sqlite3.Connection) -> None:
        """Delete the oldest rows if the file is full. At most once an hour, also delete rows that are too old.

        If the file is too large, return some of its free pages to the system.
        """
        days, most = self._limits()
        now = time.time()
        if abs(now - self._pruned_at) > DAY_S / 24:
            self._pruned_at = now
            self._delete(file, "time < ?", now - days * DAY_S)
        pages, free, size = (file.execute(f"PRAGMA {name}").fetchone()[0] for name in _SIZES)
        if (pages - free) * size > most * FULL:
            first, last = file.execute("SELECT min(id), max(id) FROM calls").fetchone()
            if first is not None:
                self._delete(file, "id <= ?", first + (last - first) // PRUNED_PART)
        if pages * size > most * FULL:
            file.execute("PRAGMA incremental_vacuum(256)").fetchall()

    @staticmethod
    def _delete(file: sqlite3.Connection, where: str, value: float) -> None:
        chosen = f"SELECT id FROM calls WHERE {where}"
        file.execute(_UNLEARN + where, (value,))
        file.execute(f"DELETE FROM texts WHERE id IN ({chosen})", (value,))
        file.execute(f"DELETE FROM calls WHERE {where}", (value,))


def _insert(file: sqlite3.Connection, into: str, rows: list[tuple[Any, ...]]) -> None:
    """Insert rows, many per statement: executemany would take the GIL again after each row and delay other threads."""
    values = f"({', '.join('?' * len(rows[0]))})" if rows else ""
    left = len(rows) % INSERTED_AT_ONCE
    for first in range(0, len(rows) - left, INSERTED_AT_ONCE):
        some = rows[first : first + INSERTED_AT_ONCE]
        file.execute(f"{into} VALUES {', '.join([values] * len(some))}", [value for row in some for value in row])
    if left:
        file.executemany(f"{into} VALUES {values}", rows[-left:])


_SIZES = ("page_count", "freelist_count", "page_size")


def _parts(path: Path) -> list[Path]:
    return [path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))]


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _conditions(wanted: Filter) -> tuple[list[str], list[Any]]:
    """Return the SQL conditions of a filter and the values for them. The filter's words are left to `_match`."""
    likes, like = ("LIKE ? ESCAPE '\\'", _like) if wanted.typed else ("= ?", str)
    server, slash, tool = wanted.tool.partition("/")
    named, names = f"tool {likes}", [like(wanted.tool)]
    if slash:
        named, names = f"({named} OR server = ? AND tool {likes})", [*names, server, like(tool)]
    table: list[tuple[object, str, list[Any]]] = [
        (wanted.server, "server = ?", [wanted.server]),
        (wanted.tool, named, names),
        (wanted.client, f"client {likes}", [like(wanted.client)]),
        (wanted.failed, f"outcome IN ({_FAILED})", []),
        (wanted.since, "time >= ?", [wanted.since]),
        (wanted.after, "id > ?", [wanted.after]),
        (wanted.before, "id < ?", [wanted.before]),
    ]
    chosen = [(part, values) for given, part, values in table if given]
    return [part for part, _ in chosen], [value for _, values in chosen for value in values]


def _like(part: str) -> str:
    """Return a LIKE pattern for names that contain `part`. LIKE ignores the case of ASCII letters."""
    return "%" + "".join(f"\\{letter}" if letter in "%_\\" else letter for letter in part) + "%"


def _match(words: str) -> str:
    """Return an FTS5 query for calls that contain all of the first 8 words, or "" if no word is left.

    The last word may be the start of a word in the call. If it is a single ASCII letter or digit, it is ignored:
    nearly every call has a word that starts with it.
    """
    kept = "".join(letter if letter.isalnum() else " " for letter in words).split()[:8]
    if kept and len(kept[-1]) == 1 and kept[-1].isascii():
        del kept[-1]
    return " ".join(f'"{word}"' for word in kept) + ("*" if kept else "")
