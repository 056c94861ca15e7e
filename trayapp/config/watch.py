"""Noticing that a file was saved without looking at it all the time: inotify on Linux, nothing elsewhere.

Never here: reading the file, deciding whether it changed (files.signature), an event loop.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

# <sys/inotify.h>: a write ended, a file was moved in or out, made or removed; the folder itself went away.
_EVENTS = 0x00000008 | 0x00000040 | 0x00000080 | 0x00000100 | 0x00000200 | 0x00000400 | 0x00000800
_EVENTS |= 0x00000002  # IN_MODIFY: some programs keep the file open
_FLAGS = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
READ_BYTES = 1 << 16
DRAIN_MOST = 16  # reads: twice what the kernel keeps; who writes beside the file all the time must not hold us here


class FolderWatch:
    """Tells by a readable descriptor that something happened in the folders in which a file, or its link, lies."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def drain(self) -> None:
        """Forget what has been told so far."""
        with suppress(OSError):  # nothing more
            for _ in range(DRAIN_MOST):
                os.read(self.descriptor, READ_BYTES)

    def close(self) -> None:
        """End the watch."""
        os.close(self.descriptor)


def watch_folders_of(path: Path) -> FolderWatch | None:
    """A watch on the folder of `path`, and on that of the file it links to; None where there is no such thing."""
    if sys.platform != "linux":
        return None
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(_FLAGS)
    except (OSError, AttributeError):
        return None
    if descriptor < 0:
        return None  # the user's limit of watches
    folders = {path.parent, path.resolve().parent}
    added = [libc.inotify_add_watch(descriptor, os.fsencode(folder), _EVENTS) for folder in folders]
    if min(added) < 0:
        os.close(descriptor)
        return None
    return FolderWatch(descriptor)
