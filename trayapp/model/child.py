"""The gateway process as the tray sees it: its states, their transitions, exit codes and the limit on restarts."""

from __future__ import annotations

from enum import StrEnum

from trayapp.model.errors import ExitCode
from trayapp.model.lifecycle import TransitionError


class ChildState(StrEnum):
    """The state of the gateway process, as seen by the tray that supervises it."""

    STARTING = "starting"  # started by us, not answering yet
    RUNNING = "running"  # answers; started by us, an earlier tray or a shim, so we may restart and stop it
    ATTACHED = "attached"  # answers; started by the user, so only their request ends it
    RESTARTING = "restarting"  # died or hung; the next process starts after a wait
    CRASH_LOOP = "crash-loop"  # died too often; nothing happens until the user chooses Retry
    PAUSED = "paused"  # stopped by the user; nothing happens until Resume
    STOPPING = "stopping"  # ending at our request, before a pause, a restart or the end of the tray


class ChildEvent(StrEnum):
    """Events of the gateway process, and requests of the user."""

    ANSWERED = "answered"  # a gateway that is ours to supervise answers
    FOUND = "found"  # a gateway that the user started answers
    DIED = "died"  # it ended by itself, was killed, hung for too long, or failed to start
    GAVE_UP = "gave-up"  # it died for a reason that a restart cannot remove
    STOPPED = "stopped"  # it ended on request
    START = "start"  # the wait after a crash is over, or the user chose Retry, Resume or Restart
    STOP = "stop"  # the user paused or restarted it, or quit the tray
    REFUSED = "refused"  # it is not ours, and did not end on request


_S, _E = ChildState, ChildEvent
_ALIVE = (_S.STARTING, _S.RUNNING, _S.ATTACHED)
_DOWN = (_S.RESTARTING, _S.CRASH_LOOP, _S.PAUSED)
_STEPS = (  # states, event, next state
    ((_S.STARTING, *_DOWN), _E.ANSWERED, _S.RUNNING),
    ((_S.STARTING, *_DOWN), _E.FOUND, _S.ATTACHED),
    (_ALIVE, _E.DIED, _S.RESTARTING),
    (_ALIVE, _E.GAVE_UP, _S.CRASH_LOOP),
    ((*_ALIVE, _S.STOPPING), _E.STOPPED, _S.PAUSED),
    ((*_DOWN, _S.STOPPING), _E.START, _S.STARTING),
    (_ALIVE, _E.STOP, _S.STOPPING),
    ((_S.RESTARTING, _S.CRASH_LOOP), _E.STOP, _S.PAUSED),
    ((_S.STOPPING,), _E.REFUSED, _S.ATTACHED),
)
NEXT = {(state, event): after for states, event, after in _STEPS for state in states}


def next_child_state(state: ChildState, event: ChildEvent) -> ChildState:
    """Return the state after `event`. Raise TransitionError if `state` does not allow it."""
    try:
        return NEXT[state, event]
    except KeyError:
        raise TransitionError(f"Event {event} is not allowed in state {state}") from None


# Any other code, or a signal, counts as a crash. So does ALREADY_RUNNING: the process found another gateway and ended.
EXIT_EVENTS: dict[int, ChildEvent] = {
    ExitCode.OK: ChildEvent.STOPPED,  # after `multi-mcp stop` or SIGTERM
    ExitCode.USAGE: ChildEvent.GAVE_UP,  # program and tray do not match, after an incomplete update
    ExitCode.CONFIG_INVALID: ChildEvent.GAVE_UP,  # the next process would read the same file
}

CRASHES_MOST = 5  # after this many crashes within the window, the gateway is not restarted
CRASH_WINDOW_S = 120.0
# Wait before the restart after the first, second, ... crash within the window. The first two waits are shorter than the
# 0.7 s that a shim gives the tray (AWAIT_OTHERS_S) before it starts a gateway itself.
RESTART_WAITS_S = (0.0, 0.5, 1.0, 2.0)


def exit_event(code: int) -> ChildEvent:
    """Return the event that an exit code means. A negative code is the signal that ended the process (POSIX)."""
    return EXIT_EVENTS.get(code, ChildEvent.DIED)


def recent_crashes(crashes: tuple[float, ...], now: float) -> tuple[float, ...]:
    """Return the crashes within the window that ends at `now`. All times are seconds of one clock."""
    return tuple(moment for moment in crashes if now - moment < CRASH_WINDOW_S)


def restart_wait_s(crashes: int) -> float | None:
    """Return the seconds to wait before a restart, given the number of crashes in the window, or None to give up."""
    if crashes >= CRASHES_MOST:
        return None
    return RESTART_WAITS_S[min(crashes, len(RESTART_WAITS_S)) - 1] if crashes else 0.0
