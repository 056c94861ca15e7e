"""Makes sure that no server process outlives the gateway, however the gateway ends.

POSIX: a registry file and the guardian program; Windows: a job object. Never here: stopping a server (processes does).
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import IO, Protocol

from trayapp.backends import guardian
from trayapp.backends.guardian import MARK, ORDERLY, Kin, start_time

log = logging.getLogger(__name__)

GUARD_START_S = 2.0  # it takes 20 ms
REGISTRY = "backends-{pid}.tsv"  # of the gateway with that process id, in the runtime folder


class Keeper(Protocol):
    """Told of every server process. Never raises: a server must not fail over this."""

    def environment(self) -> dict[str, str]:
        """Variables for one server process, another value for each."""

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

    def adopt(self, pid: int, environment: dict[str, str]) -> None:
        pass

    def finish(self, pid: int) -> None:
        pass

    def close(self) -> None:
        pass


class PosixKeeper:
    """The registry of one gateway and, from the first server on, a guardian that reads it when the gateway is gone."""

    def __init__(self, run: str, python: list[str] | None = None) -> None:
        self._path = Path(run, REGISTRY.format(pid=os.getpid()))
        self._command = python or [sys.executable, "-I", "-S", guardian.__file__]
        self._mark = f"{os.getpid()}-{start_time(os.getpid())}"
        self._numbers = count(1)
        self._kin: dict[int, Kin] = {}
        self._writing = threading.Lock()
        self._guard: threading.Thread | None = None
        self._pipe: IO[bytes] | None = None

    def environment(self) -> dict[str, str]:
        """See Keeper."""
        return {MARK: f"{self._mark}-{next(self._numbers)}"}

    def adopt(self, pid: int, environment: dict[str, str]) -> None:
        """See Keeper."""
        self._kin[pid] = ((pid, start_time(pid)), environment.get(MARK, ""))
        self._write()
        if self._guard is None:
            # In a thread: the first call of a server need not wait 20 ms for it.
            self._guard = threading.Thread(target=self._start_guardian, name="guardian", daemon=True)
            self._guard.start()

    def finish(self, pid: int) -> None:
        """See Keeper."""
        kin = self._kin.get(pid)
        if kin is not None:
            guardian.end([kin], 0.0)
            del self._kin[pid]
            self._write()

    def close(self) -> None:
        """See Keeper."""
        if self._guard is not None:
            self._guard.join(GUARD_START_S)
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            with suppress(OSError):
                pipe.write(ORDERLY)
                pipe.close()
        with suppress(OSError):
            self._path.unlink()

    def _write(self) -> None:
        fresh = self._path.with_suffix(".new")
        with self._writing:
            rows = [f"{pid}\t{started}\t{mark}\n" for (pid, started), mark in list(self._kin.values())]
            try:
                fresh.touch(mode=0o600)
                fresh.write_text("".join(rows), encoding="utf-8")
                fresh.replace(self._path)
            except OSError as error:
                log.warning("Cannot note the server processes: %s", error)

    def _start_guardian(self) -> None:
        try:
            process = subprocess.Popen(
                [*self._command, str(self._path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            log.warning("Cannot start the guardian of the server processes: %s", error)
            return
        self._pipe = process.stdin
        process.wait()  # some 10 ms: it forks and its first process ends


def reap_leftovers(run: str) -> int:
    """End the servers of gateways that are gone; how many registries there were. Blocks for seconds when any."""
    own = REGISTRY.format(pid=os.getpid())
    left = [path for path in Path(run).glob(REGISTRY.format(pid="*")) if path.name != own]
    for path in left:
        log.warning("An earlier gateway left server processes behind; ending them")
        guardian.reap(str(path))
    return len(left)


def make_keeper(run: str) -> Keeper:
    """The one for this system."""
    if sys.platform == "win32":
        from trayapp.backends.jobs import JobKeeper

        return JobKeeper()
    return PosixKeeper(run)
