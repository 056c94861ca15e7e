"""Functions that read, lock and atomically replace whole files. They follow links and keep the file's mode.

Other programs also save these files, sometimes in place and slowly. Three system features prevent lost writes:
- Lease (Linux, most local disks): while we hold one, another program's open(2) for writing blocks (F_SETLEASE).
- Exchange (Linux, macOS): two files swap names atomically, so the replaced file stays available to us.
- Watch (inotify on Linux): a descriptor that reports saves without polling.

A lock serializes our own changes. It is in the run folder, because the file's folder may be read-only or remote.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from trayapp.model.errors import FileChangedError, StorageError
from trayapp.wire.lock import FileLock
from trayapp.wire.rundir import run_dir

if sys.platform == "linux":
    import fcntl
    import signal

# <sys/inotify.h>: modified, closed after writing, moved in or out, created or deleted; the folder itself is gone
_EVENTS = 0x002 | 0x008 | 0x040 | 0x080 | 0x100 | 0x200 | 0x400 | 0x800
READ_BYTES = 1 << 16
DRAIN_MOST = 16  # reads, enough for twice the kernel's queue; constant writes in the folder must not block us


def take_lease(descriptor: int, *, exclusive: bool = False) -> bool | None:
    """Take a lease on an open file and return True. Return None if there can be none: unsupported, or not our file.

    Return False if another process has the file open for writing or, with `exclusive`, in any mode. A lease delays
    other programs that open the file for writing. An exclusive lease delays readers, too.
    """
    if sys.platform != "linux":
        return None
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)  # harmless by default; SIGIO would kill us
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK if exclusive else fcntl.F_RDLCK)
    except OSError as error:
        return False if error.errno == errno.EAGAIN else None
    return True


def end_lease(descriptor: int) -> None:
    """End our lease, which unblocks waiting programs. Closing the descriptor also ends it."""
    if sys.platform == "linux":
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def exchange(one: Path, other: Path) -> bool:
    """Swap two files in one folder. Return False if the system or file system does not support it. Raises OSError."""
    import ctypes  # imported late: most processes only read files

    names = os.fsencode(one), os.fsencode(other)
    here, swap = -100, 2  # AT_FDCWD; RENAME_EXCHANGE on Linux, RENAME_SWAP on macOS
    try:
        if sys.platform == "linux":
            failed = ctypes.CDLL(None, use_errno=True).renameat2(here, names[0], here, names[1], swap)
        elif sys.platform == "darwin":
            failed = ctypes.CDLL(None, use_errno=True).renamex_np(*names, swap)
        else:
            return False
    except (OSError, AttributeError):  # the C library is too old
        return False
    number = ctypes.get_errno() if failed else 0
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP):
        return False
    if failed:
        raise OSError(number, os.strerror(number), str(other))
    return True


class FolderWatch(NamedTuple):
    """A descriptor that becomes readable on events in the folders of a file and of its link target."""

    descriptor: int

    def drain(self) -> None:
        with suppress(OSError):  # no events are left
            for _ in range(DRAIN_MOST):
                os.read(self.descriptor, READ_BYTES)

    def close(self) -> None:
        os.close(self.descriptor)


def watch_folders_of(path: Path) -> FolderWatch | None:
    """Return a watch on the folder of `path` and the folder of its link target, or None if unavailable."""
    if sys.platform != "linux":
        return None
    import ctypes

    try:
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, AttributeError):
        return None
    if descriptor < 0:
        return None  # the user's limit of inotify instances is reached
    folders = {path.parent, path.resolve().parent}
    if min(libc.inotify_add_watch(descriptor, os.fsencode(folder), _EVENTS) for folder in folders) < 0:
        os.close(descriptor)
        return None
    return FolderWatch(descriptor)


FILE_MODE = 0o600  # a new file may hold secrets later
FOLDER_MODE = 0o700
PUT_BACK_S = 0.01  # interval of the checks for writes to the replaced file
QUIET_S = 0.2  # a file that was saved more recently may be half written
QUIET_LOOKS = 10  # 2 s in total, the longest wait for a program that keeps writing
REPLACE_TRIES = 40 if os.name == "nt" else 1  # 2 s in total: Windows cannot replace a file that a program has open
REPLACE_PAUSE_S = 0.05

Signature = tuple[int, int, int]

_HINTS = {
    errno.ENOSPC: "The disk is full: free some space and try again",
    errno.EDQUOT: "Your disk quota is used up: free some space and try again",
    errno.EROFS: "It is on a read-only file system",
    **dict.fromkeys((errno.EACCES, errno.EPERM), "Check who owns the file and its folder, and their permissions"),
    errno.ELOOP: "It is a link that leads back to itself",
    errno.EISDIR: "It is a folder: move it out of the way",
    errno.ENOTDIR: "One of its folders is a file: move it out of the way",
}


LOCK_WAIT_S = 20.0  # enough for fifty processes that change one file; less than the tray's limit of 30 s for a command
LOCK_POLL_S = 0.01


def storage_error(error: OSError, path: Path, action: str) -> StorageError:
    """Return an error with a hint for a failed `action` ("read", "write", "remove")."""
    hint = _HINTS.get(error.errno or 0, "")
    reason = os.strerror(error.errno).lower() if error.errno else str(error)
    return StorageError(f"Cannot {action} {path}: {reason}", hint)


def signature(path: Path) -> Signature | None:
    """Return a value that changes with every save: (mtime in ns, size in bytes, inode).

    Return None if the file is missing or inaccessible.
    """
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def read_bytes(path: Path, limit: int) -> bytes | None:
    """Return the bytes of a file, or None if it does not exist. Raises StorageError.

    At most `limit` + 1 bytes are returned, so the caller can detect a file that is too large.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise StorageError(f"{path} is not a file", "Move or rename it")
        with path.open("rb") as file:
            return file.read(limit + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error, path, "read") from error


def wait_until_quiet(
    path: Path, sleep: Callable[[float], None] = time.sleep, now: Callable[[], float] = time.time
) -> Signature | None:
    """Wait, within a limit, while the file is open for writing or was saved only recently. Blocks.

    Return the file's signature at the end, or None if it is missing or inaccessible. Data that is read while the file
    still has this signature is complete, unless the limit was reached. Our own writes cause no wait (see `_temporary`).
    """
    seen = signature(path)
    for _ in range(QUIET_LOOKS):
        if seen is None:
            break
        age = now() - seen[0] / 1e9
        if abs(age) >= QUIET_S and not is_open_for_writing(path):  # a network disk's clock may be far ahead
            break
        sleep(QUIET_S - max(age, 0) if age < QUIET_S else QUIET_S)
        seen = signature(path)
    return seen


def is_open_for_writing(path: Path) -> bool:
    """Return True if a program has the file open for writing. On systems that do not report it, return False."""
    try:
        with _opened(path) as file:
            return file is not None and file.has_writer() is True
    except (OSError, ValueError):
        return False


def make_folder(folder: Path) -> None:
    """Make a folder and its missing parents, each with FOLDER_MODE, unlike `Path.mkdir`. Raises OSError."""
    for place in () if folder.is_dir() else (*reversed(folder.parents), folder):
        place.mkdir(mode=FOLDER_MODE, exist_ok=True)


def write_atomic(path: Path, data: bytes, still_right: Callable[[], None] = lambda: None) -> None:
    """Replace the file with `data`, or leave it unchanged and raise StorageError. For a link, replace its target.

    An existing file keeps its mode. A new file gets FILE_MODE. Missing folders are created, the innermost with
    FOLDER_MODE. `still_right` is called just before the replacement and may raise to prevent it. If another program
    saves the file at that moment, its version stays or is restored, and FileChangedError is raised.
    """
    try:
        target = path.resolve()
        mode = _mode_of(target)
        target.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        with _opened(target) as old, _temporary(target, data, mode) as fresh:
            if old is None:
                _take_place(fresh, target, still_right)
                _sync_folder(target.parent)
            else:
                _replace(old, fresh, target, still_right)
    except OSError as error:
        raise storage_error(error, path, "write") from error
    except RuntimeError:  # raised before Python 3.13 for a link that leads back to itself
        raise storage_error(OSError(errno.ELOOP, ""), path, "write") from None


def _mode_of(target: Path) -> int:
    try:
        status = target.stat()
    except FileNotFoundError:
        return FILE_MODE
    if not stat.S_ISREG(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "")  # replacing the file would bypass its permissions
    return stat.S_IMODE(status.st_mode)


class _HeldFile:
    """An open file that may be replaced. After the replacement, only its descriptor shows other programs' writes.

    While we hold a lease on the file, a program that opens it for writing blocks, and `was_written` detects that.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._seen = os.fstat(descriptor)
        self._has_writer = False  # True after the longest wait for a writer, which is then ignored
        self._is_leased = False

    def has_writer(self) -> bool | None:
        """Return True if a program has the file open for writing, or None if the system does not report that."""
        is_leased = take_lease(self._descriptor)
        if is_leased:
            end_lease(self._descriptor)
        return None if is_leased is None else not is_leased

    def wait_for_writer(self) -> None:
        """Wait, within a limit, while a program has the file open for writing. Then hold a lease, if possible."""
        for _ in range(QUIET_LOOKS):
            is_leased = take_lease(self._descriptor)
            if is_leased is not False:
                self._is_leased = is_leased is True
                return
            time.sleep(QUIET_S)
        self._has_writer = True

    def was_written(self) -> bool:
        """Return True if a program has written to the file since we opened it, or has opened it for writing."""
        now = os.fstat(self._descriptor)
        if (now.st_mtime_ns, now.st_size) != (self._seen.st_mtime_ns, self._seen.st_size):
            return True
        if self._is_leased and sys.platform == "linux":  # another program's open(2) breaks the lease
            return fcntl.fcntl(self._descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK
        return not self._has_writer and self.has_writer() is True

    def end_lease(self) -> None:
        if self._is_leased:
            end_lease(self._descriptor)
            self._is_leased = False

    def is_at(self, path: Path) -> bool:
        return os.path.samestat(self._seen, path.lstat())

    def is_quiet(self) -> bool:
        """Return True if no program is writing. If the system does not report writers, True if none wrote recently."""
        if (has_writer := self.has_writer()) is not None:
            return not has_writer
        return abs(time.time() - os.fstat(self._descriptor).st_mtime) >= QUIET_S

    def content(self) -> bytes:
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        with open(self._descriptor, "rb", closefd=False) as file:
            return file.read()


@contextmanager
def _opened(target: Path) -> Iterator[_HeldFile | None]:
    """Open the file and close it at the end. Yield None if it cannot be opened, and on Windows."""
    descriptor = -1
    if os.name != "nt":  # Windows cannot replace a file that any program has open, ours included
        with suppress(FileNotFoundError, PermissionError, BlockingIOError):  # BlockingIOError: another program's lease
            descriptor = os.open(target, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield _HeldFile(descriptor) if descriptor >= 0 else None
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _replace(old: _HeldFile, fresh: Path, target: Path, still_right: Callable[[], None]) -> None:
    """Replace `old` with `fresh`. If another program saves the file, keep that version and raise FileChangedError."""
    ours = signature(fresh)
    old.wait_for_writer()
    still_right()
    with fresh.open("r+b", buffering=0) as file:
        take_lease(file.fileno(), exclusive=True)  # nobody reads our file until we know that it stays
        try:
            is_exchanged = exchange(fresh, target)
        except FileNotFoundError:
            raise _changed(target) from None
        if not is_exchanged:
            fresh.replace(target)
        elif not old.is_at(fresh) or old.was_written():
            _exchange_back(fresh, target, ours)
            file.truncate()
            with suppress(FileNotFoundError):
                file.write(target.read_bytes())  # a reader that opened our file and is waiting gets this text
            raise _changed(target)
    _sync_folder(target.parent)
    # A program may have looked up the old file before the exchange and opened it only afterwards.
    if old.was_written():
        if is_exchanged:
            _exchange_back(fresh, target, ours)
        else:
            _put_back(old, target, ours)
        raise _changed(target)


def _changed(path: Path) -> FileChangedError:
    return FileChangedError(f"{path} was changed in the meantime", "Try again")


def _exchange_back(fresh: Path, target: Path, ours: Signature | None) -> None:
    """Put back the file that we replaced while a program was saving it, unless ours has been changed since."""
    with suppress(FileNotFoundError):
        exchange(fresh, target)
        if signature(fresh) != ours:
            exchange(fresh, target)


def _put_back(old: _HeldFile, target: Path, ours: Signature | None) -> None:
    """Write back what another program wrote into the replaced file, unless our file has been changed since.

    Used where files cannot be exchanged. The end of the write is checked often, because until then readers do not see
    that program's text.
    """
    old.end_lease()
    latest = time.monotonic() + QUIET_LOOKS * QUIET_S
    while not old.is_quiet() and time.monotonic() < latest:
        time.sleep(PUT_BACK_S)
    if signature(target) == ours:
        replace_file(target, old.content(), _mode_of(target))


def replace_file(path: Path, data: bytes, mode: int = FILE_MODE) -> None:
    """Replace the file with the new content, or leave it unchanged. Its folder must exist. Raises OSError."""
    with _temporary(path, data, mode) as fresh:
        _take_place(fresh, path)


@contextmanager
def _temporary(path: Path, data: bytes, mode: int) -> Iterator[Path]:
    """Write a temporary file that can replace `path`, and yield its path. At the end, remove what then has this path.

    The modification time is set back by QUIET_S: the file is complete, so `wait_until_quiet` need not wait.
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
        yield temporary
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _take_place(
    temporary: Path, path: Path, still_right: Callable[[], None] = lambda: None, tries: int = REPLACE_TRIES
) -> None:
    for attempt in range(1, tries + 1):
        still_right()  # before each attempt: the program that had the file open may have saved it meanwhile
        try:
            temporary.replace(path)
            return
        except PermissionError:
            if attempt == tries:
                raise
            time.sleep(REPLACE_PAUSE_S)


def new_file(path: Path) -> BinaryIO:
    """Create a file, accessible only to its user, and open it for writing. Raises OSError, also if the file exists."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), FILE_MODE)
    return open(descriptor, "wb")  # noqa: PTH123 (an open descriptor, not a path)


def _sync_folder(folder: Path) -> None:
    """Make a file's new name durable. Does nothing on Windows, where a folder cannot be opened."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def locked(path: Path, wait_s: float = LOCK_WAIT_S) -> Iterator[None]:
    """Hold the lock for the file at `path`, which need not exist. The system releases the lock of a dead process.

    Links are followed. Not reentrant. Blocks while another process or thread holds the lock. Raises StorageError after
    `wait_s` seconds, or if the lock cannot be created.
    """
    place = Path(os.path.normcase(os.path.realpath(path)))  # one lock per file, whichever link leads to the file
    digest = hashlib.blake2b(os.fsencode(place), digest_size=8)
    lock = FileLock(run_dir(os.environ), f"{place.name}-{digest.hexdigest()}.lock")
    end = time.monotonic() + wait_s
    try:
        while (holder := lock.take()) is not None:
            if time.monotonic() > end:
                who = f"process {holder}" if holder else "another process"
                raise StorageError(f"{who} has held its lock for {wait_s:.0f} s", "End that process, then try again")
            time.sleep(LOCK_POLL_S)
    except StorageError as error:
        raise StorageError(f"Cannot change {path}: {error.title}", error.hint) from None
    try:
        yield
    finally:
        lock.remove()
