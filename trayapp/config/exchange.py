"""Atomic exchange of two files, so that the replaced file stays available to us."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

# Linux, renameat2(2); macOS, renamex_np(2).
_HERE = -100  # AT_FDCWD
_LINUX_EXCHANGE, _MAC_EXCHANGE = 2, 2
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


def exchange(one: Path, other: Path) -> bool:
    """Exchange two files of one folder. Return False if the system or the file system cannot. Raise OSError."""
    import ctypes  # late: most programs that read files replace none

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
