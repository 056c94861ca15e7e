"""Limits on connections: on those that have not yet identified themselves, and on the process's descriptors.

A flood of connections must not lock others out, nor use up the process's descriptors. Never here: access control.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress

if sys.platform != "win32":
    import resource

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


# --- the limit on files and sockets that this process may have open

ENOUGH = 65_536  # more than a gateway ever needs; programs that close every possible descriptor still start quickly
MACOS_MOST = 10_240  # OPEN_MAX: macOS refuses more, even if the hard limit is higher
UNKNOWN = 8_192  # Windows: handles have no limit that matters in practice


def descriptor_limit() -> int:
    """Return the soft limit on open descriptors."""
    if sys.platform == "win32":
        return UNKNOWN
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return ENOUGH if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> None:
    """Raise the soft limit to the hard one, at most to ENOUGH. Desktops commonly start programs with 1,024."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for most in (ENOUGH, MACOS_MOST):
        wanted = most if hard == resource.RLIM_INFINITY else min(hard, most)
        if soft == resource.RLIM_INFINITY or wanted <= soft:
            return
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return
