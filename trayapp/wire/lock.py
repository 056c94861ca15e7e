"""Locks that the system releases however their holder ends.

The tray imports this module, so it must not import asyncio.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path

from trayapp.model.errors import AlreadyRunningError, StorageError

NAMED_S = 0.5  # time for a new holder to write its process id on a busy machine; on a full disk, it never does
LOOK_S = 0.01


class FileLock:
    """One lock file of a runtime folder. It contains its holder's process id."""

    def __init__(self, run: str, name: str) -> None:
        self._path = Path(run) / name
        self._descriptor: int | None = None

    def take(self) -> int | None:
        """Take the lock and return None, or return its holder's process id (0: unknown). Raises StorageError.

        Wait up to NAMED_S for a new holder to write its process id.
        """
        named_by = time.monotonic() + NAMED_S
        private_folder(self._path.parent)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
        while True:
            try:
                descriptor = os.open(self._path, flags, 0o600)
            except OSError as error:
                is_link = error.errno == errno.ELOOP
                hint = "Remove the link" if is_link else "Check the owner and permissions of its folder"
                raise StorageError(f"Cannot open {self._path}: {error.strerror}", hint) from None
            if not _lock_now(descriptor):
                holder = _holder(descriptor)
                os.close(descriptor)
                if holder or time.monotonic() >= named_by:
                    return holder
                time.sleep(LOOK_S)
                continue
            if self._is_there(descriptor):
                break
            os.close(descriptor)  # the previous holder removed this file: lock the one that now has its name
        self._descriptor = descriptor
        with suppress(OSError):  # a full disk: the process id is only informative
            self._path.chmod(0o600)
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
        return None

    def is_held(self) -> bool:
        """Return True if a process holds the lock now. A lock file that cannot be opened counts as not held."""
        return self.holder() is not None

    def holder(self) -> int | None:
        """Return the process id of the current holder (0: unknown); None if the lock is free or cannot be opened."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        except OSError:
            return None
        try:
            return None if _lock_now(descriptor) else _holder(descriptor)
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Release the lock. First delete its file, if the system lets open files be deleted (Windows does not)."""
        if self._descriptor is not None and self._is_there(self._descriptor):  # never another process's lock file
            with suppress(OSError):
                self._path.unlink()
        self.release()

    def release(self) -> None:
        """Release the lock. The file stays, but is emptied."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def _is_there(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self._path.stat())
        except OSError:
            return False


class GatewayLock(FileLock):
    """The lock that a gateway holds for its whole life."""

    def __init__(self, run: str) -> None:
        super().__init__(run, "gateway.lock")

    def acquire(self) -> None:
        """Take the lock. Raises AlreadyRunningError if another process holds it, and StorageError."""
        if (holder := self.take()) is not None:
            raise AlreadyRunningError(holder)


def hold(path: Path) -> int | None:
    """Lock an existing file and return its descriptor. Its content is not changed. Closing the descriptor unlocks it.

    Return None if another process holds the lock, or the file cannot be opened. A FileLock locks in the same way.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    if _lock_now(descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _holder(descriptor: int) -> int:
    text = os.read(descriptor, 20).strip()
    return int(text) if text.isdigit() else 0


def _lock_now(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, 0x10000, os.SEEK_SET)  # a byte after the text, which others must be able to read
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)
    return True


def private_folder(path: Path) -> None:
    """Make `path` a folder of this user with mode 0700, not a link to one. Raises StorageError."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if sys.platform == "win32":
            return
        facts = path.lstat()  # a link in /tmp may lead to the folder of any user
        if facts.st_uid != os.getuid():
            raise StorageError(f"{path} belongs to another user", "Set MULTI_MCP_HOME to a folder of your own")
        if not stat.S_ISDIR(facts.st_mode):
            raise StorageError(f"{path} is a link, not a folder", "Remove the link")
        if stat.S_IMODE(facts.st_mode) != 0o700:
            path.chmod(0o700)
    except OSError as error:
        why, hint = f"Cannot use the folder {path}: {error.strerror}", "Check its owner and permissions"
        raise StorageError(why, hint) from None
