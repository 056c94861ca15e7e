"""Detection of sleep and network changes, and the wait for a network route.

Several witnesses each report the signs that they can see. Reports that come close together are merged into one, and
`Pool.probe` acts on it. A system may lack any of the witnesses; comparing the clocks at regular ticks works everywhere.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import anyio

from trayapp.backends.clock import Clock

log = logging.getLogger(__name__)

OnWake = Callable[[str], None]  # gets the reason
Witness = Callable[[OnWake], Coroutine[Any, Any, None]]  # reports the reason for each sign; returns if it cannot watch

TICK_S = 5.0  # a sleep is noticed at most this long after its end
GAP_S = 3.0  # a shorter gap is a busy machine or a clock adjustment
TELL_DELAY_S = 1.5  # a network that comes up causes several reports
ROUTE_WAIT_S = 10.0  # after waking, wireless networks take 2 to 10 s; a longer outage counts as a failure
ROUTE_LOOK_S = 0.5
# Documentation addresses (RFC 5737, RFC 3849): connecting a datagram socket only looks up the route.
_FAR = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
_DISCARD = 9  # a port; no packet is ever sent to it


class ClockReading(NamedTuple):
    """The clocks at one moment, in seconds. `suspended` is the machine's total time asleep, 0.0 if unknown."""

    wall: float
    ran: float
    suspended: float


def suspended_s() -> float:
    """Return how long the machine has slept since its boot, in seconds; 0.0 on systems other than Linux."""
    if sys.platform != "linux":
        return 0.0
    ran = time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ran


def missed_seconds(before: ClockReading, after: ClockReading) -> float:
    """Return the seconds that this process missed between two readings at most TICK_S apart; 0.0 up to GAP_S.

    A sleep shows as one of:
    - counted suspension (Linux),
    - wall time without running time (macOS, and a machine whose host slept),
    - a late tick (Windows, a stopped process).

    Setting the clock forward looks the same and costs a needless check. Setting it back has no effect.
    """
    ran = after.ran - before.ran
    suspended = after.suspended - before.suspended
    longest = max(suspended, after.wall - before.wall - ran, ran - TICK_S)
    return longest if longest > GAP_S else 0.0


async def watch_wake(
    on_wake: OnWake,
    clock: Clock,
    witnesses: Sequence[Witness] | None = None,
    suspended: Callable[[], float] = suspended_s,
) -> None:
    """Call `on_wake` with the reasons, once for all signs within TELL_DELAY_S. Never returns."""
    signs: asyncio.Queue[str] = asyncio.Queue()
    async with anyio.create_task_group() as tasks:
        for witness in system_witnesses() if witnesses is None else witnesses:
            tasks.start_soon(_run_witness, witness, signs.put_nowait)
        tasks.start_soon(_tick, signs.put_nowait, clock, suspended)
        while True:
            reasons = [await signs.get()]
            await clock.sleep(TELL_DELAY_S)
            while not signs.empty():
                reasons.append(signs.get_nowait())
            on_wake(", ".join(dict.fromkeys(reasons)))


async def _run_witness(witness: Witness, note: OnWake) -> None:
    """Run one witness to its end. This is the boundary at which its failure stops; the others continue."""
    try:
        await witness(note)
    except Exception:
        log.exception("Unexpected error in a sleep watcher. The others continue")


def system_witnesses() -> list[Witness]:
    """Return the witnesses of this system, besides its clocks."""
    if sys.platform != "linux":
        return []
    from trayapp.backends.wake.linux import bus_signals, network_changes

    return [network_changes, bus_signals]


async def _tick(note: OnWake, clock: Clock, suspended: Callable[[], float]) -> None:
    def read() -> ClockReading:
        return ClockReading(clock.time(), clock.now(), suspended())

    before = read()
    while True:
        await clock.beat(TICK_S)
        after = read()
        if missed := missed_seconds(before, after):
            note(f"the machine slept for {missed:.0f} s")
        before = after


def has_route() -> bool:
    """Return True if the system has a route to an outside address."""
    for family, address in _FAR:
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, _DISCARD))
            return True
    return False


async def await_route(clock: Clock, routed: Callable[[], bool] = has_route) -> None:
    """Wait for a network route, at most ROUTE_WAIT_S. Nothing is sent."""
    latest = clock.now() + ROUTE_WAIT_S
    while not routed() and clock.now() < latest:
        await clock.sleep(ROUTE_LOOK_S)
