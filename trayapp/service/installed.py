"""Since when the program lies where it lies: whether a process is of one that an update has replaced since.

By time and not by version: the next build of the same version is another program, too. Never here: what follows.
"""

# ruff: noqa: PTH116, PTH118 (as service/command_line)

from __future__ import annotations

import os
import time
from collections.abc import Callable

from trayapp.service.command_line import PACKAGE, WHOLE, is_frozen, program
from trayapp.wire.greeting import read_endpoint

SETTLED_S = 15.0  # an installer writes for seconds, and the file that we look at may be its first
MARKER = "__init__.py"  # of an installed package: pip writes it anew with each version


def installed_at() -> float:
    """Unix seconds at which the program's file came to its place or was changed there; 0.0 where none is to be seen."""
    try:
        return os.stat(program(WHOLE) if is_frozen() else os.path.join(PACKAGE, MARKER)).st_ctime
    except OSError:
        return 0.0


def is_followed(started_at: float, clock: Callable[[], float] = time.time) -> bool:
    """Whether another program took the place of one that began then, Unix seconds, and its installer is done."""
    return started_at < installed_at() <= clock() - SETTLED_S


class Update:
    """An update as this process sees it. `run`: the runtime folder. Each gateway is judged once.

    A program that is yet to come says nothing: the clock was set back, and each new gateway would be older than it.
    """

    def __init__(self, run: str, clock: Callable[[], float] = time.time) -> None:
        self._run = run
        self._clock = clock
        self._since = clock()
        self._judged = 0

    def replaced_us(self) -> bool:
        """Whether the program came after this process."""
        return self._came_after(self._since)

    def replaced_gateway(self, pid: int) -> bool:
        """Whether it came after the gateway of that process id, the first time that this is asked of it."""
        if pid == self._judged:
            return False
        self._judged = pid
        endpoint = read_endpoint(self._run)
        if endpoint is None or endpoint.pid != pid or endpoint.started_at <= 0:
            return False
        return self._came_after(endpoint.started_at)

    def _came_after(self, started_at: float) -> bool:
        return started_at < installed_at() <= self._clock()
