"""A file read and replaced as a whole: atomically, through links, mode kept, with errors for people.

Other programs save these files, too, some of them in place and slowly: no byte of theirs is lost.

Never here: what is in it. Also for other rooms that keep files of their own (auth, catalog, gateway).
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from trayapp.model.errors import FileChangedError, StorageError

FILE_MODE = 0o600  # a new file may come to hold secrets
FOLDER_MODE = 0o700
PUT_BACK_S = 0.01  # between two looks whether a program is done with the file that was replaced under it
QUIET_S = 0.2  # a file that was saved within it may be half written
QUIET_LOOKS = 10  # 2 s in all: a program that writes for longer is not waited for
REPLACE_TRIES = 40 if os.name == "nt" else 1  # 2 s: Windows replaces no file that some program has open
REPLACE_PAUSE_S = 0.05

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


def wait_until_quiet(
    path: Path, sleep: Callable[[float], None] = time.sleep, now: Callable[[], float] = time.time
) -> None:
    """Wait, a moment at most, while some program may be writing the file: it was saved so lately, or is open for that.

    Half of a file may be readable, and a program that writes on after it was replaced writes into nothing. What we
    wrote ourselves is waited for by nobody (`replace_file`). Blocks.
    """
    for _ in range(QUIET_LOOKS):
        try:
            age = now() - path.stat().st_mtime
        except (OSError, ValueError):
            return
        if abs(age) >= QUIET_S and not is_open_for_writing(path):  # the clock of a network's disk may be far ahead
            return
        sleep(QUIET_S - max(age, 0) if age < QUIET_S else QUIET_S)


def is_open_for_writing(path: Path) -> bool:
    """True if a program has the file open to write it, where the system tells (Linux)."""
    try:
        with _opened(path) as file:
            return file is not None and _has_writer(file.descriptor)
    except (OSError, ValueError):
        return False


def write_atomic(path: Path, data: bytes, still_right: Callable[[], None] = lambda: None) -> None:
    """Replace the file by `data`, or leave it as it was and raise StorageError; of a link the target is replaced.

    An existing file keeps its mode, a new one gets FILE_MODE, missing folders FOLDER_MODE. `still_right` is called at
    the last moment and may raise to refuse. A program that was writing into the file that was replaced wins: its text
    is put back, and FileChangedError raised.
    """
    try:
        target = path.resolve()
        mode = _mode_of(target)
        target.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        with _opened(target) as old:

            def may_go() -> None:
                if old is not None:
                    old.wait_for_writer()
                still_right()

            replace_file(target, data, mode, may_go)
            if old is not None and old.was_written():
                _put_back(target, old, signature(target), mode)
                raise FileChangedError(f"{path} was changed in the meantime", "Try again")
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


class _Opened:
    """A file that is about to be replaced, held open: what other programs still write into it is seen here alone."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._seen = os.fstat(descriptor)
        self._has_writer = False  # that it had one for so long that it says nothing

    def wait_for_writer(self) -> None:
        """Wait, a moment at most, while some program has the file open to write it."""
        self._has_writer = True
        for _ in range(QUIET_LOOKS):
            if not _has_writer(self.descriptor):
                self._has_writer = False
                return
            time.sleep(QUIET_S)

    def was_written(self) -> bool:
        """True if some program writes into the file, or wrote since it was opened here."""
        now = os.fstat(self.descriptor)
        is_same = (now.st_mtime_ns, now.st_size) == (self._seen.st_mtime_ns, self._seen.st_size)
        return not is_same or (not self._has_writer and _has_writer(self.descriptor))

    def is_quiet(self) -> bool:
        """True if nobody writes; where the system does not tell, if nobody did a moment ago."""
        if sys.platform == "linux":
            return not _has_writer(self.descriptor)
        return abs(time.time() - os.fstat(self.descriptor).st_mtime) >= QUIET_S

    def content(self) -> bytes:
        """Read all of it."""
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        with open(self.descriptor, "rb", closefd=False) as file:
            return file.read()


@contextmanager
def _opened(target: Path) -> Iterator[_Opened | None]:
    """Hold the file open that is about to be replaced; None where that cannot be."""
    descriptor = -1
    if os.name != "nt":  # Windows replaces no file that is open, by us or by who writes it
        with contextlib.suppress(FileNotFoundError, PermissionError):
            descriptor = os.open(target, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield _Opened(descriptor) if descriptor >= 0 else None
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _has_writer(descriptor: int) -> bool:
    """True if a process has the file open for writing. Linux alone tells: it grants no read lease then (fcntl(2))."""
    if sys.platform != "linux":
        return False
    import fcntl
    import signal

    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)  # ignored: SIGIO, for a lease that ends, would kill us
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    return False


def _put_back(target: Path, old: _Opened, ours: Signature | None, mode: int) -> None:
    """Let what a program wrote into the replaced file count as its save, unless somebody saved again since.

    Soon: whoever reads the file meanwhile does not find that save.
    """
    latest = time.monotonic() + QUIET_LOOKS * QUIET_S
    while not old.is_quiet() and time.monotonic() < latest:
        time.sleep(PUT_BACK_S)
    if signature(target) == ours:
        replace_file(target, old.content(), mode)


def replace_file(
    path: Path, data: bytes, mode: int = FILE_MODE, still_right: Callable[[], None] = lambda: None
) -> None:
    """Make it all of the new content, or leave it as it was. Its folder is there. Raises OSError, what `still_right`
    raises.

    Nobody need wait for more of what is whole at once, so it is dated as quiet.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with new_file(temporary) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
        now = time.time_ns()
        os.utime(temporary, ns=(now, now - int(QUIET_S * 1e9)))
        still_right()
        _take_place(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def _take_place(temporary: Path, path: Path, tries: int = REPLACE_TRIES) -> None:
    for left in range(tries - 1, -1, -1):
        try:
            temporary.replace(path)
        except PermissionError:
            if not left:
                raise
            time.sleep(REPLACE_PAUSE_S)
        else:
            return


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
