"""Noticing that the machine slept or that its network changed: several witnesses, told on as one.

Each witness may be absent; the ticker works everywhere. Never here: what is done about it (backends/pool probes).
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio

from trayapp.backends.clock import Clock
from trayapp.backends.wake.witness import OnWake, Witness

log = logging.getLogger(__name__)

TICK_S = 5.0  # a sleep is noticed at most this long after its end
GAP_S = 3.0  # less than this is a busy machine or a clock being set right
TELL_DELAY_S = 1.5  # a network that comes up says so in several steps


@dataclass(frozen=True, slots=True)
class Reading:
    """The clocks at one moment, in seconds. `suspended`: all that the machine has slept, 0.0 where nobody counts it."""

    wall: float
    ran: float
    suspended: float


def suspended_s() -> float:
    """How long the machine has slept since it was started; 0.0 where the system does not tell (all but Linux)."""
    if sys.platform != "linux":
        return 0.0
    ran = time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ran


def slept(before: Reading, after: Reading) -> float:
    """Seconds that this process has missed between two readings, at most TICK_S apart; 0.0 when at most GAP_S.

    A sleep shows as counted suspension (Linux), as wall time without running time (macOS, and a machine whose host
    slept), or as a tick that came late (Windows, a stopped process). Setting the clock forward looks the same and costs
    a needless check; setting it back is nothing.
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
    """The task that calls `on_wake` with the reason, once for all signs within TELL_DELAY_S. Never returns."""
    signs = _Signs()
    async with anyio.create_task_group() as tasks:
        for witness in system_witnesses() if witnesses is None else witnesses:
            tasks.start_soon(_hear, witness, signs.note)
        tasks.start_soon(_tick, signs.note, clock, suspended)
        while True:
            await signs.some.wait()
            await clock.sleep(TELL_DELAY_S)
            on_wake(signs.take())


async def _hear(witness: Witness, note: OnWake) -> None:
    """One witness to its end: the boundary at which its failure stops; the others go on."""
    try:
        await witness(note)
    except Exception:
        log.exception("One of the ways to notice a sleep failed; the others go on")


def system_witnesses() -> list[Witness]:
    """What this system has to tell besides its clocks."""
    if sys.platform != "linux":
        return []
    from trayapp.backends.wake.linux import bus_signals, network_changes

    return [network_changes, bus_signals]


class _Signs:
    """The reasons noted since they were last taken."""

    def __init__(self) -> None:
        self.some = anyio.Event()
        self._reasons: dict[str, None] = {}

    def note(self, reason: str) -> None:
        self._reasons[reason] = None
        self.some.set()

    def take(self) -> str:
        reasons, self._reasons = self._reasons, {}
        self.some = anyio.Event()
        return ", ".join(reasons)


async def _tick(note: OnWake, clock: Clock, suspended: Callable[[], float]) -> None:
    def read() -> Reading:
        return Reading(clock.time(), clock.now(), suspended())

    before = read()
    while True:
        await clock.beat(TICK_S)
        after = read()
        if missed := slept(before, after):
            note(f"{missed:.0f} s were slept")
        before = after
