"""Ensure that no server process outlives the gateway, however the gateway ends.

POSIX uses a registry file and the guardian program, on Linux with a tag that descendants cannot lose by accident (see
guardian). Windows uses a job object. A running server is stopped in `processes`.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import count
from pathlib import Path
from typing import IO, Protocol

from trayapp.backends.stdio import guardian
from trayapp.backends.stdio.guardian import MARK, ORDERLY, REGISTRY, Kin, start_time
from trayapp.config.programs import own_environment

log = logging.getLogger(__name__)

GUARD_START_S = 2.0  # limit on the guardian's start, which usually takes 20 ms
UNFINISHED = ".new"  # suffix of a registry that is being written
SPENT_MOST = 256  # after this many obsolete lines, the registry is rewritten without them


class ProcessTracker(Protocol):
    """Tracks every server process. Never raises: a server must not fail because of tracking."""

    def environment(self) -> dict[str, str]:
        """Return environment variables for one server process, with a value unique to it."""

    def spawning(self, environment: dict[str, str]) -> AbstractContextManager[None]:
        """Return a context in which to spawn the process with those variables. Do nothing else in it: never await."""

    def adopt(self, pid: int, environment: dict[str, str]) -> None:
        """Record that a server process was spawned with those variables."""

    def finish(self, pid: int) -> None:
        """End the processes that a stopped server left running, then forget it. Blocks for seconds if there are any."""

    def close(self) -> None:
        """Release everything at a clean end of the gateway, when all servers are stopped."""


class PosixTracker:
    """The registry of one gateway. A guardian, started before the first server, reads it once the gateway has ended."""

    def __init__(self, run: str, python: list[str] | None = None) -> None:
        self._mark = _own_mark()
        self._path = Path(run, self._mark.join(REGISTRY))
        self._command = python or guardian_command()
        self._numbers = count(1)
        self._kin: dict[int, Kin] = {}
        self._writing = threading.Lock()
        self._spent = SPENT_MOST  # obsolete lines; starts at the maximum because there is no registry yet
        self._guard: threading.Thread | None = None
        self._pipe: IO[bytes] | None = None

    def environment(self) -> dict[str, str]:
        """Start the guardian if needed, and return an environment variable with a unique mark.

        The guardian runs before the server does, so a gateway that is killed in between leaves nothing behind.
        """
        reader_gone = self._pipe is None
        if self._pipe is not None:
            import select

            poll = select.poll()
            poll.register(self._pipe, 0)  # poll reports errors even if no event is requested
            reader_gone = bool(poll.poll(0))
        if reader_gone:
            self._start_guardian()
        return {MARK: f"{self._mark}-{next(self._numbers)}"}

    def spawning(self, environment: dict[str, str]) -> AbstractContextManager[None]:
        """Set the tag while the process is spawned (Linux only)."""
        return _tagged(guardian.tag_of(environment[MARK])) if sys.platform == "linux" else nullcontext()

    def adopt(self, pid: int, environment: dict[str, str]) -> None:
        kin = self._kin[pid] = ((pid, start_time(pid)), environment.get(MARK, ""))
        self._note(guardian.line_of(kin))

    def finish(self, pid: int) -> None:
        """End the process's remaining family, and record in the registry that the server has ended."""
        if (kin := self._kin.get(pid)) is not None:
            guardian.end([kin], 0.0)
            del self._kin[pid]
            self._note(guardian.line_of(kin, ended=True), spent=2)

    def close(self) -> None:
        """Tell the guardian that the gateway ended cleanly, and remove the registry."""
        if self._pipe is not None:
            with suppress(OSError):
                self._pipe.write(ORDERLY)
        self._let_go()
        if self._guard is not None:
            self._guard.join(GUARD_START_S)
        with suppress(OSError):
            self._path.unlink()

    def _let_go(self) -> None:
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            pipe.close()

    def _note(self, line: str, spent: int = 0) -> None:
        """Append a line to the registry. `spent`: how many lines it makes obsolete.

        The file is rewritten only after many obsolete lines, so that a start costs the same with many servers.
        """
        with self._writing:
            self._spent += spent
            try:
                if self._spent >= SPENT_MOST:  # rewrite the registry atomically, with the servers that run now
                    fresh = self._path.with_suffix(UNFINISHED)
                    fresh.touch(mode=0o600)
                    fresh.write_text("".join(map(guardian.line_of, list(self._kin.values()))), encoding="utf-8")
                    fresh.replace(self._path)
                    self._spent = 0
                else:
                    with self._path.open("a", encoding="utf-8") as file:
                        file.write(line)
            except OSError as error:
                self._spent = SPENT_MOST  # the file's content is unknown: the next call rewrites it
                log.warning("Cannot save the list of server processes: %s", error)

    def _start_guardian(self) -> None:
        self._let_go()
        try:
            process = subprocess.Popen(
                [*self._command, str(self._path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=own_environment(os.environ),
                cwd="/",
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            log.warning("Cannot start the guardian of the server processes: %s", error)
            return
        self._pipe = process.stdin
        # The guardian forks, and its first process ends in 10 to 20 ms. A thread waits for that.
        self._guard = threading.Thread(target=process.wait, name="guardian", daemon=True)
        self._guard.start()


@contextmanager
def _tagged(tag: int) -> Iterator[None]:
    """Set the tag in the context, for a child to inherit. This is safe because no other thread spawns processes."""
    import resource

    before = resource.prlimit(0, guardian.TAG_LIMIT)
    with suppress(OSError, ValueError):  # the hard limit is too low: the process has only the mark
        resource.prlimit(0, guardian.TAG_LIMIT, (tag, before[1]))
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            resource.prlimit(0, guardian.TAG_LIMIT, before)


def guardian_command() -> list[str]:
    """Return the command of the guardian, without its registry argument.

    A packaged program has no interpreter, so its smallest executable also runs as the guardian.
    """
    if getattr(sys, "frozen", False):
        return [str(Path(sys.executable).with_name("multi-mcp-shim")), "guardian"]
    return [sys.executable, "-I", "-S", guardian.__file__]


def _own_mark() -> str:
    """Return this gateway's mark, which no other process has, not even one with the same id after a reboot."""
    started = "".join(c if c.isalnum() else "." for c in start_time(os.getpid()))
    return f"{os.getpid()}-{started}"


def reap_leftovers(run: str) -> int:
    """End the servers of gateways that are gone. Return how many registries were found. If any, blocks for seconds."""
    own = _own_mark().join(REGISTRY)
    left = [path for path in Path(run).glob("*".join(REGISTRY)) if path.name != own]
    for path in left:
        log.warning("An earlier gateway left server processes behind. Ending them")
        guardian.reap(str(path))
        with suppress(OSError):
            path.with_suffix(UNFINISHED).unlink()
    return len(left)


def make_tracker(run: str) -> ProcessTracker:
    if sys.platform == "win32":
        from trayapp.backends.stdio.windows_jobs import JobTracker

        return JobTracker()
    return PosixTracker(run)
