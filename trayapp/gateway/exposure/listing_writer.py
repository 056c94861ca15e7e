"""Write to disk, in a thread and one job at a time: cache entries, switches in servers.yaml, and pins."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread

from trayapp.catalog.cache import CacheEntry, save, with_sound
from trayapp.model.errors import MultiMcpError
from trayapp.model.servers import ToolSwitch

log = logging.getLogger(__name__)

# A write of servers.yaml takes longer the longer the file is. The next write waits this many times its duration: the
# first answers of many servers must not be held up by writing. It does not wait while a task waits for it.
WRITING_REST = 4
ONE_WRITE_S = 10.0  # the results of a refresh become one write, unless one of many servers takes longer to answer

WriteSwitches = Callable[[dict[str, dict[str, ToolSwitch]]], None]  # into servers.yaml; blocks, raises MultiMcpError


class Job(NamedTuple):
    """Cache entry to write, and the switches that servers.yaml should have for that server."""

    entry: CacheEntry
    switches: dict[str, ToolSwitch] | None


class ListingWriter:
    """Writer of one gateway. `more` writes approvals and names in the same thread. It blocks."""

    def __init__(self, folder: Path, switches: WriteSwitches, more: Callable[[], None]) -> None:
        self._folder = folder
        self._switches = switches
        self._more = more
        self._jobs: list[Job] = []
        self._wake = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()
        self._gathered = anyio.Event()  # set when the next write is complete
        self._gathered.set()
        self._gathering = 0
        self._awaited = anyio.Event()  # set when a task waits for the write

    def write(self, jobs: list[Job]) -> None:
        """Write these jobs soon."""
        self._jobs += jobs
        self.wake()

    def wake(self) -> None:
        """Call `more` soon."""
        self._idle = anyio.Event() if self._idle.is_set() else self._idle
        self._wake.set()

    @contextmanager
    def one_write(self) -> Iterator[None]:
        """Combine all jobs added inside into one write, which waits for them ONE_WRITE_S at most."""
        self._gathering += 1
        if self._gathered.is_set():  # otherwise the writer already waits for this one
            self._gathered = anyio.Event()
        try:
            yield
        finally:
            self._gathering -= 1
            if not self._gathering:
                self._gathered.set()

    async def written(self) -> None:
        """Wait until all jobs are on disk, or their failures in the log."""
        self._gathered.set()
        self._awaited.set()
        await self._idle.wait()

    async def keep_writing(self) -> None:
        """Write jobs as long as the gateway runs."""
        while True:
            await self._wake.wait()
            with anyio.move_on_after(ONE_WRITE_S):
                await self._gathered.wait()
            self._wake, self._awaited = anyio.Event(), anyio.Event()
            jobs, self._jobs = self._jobs, []
            began = time.perf_counter()
            try:
                await anyio.to_thread.run_sync(self._write_all, jobs)
            finally:
                if not self._jobs and not self._wake.is_set():  # else a task waits for new jobs
                    self._idle.set()
            with anyio.move_on_after((time.perf_counter() - began) * WRITING_REST):
                await self._awaited.wait()

    def _write_all(self, jobs: list[Job]) -> None:
        latest = {job.entry.server: job for job in jobs}
        switches = {job.entry.server: job.switches for job in jobs if job.switches is not None}
        if switches:
            _try_write("Cannot write the tools to servers.yaml", lambda: self._switches(switches))
        for job in latest.values():
            _try_write(f"Cannot cache the lists of {job.entry.server}", partial(self._save, job.entry))
        _try_write("Cannot save approvals and names", self._more)

    def _save(self, entry: CacheEntry) -> None:
        save(self._folder, with_sound(entry))


def _try_write(failing: str, write: Callable[[], None]) -> None:
    """Run one write: the boundary that keeps its failure from the others. The data stays in memory."""
    try:
        write()
    except MultiMcpError as error:
        log.warning("%s: %s", failing, error)
    except Exception:
        log.exception("%s", failing)
