"""Delay the first lists of a view on the very first run, while its servers are being asked."""

from __future__ import annotations

from typing import Protocol

import anyio

from trayapp.gateway.services import Services

# On the very first run nothing is known. Many clients list once and ignore list_changed. So lists wait this long after
# the start for servers that are being discovered, but no longer.
FIRST_LIST_GRACE_S = 0.5  # less than a second together with the start and the loading of HTTP


class AskedServers(Protocol):
    """Returns unknown servers of a view that are being asked and may still answer. `own`: only those that run for this
    view alone.
    """

    def __call__(self, *, own: bool = False) -> list[str]: ...


class FirstListDelay:
    """Delay of the first lists of one view."""

    def __init__(self, services: Services, being_asked: AskedServers) -> None:
        self._services = services
        self._being_asked = being_asked
        self._latest = 0.0  # a list may wait until then, by the clock

    def begin(self) -> None:
        """Let lists wait from now on, for FIRST_LIST_GRACE_S at most."""
        self._latest = self._services.clock.now() + FIRST_LIST_GRACE_S

    @property
    def may_grow(self) -> bool:
        """True if a list is worth waiting for: unknown servers have been asked a moment ago."""
        return self._services.clock.now() < self._latest and bool(self._being_asked())

    async def settled(self) -> None:
        """Wait until `may_grow` is False."""
        await self.answered(self._latest - self._services.clock.now())

    async def answered(self, at_most_s: float, *, own: bool = False) -> None:
        """Wait until no server is being asked. `own`: none of this view alone."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._end_after, max(0.0, at_most_s), tasks.cancel_scope)
            while self._being_asked(own=own):
                await self._services.changes.next()
            tasks.cancel_scope.cancel()

    async def _end_after(self, seconds: float, scope: anyio.CancelScope) -> None:
        await self._services.clock.sleep(seconds)
        scope.cancel()
