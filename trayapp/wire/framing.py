"""Newline-delimited frames: bytes in, whole frames out, and the place of the id inside an unparsed answer.

Never here: writing, waiting, what a method means.
"""

from __future__ import annotations

import re

MAX_FRAME_BYTES = 64 * 1024 * 1024  # PRODUCT 15
# Answers up to this size are parsed before they are passed on, so that a client never gets a broken frame; larger ones
# are passed by their head or tail (re-numbering 1 MB: 0.14 ms spliced, 2.9 ms parsed).
SMALL_FRAME_BYTES = 64 * 1024

_VERSION = rb'"jsonrpc"\s{0,8}:\s{0,8}"2\.0"\s{0,8}'
_ID = rb'"id"\s{0,8}:\s{0,8}(-?[0-9]{1,18}|"[^"\\]{0,200}")\s{0,8}'
_ANSWER_HEAD = re.compile(
    rb"\s{0,8}\{\s{0,8}(?:"
    + _VERSION
    + rb",\s{0,8})?"
    + _ID
    + rb",\s{0,8}(?:"
    + _VERSION
    + rb',\s{0,8})?"(?:result|error)"'
)
_ANSWER_START = re.compile(rb"\s{0,8}\{\s{0,8}(?:" + _VERSION + rb',\s{0,8})?"(?:result|error)"')
_ANSWER_TAIL = re.compile(rb",\s{0,8}" + _ID + rb"\}\s{0,8}\Z")
_ANY_ID = re.compile(rb"\s{0,8}\{\s{0,8}(?:" + _VERSION + rb",\s{0,8})?" + _ID + rb",")
TAIL_BYTES = 260  # the longest id that _ID takes, and what stands around it


def find_answer_id(frame: bytes) -> tuple[int, int] | None:
    """Where the id of an answer stands, when it can be told without parsing; None for everything else.

    Certain for valid JSON: the head is the object's first members, and `,"id":N}` at the very end closes the object.
    """
    match = _ANSWER_HEAD.match(frame)
    if match is None and _ANSWER_START.match(frame):
        match = _ANSWER_TAIL.search(frame, max(0, len(frame) - TAIL_BYTES))
    return match.span(1) if match else None


def find_leading_id(start: bytes) -> bytes | None:
    """JSON text of the id at the head of a frame that is too large or broken to parse."""
    match = _ANY_ID.match(start)
    return match[1] if match else None


class FrameSplitter:
    """Collects bytes and gives out frames without their newline. A frame over the limit is given as Oversized."""

    __slots__ = ("_limit", "_parts", "_size", "_skipping")

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """Every frame that `data` completes, in order; blank lines are left out."""
        if b"\n" not in data:
            return self._collect(data)
        first, *rest = data.split(b"\n")
        frames: list[bytes | Oversized] = []
        if self._skipping:
            self._skipping = False
        elif self._parts:
            self._parts.append(first)
            rest.insert(0, b"".join(self._parts))
        else:
            rest.insert(0, first)
        self._parts.clear()
        self._size = 0
        tail = rest.pop()
        frames.extend(self._sized(frame) for frame in rest if frame and not frame.isspace())
        if tail:
            frames.extend(self._collect(tail))
        return frames

    def _sized(self, frame: bytes) -> bytes | Oversized:
        return frame if len(frame) <= self._limit else Oversized(frame[:TAIL_BYTES])

    def _collect(self, data: bytes) -> list[bytes | Oversized]:
        if self._skipping or not data:
            return []
        self._parts.append(data)
        self._size += len(data)
        if self._size <= self._limit:
            return []
        head = b"".join(part[:TAIL_BYTES] for part in self._parts[:TAIL_BYTES])[:TAIL_BYTES]
        self._parts.clear()
        self._size = 0
        self._skipping = True
        return [Oversized(head)]


class Oversized:
    """Stands for a frame over the limit; `head` is its first bytes."""

    __slots__ = ("head",)

    def __init__(self, head: bytes) -> None:
        self.head = head
