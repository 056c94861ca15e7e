"""Time limits for tests, extended while other programs use the machine's processors."""

from __future__ import annotations

import os
from pathlib import Path

MOST = 10.0  # beyond this, a test would prove nothing
STEAL = 7  # the column of stolen time in /proc/stat


def stretched(limit_s: float) -> float:
    """Return `limit_s` if the machine has a spare processor, or more if several processes share one.

    Promised times are for a machine with a free processor. Tests can hold the program to them on a quiet machine and
    still pass on a busy one. A virtual machine is also busy while its host gives processor time to others.
    """
    return limit_s * min(MOST, max(1.0, _wanted() / (os.cpu_count() or 1)) / (1.0 - _stolen()))


def _wanted() -> float:
    """Return how many processes need a processor, over the last minute or now, whichever is more."""
    if not hasattr(os, "getloadavg"):  # Windows
        return 0.0
    return max(os.getloadavg()[0], _running())


def _stolen() -> float:
    """Return the share of this machine's processor time that its host gave to others since this process began."""
    now = _processor_times()
    passed = sum(now) - sum(_BEGINNING)
    return min(0.9, (now[STEAL] - _BEGINNING[STEAL]) / passed) if passed > 0 and len(now) > STEAL else 0.0


def _processor_times() -> list[int]:
    """Return the processor times in /proc/stat's first line, in ticks (proc_stat(5)), or [] without that file."""
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
