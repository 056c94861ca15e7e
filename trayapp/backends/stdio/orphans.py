"""Makes sure that no server process outlives the gateway, however the gateway ends.

POSIX: a registry file and the guardian program, on Linux with a tag that descendants cannot shed by accident (guardian
says which); Windows: a job object. Never here: stopping a server (processes does).
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
from trayapp.config.environment import own_environment

log = logging.getLogger(__name__)

GUARD_START_S = 2.0  # it takes 20 ms
UNFINISHED = ".new"  # a registry that is being written
SPENT_MOST = 256  # lines of servers that ended: then the registry is written anew, without them


class Keeper(Protocol):
    """Told of every server process. Never raises: a server must not fail over this."""

    def environment(self) -> dict[str, str]:
        """Variables for one server process, another value for each."""

    def spawning(self, environment: dict[str, str]) -> AbstractContextManager[None]:
        """What is spawned inside, at once and by nobody else, is the server process with those variables."""

    def adopt(self, pid: int, environment: dict[str, str]) -> None:
        """A server process was spawned with those variables."""

    def finish(self, pid: int) -> None:
        """It was stopped: end what it left behind, then forget it. Blocks, seconds when something was left."""

    def close(self) -> None:
        """The gateway ends in order: all servers are stopped."""


class NoKeeper:
    """Keeps nothing; for tests of single connections."""

    def environment(self) -> dict[str, str]:
        return {}

    def spawning(self, environment: dict[str, str]) -> AbstractContextManager[None]:
        return nullcontext()

    def adopt(self, pid: int, environment: dict[str, str]) -> None:
        pass

    def finish(self, pid: int) -> None:
        pass

    def close(self) -> None:
        pass


class PosixKeeper:
    """The registry of one gateway and, from the first server on, a guardian that reads it when the gateway is gone."""

    def __init__(self, run: str, python: list[str] | None = None) -> None:
        self._mark = _own_mark()
        self._path = Path(run, self._mark.join(REGISTRY))
        self._command = python or guardian_command()
        self._numbers = count(1)
        self._kin: dict[int, Kin] = {}
        self._writing = threading.Lock()
        self._spent = SPENT_MOST  # lines that say nothing any more; as many as that when there is no registry yet
        self._guard: threading.Thread | None = None
        self._pipe: IO[bytes] | None = None

    def environment(self) -> dict[str, str]:
        """See Keeper. The guardian is there before the server is: no kill of the gateway comes between the two."""
        if self._pipe is None or _is_broken(self._pipe):
            self._start_guardian()
        return {MARK: f"{self._mark}-{next(self._numbers)}"}

    def spawning(self, environment: dict[str, str]) -> AbstractContextManager[None]:
        """See Keeper."""
        return _tagged(guardian.tag_of(environment[MARK])) if sys.platform == "linux" else nullcontext()

    def adopt(self, pid: int, environment: dict[str, str]) -> None:
        """See Keeper."""
        kin = self._kin[pid] = ((pid, start_time(pid)), environment.get(MARK, ""))
        self._note(guardian.line_of(kin))

    def finish(self, pid: int) -> None:
        """See Keeper."""
        kin = self._kin.get(pid)
        if kin is not None:
            guardian.end([kin], 0.0)
            del self._kin[pid]
            self._note(guardian.line_of(kin, ended=True), spent=2)

    def close(self) -> None:
        """See Keeper."""
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
        """Add a line: so the work for one server does not grow with how many there are."""
        with self._writing:
            self._spent += spent
            try:
                if self._spent >= SPENT_MOST:
                    self._write_anew()
                else:
                    with self._path.open("a", encoding="utf-8") as file:
                        file.write(line)
            except OSError as error:
                self._spent = SPENT_MOST  # whatever stands there now: the next one writes all of it
                log.warning("Cannot note the server processes: %s", error)

    def _write_anew(self) -> None:
        """Those that run now, at once or not at all. Raises OSError."""
        fresh = self._path.with_suffix(UNFINISHED)
        fresh.touch(mode=0o600)
        fresh.write_text("".join(map(guardian.line_of, list(self._kin.values()))), encoding="utf-8")
        fresh.replace(self._path)
        self._spent = 0

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
        # It forks and its first process ends, 10 to 20 ms from now: nobody need wait for that.
        self._guard = threading.Thread(target=process.wait, name="guardian", daemon=True)
        self._guard.start()


@contextmanager
def _tagged(tag: int) -> Iterator[None]:
    """Have the tag meanwhile, for a child to inherit. Other threads of the gateway spawn nothing."""
    import resource

    before = resource.prlimit(0, guardian.TAG_LIMIT)
    with suppress(OSError, ValueError):  # somebody has lowered the hard limit: then the mark alone tells
        resource.prlimit(0, guardian.TAG_LIMIT, (tag, before[1]))
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            resource.prlimit(0, guardian.TAG_LIMIT, before)


def guardian_command() -> list[str]:
    """Runs the guardian, but for its registry. A packaged program has no interpreter: its smallest part can be one."""
    if getattr(sys, "frozen", False):
        return [str(Path(sys.executable).with_name("multi-mcp-shim")), "guardian"]
    return [sys.executable, "-I", "-S", guardian.__file__]


def _own_mark() -> str:
    """Of this gateway: no other process has it, not even one of the same id after a reboot."""
    started = "".join(c if c.isalnum() else "." for c in start_time(os.getpid()))
    return f"{os.getpid()}-{started}"


def _is_broken(pipe: IO[bytes]) -> bool:
    """Whether nobody reads a pipe any more."""
    import select

    poll = select.poll()
    poll.register(pipe, 0)  # errors are always told
    return bool(poll.poll(0))


def reap_leftovers(run: str) -> int:
    """End the servers of gateways that are gone; how many registries there were. Blocks for seconds when any."""
    own = _own_mark().join(REGISTRY)
    left = [path for path in Path(run).glob("*".join(REGISTRY)) if path.name != own]
    for path in left:
        log.warning("An earlier gateway left server processes behind; ending them")
        guardian.reap(str(path))
        with suppress(OSError):
            path.with_suffix(UNFINISHED).unlink()
    return len(left)


def make_keeper(run: str) -> Keeper:
    """The one for this system."""
    if sys.platform == "win32":
        from trayapp.backends.stdio.windows_jobs import JobKeeper

        return JobKeeper()
    return PosixKeeper(run)
