"""A minimal Streamable HTTP client with persistent connections, without an HTTP library or event loop.

It costs little compared with any HTTP server, so measurements reflect the server.
"""

from __future__ import annotations

import select
import selectors
import socket
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self
from urllib.parse import urlsplit

from tests.benchmarks.client import (
    ANSWER_LIMIT_S,
    PROTOCOL,
    READ_BYTES,
    BrokenError,
    Conversation,
    echo,
    verify_echo,
    verify_echoes,
)
from tests.benchmarks.http_answer import Answer

ACCEPTED = (200, 202, 204)  # statuses for a message that needs no answer
SESSION = b"mcp-session-id"
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@contextmanager
def broken() -> Iterator[None]:
    """Turn a socket's exceptions into BrokenError."""
    try:
        yield
    except TimeoutError:
        raise BrokenError(f"no answer over HTTP within {ANSWER_LIMIT_S:g} s") from None
    except OSError as error:
        raise BrokenError(f"the connection broke: {error}") from None


class Link:
    """A connection that carries one request at a time."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._address = (parts.hostname, parts.port or 80)
        self._host, self._path = parts.netloc, parts.path + (f"?{parts.query}" if parts.query else "")
        self.headers = dict(headers)
        self._answer = Answer()
        self.socket = self._connected()

    def _connected(self) -> socket.socket:
        with broken():
            connection = socket.create_connection(self._address, ANSWER_LIMIT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def refresh(self) -> Self:
        """Reconnect if the server has closed the connection, as most do after 5 s without a request."""
        if select.select([self.socket], [], [], 0)[0]:
            self.socket.close()
            self.socket = self._connected()
        return self

    def request(self, method: str, body: bytes = b"", path: str = "") -> bytes:
        """Return the bytes of a request."""
        lines = [f"{method} {path or self._path} HTTP/1.1", f"Host: {self._host}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join([*lines, f"Content-Length: {len(body)}\r\n\r\n"]).encode() + body

    def post(self, frame: bytes, path: str = "") -> None:
        """Send a frame by POST."""
        self._answer = Answer()
        with broken():
            self.socket.sendall(self.request("POST", frame.rstrip(b"\n"), path))

    def read(self) -> Answer | None:
        """Read once. Return the answer if it is now complete. Raises BrokenError."""
        with broken():
            data = self.socket.recv(READ_BYTES)
        if not data:
            raise BrokenError("the gateway closed the connection before its answer")
        return self._answer if self._answer.feed(data) else None

    def answered(self) -> Answer:
        """Read until the answer is complete, and return it. Raises BrokenError."""
        while (answer := self.read()) is None:
            pass
        return answer


class Posting(Conversation):
    """A conversation that sends its messages by POST over persistent connections."""

    _links: list[Link]

    @property
    def pids(self) -> tuple[int, ...]:
        """An empty tuple, because no process was started."""
        return ()

    def tell(self, frame: bytes) -> None:
        """Send a notification. Raises BrokenError unless it is accepted."""
        link = self._links[0].refresh()
        link.post(frame)
        accepted(link.answered())

    def flood(self, tool: str, size: int, calls: int, in_flight: int) -> float:
        """Make `calls` calls, `in_flight` at a time on one connection each. Return the calls per second."""
        numbers = range(self._last + 1, self._last + calls + 1)
        self._last += calls
        self._links += [self._link() for _ in range(len(self._links), in_flight)]
        links = [link.refresh() for link in self._links[:in_flight]]
        frames = [echo(number, tool, size) for number in numbers]
        start = time.perf_counter()
        answers = self._pour(links, frames)
        seconds = time.perf_counter() - start
        verify_echoes([one if isinstance(one, bytes) else one.message() for one in answers], numbers, size)
        return calls / seconds

    @abstractmethod
    def _link(self) -> Link:
        """Open another connection."""

    @abstractmethod
    def _pour(self, links: Sequence[Link], frames: Sequence[bytes]) -> Sequence[Answer] | Sequence[bytes]:
        """Send every frame, with at most one pending per connection. Return the answers. Raises BrokenError."""


class HttpClient(Posting):
    """A session at a URL. `headers` are sent with every request."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._url, self._headers = url, {**ACCEPT, **(headers or {})}
        self._links = [self._link()]

    def _link(self) -> Link:
        return Link(self._url, self._headers)

    def close(self) -> None:
        """End the session at the server, then close the connections."""
        try:
            if "Mcp-Session-Id" in self._headers:
                link = self._link()
                self._links.append(link)
                with broken():
                    link.socket.sendall(link.request("DELETE"))
                link.answered()
        except BrokenError:
            pass  # the server is already gone
        for link in self._links:
            link.socket.close()

    def exchange(self, frame: bytes) -> bytes:
        """Send a request and wait for its answer. Raises BrokenError without one."""
        link = self._links[0].refresh()
        link.post(frame)
        answer = link.answered()
        if SESSION in answer.headers and "Mcp-Session-Id" not in self._headers:
            self._headers |= {"Mcp-Session-Id": answer.headers[SESSION].decode(), "MCP-Protocol-Version": PROTOCOL}
            link.headers = dict(self._headers)
        return answer.message()

    def timed(self, tool: str, size: int, calls: int) -> list[float]:
        """Make `calls` sequential calls. Return their durations in seconds. Raises BrokenError."""
        seconds: list[float] = []
        link = self._links[0].refresh()
        for _ in range(calls):
            self._last += 1
            frame = echo(self._last, tool, size)
            start = time.perf_counter()
            link.post(frame)
            answer = link.answered()
            seconds.append(time.perf_counter() - start)
            verify_echo(answer.message(), self._last, size)
        return seconds

    def _pour(self, links: Sequence[Link], frames: Sequence[bytes]) -> Sequence[Answer]:
        return pour(links, frames)


def accepted(answer: Answer) -> None:
    """Raise BrokenError unless the server accepted a message that needs no answer."""
    if answer.status not in ACCEPTED:
        raise BrokenError(f"a message got HTTP status {answer.status}: {answer.body[:200]!r}")


def pour(links: Sequence[Link], frames: Sequence[bytes]) -> list[Answer]:
    """Send all frames, one at a time per connection. Return the answers. Raises BrokenError."""
    answers: list[Answer] = []
    left = iter(frames)
    with selectors.DefaultSelector() as selector:
        for link, frame in zip(links, left, strict=False):
            selector.register(link.socket, selectors.EVENT_READ, link)
            link.post(frame)
        while len(answers) < len(frames):
            for link in ready(selector):
                if (answer := link.read()) is not None:
                    answers.append(answer)
                    send_next(link.post, left)
    return answers


def ready(selector: selectors.BaseSelector) -> list[Any]:
    """Wait for connections with data to read, and return them. Raises BrokenError on a timeout."""
    found = [key.data for key, _ in selector.select(ANSWER_LIMIT_S)]
    if not found:
        raise BrokenError(f"no answer over HTTP within {ANSWER_LIMIT_S:g} s")
    return found


def send_next(post: Callable[[bytes], None], left: Iterator[bytes]) -> None:
    """Post the next frame, if any is left."""
    frame = next(left, None)
    if frame is not None:
        post(frame)
