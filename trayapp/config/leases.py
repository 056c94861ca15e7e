"""Leases: while we hold one, no other program's open(2) of the file to write it returns (fcntl(2), F_SETLEASE).

Linux alone has them, for a user's own files on most local disks.
"""

from __future__ import annotations

import errno
import sys


def take(descriptor: int) -> bool | None:
    """Take a lease of a file that is open to be read. False if a process has it open to write it, None if unknown."""
    if sys.platform != "linux":
        return None
    import fcntl

    return _set(descriptor, fcntl.F_RDLCK)


def take_alone(descriptor: int) -> bool | None:
    """Take a lease of a file that nobody else has open: who opens it to read it waits, too. False, None as `take`."""
    if sys.platform != "linux":
        return None
    import fcntl

    return _set(descriptor, fcntl.F_WRLCK)


def is_awaited(descriptor: int) -> bool:
    """True if a program waits for the end of our lease, or no longer does since the system ended it."""
    if sys.platform != "linux":
        return False
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK


def end(descriptor: int) -> None:
    """End our lease: who waits for it goes on. Closing the descriptor does so, too."""
    if sys.platform != "linux":
        return
    import fcntl

    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def _set(descriptor: int, kind: int) -> bool | None:
    import fcntl
    import signal

    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)  # ignored: SIGIO, for a lease that ends, would kill us
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, kind)
    except OSError as error:
        return False if error.errno == errno.EAGAIN else None
    return True
