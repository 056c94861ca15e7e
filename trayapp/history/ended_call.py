"""The facts of an ended call. Recording them costs the call almost no time."""

from __future__ import annotations

from time import perf_counter
from typing import Any, Literal, NamedTuple

Outcome = Literal["ok", "error", "failed", "cancelled", "timeout", "refused"]
FAILURES: tuple[Outcome, ...] = ("error", "failed", "timeout")
RECORDED = frozenset(("tools/call", "resources/read", "prompts/get"))
HEAD_BYTES = 16 * 1024  # an answer of at least this size is cut to its first HEAD_BYTES and its last TAIL_BYTES
TAIL_BYTES = 256  # enough for `isError`, which most servers write after the content


class EndedCall(NamedTuple):
    """The facts of a call that ended.

    - `ended`, `began`: seconds of time.perf_counter
    - `caller`: a session, or a Caller
    - `params`: the parameters that the server received
    - `answer`: the frame, the ends of a large frame (`ends_of`), a parsed answer, or None if there is no answer
    - `size`: bytes of the whole frame, or 0 if there is no frame
    - `error`: the error message, or "" to read it from the answer
    - `allowed`: "user" if the user allowed this call, otherwise ""
    """

    ended: float
    began: float
    caller: Any
    server: str
    method: str
    params: Any
    answer: bytes | dict[str, Any] | None
    size: int
    outcome: Outcome | None  # None: determined by the answer
    error: str
    allowed: str


class Caller(NamedTuple):
    """The caller of a call: the client's name, its session, and its project folder ("" = unknown)."""

    client: str
    session: str = ""
    project: str = ""


def ends_of(frame: bytes) -> bytes:
    """Return the first HEAD_BYTES and the last TAIL_BYTES of a large answer."""
    return frame[:HEAD_BYTES] + frame[-TAIL_BYTES:]


def refused_call(
    began: float, caller: Any, server: str, params: Any, error: Exception, method: str = "tools/call"
) -> EndedCall:
    """Return the facts of a call that failed with `error` just now, without an answer.

    `began`: seconds of time.perf_counter. `params`: the request's parameters.
    """
    words = str(getattr(error, "title", error))
    return EndedCall(perf_counter(), began, caller, server, method, params, None, 0, "failed", words, "")
