"""The clock that every timeout, backoff and expiry is decided by; passed in, so that tests can jump it.

Whoever looks from time to time does it on the beat: all of them at the same moments, so that together they wake an idle
process once.

Never here: decisions.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import Protocol

import anyio

EARLY = 1e-6  # of a period: whoever is woken so little before a beat is not woken again for it


class Clock(Protocol):
    """Seconds."""

    def now(self) -> float:
        """Monotonic seconds; only differences mean something."""

    def time(self) -> float:
        """Unix seconds."""

    async def sleep(self, seconds: float) -> None:
        """Return after that much of `now`."""

    async def beat(self, period_s: float, within_s: float = 0.0) -> None:
        """Return with the next beat of that period, or with the last one within `within_s` if that is later."""


def beat_after(now: float, period_s: float, within_s: float = 0.0) -> float:
    """The next multiple of the period, or the last one within `within_s`, by the clock that says `now`."""
    return (math.floor((now + max(0.0, within_s - period_s)) / period_s + EARLY) + 1) * period_s


async def next_beat(period_s: float, within_s: float = 0.0) -> None:
    """Return with the beat that `Clock.beat` names, by the event loop's clock."""
    loop, beat = asyncio.get_running_loop(), asyncio.Event()
    timer = loop.call_at(beat_after(loop.time(), period_s, within_s), beat.set)
    try:
        await beat.wait()
    finally:
        timer.cancel()


class SystemClock:
    """The machine's own."""

    now = staticmethod(time.monotonic)

    def time(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def beat(self, period_s: float, within_s: float = 0.0) -> None:
        await next_beat(period_s, within_s)
