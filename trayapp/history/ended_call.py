"""The facts of a call that ended, recorded with its answer at almost no cost to the call."""

from __future__ import annotations

from time import perf_counter
from typing import Any, Literal, NamedTuple

Outcome = Literal["ok", "error", "failed", "cancelled", "timeout", "refused"]
FAILURES: tuple[Outcome, ...] = ("error", "failed", "timeout")
RECORDED = frozenset(("tools/call", "resources/read", "prompts/get"))
HEAD_BYTES = 16 * 1024  # of a larger answer: only its ends are held until the row is made
TAIL_BYTES = 256  # of a larger answer: most servers write `isError` after the content


class EndedCall(NamedTuple):
    """Facts of a call that ended, cheap to make. `ended` and `began` are in seconds of time.perf_counter.

    `caller`: a session, or a Caller. `params`: as the server got them. `answer`: the frame, or the ends of a large
    one, or a parsed answer; None if there is none. `size`: bytes of the whole frame.
    """

    ended: float
    began: float
    caller: Any
    server: str
    method: str
    params: Any
    answer: bytes | dict[str, Any] | None
    size: int
    outcome: Outcome | None  # None: read it from the answer
    error: str
    allowed: str


class Caller(NamedTuple):
    """The caller: the client's name, its session and the folder that it works in."""

    client: str
    session: str = ""
    project: str = ""


def ends_of(frame: bytes) -> bytes:
    """Return the head and the tail of a large answer: all that is kept of it until it is recorded."""
    return frame[:HEAD_BYTES] + frame[-TAIL_BYTES:]


def refused_call(began: float, caller: Any, server: str, params: Any, error: Exception) -> EndedCall:
    """Return the facts of a tool call that no server got. `params`: name and arguments."""
    words = str(getattr(error, "title", error))
    return EndedCall(perf_counter(), began, caller, server, "tools/call", params, None, 0, "failed", words, "")
