"""Give back memory that an idle gateway does not need: garbage, and what large answers freed."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import anyio

from trayapp.backends.clock import next_beat
from trayapp.wire.memory import give_back_freed_memory, keep_freed_memory

SETTLED_S = 3.0  # after the first list: clients that start together have their lists by then, too
STATM = Path("/proc/self/statm")  # proc_pid_statm(5): pages, the second one is resident
LOOK_S = 30.0  # large answers less apart than this share what one of them freed
GROWN_LEAST = 4 << 20  # bytes: less is not worth a pass over the heap, and answers of 1 MB keep some 3 MiB


async def tend_memory() -> None:
    """Settle after a start's first list. Then give back what large answers left, as long as the gateway runs."""
    await _settle()
    least = resident_bytes()
    while least:
        await next_beat(LOOK_S)
        now = resident_bytes()
        if now - least > GROWN_LEAST:
            give_back_freed_memory()
            least = resident_bytes()
        else:
            least = min(least, now)


def resident_bytes() -> int:
    """Return the resident bytes of this process; 0 if no file of the system has the number.

    Only Linux needs it: only glibc gives memory back.
    """
    if sys.platform != "linux":
        return 0
    try:
        return int(STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


async def _settle() -> None:
    """Collect garbage from now on: cli/become put it off.

    Objects of the start stay. A first run leaves some MiB of garbage among them, which is collected once clients have
    their first answers.
    """
    gc.enable()
    keep_freed_memory()
    give_back_freed_memory()  # of the first inspection of tools
    await anyio.sleep(SETTLED_S)
    gc.collect()
    gc.freeze()
    give_back_freed_memory()
