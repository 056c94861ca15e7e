"""File leases: while we hold one, another program's open(2) of the file for writing blocks (fcntl(2), F_SETLEASE).

Only Linux has them, for a user's own files on most local disks.
"""

from __future__ import annotations

import errno
import sys


def take(descriptor: int) -> bool | None:
    """Take a lease on a file open for reading. Return False if a process has it open for writing, None if unknown."""
    if sys.platform != "linux":
        return None
    import fcntl

    return _set(descriptor, fcntl.F_RDLCK)


def take_alone(descriptor: int) -> bool | None:
    """Take a lease on a file that nobody else has open: readers block, too. Return False or None as `take` does."""
    if sys.platform != "linux":
        return None
    import fcntl

    return _set(descriptor, fcntl.F_WRLCK)


def is_awaited(descriptor: int) -> bool:
    """Return True if a program waits for our lease, or did until the system ended it."""
    if sys.platform != "linux":
        return False
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK


def end(descriptor: int) -> None:
    """End our lease, so that waiting programs continue. Closing the descriptor does so, too."""
    if sys.platform != "linux":
        return
    import fcntl

    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def _set(descriptor: int, kind: int) -> bool | None:
    import fcntl
    import signal

    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)  # ignored; SIGIO for a broken lease would kill us
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, kind)
    except OSError as error:
        return False if error.errno == errno.EAGAIN else None
    return True
