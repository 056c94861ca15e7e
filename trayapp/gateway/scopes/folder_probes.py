"""Probes of folders of which any may hang: in a thread, one for all of them, left behind where it does not return.

A folder on a network that is gone may hold whoever looks at it for minutes. Never here: what is looked for.
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

LOOK_LIMIT_S = 2.0  # what hangs for so long is left out
T = TypeVar("T")


class FolderProbes(Generic[T]):
    """Probes that may overlap: nobody looks at a folder at which somebody else does. One that fails gives `nothing`."""

    def __init__(self, nothing: T) -> None:
        self._nothing = nothing
        self.limit_s = LOOK_LIMIT_S
        self._under_way: dict[Path, anyio.Event] = {}  # the event: nobody waits for that thread any more

    async def at(self, folders: Collection[Path], look: Callable[[Path], T]) -> dict[Path, T]:
        """What `look` gives for each folder; those that hang are missing."""
        for folder in folders:
            if earlier := self._under_way.get(folder):
                await earlier.wait()
        found: dict[Path, T] = {}
        waiting = [folder for folder in folders if folder not in self._under_way]
        while waiting:
            waiting = await self._round(waiting, look, found)
        return dict(found)  # a thread that was left behind may still write

    async def _round(self, folders: list[Path], look: Callable[[Path], T], found: dict[Path, T]) -> list[Path]:
        """One thread, for as long as it does not hang; the folders that it did not come to."""
        queue, ended = deque(folders), anyio.Event()
        self._under_way.update(dict.fromkeys(folders, ended))
        try:
            with anyio.move_on_after(self.limit_s):
                await anyio.to_thread.run_sync(self._look, queue, look, found, abandon_on_cancel=True)
        finally:
            ended.set()
            left = list(queue)
            queue.clear()
            for folder in left:
                self._under_way.pop(folder, None)
        for folder in self._under_way.keys() & set(folders):
            log.warning("%s, where a client runs, does not answer; its project is not looked at", folder)
        return left if len(left) < len(folders) else []  # no thread is free: all hang

    def _look(self, queue: deque[Path], look: Callable[[Path], T], found: dict[Path, T]) -> None:
        """In the thread: the boundary at which a mistake of ours stops."""
        with suppress(IndexError):
            while True:
                folder = queue.popleft()
                try:
                    found[folder] = look(folder)
                except Exception:
                    found[folder] = self._nothing
                    log.exception("Looking at %s failed in a way that we do not know", folder)
                finally:
                    self._under_way.pop(folder, None)
