"""Connections that have not yet identified themselves. Their number and their time are limited.

A flood of connections must not lock others out, nor use up the process's descriptors. Never here: access control.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from trayapp.wire.descriptors import descriptor_limit

IDENTIFY_S = 10.0  # a client sends its first line, or the head of its first request, within milliseconds
PLACES_MOST = 1024  # two dozen sessions that each send twenty requests at once open 500
PART = 8  # one eighth of the process's descriptors
BURST_PART = 4  # asyncio reads from a connection two turns after accepting it; none must be closed before that


class PendingConnections:
    """At most `most` pending connections, each for at most `limit_s` seconds. One too many closes the oldest."""

    def __init__(self, most: int | None = None, limit_s: float = IDENTIFY_S) -> None:
        self._most = most if most is not None else places(descriptor_limit())
        self._limit_s = limit_s
        self._pending: dict[object, tuple[Callable[[], None], asyncio.TimerHandle]] = {}  # oldest first

    @property
    def burst(self) -> int:
        """Return the number of connections to accept in one turn of the event loop (asyncio's `backlog`)."""
        return max(1, self._most // BURST_PART)

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, connection: object, end: Callable[[], None]) -> None:
        """Add a new connection. `end` is called unless it is discarded in time."""
        timer = asyncio.get_running_loop().call_later(self._limit_s, self._end, connection)
        self._pending[connection] = end, timer
        if len(self._pending) > self._most:
            self._end(next(iter(self._pending)))

    def discard(self, connection: object) -> None:
        """Forget a connection that has identified itself or is gone."""
        if (known := self._pending.pop(connection, None)) is not None:
            known[1].cancel()

    def _end(self, connection: object) -> None:
        known = self._pending.get(connection)
        self.discard(connection)
        if known is not None:
            known[0]()


def places(descriptors: int) -> int:
    """Return how many pending connections a process with this many descriptors can afford."""
    return max(2, min(PLACES_MOST, descriptors // PART))
