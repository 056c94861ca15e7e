"""How long a promise may take on this machine now: others may use its processors, too."""

from __future__ import annotations

import os
from pathlib import Path

MOST = 10.0  # past this a test says nothing any more
STEAL = 7  # the column of /proc/stat


def stretched(limit_s: float) -> float:
    """Return `limit_s` if the machine has a spare processor, more if several processes share one.

    A promise is made for a machine that has time for it. So a test need neither be generous on a quiet machine, nor
    fail on a busy one. A virtual machine is busy, too, when its host gives its processors to others.
    """
    return limit_s * min(MOST, max(1.0, _wanted() / (os.cpu_count() or 1)) / (1.0 - _stolen()))


def _wanted() -> float:
    """Return how many processes want a processor: over the last minute, or at this moment."""
    if not hasattr(os, "getloadavg"):  # Windows
        return 0.0
    return max(os.getloadavg()[0], _running())


def _stolen() -> float:
    """Return the share of this machine's processor time that its host gave to others since this process began."""
    now = _processor_times()
    passed = sum(now) - sum(_BEGINNING)
    return min(0.9, (now[STEAL] - _BEGINNING[STEAL]) / passed) if passed > 0 and len(now) > STEAL else 0.0


def _processor_times() -> list[int]:
    """Return the first line of /proc/stat (proc_stat(5)): ticks by what the processors did; empty if not Linux."""
    try:
        return list(map(int, Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]))
    except OSError:
        return []


def _running() -> float:
    try:
        return float(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[0])
    except OSError:  # not Linux
        return 0.0


_BEGINNING = _processor_times()
