"""The gateway's event loop: asyncio's own, but a single reader that is ready runs without a turn of the loop.

A call beside which nothing happens is two readers, one after the other; the loop's turns around them were a quarter of
what it cost the gateway (of 158,000 instructions 25,000 less). Never here: what is read, what it means.
"""

from __future__ import annotations

import asyncio
import select
import selectors
import sys
from collections.abc import Callable, Coroutine
from typing import Any

RUNS_MOST = 64  # readers before the loop gets its turn: it is what clears away timers that were cancelled
EVENTS_MOST = 64  # of one wait; the system tells what is left with the next one
# What is used beyond what is documented, from Python 3.11 to 3.14; where it is not there, the loop is asyncio's own.
OF_LOOP = ("_ready", "_scheduled", "_stopping")
OF_SELECTOR = ("_selector", "_fd_to_key")


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """As asyncio.run, on the main thread."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        try:
            runner.run(main())
        finally:
            asyncio.set_event_loop(None)


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop that is set as the thread's: by that one Python 3.11 watches child processes."""
    loop = _make_loop()
    asyncio.set_event_loop(loop)
    return loop


if sys.platform == "linux":

    class Quick(selectors.EpollSelector):
        """Calls a reader as `loop` would in its next turn, and waits on. Without a loop it is what asyncio uses."""

        loop: Any = None

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            """See BaseSelector; empty also when all that came has been taken care of."""
            loop: Any = self.loop
            if loop is None or (timeout is not None and timeout <= 0) or loop.get_debug():
                return super().select(timeout)  # the loop has something to do, which comes first
            own: Any = self
            poll, keys, timers = own._selector.poll, own._fd_to_key, loop._scheduled
            first = timers[0] if timers else None
            for _ in range(RUNS_MOST):
                events = poll(timeout, EVENTS_MOST)
                reader = _only_reader(events, keys)
                if reader is None:
                    return super().select(0) if events else []
                reader._run()
                if loop._ready or loop._stopping or (timers[0] if timers else None) is not first:
                    break
                if first is not None and (timeout := first.when() - loop.time()) <= 0:
                    break
            return []

    def _only_reader(events: list[tuple[int, int]], keys: Any) -> Any:
        """The loop's handle for what is ready, if that is one descriptor, and only to be read."""
        if len(events) != 1 or events[0][1] != select.EPOLLIN:
            return None
        key = keys.get(events[0][0])
        reader = key.data[0] if key is not None else None  # asyncio keeps a pair: reader, writer
        return reader if reader is not None and not reader.cancelled() else None

    def _make_loop() -> asyncio.AbstractEventLoop:
        selector = Quick()
        loop = asyncio.SelectorEventLoop(selector)
        has_all = all(hasattr(loop, name) for name in OF_LOOP) and all(hasattr(selector, name) for name in OF_SELECTOR)
        if has_all and hasattr(asyncio.Handle, "_run"):
            selector.loop = loop
        return loop

else:
    _make_loop = asyncio.new_event_loop
