"""The clock that every timeout, backoff and expiry is decided by; passed in, so that tests can jump it.

Never here: decisions.
"""

from __future__ import annotations

import time
from typing import Protocol

import anyio


class Clock(Protocol):
    """Seconds."""

    def now(self) -> float:
        """Monotonic seconds; only differences mean something."""

    def time(self) -> float:
        """Unix seconds."""

    async def sleep(self, seconds: float) -> None:
        """Return after that much of `now`."""


class SystemClock:
    """The machine's own."""

    def now(self) -> float:
        return time.monotonic()

    def time(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)
