"""The first lists of a view: on the very first run they wait a moment for servers that are being asked.

Never here: asking servers, what a list holds.
"""

from __future__ import annotations

from typing import Protocol

import anyio

from trayapp.gateway.services import Services

# On the very first run nothing is known. Many clients list once and ignore list_changed: lists wait this long after
# the start for servers that are being discovered, no longer, whatever hangs.
FIRST_LIST_GRACE_S = 0.5  # with the start before it, and HTTP to load, within a second


class BeingAsked(Protocol):
    """Returns unknown servers of a view that are being asked and may answer yet; `own`: those of this view alone."""

    def __call__(self, *, own: bool = False) -> list[str]: ...


class FirstLists:
    """The waiting for the first lists of one view."""

    def __init__(self, services: Services, being_asked: BeingAsked) -> None:
        self._services = services
        self._being_asked = being_asked
        self._latest = 0.0  # by the clock: until then a list may wait

    def begin(self) -> None:
        """Let lists wait from now on for servers that are being asked, `FIRST_LIST_GRACE_S` at most."""
        self._latest = self._services.clock.now() + FIRST_LIST_GRACE_S

    @property
    def may_grow(self) -> bool:
        """True if a list is worth waiting for: servers of which nothing is known are being asked, since a moment."""
        return self._services.clock.now() < self._latest and bool(self._being_asked())

    async def settled(self) -> None:
        """Wait until `may_grow` is false."""
        await self.answered(self._latest - self._services.clock.now())

    async def answered(self, at_most_s: float, *, own: bool = False) -> None:
        """Wait until none is being asked any more; `own`: none of this view alone."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._end_after, max(0.0, at_most_s), tasks.cancel_scope)
            while self._being_asked(own=own):
                await self._services.changes.next()
            tasks.cancel_scope.cancel()

    async def _end_after(self, seconds: float, scope: anyio.CancelScope) -> None:
        await self._services.clock.sleep(seconds)
        scope.cancel()
