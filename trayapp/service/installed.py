"""Since when the program lies where it lies: whether a process is of one that an update has replaced since.

By time and not by version: the next build of the same version is another program, too. Never here: what follows.
"""

# ruff: noqa: PTH116, PTH118 (as service/command)

from __future__ import annotations

import os
import time

from trayapp.service.command import PACKAGE, WHOLE, is_frozen, program
from trayapp.wire.greeting import read_endpoint

MARKER = "__init__.py"  # of an installed package: pip writes it anew with each version


def installed_at() -> float:
    """Unix seconds at which the program's file came to its place or was changed there; 0.0 where none is to be seen."""
    try:
        return os.stat(program(WHOLE) if is_frozen() else os.path.join(PACKAGE, MARKER)).st_ctime
    except OSError:
        return 0.0


class Update:
    """An update as this process sees it. `run`: the runtime folder. Each gateway is judged once."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._since = time.time()
        self._judged = 0

    def replaced_us(self) -> bool:
        """Whether the program came after this process."""
        return installed_at() > self._since

    def replaced_gateway(self, pid: int) -> bool:
        """Whether it came after the gateway of that process id, the first time that this is asked of it."""
        if pid == self._judged:
            return False
        self._judged = pid
        endpoint = read_endpoint(self._run)
        return endpoint is not None and endpoint.pid == pid and 0 < endpoint.started_at < installed_at()
