"""Writing frames so that all that one read caused for one peer goes out in one system call.

Never here: what the frames say.
"""

from __future__ import annotations

from collections.abc import Callable


class Batch:
    """Outboxes that hold back their frames while it is entered; one batch at a time on one event loop.

    Entered again inside itself it changes nothing.
    """

    __slots__ = ("depth", "waiting")

    def __init__(self) -> None:
        self.depth = 0
        self.waiting: list[Outbox] = []

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *failure: object) -> None:
        self.depth -= 1
        if self.depth == 0:
            waiting, self.waiting = self.waiting, []
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
        if not BATCH.depth:
            self._sink(frame)
            return
        if not self._parts:
            BATCH.waiting.append(self)
        self._parts.append(frame)

    def flush(self) -> None:
        """Send what was held back."""
        parts, self._parts = self._parts, []
        if parts:
            self._sink(parts[0] if len(parts) == 1 else b"".join(parts))
