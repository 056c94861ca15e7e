"""Means of the system for files that other programs write, too, so that none of their bytes is lost.

- Leases: while we hold one, another program's open(2) of the file for writing blocks (fcntl(2), F_SETLEASE). Only Linux
  has them, for a user's own files on most local disks.
- Exchange: two files change places at once, so that the replaced file stays available to us (Linux, macOS).
- Watch: a descriptor that reports saves without polling (inotify on Linux). files.signature tells if the file changed.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

# Linux, renameat2(2); macOS, renamex_np(2)
_HERE = -100  # AT_FDCWD
_LINUX_EXCHANGE, _MAC_EXCHANGE = 2, 2
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}

# <sys/inotify.h>: closed after writing, moved in or out, created or deleted; the folder itself is gone
_EVENTS = 0x00000008 | 0x00000040 | 0x00000080 | 0x00000100 | 0x00000200 | 0x00000400 | 0x00000800
_EVENTS |= 0x00000002  # IN_MODIFY: some programs keep the file open
_FLAGS = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
READ_BYTES = 1 << 16
DRAIN_MOST = 16  # reads: twice the kernel's queue; a program that writes there constantly must not block us


def take_lease(descriptor: int) -> bool | None:
    """Take a lease on a file open for reading. Return False if a process has it open for writing, None if unknown."""
    if sys.platform != "linux":
        return None
    import fcntl

    return _set_lease(descriptor, fcntl.F_RDLCK)


def take_exclusive_lease(descriptor: int) -> bool | None:
    """Take a lease on a file that nobody else has open: readers block, too. Return as `take_lease` does."""
    if sys.platform != "linux":
        return None
    import fcntl

    return _set_lease(descriptor, fcntl.F_WRLCK)


def is_lease_awaited(descriptor: int) -> bool:
    """Return True if a program waits for our lease, or did until the system ended it."""
    if sys.platform != "linux":
        return False
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK


def end_lease(descriptor: int) -> None:
    """End our lease, so that waiting programs continue. Closing the descriptor does so, too."""
    if sys.platform != "linux":
        return
    import fcntl

    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def _set_lease(descriptor: int, kind: int) -> bool | None:
    import fcntl
    import signal

    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)  # ignored; SIGIO for a broken lease would kill us
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, kind)
    except OSError as error:
        return False if error.errno == errno.EAGAIN else None
    return True


def exchange(one: Path, other: Path) -> bool:
    """Exchange two files of one folder. Return False if the system or the file system cannot. Raises OSError."""
    import ctypes  # imported late: most programs that read files neither replace nor watch any

    names = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "linux":
            failed = ctypes.CDLL(None, use_errno=True).renameat2(_HERE, names[0], _HERE, names[1], _LINUX_EXCHANGE)
        elif sys.platform == "darwin":
            failed = ctypes.CDLL(None, use_errno=True).renamex_np(*names, _MAC_EXCHANGE)
        else:
            return False
    except (OSError, AttributeError):  # an older C library
        return False
    if not failed:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(other))


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
    import ctypes

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
