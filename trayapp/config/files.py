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
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from trayapp.config import leases
from trayapp.config.exchange import exchange
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
) -> Signature | None:
    """Wait, a moment at most, while some program may be writing the file: it was saved so lately, or is open for that.

    Half of a file may be readable, and a program that writes on after it was replaced writes into nothing. What we
    wrote ourselves is waited for by nobody (`replace_file`). Return the signature that was seen last: what is read
    while the file has it is whole. Blocks.
    """
    seen = signature(path)
    for _ in range(QUIET_LOOKS):
        if seen is None:
            break
        age = now() - seen[0] / 1e9
        if abs(age) >= QUIET_S and not is_open_for_writing(path):  # the clock of a network's disk may be far ahead
            break
        sleep(QUIET_S - max(age, 0) if age < QUIET_S else QUIET_S)
        seen = signature(path)
    return seen


def is_open_for_writing(path: Path) -> bool:
    """True if a program has the file open to write it, where the system tells (Linux)."""
    try:
        with _opened(path) as file:
            return file is not None and file.has_writer() is True
    except (OSError, ValueError):
        return False


def write_atomic(path: Path, data: bytes, still_right: Callable[[], None] = lambda: None) -> None:
    """Replace the file by `data`, or leave it as it was and raise StorageError; of a link the target is replaced.

    An existing file keeps its mode, a new one gets FILE_MODE, missing folders FOLDER_MODE. `still_right` is called at
    the last moment and may raise to refuse. A program that saves the file in that moment wins: its file stays, or is
    put back, and FileChangedError raised.
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
    """A file that is about to be replaced, held open: what other programs still write into it is seen here alone.

    With a lease of it, whoever opens it to write it waits, and we see that somebody does: nobody writes unnoticed.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._seen = os.fstat(descriptor)
        self._has_writer = False  # that it had one for so long that it says nothing
        self._is_leased = False

    def has_writer(self) -> bool | None:
        """True if some program has it open to write it; None where the system does not tell."""
        may = leases.take(self._descriptor)
        if may:
            leases.end(self._descriptor)
        return None if may is None else not may

    def wait_for_writer(self) -> None:
        """Wait, a moment at most, while some program has the file open to write it; then hold a lease, if possible."""
        for _ in range(QUIET_LOOKS):
            may = leases.take(self._descriptor)
            if may is not False:
                self._is_leased = may is True
                return
            time.sleep(QUIET_S)
        self._has_writer = True

    def was_written(self) -> bool:
        """True if some program writes into the file, is about to, or wrote since it was opened here."""
        now = os.fstat(self._descriptor)
        if (now.st_mtime_ns, now.st_size) != (self._seen.st_mtime_ns, self._seen.st_size):
            return True
        if self._is_leased:
            return leases.is_awaited(self._descriptor)
        return not self._has_writer and self.has_writer() is True

    def end_lease(self) -> None:
        """Let go on whoever waits to write it."""
        if self._is_leased:
            leases.end(self._descriptor)
            self._is_leased = False

    def is_at(self, path: Path) -> bool:
        """True if it is the file at `path`."""
        return os.path.samestat(self._seen, path.lstat())

    def is_quiet(self) -> bool:
        """True if nobody writes; where the system does not tell, if nobody did a moment ago."""
        has_writer = self.has_writer()
        if has_writer is None:
            return abs(time.time() - os.fstat(self._descriptor).st_mtime) >= QUIET_S
        return not has_writer

    def content(self) -> bytes:
        """Read all of it."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        with open(self._descriptor, "rb", closefd=False) as file:
            return file.read()


@contextmanager
def _opened(target: Path) -> Iterator[_Opened | None]:
    """Hold the file open that is about to be replaced; None where that cannot be."""
    descriptor = -1
    if os.name != "nt":  # Windows replaces no file that is open, by us or by who writes it
        with contextlib.suppress(FileNotFoundError, PermissionError, BlockingIOError):  # the last: a lease
            descriptor = os.open(target, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield _Opened(descriptor) if descriptor >= 0 else None
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _replace(old: _Opened, fresh: Path, target: Path, still_right: Callable[[], None]) -> None:
    """Let `fresh` take the place of `old`. Raises FileChangedError if a program saves the file in this moment: then
    its file is in place."""
    ours = signature(fresh)
    old.wait_for_writer()
    still_right()
    with fresh.open("r+b", buffering=0) as file:
        leases.take_alone(file.fileno())  # nobody reads ours until we know that it stays
        try:
            is_exchanged = exchange(fresh, target)
        except FileNotFoundError:
            raise _changed(target) from None
        if not is_exchanged:
            fresh.replace(target)
        elif not old.is_at(fresh) or old.was_written():
            _exchange_back(fresh, target, ours)
            file.truncate()
            with contextlib.suppress(FileNotFoundError):
                file.write(target.read_bytes())  # for who has opened ours and waits to read it
            raise _changed(target)
    _sync_folder(target.parent)
    # A program may have found the old file in the folder before the exchange and open it only now.
    if old.was_written():
        if is_exchanged:
            _exchange_back(fresh, target, ours)
        else:
            _put_back(old, target, ours)
        raise _changed(target)


def _changed(path: Path) -> FileChangedError:
    return FileChangedError(f"{path} was changed in the meantime", "Try again")


def _exchange_back(fresh: Path, target: Path, ours: Signature | None) -> None:
    """Put the file back that we replaced, and that a program saves, unless somebody saved again since."""
    with contextlib.suppress(FileNotFoundError):
        exchange(fresh, target)
        if signature(fresh) != ours:
            exchange(fresh, target)


def _put_back(old: _Opened, target: Path, ours: Signature | None) -> None:
    """Let what a program wrote into the replaced file count as its save, unless somebody saved again since.

    Where files cannot be exchanged. Soon: whoever reads the file meanwhile does not find that save.
    """
    old.end_lease()
    latest = time.monotonic() + QUIET_LOOKS * QUIET_S
    while not old.is_quiet() and time.monotonic() < latest:
        time.sleep(PUT_BACK_S)
    if signature(target) == ours:
        replace_file(target, old.content(), _mode_of(target))


def replace_file(path: Path, data: bytes, mode: int = FILE_MODE) -> None:
    """Make it all of the new content, or leave it as it was. Its folder is there. Raises OSError."""
    with _temporary(path, data, mode) as fresh:
        _take_place(fresh, path)


@contextmanager
def _temporary(path: Path, data: bytes, mode: int) -> Iterator[Path]:
    """Write a file beside that at `path`, to take its place; what is there at the end is removed.

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
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _take_place(
    temporary: Path, path: Path, still_right: Callable[[], None] = lambda: None, tries: int = REPLACE_TRIES
) -> None:
    for left in range(tries - 1, -1, -1):
        still_right()  # each time: the program that had it open may have saved it
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
