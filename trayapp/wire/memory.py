"""Functions for large answers: they widen pipes, and return freed memory to the system."""

from __future__ import annotations

import sys

PIPE_BYTES = 1 << 20  # a 1 MB answer then takes one read of the pipe instead of sixteen


def widen(descriptor: int) -> None:
    """Let a pipe hold PIPE_BYTES (Linux only)."""
    if sys.platform != "linux":
        return
    import fcntl

    try:
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        return  # a file or a socket, or the user's quota for pipes is used up: everything works without this


def give_back_freed_memory() -> None:
    """Give whole pages of free memory back to the system (glibc only)."""
    if sys.platform != "linux":
        return
    import ctypes

    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):  # a C library other than glibc
        return
