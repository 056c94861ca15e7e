"""One answer over HTTP/1.1, read as it comes in."""

from __future__ import annotations

import orjson

from tests.benchmarks.client import BrokenError

HEAD_END, LINE_END = b"\r\n\r\n", b"\r\n"
DATA = b"data:"  # of an event's line


class Answer:
    """Feed it what the socket gives until `done`; then `status`, `headers` (names in lower case) and `body` hold."""

    def __init__(self) -> None:
        self.done = False
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self._parts: list[bytes] = []
        self._rest = bytearray()
        self._length: int | None = None  # None: in chunks

    @property
    def body(self) -> bytes:
        """All of it that has come."""
        return b"".join(self._parts)

    def taken(self) -> bytes:
        """Return what has come since this was last asked: of an answer that has no end."""
        parts, self._parts = self._parts, []
        return b"".join(parts)

    def feed(self, data: bytes) -> bool:
        """Return True if the answer is complete now. Raises BrokenError for what is no HTTP/1.1."""
        self._rest += data
        if not self.status and not self._head():
            return False
        self.done = self._in_chunks() if self._length is None else self._in_one()
        return self.done

    def _head(self) -> bool:
        head, end, rest = bytes(self._rest).partition(HEAD_END)
        if not end:
            return False
        first, *lines = head.split(LINE_END)
        version, _, status = first.partition(b" ")
        if not version.startswith(b"HTTP/1.") or not status[:3].isdigit():
            raise BrokenError(f"not an HTTP answer: {first[:80]!r}")
        self.status = int(status[:3])
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
        self._rest = bytearray(rest)
        chunked = self.headers.get(b"transfer-encoding", b"").lower() == b"chunked"
        self._length = None if chunked else int(self.headers.get(b"content-length", b"0"))
        return True

    def _in_one(self) -> bool:
        if self._length is None or len(self._rest) < self._length:
            return False
        self._parts.append(bytes(self._rest))
        return True

    def _in_chunks(self) -> bool:
        at = 0
        while (end := self._rest.find(LINE_END, at)) >= 0:
            size = int(self._rest[at:end].partition(b";")[0], 16)
            start = end + len(LINE_END)
            if len(self._rest) < start + size + len(LINE_END):
                break
            if size == 0:
                return True
            self._parts.append(bytes(self._rest[start : start + size]))
            at = start + size + len(LINE_END)
        del self._rest[:at]
        return False

    def message(self) -> bytes:
        """Return the frame that answers a request: the body itself, or of an event stream the event with an id of a
        request.

        Raises BrokenError for another status than 200, and where there is none.
        """
        if self.status != 200:
            raise BrokenError(f"HTTP status {self.status}: {self.body[:200]!r}")
        if not self.headers.get(b"content-type", b"").startswith(b"text/event-stream"):
            return self.body
        for frame in events(self.body):
            if is_answer(frame):
                return frame
        raise BrokenError(f"an event stream without an answer: {self.body[:200]!r}")


def events(body: bytes) -> list[bytes]:
    """Return the data of each event that has some; an event's data is one line, as every MCP server writes it."""
    return [line[len(DATA) :].strip() for line in body.splitlines() if line.startswith(DATA) and line != DATA]


def is_answer(frame: bytes) -> bool:
    """Return True if a frame answers a request: a server's own request has an id, too."""
    if not frame.startswith(b"{"):
        return False
    message = orjson.loads(frame)
    return "id" in message and "method" not in message
