"""The recorder of the history: the event loop records ended calls, and a thread makes and writes their rows.

A call costs one tuple and one append. A history error cannot delay a call or make it fail: rows that cannot be
written are dropped, and the problem is reported.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from trayapp.model.config import HistorySettings
from trayapp.model.errors import Problem, StorageError

if TYPE_CHECKING:
    from trayapp.history.ended_call import Caller, EndedCall
    from trayapp.history.record import Row
    from trayapp.history.store import Filter, HistoryFile

log = logging.getLogger(__name__)

FILE_NAME = "history.db"
FLUSH_S = 0.1  # wait before a batch is written: short, so that the panel shows calls promptly and a kill loses few
# The thread works for at most this long, then rests so that calls can run. Each period of work delays one call,
# however short the period is. A few long periods therefore delay fewer calls than many short ones: less than 1 % of
# quick calls.
WORK_S = 0.01
REST_S = 4 * WORK_S  # rest after each period of work: most of the time remains for calls
BEHIND_S = 0.5  # once a call has waited this long for its row, rests take WORK_S: a kill loses at most 1 s of calls
ROWS_AT_ONCE = 1_000  # rows per transaction: many, because the thread waits for the GIL after each transaction
BATCHES_MOST = 50  # batches that may wait for a slow disk. Further calls are dropped
RETRY_S = 5.0  # pause after a failure: a full disk must not be retried with every batch

Result = TypeVar("Result")


class CallLookup(Protocol):
    """The gateway's facts about callers and tools. The history's thread calls the methods."""

    def caller(self, caller: Any) -> Caller:
        """Return the Caller for a client's session. A Caller is returned unchanged."""

    def kind(self, server: str, tool: str) -> str:
        """Return the class of a tool, or "" if it is unknown."""


class DailyCount(NamedTuple):
    """The number of calls since midnight, and how many of them failed. `day`: the day of the year."""

    day: int = 0
    calls: int = 0
    failed: int = 0


class Throttle:
    """A limit on how long a thread works without a rest. `since`: when the oldest call ended, by perf_counter.

    A thread that does not sleep alternates with the event loop every 5 ms, which would slow down calls.
    """

    def __init__(self, since: float) -> None:
        self._since = since
        self._began = time.perf_counter()

    def rest(self) -> None:
        """Sleep for REST_S (WORK_S if calls have waited for BEHIND_S) after WORK_S of work since the last rest."""
        now = time.perf_counter()
        if now - self._began > WORK_S:
            time.sleep(REST_S if now - self._since < BEHIND_S else WORK_S)
            self._began = time.perf_counter()


class Recorder:
    """The history of one gateway. Methods below the line `thread` run in one thread, all others on the event loop.

    `settings`: returns the current settings. On the loop, listeners are called after each batch and after `clear`, and
    `changed` when `problem` changes.

    The class is broad because the event loop and the thread share today's count and the problem.
    """

    def __init__(self, folder: Path, settings: Callable[[], HistorySettings], facts: CallLookup) -> None:
        self.path = folder / FILE_NAME
        self._settings = settings
        self._facts = facts
        self._pending: list[EndedCall] = []
        self._waiting = 0  # batches that the thread has not finished
        self._timer: asyncio.TimerHandle | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._file: HistoryFile | None = None
        self._retry_at = 0.0
        self._closed = False
        self._listeners: list[Callable[[], None]] = []
        self.changed: Callable[[], None] = lambda: None
        self.batches = 0  # number of batches written or dropped, plus calls of `clear`
        self.today: DailyCount | None = None  # None: not counted yet
        self.problem: Problem | None = None

    @property
    def enabled(self) -> bool:
        """True if the settings enable the history."""
        return self._settings().enabled

    def note(self, call: EndedCall) -> None:
        """Record a call that ended. Never blocks and never raises.

        The call is dropped if the history is disabled or closed, or if more than BATCHES_MOST batches wait.
        """
        if self._timer is None:
            if self._closed or not self._settings().enabled or self._waiting > BATCHES_MOST:
                return
            self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self._flush)
        self._pending.append(call)

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after each batch and after `clear`. Return a function that removes the listener."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def look(self) -> None:
        """Set `today` to the counts in an existing history file, unless it is already set."""
        if self.path.exists() and self.today is None:
            await self._in_thread(self._count_today)

    async def find(self, wanted: Filter) -> list[dict[str, Any]]:
        """Return the calls that match, newest first. Raises StorageError."""
        return await self._in_thread(lambda: self._opened().find(wanted))

    async def get(self, number: int) -> dict[str, Any] | None:
        """Return the call with that id and its texts, or None if it does not exist. Raises StorageError."""
        return await self._in_thread(lambda: self._opened().get(number))

    async def per_minute(self, minutes: int) -> list[int]:
        """Return the number of calls in each of the last `minutes`, oldest first. Raises StorageError."""
        return await self._in_thread(lambda: self._opened().per_minute(time.time(), minutes))

    async def used(self, within_s: float) -> tuple[float, set[tuple[str, str]]]:
        """Return when the recorded part of the last `within_s` begins, and the tools called in it.

        The time is in Unix seconds, or 0 if there are no calls. Each tool is (server, tool).
        A history that cannot be read counts as empty.
        """
        try:
            return await self._in_thread(lambda: self._opened().used(time.time() - within_s))
        except StorageError:
            return 0.0, set()

    async def clear(self) -> int:
        """Delete all calls. Return how many there were. Raises StorageError."""
        self._flush()
        cleared = await self._in_thread(lambda: self._opened().clear())
        self.today = None
        self._tell()
        return cleared

    async def close(self) -> None:
        """Write the pending calls and close the file. A call that ends later is not recorded."""
        self._closed = True
        self._flush()
        if self._pool is not None:
            await self._in_thread(lambda: self._file.close() if self._file is not None else None)
            self._pool.shutdown(wait=False)
            self._pool = None

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        calls, self._pending = self._pending, []
        if calls:
            self._waiting += 1
            epoch = time.time() - time.perf_counter()
            self._executor.submit(self._write, calls, epoch, asyncio.get_running_loop())

    @property
    def _executor(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "history")
        return self._pool

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def _written(self, problem: Problem | None) -> None:
        """Finish a batch: publish its `problem` (None: it was written), and call the listeners. Runs on the loop."""
        self._waiting -= 1
        if problem != self.problem:
            self.problem = problem
            self.changed()
        self._tell()

    def _tell(self) -> None:
        self.batches += 1
        for listener in list(self._listeners):
            listener()

    # -- thread --------------------------------------------------------------------------------------------------

    def _opened(self) -> HistoryFile:
        if self._file is None:
            from trayapp.history.store import HistoryFile  # imported on first use, since it loads SQLite

            self._file = HistoryFile(self.path, lambda: (self._settings().keep, self._settings().size))
        return self._file

    def _write(self, calls: list[EndedCall], epoch: float, loop: asyncio.AbstractEventLoop) -> None:
        """Write a batch, then call `_written` on `loop`. `epoch`: the Unix time when perf_counter was 0.

        This is the boundary for history errors: they become the problem that `_written` publishes.
        """
        problem = self.problem
        try:
            problem = self._write_rows(calls, epoch)
        except StorageError as error:
            self._retry_at = time.monotonic() + RETRY_S
            what = f"The history of calls is not being written: {error.title}"
            problem = Problem(str(self.path), 0, what, error.hint, fatal=False)
            log.warning("The history is not being written: %s", error)
        except Exception:
            log.exception("Unexpected error in the history")
        try:
            loop.call_soon_threadsafe(self._written, problem)
        except RuntimeError:
            log.debug("The event loop was closed before the history reported a batch")

    def _write_rows(self, calls: list[EndedCall], epoch: float) -> Problem | None:
        from trayapp.history.ended_call import FAILURES
        from trayapp.history.record import RowMaker

        if time.monotonic() < self._retry_at:
            return self.problem
        maker = RowMaker(with_texts=self._settings().arguments)
        kinds, callers = cache(self._facts.kind), cache(self._facts.caller)
        throttle, file = Throttle(calls[0].ended), self._opened()
        if self.today is None:
            self._count_today()
        for first in range(0, len(calls), ROWS_AT_ONCE):
            rows: list[Row] = []
            for call in calls[first : first + ROWS_AT_ONCE]:
                tool = str(call.params.get("name", "")) if isinstance(call.params, dict) else ""
                kind = kinds(call.server, tool) if call.method == "tools/call" else ""
                rows.append(maker.row(call, callers(call.caller), epoch + call.ended, kind))
                throttle.rest()
            try:
                file.add(rows)
            except StorageError:
                if file.set_aside is None:
                    raise
                file.add(rows)  # the old file was set aside, so this creates a new one
            failed = sum(row.outcome in FAILURES for row in rows)
            day = time.localtime(rows[-1].time).tm_yday
            today = self.today if self.today is not None and self.today.day == day else DailyCount(day)
            self.today = today._replace(calls=today.calls + len(rows), failed=today.failed + failed)
        if file.set_aside is None:
            return None
        what = f"The history of calls could not be read and was set aside as {file.set_aside.name}. A new one has begun"
        return Problem(str(self.path), 0, what, f"If you do not need it, delete {file.set_aside}", fatal=False)

    def _count_today(self) -> None:
        now = time.localtime()
        midnight = time.mktime((now.tm_year, now.tm_mon, now.tm_mday, 0, 0, 0, 0, 0, -1))
        try:
            self.today = DailyCount(now.tm_yday, *self._opened().count_since(midnight))
        except StorageError:
            self.today = DailyCount(now.tm_yday)
