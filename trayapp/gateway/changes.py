"""The change feed: broadcast state changes, debounced, to whoever registered.

Never here: what a list holds, what a snapshot says, how either goes out.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio

from trayapp.backends.clock import Clock

TELL_DELAY_S = 0.02  # changes within this are told together: one list_changed, one snapshot
TELL_REST = 10  # times as long as telling took: many servers that answer one by one cost a tenth of the time at most

Listener = Callable[[], None]


class Changes:
    """The changes of one gateway."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.revision = 0  # of what can be seen from outside
        self._next = anyio.Event()
        self._news = anyio.Event()
        self._listeners: list[Listener] = []

    def changed(self) -> None:
        """Note that something others may see is different; they hear of it soon, once for many changes."""
        self.revision += 1
        self._next.set()
        self._next = anyio.Event()
        self._news.set()

    async def next(self) -> None:
        """Wait for the next change."""
        await self._next.wait()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after changes, in the order of registration; the returned function ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def broadcast(self) -> None:
        """Tell the listeners, for as long as the gateway runs."""
        cost_s = 0.0
        while True:
            await self._news.wait()
            await self._clock.sleep(max(TELL_DELAY_S, cost_s * TELL_REST))
            self._news = anyio.Event()
            began = self._clock.now()
            for listener in list(self._listeners):
                listener()
            cost_s = self._clock.now() - began
