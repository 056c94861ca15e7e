"""Probe folders that may hang, in a thread that is abandoned if it does not return. A folder on an unreachable network
can block a probe for minutes.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import anyio
import anyio.to_thread

log = logging.getLogger(__name__)

LOOK_LIMIT_S = 2.0  # a folder that hangs longer is left out
T = TypeVar("T")


class FolderProbes(Generic[T]):
    """Probes of folders. Calls may overlap: each folder is probed once at a time. A failed probe gives `nothing`."""

    def __init__(self, nothing: T) -> None:
        self._nothing = nothing
        self.limit_s = LOOK_LIMIT_S
        self._under_way: dict[Path, anyio.Event] = {}  # set when the thread has been abandoned

    async def at(self, folders: Collection[Path], look: Callable[[Path], T]) -> dict[Path, T]:
        """Return the result of `look` for each folder. Those that hang are missing."""
        for folder in folders:
            if earlier := self._under_way.get(folder):
                await earlier.wait()
        found: dict[Path, T] = {}
        waiting = [folder for folder in folders if folder not in self._under_way]
        while waiting:
            waiting = await self._probe_some(waiting, look, found)
        return dict(found)  # an abandoned thread may still write

    async def _probe_some(self, folders: list[Path], look: Callable[[Path], T], found: dict[Path, T]) -> list[Path]:
        """Probe folders in one thread until it hangs. Return the folders it did not reach."""
        queue, ended = deque(folders), anyio.Event()
        self._under_way.update(dict.fromkeys(folders, ended))
        try:
            with anyio.move_on_after(self.limit_s):
                await anyio.to_thread.run_sync(self._probe, queue, look, found, abandon_on_cancel=True)
        finally:
            ended.set()
            left = list(queue)
            queue.clear()
            for folder in left:
                self._under_way.pop(folder, None)
        for folder in self._under_way.keys() & set(folders):
            log.warning("%s, where a client runs, does not answer. Its project is not used", folder)
        return left if len(left) < len(folders) else []  # no thread is free: all hang

    def _probe(self, queue: deque[Path], look: Callable[[Path], T], found: dict[Path, T]) -> None:
        """Probe in the thread: the boundary that keeps one folder's failure from the others."""
        with suppress(IndexError):
            while True:
                folder = queue.popleft()
                try:
                    found[folder] = look(folder)
                except Exception:
                    found[folder] = self._nothing
                    log.exception("Unexpected error while reading %s", folder)
                finally:
                    self._under_way.pop(folder, None)
