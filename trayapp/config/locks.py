"""Exclusive locks for changes to our files, across processes and threads.

The lock is in the run folder: the file's own folder may be a repository, read-only or on a network.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trayapp.model.errors import StorageError
from trayapp.wire.lock import FileLock
from trayapp.wire.rundir import run_dir

WAIT_S = 20.0  # fifty processes that change one file wait some seconds each; the tray waits 30 s for a whole command
LOOK_S = 0.01
NAME_HEX = 16


@contextmanager
def locked(path: Path, wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold the lock for the file at `path`, existing or not, links followed. The system frees it when its holder dies.

    Not reentrant. Blocks while another process or thread holds it. Raise StorageError after `wait_s`, or if the lock
    cannot be created.
    """
    lock = FileLock(run_dir(os.environ), _name_of(path))
    end = time.monotonic() + wait_s
    try:
        while (holder := lock.take()) is not None:
            if time.monotonic() > end:
                who = f"process {holder}" if holder else "another process"
                raise StorageError(f"{who} has held it for {wait_s:.0f} s", "End that process, then try again")
            time.sleep(LOOK_S)
    except StorageError as error:
        raise StorageError(f"Cannot change {path}: {error.title}", error.hint) from None
    try:
        yield
    finally:
        lock.remove()


def _name_of(path: Path) -> str:
    """Return one name for each file, no matter which link leads to it."""
    place = Path(os.path.normcase(os.path.realpath(path)))
    digest = hashlib.blake2b(os.fsencode(place), digest_size=NAME_HEX // 2)
    return f"{place.name}-{digest.hexdigest()}.lock"
