"""A minimal MCP client on a process's pipes, without SDK or event loop. It verifies answers outside the timed part."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self

import orjson

from tests.fixtures.ending import see_end

PROTOCOL = "2025-06-18"
READ_BYTES = 1 << 16  # the capacity of a pipe
STOP_GRACE_S = 5.0  # from closing stdin to killing the process
FOREIGN_GRACE_S = 1.5  # shorter, because one peer ignores the end of stdin
ANSWER_LIMIT_S = 20.0  # limit of one exchange or series of calls, far above the usual duration
HELLO = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}}
READY = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


class BrokenError(Exception):
    """A missing or wrong answer, which makes the measurement worthless."""


def request(number: int, method: str, params: Mapping[str, Any]) -> bytes:
    """Return one request frame."""
    return orjson.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + b"\n"


def echo(number: int, tool: str, size: int) -> bytes:
    """Return a request frame for `size` characters of text from the null server."""
    return request(number, "tools/call", {"name": tool, "arguments": {"size": size}})


def result_of(line: bytes, number: int) -> dict[str, Any]:
    """Return the result in an answer frame. Raises BrokenError unless the frame has a result for request `number`."""
    try:
        message = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BrokenError(f"not JSON ({error}): {line[:200]!r}") from None
    result = message.get("result") if isinstance(message, dict) and message.get("id") == number else None
    if not isinstance(result, dict) or "error" in message or result.get("isError"):
        raise BrokenError(f"no result for request {number}: {line[:300]!r}")
    return result


def verify_echo(line: bytes, number: int, size: int) -> None:
    """Raise BrokenError unless the frame answers request `number` with `size` characters of text."""
    content = result_of(line, number).get("content")
    if not isinstance(content, list) or [len(part.get("text", "")) for part in content] != [size]:
        raise BrokenError(f"request {number} got something else than {size} characters: {line[:300]!r}")


def is_notification(line: bytes) -> bool:
    """True if the frame is a notification."""
    return b'"method"' in line[:200] and "id" not in orjson.loads(line)


def verify_echoes(lines: Sequence[bytes], numbers: range, size: int) -> None:
    """Raise BrokenError unless the frames answer each of these requests once, in any order."""
    left = set(numbers)
    for line in lines:
        number = orjson.loads(line).get("id")
        verify_echo(line, number, size)
        if number not in left:
            raise BrokenError(f"request {number!r} was answered twice, or never sent")
        left.discard(number)
    if left:
        raise BrokenError(f"{len(left)} of {len(numbers)} requests got no answer")


@contextmanager
def limit(process: subprocess.Popen[bytes], seconds: float = ANSWER_LIMIT_S) -> Iterator[None]:
    """Kill the process if the block takes longer than `seconds`, which ends any blocked read or wait."""
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Conversation(ABC):
    """A client's side of a connection, over any transport. As a context manager, it closes with the block."""

    def __init__(self) -> None:
        self._last = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    @property
    @abstractmethod
    def pids(self) -> tuple[int, ...]:
        """The ids of the processes started for this conversation: one or none."""

    @abstractmethod
    def exchange(self, frame: bytes) -> bytes:
        """Send a request and wait for its answer. Raises BrokenError without one."""

    @abstractmethod
    def tell(self, frame: bytes) -> None:
        """Send a notification."""

    @abstractmethod
    def timed(self, tool: str, size: int, calls: int) -> list[float]:
        """Make `calls` sequential calls, and return their durations in seconds. Raises BrokenError."""

    @abstractmethod
    def flood(self, tool: str, size: int, calls: int, in_flight: int) -> float:
        """Make `calls` calls, `in_flight` at a time, and return the calls per second. Raises BrokenError."""

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request, verify its answer and return the result. Raises BrokenError."""
        self._last += 1
        return result_of(self.exchange(request(self._last, method, params)), self._last)

    def initialize(self) -> None:
        """Send initialize and verify its answer: the first half of the handshake. Raises BrokenError."""
        result = self.ask("initialize", HELLO)
        if result.get("protocolVersion") != PROTOCOL or "serverInfo" not in result:
            raise BrokenError(f"not an answer to initialize: {result}")

    def tools(self) -> list[str]:
        """Finish the handshake, and return the names in tools/list. Raises BrokenError."""
        self.tell(READY)
        return self.listed()

    def listed(self) -> list[str]:
        """Return the tool names on all pages of tools/list. Raises BrokenError."""
        names: list[str] = []
        params: dict[str, Any] = {}
        while True:
            page = self.ask("tools/list", params)
            names += [tool["name"] for tool in page["tools"]]
            if not page.get("nextCursor"):
                return names
            params = {"cursor": page["nextCursor"]}


class Client(Conversation):
    """A process and the conversation on its pipes. Closing the conversation ends the process.

    For a `foreign` process, stderr is discarded and the grace period is shorter.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], foreign: bool = False) -> None:
        super().__init__()
        self._grace_s = FOREIGN_GRACE_S if foreign else STOP_GRACE_S
        pipe, log = subprocess.PIPE, subprocess.DEVNULL if foreign else None
        self.process = subprocess.Popen(argv, env=env, stdin=pipe, stdout=pipe, stderr=log, bufsize=0)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._rest = b""

    @property
    def pids(self) -> tuple[int, ...]:
        """The process's id, as a tuple."""
        return (self.process.pid,)

    def close(self) -> None:
        """Close stdin and wait for the process to end. Kill it if it does not."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        see_end(self.process, self._grace_s)
        self.process.stdout.close()

    # -- sequential calls ----------------------------------------------------------------------------------------

    def exchange(self, frame: bytes) -> bytes:
        """Send a request and wait for its answer. Raises BrokenError without one."""
        with limit(self.process):
            self.send(frame)
            return self._answer()

    def tell(self, frame: bytes) -> None:
        """Send a notification. Raises BrokenError if the process is gone."""
        self.send(frame)

    def timed(self, tool: str, size: int, calls: int) -> list[float]:
        """Make `calls` sequential calls, and return their durations in seconds. Raises BrokenError.

        Calls during which a notification arrives are left out.
        """
        seconds: list[float] = []
        with limit(self.process):
            for _ in range(calls):
                self._last += 1
                frame = echo(self._last, tool, size)
                start = time.perf_counter()
                self.send(frame)
                line = self._line()
                seconds.append(time.perf_counter() - start)
                if is_notification(line):
                    seconds.pop()  # a notification came first, so this sample is invalid
                    line = self._answer()
                verify_echo(line, self._last, size)
        if not seconds:
            raise BrokenError("notifications came instead of answers")
        return seconds

    # -- concurrent calls ----------------------------------------------------------------------------------------

    def flood(self, tool: str, size: int, calls: int, in_flight: int) -> float:
        """Make `calls` calls, `in_flight` at a time, and return the calls per second. Raises BrokenError."""
        numbers = range(self._last + 1, self._last + calls + 1)
        self._last += calls
        frames = [echo(number, tool, size) for number in numbers]
        with limit(self.process):
            start = time.perf_counter()
            chunks = self._pour(frames, in_flight)
            seconds = time.perf_counter() - start
        lines = b"".join(chunks).split(b"\n")
        verify_echoes([line for line in lines if line and not is_notification(line)], numbers, size)
        return calls / seconds

    def _pour(self, frames: list[bytes], in_flight: int) -> list[bytes]:
        chunks: list[bytes] = []
        sent, got = in_flight, 0
        self.send(b"".join(frames[:sent]))
        while got < len(frames):
            data = self._read()
            chunks.append(data)
            got += data.count(b"\n")
            if got + in_flight > sent:
                self.send(b"".join(frames[sent : got + in_flight]))
                sent = got + in_flight
        return chunks

    # -- bytes ---------------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Write all data. Raises BrokenError if the process is gone."""
        try:
            while data:
                data = data[os.write(self._in, data) :]
        except BrokenPipeError:
            raise BrokenError("the process is gone") from None

    def _answer(self) -> bytes:
        line = self._line()
        while is_notification(line):
            line = self._line()
        return line

    def _line(self) -> bytes:
        parts = [self._rest] if self._rest else []
        while not parts or b"\n" not in parts[-1]:
            parts.append(self._read())
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line

    def _read(self) -> bytes:
        data = os.read(self._out, READ_BYTES)
        if not data:
            raise BrokenError(f"the process went away, or did not answer within {ANSWER_LIMIT_S:g} s")
        return data
