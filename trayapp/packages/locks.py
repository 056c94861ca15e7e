"""Decide what a server that comes as a package starts: what is locked, and nothing else.

The first start locks what its runner would take then. Blocks; callers use a thread.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trayapp.config.locks import locked as lock_of
from trayapp.model.errors import ConnectFailedError, MultiMcpError
from trayapp.packages.images import read_docker
from trayapp.packages.lock_file import LockFile
from trayapp.packages.locked import Locked, PackageError, PackageRequest
from trayapp.packages.npm import read_npx
from trayapp.packages.pypi import read_uvx
from trayapp.packages.tools import LIMIT_S, ToolError, Tools

HELD_S = 2 * LIMIT_S  # another process may be fetching the same


def read_package(argv: tuple[str, ...]) -> PackageRequest | None:
    """Read what a command line asks a package runner for; None where it runs no package that can be told."""
    return read_npx(argv) or read_uvx(argv) or read_docker(argv)


@dataclass(frozen=True, slots=True)
class Locks:
    """The lock file, and the folder in which locked packages lie. `instead`: what a trial runs in place of it."""

    file: LockFile
    store: Path
    instead: Locked | None = None

    def argv(self, server: str, argv: tuple[str, ...], env: Mapping[str, str], *, scripts: bool) -> tuple[str, ...]:
        """Return what to start for a command line. Raises ConnectFailedError."""
        request = read_package(argv)
        if request is None:
            return argv
        tools = Tools(env)
        try:
            one = self.instead or self._locked(server, request, tools)
            return request.argv(one, self.fetched(request, one, tools, scripts=scripts), env)
        except MultiMcpError as error:
            if not isinstance(error, PackageError | ToolError):
                raise
            raise ConnectFailedError(server, f"Cannot start {server}: {error.title}", error.hint) from None

    def _locked(self, server: str, request: PackageRequest, tools: Tools) -> Locked:
        kept = self.file.find(server, request.spec)
        if kept:
            return kept[0]
        return self.file.add(server, request.spec, request.resolve(tools, time.time()))

    def fetched(self, request: PackageRequest, one: Locked, tools: Tools, *, scripts: bool) -> Path:
        """Return the folder with that package, fetched if it is not there. Raises PackageError, StorageError."""
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
        """Return the folder of the locked package that a command line starts, None where it starts none."""
        store = str(self.store)
        found = next((word for word in argv if word.startswith(store + os.sep)), None)
        return str(self.store / found[len(store) + 1 :].partition(os.sep)[0]) if found is not None else None

    def clean(self) -> None:
        """Remove packages that nothing is locked to, nor was before."""
        kept = {one.folder_name for _, _, versions in self.file.all() for one in versions}
        with suppress(OSError):
            for folder in self.store.iterdir():
                if folder.name.removesuffix("-plain") not in kept:
                    shutil.rmtree(folder, ignore_errors=True)
