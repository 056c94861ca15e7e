"""System settings for large answers: the size of pipes, and memory that the C library keeps for the next answer.

Never here: deciding when an answer is large.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing would cost the shim 5 ms
if TYPE_CHECKING:
    from typing import Any

# <malloc.h>: blocks from the first threshold on are mapped one by one. Above the second, the heap's end is given back.
_MMAP_THRESHOLD, _TRIM_THRESHOLD, _ARENA_MAX = -3, -1, -8
KEPT_BLOCK = 32 << 20  # bytes; the most that glibc accepts. A list of 10,000 tools is 10 MB
KEPT_END = 2 * KEPT_BLOCK  # bytes
PIPE_BYTES = 1 << 20  # a 1 MB answer then takes one read of the pipe instead of sixteen


def widen(descriptor: int) -> None:
    """Let a pipe hold PIPE_BYTES (Linux only)."""
    if sys.platform != "linux":
        return
    import fcntl

    try:
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        return  # a file, a socket, or the user's quota for pipes is used up: it works without this


def share_one_heap() -> None:
    """Make future threads share one heap. glibc only.

    A heap of its own keeps 1 MiB after a thread's first run, and the interpreter runs threads in turns anyway.
    """
    if (mallopt := _of_libc("mallopt")) is not None:
        mallopt(_ARENA_MAX, 1)


def keep_freed_memory() -> None:
    """Keep freed memory for the next large answer. glibc only.

    A 1 MB answer takes a third less time, for about 3 MiB that stay allocated after the first one. A list of 10 MB
    costs no more per byte than a short one. The caller has to call `give_back_freed_memory` from time to time.
    """
    if (mallopt := _of_libc("mallopt")) is not None:
        mallopt(_MMAP_THRESHOLD, KEPT_BLOCK)
        mallopt(_TRIM_THRESHOLD, KEPT_END)


def give_back_freed_memory() -> None:
    """Return free memory in whole pages to the system. glibc only."""
    if (malloc_trim := _of_libc("malloc_trim")) is not None:
        malloc_trim(0)


def _of_libc(name: str) -> Any:
    """Return a function of the C library; None if it has none of that name, or on systems other than Linux."""
    if sys.platform != "linux":
        return None
    import ctypes

    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
