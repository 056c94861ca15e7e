"""Writing frames so that all that one read caused for one peer goes out in one system call.

Never here: what the frames say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Batch:
    """Outboxes that hold back their frames until the batch ends; one batch at a time on one event loop."""

    def __init__(self) -> None:
        self._open = False
        self._waiting: list[Outbox] = []

    @property
    def open(self) -> bool:
        """Whether frames are being held back now."""
        return self._open

    def join(self, outbox: Outbox) -> None:
        """Flush `outbox` when the batch ends."""
        self._waiting.append(outbox)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold back what is written inside; a nested one changes nothing."""
        if self._open:
            yield
            return
        self._open = True
        try:
            yield
        finally:
            self._open = False
            waiting, self._waiting = self._waiting, []
            for outbox in waiting:
                outbox.flush()


BATCH = Batch()


class Outbox:
    """The way out to one peer. `sink` takes bytes and does not block (an asyncio transport's write)."""

    __slots__ = ("_parts", "_sink")

    def __init__(self, sink: Callable[[bytes], None]) -> None:
        self._sink = sink
        self._parts: list[bytes] = []

    def write(self, frame: bytes) -> None:
        """Send one whole frame, newline included: at once, or when the open batch ends."""
        if not BATCH.open:
            self._sink(frame)
            return
        if not self._parts:
            BATCH.join(self)
        self._parts.append(frame)

    def flush(self) -> None:
        """Send what was held back."""
        parts, self._parts = self._parts, []
        if parts:
            self._sink(parts[0] if len(parts) == 1 else b"".join(parts))
