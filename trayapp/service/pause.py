"""What a tray tells those who would start a gateway: the user wants none, or the tray itself is starting one.

A shim that needs a gateway starts one (`start --linger`), which looks here first and ends. Both are locks: they end
with the tray, so that a tray that crashed leaves no machine without its tools. Never here: stopping anything.
"""

from __future__ import annotations

import os
import sys

from trayapp.model.errors import AlreadyRunningError, NoGatewayError
from trayapp.wire.lock import FileLock

PAUSE_LOCK, START_LOCK = "pause.lock", "start.lock"
RESUME_HINT = "Choose Resume in the tray menu, or start it with: multi-mcp start"
TRIES = 5  # somebody who looks holds it for some microseconds


class Pause:
    """The user's wish that no gateway runs, in a runtime folder."""

    name = PAUSE_LOCK

    def __init__(self, run: str) -> None:
        self._lock = FileLock(run, self.name)
        self._held = False

    def hold(self) -> None:
        """From now on shims start no gateway. Raises StorageError."""
        for _ in range(TRIES):
            if not self._held:
                self._held = self._lock.take() is None

    def end(self) -> None:
        """From now on they may."""
        self._held = False
        self._lock.release()


class StartTurn(Pause):
    """The tray's turn to start the next gateway: one with the environment of the desktop."""

    name = START_LOCK


class PausedError(NoGatewayError):
    """The user paused multi-mcp in the tray."""

    code = "paused"

    def __init__(self) -> None:
        super().__init__("multi-mcp is paused")
        self.hint = RESUME_HINT


def refuse_while_paused(run: str) -> None:
    """Raise PausedError when a tray holds the wish."""
    if FileLock(run, PAUSE_LOCK).is_held():
        raise PausedError


def refuse_out_of_turn(run: str) -> None:
    """Raise AlreadyRunningError when a tray that did not start this process is starting a gateway."""
    holder = FileLock(run, START_LOCK).holder()
    if holder is not None and holder not in _parents():
        raise AlreadyRunningError(holder)


def _parents() -> set[int]:
    if sys.platform != "win32":
        return {os.getppid()}
    import psutil  # of a venv a launcher stands in between

    return {parent.pid for parent in psutil.Process().parents()}
