"""How much of the system's memory an idle gateway holds: what is garbage or free by then is given back.

Never here: which memory is kept for the next large answer (wire/memory).
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import anyio

from trayapp.backends.clock import next_beat
from trayapp.wire.memory import give_back_freed_memory, keep_freed_memory

SETTLED_S = 3.0  # after the first list: clients that start together have theirs, too
STATM = Path("/proc/self/statm")  # proc_pid_statm(5): pages, the second one is resident
LOOK_S = 30.0  # large answers that follow each other more closely share what one of them freed
GROWN_LEAST = 4 << 20  # bytes: less is not worth the look through the heap, and answers of 1 MB keep some 3 MiB


async def tend_memory() -> None:
    """From a start's first list on, without end: settle, then give back what large answers have left."""
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
    """Of this process; 0 where the system does not say it in a file. What gives memory back is glibc's alone."""
    if sys.platform != "linux":
        return 0
    try:
        return int(STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


async def _settle() -> None:
    """Collect garbage from now on (cli/become put it off). What the start made is there to stay, but for what is
    garbage of it, some MiB after a first run: it is looked through once more, when clients have their first answers.
    """
    gc.enable()
    keep_freed_memory()
    give_back_freed_memory()  # of what looking tools over for the first time took
    await anyio.sleep(SETTLED_S)
    gc.collect()
    gc.freeze()
    give_back_freed_memory()
