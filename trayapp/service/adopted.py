"""A gateway that a shim or an earlier tray started, as a process that the tray looks after like its own.

Never here: deciding what is done with it (service/supervisor).
"""

from __future__ import annotations

import subprocess
from contextlib import suppress

import psutil

LINGERS = "--linger"  # of service/command_line: who starts a gateway with it leaves it to itself


class Adopted:
    """Implements supervision.Process. Its exit code is its parent's to learn."""

    def __init__(self, process: psutil.Process) -> None:
        self.pid = process.pid
        self.returncode: int | None = None
        self._process = process

    def poll(self) -> int | None:
        """See Process: never known."""
        return None

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait until it has ended. Raises subprocess.TimeoutExpired."""
        with suppress(psutil.NoSuchProcess):
            try:
                self._process.wait(timeout)
            except psutil.TimeoutExpired as error:
                raise subprocess.TimeoutExpired("gateway", error.seconds or 0.0) from None
        return None

    def terminate(self) -> None:
        """Ask it to end."""
        with suppress(psutil.NoSuchProcess):
            self._process.terminate()

    def kill(self) -> None:
        """End it. psutil leaves another process alone that has its number by now."""
        with suppress(psutil.NoSuchProcess):
            self._process.kill()


def adopt(pid: int) -> Adopted | None:
    """Return that gateway, None if nobody left it to itself: then the user started it."""
    try:
        process = psutil.Process(pid)
        return Adopted(process) if pid and LINGERS in process.cmdline() else None
    except psutil.Error:
        return None
