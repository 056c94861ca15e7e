"""Starting a gateway for a shim that found none: as quickly as one can, until it answers or has ended.

Loaded only then. Never here: the connection itself, what becomes of requests meanwhile.
"""

from __future__ import annotations

import os
import time

from trayapp.service.detached import reap_by_itself, start_quickly

TYPE_CHECKING = False  # typing costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable

STARTS_WITHIN_S = 0.5  # usually; until then it is looked for often, at 2 % of a processor
OFTEN_S = 0.002
SELDOM_S = 0.1
IS_PAUSED = 4  # exit code of a gateway that is not to start: the user paused multi-mcp in the tray
RUNS_ALREADY = 7  # exit code of a gateway that found another one: one that is starting too, or one that is ending

CONNECTED, FOUND_ANOTHER, PAUSED, FAILED = range(4)  # what came of it


def start(connect: Callable[[], bool], pause: Callable[[float], bool], until: float) -> int:
    """Start one and `connect`, at the latest by the monotonic clock's `until`; one of the four outcomes.

    `pause` waits so many seconds; False when nothing need be waited for any more.
    """
    reap_by_itself(False)  # the gateway would inherit that its children's exit codes are lost
    try:
        child = start_quickly(dict(os.environ))
    except OSError:
        return FAILED
    soon, wait = time.monotonic() + STARTS_WITHIN_S, OFTEN_S
    while not connect():
        code = child.poll()
        if code == RUNS_ALREADY:
            return FOUND_ANOTHER
        if code is not None or time.monotonic() > until or not pause(wait):
            return PAUSED if code == IS_PAUSED else FAILED
        wait = OFTEN_S if time.monotonic() < soon else min(wait * 1.5, SELDOM_S)
    reap_by_itself(True)
    child.poll()  # it may have ended before: another one, which was quicker, answered us
    return CONNECTED
