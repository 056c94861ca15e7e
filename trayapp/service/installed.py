"""The time of the program's installation, to detect processes that were started before an update replaced it.

Time is compared, not version: another build of the same version is another program, too.
"""

# ruff: noqa: PTH116, PTH118 (as service/command_line)

from __future__ import annotations

import os
import time
from collections.abc import Callable

from trayapp.service.command_line import PACKAGE, WHOLE, is_frozen, program
from trayapp.wire.greeting import read_endpoint

SETTLED_S = 15.0  # an installer writes for seconds, and our file may be its first
MARKER = "__init__.py"  # in an installed package: pip rewrites it for each version


def installed_at() -> float:
    """Return the Unix time at which the program's file was installed or changed; 0.0 if it cannot be read."""
    try:
        return os.stat(program(WHOLE) if is_frozen() else os.path.join(PACKAGE, MARKER)).st_ctime
    except OSError:
        return 0.0


def is_followed(started_at: float, clock: Callable[[], float] = time.time) -> bool:
    """Return True if another program was installed after `started_at` (Unix seconds), and its installer is done."""
    return started_at < installed_at() <= clock() - SETTLED_S


class Update:
    """Detects updates for this process and its gateway. `run`: the runtime folder. Each gateway is checked once.

    An installation time in the future is ignored: the clock was set back, and every new gateway would seem older.
    """

    def __init__(self, run: str, clock: Callable[[], float] = time.time) -> None:
        self._run = run
        self._clock = clock
        self._since = clock()
        self._checked_pid = 0

    def replaced_this_process(self) -> bool:
        """Return True if the program was installed after this process started."""
        return self._installed_after(self._since)

    def replaced_gateway(self, pid: int) -> bool:
        """Return True if the program was installed after the gateway `pid` started. Later calls for it return False."""
        if pid == self._checked_pid:
            return False
        self._checked_pid = pid
        endpoint = read_endpoint(self._run)
        if endpoint is None or endpoint.pid != pid or endpoint.started_at <= 0:
            return False
        return self._installed_after(endpoint.started_at)

    def _installed_after(self, started_at: float) -> bool:
        return started_at < installed_at() <= self._clock()
