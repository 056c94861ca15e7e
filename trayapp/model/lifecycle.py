"""The lifecycle of a backend: its states, the table of transitions, and the rules of backoff and idleness."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from trayapp.model.config import ServerConfig, Settings
from trayapp.model.errors import MultiMcpError


class State(StrEnum):
    """The state of one backend. `status --json` shows these values."""

    DISABLED = "disabled"
    IDLE = "idle"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    NEEDS_AUTH = "needs_auth"
    KEYRING_LOCKED = "keyring_locked"
    FAILED = "failed"
    STOPPING = "stopping"


class Event(StrEnum):
    """Events in the life of a backend."""

    CONNECT = "connect"  # a call, the gateway's start or the user requires a connection
    READY = "ready"  # the handshake is done
    FAIL = "fail"  # start, handshake or health check failed
    SIGN_IN_WANTED = "sign_in_wanted"  # the server answered 401 or requires more scopes
    KEYRING_LOCKED = "keyring_locked"  # the server's credentials may be stored, but cannot be read now
    LOST = "lost"  # a live connection ended unexpectedly
    CLOSE = "close"  # the backend is idle, refreshed, removed or reconnected, or the gateway shuts down
    CLOSED = "closed"  # closing has finished
    DISABLE = "disable"
    ENABLE = "enable"


_S, _E = State, Event
_OPEN = (_S.CONNECTING, _S.CONNECTED)
_REFUSED = (_S.NEEDS_AUTH, _S.KEYRING_LOCKED, _S.FAILED)
_STEPS = (  # states, event, next state
    ((_S.IDLE, *_REFUSED), _E.CONNECT, _S.CONNECTING),
    ((_S.CONNECTING,), _E.READY, _S.CONNECTED),
    (_OPEN, _E.FAIL, _S.FAILED),
    (_OPEN, _E.SIGN_IN_WANTED, _S.NEEDS_AUTH),
    ((_S.CONNECTING,), _E.KEYRING_LOCKED, _S.KEYRING_LOCKED),
    ((_S.CONNECTED,), _E.LOST, _S.FAILED),
    (_OPEN, _E.CLOSE, _S.STOPPING),
    (_REFUSED, _E.CLOSE, _S.IDLE),
    ((_S.STOPPING,), _E.CLOSED, _S.IDLE),
    ((_S.IDLE, *_REFUSED), _E.DISABLE, _S.DISABLED),
    ((_S.DISABLED,), _E.ENABLE, _S.IDLE),
)
NEXT = {(state, event): after for states, event, after in _STEPS for state in states}


class TransitionError(MultiMcpError):
    """An event arrived in a state that does not allow it. This is a bug of ours, never a server's fault."""

    code = "transition"


def next_state(state: State, event: Event) -> State:
    """Return the state after `event`. Raise TransitionError if `state` does not allow it."""
    try:
        return NEXT[state, event]
    except KeyError:
        raise TransitionError(f"Event {event} is not allowed in state {state}") from None


RECONNECT_FIRST_S = 30.0
RECONNECT_LONGEST_S = 300.0
RECONNECT_JITTER = 0.1  # share of the wait, either way: servers behind one lost network must not reconnect all at once


def reconnect_waits(unit: float = 0.0) -> Iterator[float]:
    """Yield the seconds to wait before each background reconnect: 30, then twice as long each time, up to 300.

    `unit`, from -1 to 1, shortens or lengthens all waits by up to RECONNECT_JITTER. 0 leaves them unchanged.
    """
    wait = RECONNECT_FIRST_S
    while True:
        yield wait * (1 + RECONNECT_JITTER * unit)
        wait = min(wait * 2, RECONNECT_LONGEST_S)


def idle_limit_s(server: ServerConfig, settings: Settings) -> float | None:
    """Return the seconds without use after which a connection is closed, or None for never.

    A `keep-alive` or `lazy-keep-alive` connection is never closed, an `eager` one only if the server sets a timeout.
    """
    if server.lifecycle in ("keep-alive", "lazy-keep-alive"):
        return None
    minutes = server.idle_timeout
    if minutes is None:
        minutes = 0.0 if server.lifecycle == "eager" else settings.idle_timeout
    return minutes * 60 if minutes > 0 else None


def is_idle(in_flight: int, idle_for_s: float, limit_s: float | None) -> bool:
    """Return True if a connection may be closed: no calls in flight, and unused for longer than the limit, if any."""
    return limit_s is not None and in_flight == 0 and idle_for_s > limit_s


def backoff_left_s(failed_s_ago: float | None, settings: Settings) -> float:
    """Return the seconds until calls may start a failed server again, or 0 if they may now."""
    return 0.0 if failed_s_ago is None else max(0.0, settings.failure_backoff - failed_s_ago)
