"""The clock behind backoffs, expiry times and periodic checks. It is passed in, so tests can use one that they advance.

Periodic checks share a beat: they run at the same moments and wake an idle process only once.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio

EARLY = 1e-6  # fraction of a period before a beat; a task that wakes within it waits for the following beat


class Clock(Protocol):
    """The interface to a clock. All times are in seconds."""

    def now(self) -> float:
        """Return monotonic seconds. Only differences are meaningful."""

    def time(self) -> float:
        """Return Unix seconds."""

    async def sleep(self, seconds: float) -> None:
        """Wait until `now` has advanced by `seconds`."""

    async def beat(self, period_s: float, within_s: float = 0.0) -> None:
        """Wait for the next multiple of `period_s`, or for the last multiple within `within_s` if that is later."""


def beat_after(now: float, period_s: float, within_s: float = 0.0) -> float:
    """Return the next multiple of the period after `now`, or the last multiple within `within_s` if that is later."""
    return (math.floor((now + max(0.0, within_s - period_s)) / period_s + EARLY) + 1) * period_s


async def next_beat(period_s: float, within_s: float = 0.0) -> None:
    """Wait for a beat of the event loop's clock, as `Clock.beat` describes."""
    loop, beat = asyncio.get_running_loop(), asyncio.Event()
    timer = loop.call_at(beat_after(loop.time(), period_s, within_s), beat.set)
    try:
        await beat.wait()
    finally:
        timer.cancel()


async def first_of(*waits: Callable[[], Awaitable[object]]) -> None:
    """Wait until one of `waits` ends, and cancel the others."""

    async def wait_for(one: Callable[[], Awaitable[object]]) -> None:
        await one()
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for one in waits:
            tasks.start_soon(wait_for, one)


class SystemClock:
    """The machine's clock."""

    now = staticmethod(time.monotonic)
    time = staticmethod(time.time)
    sleep = staticmethod(anyio.sleep)
    beat = staticmethod(next_beat)
