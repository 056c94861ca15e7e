"""Notification that a file was saved, without polling: inotify on Linux, nothing elsewhere.

files.signature tells if the file really changed.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

# <sys/inotify.h>: closed after writing, moved in or out, created or deleted; the folder itself is gone.
_EVENTS = 0x00000008 | 0x00000040 | 0x00000080 | 0x00000100 | 0x00000200 | 0x00000400 | 0x00000800
_EVENTS |= 0x00000002  # IN_MODIFY: some programs keep the file open
_FLAGS = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
READ_BYTES = 1 << 16
DRAIN_MOST = 16  # reads: twice the kernel's queue; a program that writes there constantly must not block us


class FolderWatch:
    """A descriptor that becomes readable on events in the folders of a file and of its link target."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def drain(self) -> None:
        """Discard all pending events."""
        with suppress(OSError):  # none left
            for _ in range(DRAIN_MOST):
                os.read(self.descriptor, READ_BYTES)

    def close(self) -> None:
        """End the watch."""
        os.close(self.descriptor)


def watch_folders_of(path: Path) -> FolderWatch | None:
    """Return a watch on the folder of `path` and on that of its link target, or None if unavailable."""
    if sys.platform != "linux":
        return None
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(_FLAGS)
    except (OSError, AttributeError):
        return None
    if descriptor < 0:
        return None  # the user's limit of inotify instances
    folders = {path.parent, path.resolve().parent}
    added = [libc.inotify_add_watch(descriptor, os.fsencode(folder), _EVENTS) for folder in folders]
    if min(added) < 0:
        os.close(descriptor)
        return None
    return FolderWatch(descriptor)
