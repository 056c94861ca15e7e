"""What is known of servers written to disk: cache entries, switches in servers.yaml, and what others add.

In a thread, one job at a time. Never here: what is known, asking servers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from trayapp.catalog.cache import CacheEntry, save, with_sound
from trayapp.model.errors import MultiMcpError
from trayapp.model.servers import ToolSwitch

log = logging.getLogger(__name__)

# Each write of servers.yaml takes as long as that file is: the next one waits for so many times its duration, so that
# the first meeting of many servers is not spent on writing. It does not wait while somebody waits for it.
WRITING_REST = 4
ONE_WRITE_S = 10.0  # all tools of a refresh are one write, unless one of many servers takes longer to answer

WriteSwitches = Callable[[dict[str, dict[str, ToolSwitch]]], None]  # into servers.yaml; blocks, raises MultiMcpError


@dataclass(frozen=True, slots=True)
class Job:
    """Something to write: a cache entry, and the switches that servers.yaml should hold for that server."""

    entry: CacheEntry
    switches: dict[str, ToolSwitch] | None


class ListingWriter:
    """The writer of one gateway. `more` writes what else is to be written, in the same thread; it blocks."""

    def __init__(self, folder: Path, switches: WriteSwitches, more: Callable[[], None]) -> None:
        self._folder = folder
        self._switches = switches
        self._more = more
        self._jobs: list[Job] = []
        self._wake = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()
        self._gathered = anyio.Event()  # nothing more is about to come that belongs into the same write
        self._gathered.set()
        self._gathering = 0
        self._awaited = anyio.Event()  # somebody waits for the write

    def write(self, jobs: list[Job]) -> None:
        """Write these soon."""
        self._jobs += jobs
        self.wake()

    def wake(self) -> None:
        """Write soon what `more` has."""
        self._idle = anyio.Event() if self._idle.is_set() else self._idle
        self._wake.set()

    @contextmanager
    def one_write(self) -> Iterator[None]:
        """Write what is taken inside together, within ONE_WRITE_S."""
        self._gathering += 1
        if self._gathered.is_set():  # else the writer already waits for this one
            self._gathered = anyio.Event()
        try:
            yield
        finally:
            self._gathering -= 1
            if not self._gathering:
                self._gathered.set()

    async def written(self) -> None:
        """Wait until all that was taken is on disk, or its failure is in the log."""
        self._gathered.set()
        self._awaited.set()
        await self._idle.wait()

    async def keep_writing(self) -> None:
        """Write, for as long as the gateway runs."""
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
                if not self._jobs:
                    self._idle.set()
            with anyio.move_on_after((time.perf_counter() - began) * WRITING_REST):
                await self._awaited.wait()

    def _write_all(self, jobs: list[Job]) -> None:
        latest = {job.entry.server: job for job in jobs}
        switches = {name: job.switches for name, job in latest.items() if job.switches is not None}
        if switches:
            _attempt("Could not note the tools in servers.yaml", lambda: self._switches(switches))
        for job in latest.values():
            _attempt(f"The lists of {job.entry.server} are not cached", partial(self._save, job.entry))
        _attempt("What is approved is not noted", self._more)

    def _save(self, entry: CacheEntry) -> None:
        save(self._folder, with_sound(entry))


def _attempt(failing: str, write: Callable[[], None]) -> None:
    """One write: the boundary that keeps its failure from the others. What was to be written stays known."""
    try:
        write()
    except MultiMcpError as error:
        log.warning("%s: %s", failing, error)
    except Exception:
        log.exception("%s", failing)
