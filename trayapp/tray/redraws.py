"""Drawing at a bounded rate: many changes cause one redraw, and the last state is always drawn."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)

PAUSE_S = 0.25  # at most 4 redraws a second: enough for panels and eyes

Draw = Callable[[], float | None]


class Redraws:
    """Calls `draw` on its own thread after `wanted()`, with a pause after each call.

    `draw` returns the seconds until its next call at the latest; None = not before the next `wanted()`. `sleep` waits
    that many seconds; tests pass another.
    """

    def __init__(self, draw: Draw, sleep: Callable[[float], object] | None = None) -> None:
        self._draw = draw
        self._ended = threading.Event()
        self._sleep = sleep or self._ended.wait
        self._wanted = threading.Event()
        self._thread = threading.Thread(target=self._run, name="redraws", daemon=True)

    def start(self) -> None:
        """Start the thread, with a first redraw."""
        self._wanted.set()
        self._thread.start()

    def wanted(self) -> None:
        """Request a redraw. Call this from any thread; it returns at once."""
        self._wanted.set()

    def close(self, timeout_s: float = 2.0) -> None:
        """Stop drawing."""
        self._ended.set()
        self._wanted.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        again_s: float | None = None
        while True:
            self._wanted.wait(again_s)
            if self._ended.is_set():
                return
            self._wanted.clear()  # a later change causes another redraw
            try:
                again_s = self._draw()
            except Exception:  # the boundary of a redraw: later ones must still happen
                log.exception("Unexpected error while drawing")
                again_s = None
            self._sleep(PAUSE_S)
