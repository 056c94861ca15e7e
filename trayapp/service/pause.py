"""The user's wish that no gateway runs, kept for as long as the tray that was told lives.

A shim that needs a gateway starts one (`start --linger`), which looks here first and ends. The wish is a lock: it ends
with the tray, so that a tray that crashed leaves no machine without its tools. Never here: stopping anything.
"""

from __future__ import annotations

from trayapp.model.errors import NoGatewayError
from trayapp.wire.lock import FileLock

PAUSE_LOCK = "pause.lock"
RESUME_HINT = "Choose Resume in the tray menu, or start it with: multi-mcp start"
TRIES = 5  # somebody who looks holds it for some microseconds


class Pause:
    """The wish of this process, in a runtime folder."""

    def __init__(self, run: str) -> None:
        self._lock = FileLock(run, PAUSE_LOCK)
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
