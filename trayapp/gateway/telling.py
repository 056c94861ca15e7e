"""Changes are told on: to sessions whose lists are others now, to watchers of the snapshot; once for many of them.

Never here: what a list holds, what a snapshot says, how either goes out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import anyio

from trayapp.backends.clock import Clock
from trayapp.gateway.lists import LIST_KINDS

if TYPE_CHECKING:
    from trayapp.gateway.frontend import Session

TELL_DELAY_S = 0.02  # changes within this are told together: one list_changed, one snapshot
TELL_REST = 10  # times as long as telling took: many servers that answer one by one cost a tenth of the time at most


class Telling:
    """Of one gateway. `sessions`: those that there are, as they come and go."""

    def __init__(self, clock: Clock, sessions: Collection[Session]) -> None:
        self._clock = clock
        self._sessions = sessions
        self.revision = 0  # of what can be seen from outside
        self._something = anyio.Event()
        self._news = anyio.Event()
        self._watchers: list[Callable[[], None]] = []

    def changed(self) -> None:
        """Something that others may see is different; they hear of it soon, once for many changes."""
        self.revision += 1
        self._something.set()
        self._something = anyio.Event()
        self._news.set()

    async def something(self) -> None:
        """Wait for the next change."""
        await self._something.wait()

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call `watcher` after changes; the returned function ends that."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    async def keep_telling(self) -> None:
        """The task that tells, for as long as the gateway runs."""
        cost_s = 0.0
        while True:
            await self._news.wait()
            await self._clock.sleep(max(TELL_DELAY_S, cost_s * TELL_REST))
            self._news = anyio.Event()
            began = self._clock.now()
            self._tell_sessions()
            for watcher in list(self._watchers):
                watcher()
            cost_s = self._clock.now() - began

    def _tell_sessions(self) -> None:
        if not any(session.ready for session in self._sessions):
            return
        seen = {session.window for session in self._sessions}
        listings = {window: {kind: window.listing(kind) for kind in LIST_KINDS} for window in seen}
        for session in list(self._sessions):
            session.lists.tell(listings[session.window])
