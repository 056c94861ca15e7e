"""Writing frames so that all that one read caused for one peer goes out in one system call.

Never here: what the frames say.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)
Pieces = Sequence[bytes | memoryview]


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
    """The way out to one peer. `sink` takes bytes and does not block (an asyncio transport's write); `pour` takes the
    pieces of one large frame, where the way out needs not have them joined."""

    __slots__ = ("_parts", "_pour", "_sink")

    def __init__(self, sink: Callable[[bytes], None], pour: Callable[[Pieces], None] | None = None) -> None:
        self._sink = sink
        self._pour = pour
        self._parts: list[bytes] = []

    def write(self, frame: bytes) -> None:
        """Send one whole frame, newline included: at once, or when the open batch ends."""
        if not BATCH.depth:
            self._sink(frame)
            return
        if not self._parts:
            BATCH.waiting.append(self)
        self._parts.append(frame)

    def write_to(self, sink: Callable[[bytes], None]) -> None:
        """Another way out from here on."""
        self._sink = sink

    def write_pieces(self, pieces: Pieces) -> None:
        """`write` of a large frame: it is not copied for it, unless a batch is open."""
        if self._pour is None or BATCH.depth:
            self.write(b"".join(pieces))
        else:
            self._pour(pieces)

    def flush(self) -> None:
        """Send what was held back."""
        parts, self._parts = self._parts, []
        if len(parts) > 1:
            try:
                parts = [b"".join(parts)]
            except MemoryError:
                log.warning("Not enough memory to write %d messages at once", len(parts))
        for part in parts:
            self._sink(part)
