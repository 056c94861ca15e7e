"""One thread that runs what clicks ask for, in the order of the clicks. Never here: what that is."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)
Job = Callable[[], object]


class Worker:
    """Runs jobs one after the other, off the threads that read the bus or the display.

    A job that takes long keeps the clicks after it waiting: hand long work on.
    """

    def __init__(self, name: str = "clicks") -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Run `job` soon; after close() never. An exception of it is logged, and the next job runs."""
        self._jobs.put(job)

    def close(self) -> None:
        """End after the jobs that are already there; does not wait for them."""
        self._jobs.put(None)

    def join(self, timeout_s: float) -> None:
        """Wait for the end of the last job, after close()."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:  # the boundary of a click: the next one has to work
                log.exception("a click failed")
