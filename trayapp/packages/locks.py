"""Decides what a server that comes as a package starts: the locked package, and nothing else.

The first start locks what its runner would take then. Functions block; callers use a thread.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from trayapp.config.files import locked as lock_of
from trayapp.config.programs import runner_name
from trayapp.model.errors import ConnectFailedError
from trayapp.packages.images import read_docker
from trayapp.packages.lock_file import LockedPackage, LockFile, PackageError, PackageRequest
from trayapp.packages.npm import read_npx
from trayapp.packages.pypi import read_uvx
from trayapp.packages.tools import LIMIT_S, ToolError, Tools

log = logging.getLogger(__name__)

HELD_S = 2 * LIMIT_S  # another process may be fetching the same package
RUNS = (("docker", "run"), ("podman", "run"), ("npm", "exec"), ("npm", "x"), ("uv", "tool"), ("pipx", "run"))
_BY_DIGEST = re.compile(r".+@sha256:[0-9a-f]{64}")


def read_package(argv: tuple[str, ...]) -> PackageRequest | None:
    """Return the package that a command line asks a package runner for, or None if it cannot be determined."""
    argv = with_plain_runner(argv)
    return read_npx(argv) or read_uvx(argv) or read_docker(argv)


def with_plain_runner(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command line whose package runner is written by its name alone: not by its path, not in `cmd /c`."""
    if tuple(word.lower() for word in argv[:2]) in (("cmd", "/c"), ("cmd.exe", "/c")):
        argv = argv[2:]
    return (runner_name(argv[0]), *argv[1:]) if argv else argv


def runs_package(argv: tuple[str, ...]) -> bool:
    """Return True if a command line runs a package that may change from one start to the next."""
    argv = with_plain_runner(argv)
    runs = argv[:1] in (("npx",), ("uvx",)) or argv[:2] in RUNS
    return runs and not any(_BY_DIGEST.fullmatch(word) for word in argv)


@dataclass(frozen=True, slots=True)
class Locks:
    """The lock file, and the folder of locked packages. A trial runs `instead` in place of the locked package.

    `configured`: the names of the current servers. A lock under any other name belongs to a server that was renamed.
    """

    file: LockFile
    store: Path
    instead: LockedPackage | None = None
    configured: Callable[[], Collection[str]] | None = None
    _reported: set[tuple[str, ...]] = field(default_factory=set, compare=False)

    def argv(self, server: str, argv: tuple[str, ...], tools: Tools, *, scripts: bool) -> tuple[str, ...]:
        """Return the command line that starts the locked package. Raises ConnectFailedError, UnreadableLockError,
        StorageError.
        """
        request = read_package(argv)
        if request is None:
            if runs_package(argv) and (server, *argv) not in self._reported:
                self._reported.add((server, *argv))
                log.warning("%s is not locked: its command line is not understood. It starts as written", server)
            return argv
        try:
            one = self.instead or self._locked(server, request, tools)
            return request.argv(one, self.fetched(request, one, tools, scripts=scripts), tools.env)
        except (PackageError, ToolError) as error:
            raise ConnectFailedError(server, f"Cannot start {server}: {error.title}", error.hint) from None

    def _locked(self, server: str, request: PackageRequest, tools: Tools) -> LockedPackage:
        """Return the locked package. If there is none, lock the one that the server had under its former name, or else
        the one that the runner would take now.
        """
        kept = self.file.find(server, request.spec)
        if kept:
            return kept[0]
        versions = self._of_former_name(request.spec) or [request.resolve(tools, time.time())]
        return self.file.add(server, request.spec, versions)

    def _of_former_name(self, spec: str) -> list[LockedPackage]:
        """Return the locks of a server that is no longer configured and that asked for the same package."""
        present = self.configured() if self.configured is not None else None
        if present is None:
            return []
        return next((kept for name, asked, kept in self.file.all() if asked == spec and name not in present), [])

    def fetched(self, request: PackageRequest, one: LockedPackage, tools: Tools, *, scripts: bool) -> Path:
        """Return the folder with that package, fetched if needed. Raises PackageError, ToolError, StorageError."""
        folder = self.store / (one.folder_name if scripts else f"{one.folder_name}-plain")
        if request.is_fetched(one, folder):
            return folder
        self.store.mkdir(mode=0o700, parents=True, exist_ok=True)
        with lock_of(folder, HELD_S):
            if not request.is_fetched(one, folder):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(mode=0o700)
                request.fetch(one, folder, tools, scripts=scripts)
        return folder

    def folder_of(self, argv: tuple[str, ...]) -> str | None:
        """Return the folder of the locked package that a command line starts, or None if it starts none."""
        store = str(self.store)
        found = next((word for word in argv if word.startswith(store + os.sep)), None)
        return str(self.store / found[len(store) + 1 :].partition(os.sep)[0]) if found is not None else None

    def clean(self) -> None:
        """Remove packages that no server is locked to, now or before."""
        kept = {one.folder_name for _, _, versions in self.file.all() for one in versions}
        with suppress(OSError):
            for folder in self.store.iterdir():
                if folder.name.removesuffix("-plain") not in kept:
                    shutil.rmtree(folder, ignore_errors=True)
