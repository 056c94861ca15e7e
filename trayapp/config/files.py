"""A file read and replaced as a whole: atomically, through links, mode kept, with errors for people.

Never here: what is in it. Also for other rooms that keep files of their own (auth, catalog, gateway).
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from trayapp.model.errors import StorageError

FILE_MODE = 0o600  # a new file may come to hold secrets
FOLDER_MODE = 0o700

Signature = tuple[int, int, int]

_HINTS = {
    errno.ENOSPC: "The disk is full: free some space and try again",
    errno.EDQUOT: "Your disk quota is used up: free some space and try again",
    errno.EROFS: "It lies on a read-only file system",
    errno.EACCES: "Check who owns the file and its folder, and their permissions",
    errno.EPERM: "Check who owns the file and its folder, and their permissions",
    errno.ELOOP: "It is a link that leads back to itself",
    errno.EISDIR: "A folder is in its place: move it away",
    errno.ENOTDIR: "A file is in the place of one of its folders: move it away",
}


def storage_error(error: OSError, path: Path, doing: str) -> StorageError:
    """What happened to `path` while `doing` ("read", "written"), and what to do about it."""
    hint = _HINTS.get(error.errno or 0, "")
    reason = os.strerror(error.errno).lower() if error.errno else str(error)
    return StorageError(f"{path} cannot be {doing}: {reason}", hint)


def signature(path: Path) -> Signature | None:
    """(mtime in ns, bytes, inode) of the file, links followed; None when there is none. Differs after every save."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def read_bytes(path: Path, limit: int) -> bytes | None:
    """At most `limit` + 1 bytes of a file, None when it does not exist; raises StorageError."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise StorageError(f"{path} is not a file", "Move away what is in its place")
        with path.open("rb") as file:
            return file.read(limit + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error, path, "read") from error


def write_atomic(path: Path, data: bytes, still_right: Callable[[], None] = lambda: None) -> None:
    """Replace the file by `data`, or leave it as it was and raise StorageError; of a link the target is replaced.

    An existing file keeps its mode, a new one gets FILE_MODE, missing folders FOLDER_MODE. `still_right` is called at
    the last moment and may raise to refuse.
    """
    try:
        target = path.resolve()
        mode = _mode_of(target)
        target.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        replace_file(target, data, mode, still_right)
        _sync_folder(target.parent)
    except OSError as error:
        raise storage_error(error, path, "written") from error
    except RuntimeError:  # Python before 3.13 says so of a link that leads back to itself
        raise storage_error(OSError(errno.ELOOP, ""), path, "written") from None


def _mode_of(target: Path) -> int:
    try:
        status = target.stat()
    except FileNotFoundError:
        return FILE_MODE
    if not stat.S_ISREG(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "")  # replacing would get around a file that its owner closed
    return stat.S_IMODE(status.st_mode)


def replace_file(
    path: Path, data: bytes, mode: int = FILE_MODE, still_right: Callable[[], None] = lambda: None
) -> None:
    """Make it all of the new content, or leave it as it was. Its folder is there. Raises OSError, what `still_right`
    raises."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with new_file(temporary) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
        still_right()
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def new_file(path: Path) -> BinaryIO:
    """One that was not there, for its user alone, open to be written. Raises OSError."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), FILE_MODE)
    return open(descriptor, "wb")  # noqa: PTH123 (an open descriptor, not a path)


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut; systems that cannot open a folder do so by themselves."""
    if os.name == "nt":
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
