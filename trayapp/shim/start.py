"""Start a gateway for a shim that found none, as quickly as possible, and wait until it answers or ends.

This module is loaded only when needed.
"""

from __future__ import annotations

import os
import time

from trayapp.service.gateway_launch import reap_automatically, start_fast

TYPE_CHECKING = False  # typing costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable

STARTS_WITHIN_S = 0.5  # the usual time; until then, the shim polls every OFTEN_S, which takes 2 % of a processor
OFTEN_S = 0.002
SELDOM_S = 0.1
IS_PAUSED = 4  # exit code of a gateway that must not start: the user paused multi-mcp in the tray
RUNS_ALREADY = 7  # exit code of a gateway that found another one starting or ending
FAILED = 1


def start(connect: Callable[[], bool], pause: Callable[[float], bool], until: float) -> int | None:
    """Start a gateway and try to `connect` until the monotonic time `until`. Return None once connected.

    Otherwise return the gateway's exit code, or FAILED if it did not start or does not answer. `pause` waits a number
    of seconds. It returns False if waiting is no longer needed.
    """
    reap_automatically(False)  # otherwise the gateway would inherit the setting and lose its children's exit codes
    try:
        child = start_fast(dict(os.environ))
    except OSError:
        return FAILED
    soon, wait = time.monotonic() + STARTS_WITHIN_S, OFTEN_S
    while not connect():
        code = child.poll()
        if code is not None or time.monotonic() > until or not pause(wait):
            return FAILED if code is None else code
        wait = OFTEN_S if time.monotonic() < soon else min(wait * 1.5, SELDOM_S)
    reap_automatically(True)
    child.poll()  # reap it: it may have ended already because a quicker gateway accepted the connection
    return None
