"""A gateway that a shim or an earlier tray started, which the tray supervises like its own.

service/supervisor decides what to do with it.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress

import psutil

LINGERS = "--linger"  # from service/command_line: a gateway started with it ends by itself


class AdoptedProcess:
    """Implements supervision.RunningGateway. Only the parent of a process can read its exit code, so it is unknown."""

    def __init__(self, process: psutil.Process) -> None:
        self.pid = process.pid
        self.returncode: int | None = None
        self._process = process

    def poll(self) -> int | None:
        """Return None: the exit code is never known."""
        return None

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait until the process has ended. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        with suppress(psutil.NoSuchProcess):
            try:
                self._process.wait(timeout)
            except psutil.TimeoutExpired as error:
                raise subprocess.TimeoutExpired("gateway", error.seconds or 0.0) from None
        return None

    def terminate(self) -> None:
        """Ask the process to end."""
        with suppress(psutil.NoSuchProcess):
            self._process.terminate()

    def kill(self) -> None:
        """Kill the process. psutil spares another process that has the same id by now."""
        with suppress(psutil.NoSuchProcess):
            self._process.kill()


def adopt(pid: int) -> AdoptedProcess | None:
    """Return the gateway of that process id; None if it was started without --linger, thus by the user, or is gone."""
    try:
        process = psutil.Process(pid)
        return AdoptedProcess(process) if pid and LINGERS in process.cmdline() else None
    except psutil.Error:
        return None
