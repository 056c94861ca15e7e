"""A minimal client of the older HTTP transport: one event stream for all answers, and a POST for each request."""

from __future__ import annotations

import selectors
import time
from collections.abc import Iterator, Sequence
from urllib.parse import urljoin

from tests.benchmarks.client import READ_BYTES, BrokenError, echo, verify_echo
from tests.benchmarks.http_answer import Answer, events, is_answer
from tests.benchmarks.http_client import ACCEPT, Link, Posting, accepted, broken, ready

EVENT_END = b"\n\n"


class Stream:
    """The event stream, which is a single endless HTTP response."""

    def __init__(self, url: str) -> None:
        self.link = Link(url, {"Accept": "text/event-stream"})
        self._answer = Answer()
        self._rest = b""
        with broken():
            self.link.socket.sendall(self.link.request("GET"))
        while not (told := self.events()):
            pass
        self.endpoint = urljoin(url, told[0].decode())

    def events(self) -> list[bytes]:
        """Read once. Return the data of each event that is complete now. Raises BrokenError."""
        with broken():
            data = self.link.socket.recv(READ_BYTES)
        if not data or self._answer.feed(data) or self._answer.status != 200:
            raise BrokenError(f"the event stream ended, with HTTP status {self._answer.status}")
        whole, end, self._rest = (self._rest + self._answer.taken().replace(b"\r\n", b"\n")).rpartition(EVENT_END)
        return events(whole) if end else []

    def answers(self) -> list[bytes]:
        """Read once. Return the answers among the events."""
        return [frame for frame in self.events() if is_answer(frame)]


class SseClient(Posting):
    """A session at the URL of an event stream."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._stream = Stream(url)
        self._links = [self._link()]

    def _link(self) -> Link:
        return Link(self._stream.endpoint, ACCEPT)

    def close(self) -> None:
        """End the stream, which ends the session."""
        for link in (self._stream.link, *self._links):
            link.socket.close()

    def exchange(self, frame: bytes) -> bytes:
        """Send a request and wait for its answer. Raises BrokenError if the stream ends."""
        link = self._links[0].refresh()
        link.post(frame)
        while not (found := self._stream.answers()):
            pass
        accepted(link.answered())
        return found[0]

    def timed(self, tool: str, size: int, calls: int) -> list[float]:
        """Make `calls` sequential calls. Return the duration of each in seconds. Raises BrokenError."""
        seconds: list[float] = []
        for _ in range(calls):
            self._last += 1
            frame = echo(self._last, tool, size)
            start = time.perf_counter()
            answer = self.exchange(frame)
            seconds.append(time.perf_counter() - start)
            verify_echo(answer, self._last, size)
        return seconds

    def _pour(self, links: Sequence[Link], frames: Sequence[bytes]) -> Sequence[bytes]:
        idle, left, sent, found = list(links), iter(frames), 0, list[bytes]()
        with selectors.DefaultSelector() as selector:
            for link in (self._stream.link, *links):
                selector.register(link.socket, selectors.EVENT_READ, link)
            while len(found) < len(frames) or len(idle) < len(links):
                sent += post_more(idle, left, len(links) - (sent - len(found)))
                for link in ready(selector):
                    if link is self._stream.link:
                        found += self._stream.answers()
                    elif (answer := link.read()) is not None:
                        accepted(answer)
                        idle.append(link)
        return found


def post_more(idle: list[Link], left: Iterator[bytes], most: int) -> int:
    """Post at most `most` requests on idle connections. Return how many were posted."""
    posted = 0
    while idle and posted < most and (frame := next(left, None)) is not None:
        idle.pop().post(frame)
        posted += 1
    return posted
