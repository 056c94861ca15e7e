"""Locking: the command line of a package runner becomes one that starts the server's locked package.

The first start locks the release that the package runner would choose at that time. All functions block.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from trayapp.config.files import locked as lock_of
from trayapp.config.programs import is_runner, runner_name
from trayapp.config.read.command import UncertainError
from trayapp.model.errors import ConnectFailedError
from trayapp.packages.images import read_docker
from trayapp.packages.lock_file import COMPLETE, LockedPackage, LockFile, PackageError, PackageRequest
from trayapp.packages.npm import read_npx
from trayapp.packages.pypi import read_uvx
from trayapp.packages.tools import LIMIT_S, UNLOCK, ToolError, Tools

HELD_S = 2 * LIMIT_S  # the longest wait for another process that is fetching the same package


@dataclass(frozen=True, slots=True)
class NotLocked:
    """Why a command line is not locked, and what to write instead. `starts`: True if the server starts anyway."""

    why: str
    hint: str
    starts: bool = True

    def __str__(self) -> str:
        return f"{'Not locked' if self.starts else 'Does not start'}: {self.why}. {self.hint}"


_HOLD = "To pin one release, write: {}"
# Command lines that run a package by name and that we cannot lock, each with its replacement.
_FRESH = (
    (r"(?:bunx|pnpx|(?:pnpm|yarn)(?: -\S+)* dlx|bun(?: -\S+)* x) ", "npx -y PACKAGE"),
    (r"deno (?:run|serve|x)\b.* (?:npm|jsr):", "npx -y PACKAGE"),
    (r"uv (?:.+ )?run (?:.+ )?(?:--with|-w)[ =]", "uvx --from PACKAGE PROGRAM"),
    (r"go run \S+@latest", "go run MODULE@VERSION"),
    (r"dnx (?!.*@\d)", "dnx PACKAGE@VERSION"),
)
_INSIDE = re.compile(
    r"(?:^|[\s;&|(/])(npx|uvx|bunx|pnpx|npm exec|pnpm dlx|yarn dlx|uv tool run|pipx run|docker run)\s+\S"
)
_WRITTEN = {
    "npx": "npx -y PACKAGE", "npm": "npx -y PACKAGE", "uvx": "uvx PACKAGE", "uv": "uvx PACKAGE",
    "pipx": "pipx run PACKAGE", "docker": "docker run -i --rm IMAGE", "podman": "podman run -i --rm IMAGE",
}  # fmt: skip


def read_package(argv: tuple[str, ...]) -> PackageRequest | None:
    """Return the package that a package runner's command line requests, or None if there is none or it is unclear."""
    try:
        return _read(with_plain_runner(argv))
    except UncertainError:
        return None


def _read(argv: tuple[str, ...]) -> PackageRequest | None:
    return read_npx(argv) or read_uvx(argv) or read_docker(argv)


def with_plain_runner(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command line with its package runner reduced to its name: without a path, and without `cmd /c`."""
    if tuple(word.lower() for word in argv[:2]) in (("cmd", "/c"), ("cmd.exe", "/c")):
        argv = argv[2:]
    return (runner_name(argv[0]), *argv[1:]) if argv else argv


def not_locked(argv: tuple[str, ...]) -> NotLocked | None:
    """Return why a command line's package is not locked, or None if we can lock it or no package is named.

    Folders, addresses, the programs of _FRESH, and runners inside another program's command line start as written. A
    command line of a runner that we can lock does not start if its release cannot be determined.
    """
    argv = with_plain_runner(argv)
    if not argv:
        return None
    runner = argv[0]
    try:
        if _read(argv) is not None:
            return None
    except UncertainError as error:
        hold = _HOLD.format(_WRITTEN[runner])
        if error.is_local:
            return NotLocked(f"{runner} runs {error}, which may change at any start", hold)
        return NotLocked(f"{runner} with {error} cannot be locked", f"{hold}. {UNLOCK}", starts=False)
    name, line = PurePath(runner.replace("\\", "/")).stem, " ".join(argv[1:])
    for pattern, instead in _FRESH:
        if re.match(pattern, f"{name} {line}"):
            return NotLocked(f"{name} runs the newest release at each start", _HOLD.format(instead))
    inner = None if is_runner(argv) else _INSIDE.search(line)
    if inner is not None:
        why = f"{name} starts {inner[1]}, which runs the newest release at each start"
        return NotLocked(why, f"To pin one release, write the command without {name}")
    return None


@dataclass(frozen=True, slots=True)
class Locks:
    """The lock file, and the folder of locked packages. `instead`: a package to try in place of the locked one.

    `configured`: returns the names of the current servers. A lock under any other name belonged to a server that was
    renamed or removed, and passes to the next server that runs the same package.
    """

    file: LockFile
    store: Path
    instead: LockedPackage | None = None
    configured: Callable[[], Collection[str]] | None = None

    def argv(self, server: str, argv: tuple[str, ...], tools: Tools, *, scripts: bool) -> tuple[str, ...]:
        """Lock and fetch the package that a command line runs, if needed. Return the command line that starts it.

        A command line that runs no package that we can lock is returned unchanged. With `scripts`, the package's
        install scripts may run. Raises ConnectFailedError, UnreadableLockError, StorageError.
        """
        request = read_package(argv)
        if request is None:
            told = not_locked(argv)
            if told is not None and not told.starts:
                raise ConnectFailedError(server, f"Cannot start {server}: {told.why}", told.hint)
            return argv
        try:
            one, scripts = self.instead or self._locked(server, request, tools), scripts and request.runs_scripts
            return request.argv(one, self.fetched(request, one, tools, scripts=scripts), tools.env)
        except (PackageError, ToolError) as error:
            raise ConnectFailedError(server, f"Cannot start {server}: {error.title}", error.hint) from None

    def _locked(self, server: str, request: PackageRequest, tools: Tools) -> LockedPackage:
        """Return the locked package. If there is none, first lock that of the server's former name, or a new one."""
        kept = self.file.find(server, request.spec)
        if kept:
            return kept[0]
        versions: list[LockedPackage] = []
        if self.configured is not None:
            present, every = self.configured(), self.file.all()
            former = (kept for name, spec, kept in every if spec == request.spec and name not in present)
            versions = next(former, [])
        versions = versions or [request.resolve(tools)]
        return self.file.add(server, request.spec, versions)

    def fetched(self, request: PackageRequest, one: LockedPackage, tools: Tools, *, scripts: bool) -> Path:
        """Fetch a locked package if needed. Return its folder. Raises PackageError, ToolError, StorageError."""
        folder = self.store / (one.folder_name if scripts else f"{one.folder_name}-plain")
        if request.is_fetched(folder):
            return folder
        self.store.mkdir(mode=0o700, parents=True, exist_ok=True)
        with lock_of(folder, HELD_S):
            if not request.is_fetched(folder):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(mode=0o700)
                request.fetch(one, folder, tools, scripts=scripts)
                (folder / COMPLETE).touch()
        return folder

    def folder_of(self, argv: tuple[str, ...]) -> str | None:
        """Return the folder of the locked package that a command line starts, or None if it starts none."""
        store = str(self.store)
        found = next((word for word in argv if word.startswith(store + os.sep)), None)
        return str(self.store / found[len(store) + 1 :].partition(os.sep)[0]) if found is not None else None

    def clean(self) -> None:
        """Remove the folders of packages that are not in servers.lock. Raises UnreadableLockError."""
        kept = {one.folder_name for _, _, versions in self.file.all() for one in versions}
        with suppress(OSError):
            for folder in self.store.iterdir():
                if folder.name.removesuffix("-plain") not in kept:
                    shutil.rmtree(folder, ignore_errors=True)
