"""The facts of an ended call. Recording them costs the call almost nothing."""

from __future__ import annotations

from time import perf_counter
from typing import Any, Literal, NamedTuple

Outcome = Literal["ok", "error", "failed", "cancelled", "timeout", "refused"]
FAILURES: tuple[Outcome, ...] = ("error", "failed", "timeout")
RECORDED = frozenset(("tools/call", "resources/read", "prompts/get"))
HEAD_BYTES = 16 * 1024  # of a larger answer, only these and TAIL_BYTES are kept until its row is made
TAIL_BYTES = 256  # most servers write `isError` after the content


class EndedCall(NamedTuple):
    """The facts of a call that ended, cheap to record. `ended` and `began` are in seconds of time.perf_counter.

    `caller`: a session, or a Caller. `params`: as the server got them. `answer`: the frame, the ends of a large frame
    (`ends_of`), or a parsed answer; None without an answer. `size`: bytes of the whole frame; 0 if there is no frame.
    `error`: "" = read it from the answer. `allowed`: "user" if the user allowed this call, else "".
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
    """The caller of a call: the client's name, its session and the folder that it works in ("" = unknown)."""

    client: str
    session: str = ""
    project: str = ""


def ends_of(frame: bytes) -> bytes:
    """Return the head and the tail of a large answer. Nothing else of the answer is kept until its row is made."""
    return frame[:HEAD_BYTES] + frame[-TAIL_BYTES:]


def refused_call(
    began: float, caller: Any, server: str, params: Any, error: Exception, method: str = "tools/call"
) -> EndedCall:
    """Return the facts of a call that failed without an answer to record. `params`: those of the request."""
    words = str(getattr(error, "title", error))
    return EndedCall(perf_counter(), began, caller, server, method, params, None, 0, "failed", words, "")
