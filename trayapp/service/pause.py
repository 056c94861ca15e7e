"""Locks that keep shims from starting a gateway while multi-mcp is paused or the tray itself starts one.

A gateway that a shim starts (`start --linger`) first checks these locks and exits if one is held.
The system releases the locks when the tray ends, so a crashed tray does not leave the user without tools.
"""

from __future__ import annotations

import os
import sys

from trayapp.model.errors import AlreadyRunningError, NoGatewayError
from trayapp.wire.lock import FileLock

PAUSE_LOCK = "pause.lock"
START_LOCK = "start.lock"  # held while the tray starts the gateway, which should have the desktop's environment
RESUME_HINT = "Choose Resume in the tray menu, or start it with: multi-mcp start"
TRIES = 5  # attempts to take a lock, because processes that check it hold it for a few microseconds


class TrayLock:
    """A lock that the tray holds in a runtime folder. `name` is PAUSE_LOCK or START_LOCK."""

    def __init__(self, run: str, name: str) -> None:
        self._lock = FileLock(run, name)
        self._held = False

    def hold(self) -> None:
        """Take the lock, so that shims start no gateway. Give up if another process has it. Raises StorageError."""
        for _ in range(TRIES):
            if not self._held:
                self._held = self._lock.take() is None

    def end(self) -> None:
        """Release the lock. Shims may then start a gateway again."""
        self._held = False
        self._lock.release()


class PausedError(NoGatewayError):
    """Raised when the user has paused multi-mcp in the tray."""

    code = "paused"

    def __init__(self) -> None:
        super().__init__("multi-mcp is paused")
        self.hint = RESUME_HINT


def refuse_while_paused(run: str) -> None:
    """Raise PausedError if a tray holds the pause lock."""
    if FileLock(run, PAUSE_LOCK).is_held():
        raise PausedError


def refuse_during_tray_start(run: str) -> None:
    """Raise AlreadyRunningError if a tray is starting a gateway other than this process."""
    holder = FileLock(run, START_LOCK).holder()
    if holder is None:
        return
    parents = {os.getppid()}
    if sys.platform == "win32":
        import psutil  # a venv's launcher may be between us and the tray

        parents |= {parent.pid for parent in psutil.Process().parents()}
    if holder not in parents:
        raise AlreadyRunningError(holder)
