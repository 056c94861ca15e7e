"""The gateway as the tray sees its process: the states, the table of transitions, what an exit code means, when to stop
trying.

Never here: processes, clocks (times are passed in), what is shown for a state.
"""

from __future__ import annotations

from enum import StrEnum

from trayapp.model.errors import ExitCode
from trayapp.model.lifecycle import TransitionError


class ChildState(StrEnum):
    """Where the gateway's process stands, seen from the tray that supervises it (PRODUCT 2, 11)."""

    STARTING = "starting"  # started by us, does not answer yet
    RUNNING = "running"  # answers, and was started by us, an earlier tray or a shim; ours to restart and to stop
    ATTACHED = "attached"  # answers, started by the user: never ended by us
    RESTARTING = "restarting"  # it died or hung by itself; the next one is started after a pause
    CRASH_LOOP = "crash-loop"  # it died too often: nothing happens until the user says Retry
    PAUSED = "paused"  # the user stopped it; nothing happens until Resume
    STOPPING = "stopping"  # asked by us to end: on the way to paused, to a restart or to the end of the tray


class ChildEvent(StrEnum):
    """What may happen to the gateway's process, or be wanted of it."""

    ANSWERED = "answered"  # one answers that is ours to look after
    FOUND = "found"  # one answers that the user started
    DIED = "died"  # it ended by itself, was killed, hung for too long, or did not come up
    GAVE_UP = "gave-up"  # it died, and there is no sense in another try now
    STOPPED = "stopped"  # it ended because somebody wanted it to
    START = "start"  # the pause is over; or the user said Retry, Resume or Restart
    STOP = "stop"  # the user wants it to end
    REFUSED = "refused"  # it is not ours, and did not end when asked


_S, _E = ChildState, ChildEvent
NEXT: dict[tuple[ChildState, ChildEvent], ChildState] = {
    (_S.STARTING, _E.ANSWERED): _S.RUNNING,
    (_S.STARTING, _E.FOUND): _S.ATTACHED,
    (_S.STARTING, _E.DIED): _S.RESTARTING,
    (_S.STARTING, _E.GAVE_UP): _S.CRASH_LOOP,
    (_S.STARTING, _E.STOPPED): _S.PAUSED,
    (_S.STARTING, _E.STOP): _S.STOPPING,
    (_S.RUNNING, _E.DIED): _S.RESTARTING,
    (_S.RUNNING, _E.GAVE_UP): _S.CRASH_LOOP,
    (_S.RUNNING, _E.STOPPED): _S.PAUSED,
    (_S.RUNNING, _E.STOP): _S.STOPPING,
    (_S.ATTACHED, _E.DIED): _S.RESTARTING,
    (_S.ATTACHED, _E.GAVE_UP): _S.CRASH_LOOP,
    (_S.ATTACHED, _E.STOPPED): _S.PAUSED,
    (_S.ATTACHED, _E.STOP): _S.STOPPING,
    (_S.RESTARTING, _E.START): _S.STARTING,
    (_S.RESTARTING, _E.ANSWERED): _S.RUNNING,
    (_S.RESTARTING, _E.FOUND): _S.ATTACHED,
    (_S.RESTARTING, _E.STOP): _S.PAUSED,
    (_S.CRASH_LOOP, _E.START): _S.STARTING,
    (_S.CRASH_LOOP, _E.ANSWERED): _S.RUNNING,
    (_S.CRASH_LOOP, _E.FOUND): _S.ATTACHED,
    (_S.CRASH_LOOP, _E.STOP): _S.PAUSED,
    (_S.PAUSED, _E.START): _S.STARTING,
    (_S.PAUSED, _E.ANSWERED): _S.RUNNING,
    (_S.PAUSED, _E.FOUND): _S.ATTACHED,
    (_S.STOPPING, _E.STOPPED): _S.PAUSED,
    (_S.STOPPING, _E.START): _S.STARTING,
    (_S.STOPPING, _E.REFUSED): _S.ATTACHED,
}


def next_child_state(state: ChildState, event: ChildEvent) -> ChildState:
    """The state after `event`; raises TransitionError for a pair that the table does not list."""
    try:
        return NEXT[state, event]
    except KeyError:
        raise TransitionError(f"Event {event} does not exist in state {state}") from None


# What is in no row, a signal too, is a crash. 7 has no row: it found another gateway, so there is no end to judge.
EXIT_EVENTS: dict[int, ChildEvent] = {
    ExitCode.OK: ChildEvent.STOPPED,  # `multi-mcp stop`, SIGTERM: somebody wanted it
    ExitCode.USAGE: ChildEvent.GAVE_UP,  # program and tray do not fit together: a half-done update
    ExitCode.CONFIG_INVALID: ChildEvent.GAVE_UP,  # the next one would read the same file
}

CRASHES_MOST = 5  # so many within the window, and we stop trying (PRODUCT 11)
CRASH_WINDOW_S = 120.0
# Before the try after the first, second, ... crash of a window. A shim waits 0.7 s for us before it starts one itself.
RESTART_WAITS_S = (0.0, 0.5, 1.0, 2.0)


def exit_event(code: int) -> ChildEvent:
    """What an exit code says; negative: the signal that ended it (POSIX)."""
    return EXIT_EVENTS.get(code, ChildEvent.DIED)


def recent_crashes(crashes: tuple[float, ...], now: float) -> tuple[float, ...]:
    """Those of the window that ends `now`; all in seconds of one clock."""
    return tuple(moment for moment in crashes if now - moment < CRASH_WINDOW_S)


def restart_wait_s(crashes: int) -> float | None:
    """Seconds from the newest of so many recent crashes to the next try; None = no more tries."""
    if crashes >= CRASHES_MOST:
        return None
    return RESTART_WAITS_S[min(crashes, len(RESTART_WAITS_S)) - 1] if crashes else 0.0
