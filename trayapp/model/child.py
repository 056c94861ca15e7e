"""The gateway as the tray sees its process: the states.

Never here: processes, clocks, what is shown for a state.
"""

from __future__ import annotations

from enum import StrEnum


class ChildState(StrEnum):
    """Where the gateway's process stands, seen from the tray that supervises it (PRODUCT 2, 11)."""

    STARTING = "starting"  # started by us, does not answer yet
    RUNNING = "running"  # started by us, answers; ours to restart and to stop
    ATTACHED = "attached"  # answers, started by somebody else: never ended by us
    RESTARTING = "restarting"  # it died or hung by itself; the next one is started after a pause
    CRASH_LOOP = "crash-loop"  # it died too often: nothing happens until the user says Retry
    PAUSED = "paused"  # the user stopped it; nothing happens until Resume
    STOPPING = "stopping"  # asked by us to end: on the way to paused, to a restart or to the end of the tray
