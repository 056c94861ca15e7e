"""Telling the C library to keep what large answers needed: else each 1 MB answer faults its pages in anew.

Never here: deciding when an answer is large.
"""

from __future__ import annotations

import sys

# <malloc.h>: blocks from this size on are mapped and unmapped one by one; the heap's end is given back above that.
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
KEPT_BLOCK = 4 << 20  # bytes
KEPT_END = 8 << 20  # bytes


def keep_freed_memory() -> None:
    """A third less time for a 1 MB answer, for some 3 MiB that stay with us after the first one. glibc only."""
    if sys.platform != "linux":
        return
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, KEPT_BLOCK)
    mallopt(_TRIM_THRESHOLD, KEPT_END)
