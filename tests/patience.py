"""How long a promise may take on this machine now: others may use its processors, too. Never here: what is promised."""

from __future__ import annotations

import os
from pathlib import Path

MOST = 10.0  # past this a test says nothing any more


def stretched(limit_s: float) -> float:
    """`limit_s` on a machine with a processor to spare; more where several processes share one.

    A promise is made for a machine that has time for it. So a test need neither be generous on a quiet machine, nor
    fail on a busy one.
    """
    return limit_s * min(MOST, max(1.0, _wanted() / (os.cpu_count() or 1)))


def _wanted() -> float:
    """How many processes want a processor: over the last minute, or at this moment."""
    if not hasattr(os, "getloadavg"):  # Windows
        return 0.0
    return max(os.getloadavg()[0], _running())


def _running() -> float:
    try:
        return float(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[0])
    except OSError:  # not Linux
        return 0.0
