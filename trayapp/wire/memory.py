"""What large answers need of the system: pipes that hold one, and memory that the C library keeps for the next.

Never here: deciding when an answer is large.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing would cost the shim 5 ms
if TYPE_CHECKING:
    from typing import Any

# <malloc.h>: blocks from this size on are mapped and unmapped one by one; the heap's end is given back above that.
_MMAP_THRESHOLD, _TRIM_THRESHOLD, _ARENA_MAX = -3, -1, -8
KEPT_BLOCK = 32 << 20  # bytes; the most that glibc takes. A list of 10,000 tools is 10 MB
KEPT_END = 2 * KEPT_BLOCK  # bytes
PIPE_BYTES = 1 << 20  # a 1 MB answer then crosses a pipe in one turn of its reader, not in sixteen


def widen(descriptor: int) -> None:
    """Let a pipe hold PIPE_BYTES where the system can."""
    if sys.platform != "linux":
        return
    import fcntl

    try:
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        return  # a file, a socket, or the user's quota for pipes: it works as it is


def share_one_heap() -> None:
    """Threads to come have no heaps of their own, which would keep 1 MiB after a first run: the interpreter runs them
    in turns anyway. glibc only.
    """
    if (mallopt := _of_libc("mallopt")) is not None:
        mallopt(_ARENA_MAX, 1)


def keep_freed_memory() -> None:
    """A third less time for a 1 MB answer, for some 3 MiB that stay with us after the first one; a list of 10 MB costs
    no more for its length than a short one. Whoever calls this gives back from time to time. glibc only.
    """
    if (mallopt := _of_libc("mallopt")) is not None:
        mallopt(_MMAP_THRESHOLD, KEPT_BLOCK)
        mallopt(_TRIM_THRESHOLD, KEPT_END)


def give_back_freed_memory() -> None:
    """What is free now and lies in pages of its own. glibc only."""
    if (malloc_trim := _of_libc("malloc_trim")) is not None:
        malloc_trim(0)


def _of_libc(name: str) -> Any:
    """A function of the C library, None where there is none of that name."""
    if sys.platform != "linux":
        return None
    import ctypes

    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
