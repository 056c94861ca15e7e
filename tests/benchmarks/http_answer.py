"""An HTTP/1.1 response that is parsed as it arrives."""

from __future__ import annotations

import orjson

from tests.benchmarks.client import BrokenError

HEAD_END, LINE_END = b"\r\n\r\n", b"\r\n"
DATA = b"data:"  # prefix of an event's data line


class Answer:
    """A parser, which is fed with received bytes until it is `done`.

    It then holds `status`, `headers` (lower-case names) and `body`.
    """

    def __init__(self) -> None:
        self.done = False
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self._parts: list[bytes] = []
        self._rest = bytearray()
        self._length: int | None = None  # None if the body is chunked

    @property
    def body(self) -> bytes:
        """The part of the body received so far."""
        return b"".join(self._parts)

    def taken(self) -> bytes:
        """Return the body received since the last call, for a response that does not end."""
        parts, self._parts = self._parts, []
        return b"".join(parts)

    def feed(self, data: bytes) -> bool:
        """Parse more bytes. Return True if the response is now complete. Raises BrokenError if it is not HTTP/1.x."""
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
        """Return the frame that answers the request: the body, or the matching event of an event stream.

        Raises BrokenError for a status other than 200, and for an event stream without an answer.
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
    """Return the data of all events that have any. Only one-line data is supported, which all MCP servers send."""
    return [line[len(DATA) :].strip() for line in body.splitlines() if line.startswith(DATA) and line != DATA]


def is_answer(frame: bytes) -> bool:
    """True if the frame is a response. A server's request also has an id, but has a method as well."""
    if not frame.startswith(b"{"):
        return False
    message = orjson.loads(frame)
    return "id" in message and "method" not in message
