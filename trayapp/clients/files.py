"""Clients' files on this machine: locate them, read them, and replace their text with a backup beside them."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from trayapp.clients.table import Client
from trayapp.config.files import FILE_MODE, locked, read_bytes, storage_error, write_atomic
from trayapp.config.paths import home_folder
from trayapp.config.read.text import decode
from trayapp.model.errors import FileChangedError, StorageError

Result = TypeVar("Result")

_TOKEN = re.compile(r"\{(\w+)\}")
_FOLDERS = {  # token -> (variable that sets the folder, its default below the home folder)
    "config": ("XDG_CONFIG_HOME", ".config"), "appdata": ("APPDATA", "AppData/Roaming"),
    "localappdata": ("LOCALAPPDATA", "AppData/Local"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Machine:
    """The home folder, the environment and the platform that decide where other programs keep their files."""

    home: Path = field(default_factory=home_folder)
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    platform: str = sys.platform

    def path(self, template: str) -> Path:
        """Return the path that a template names.

        A template starts with `{home}`, `{config}`, `{library}`, `{appdata}`, `{localappdata}` or `{VARIABLE}`. An
        unset VARIABLE resolves to the home folder, so callers skip templates for which `has` returns False.
        """
        return Path(_TOKEN.sub(lambda found: str(self._folder(found[1])), template))

    def has(self, template: str) -> bool:
        """Return True if every `{VARIABLE}` in the template is set."""
        return all(name.islower() or self.environ.get(name) for name in _TOKEN.findall(template))

    def _folder(self, token: str) -> Path:
        if token == "home":
            return self.home
        if token == "library":
            return self.home / "Library" / "Application Support"
        variable, below = _FOLDERS.get(token, (token, ""))
        value = self.environ.get(variable, "").strip()
        return Path(value) if value and Path(value).is_absolute() else self.home / below


def shown_path(path: Path, home: Path) -> str:
    """Return a path with `~` for the home folder."""
    try:
        return str(Path("~") / path.relative_to(home))
    except ValueError:
        return str(path)


LARGEST = 64_000_000  # the most bytes of a file; Claude Code's file also has its prompt history
BACKUP = ".multi-mcp.bak"  # suffix of the backup made before our first entry
ATTEMPTS = 3  # tries of one change, in case the client saves the file at the same moment
BACKUP_MOVED = ".before-import.bak"  # suffix of the backup made before servers were moved out


@dataclass(frozen=True, slots=True)
class ClientFile:
    """The path of a client's file, existing or not. `found`: the client is installed."""

    path: Path
    found: bool


def locate(client: Client, machine: Machine) -> ClientFile:
    """Return the first of a client's possible files that exists. Blocks.

    If none exists, return the first one in a place that shows that the client is installed, or else the first of all.
    """
    paths = possible_files(client, machine)
    moved = {template: path for template, path in paths.items() if template[1].isupper()}
    paths = moved or paths  # if a variable sets the client's folder, only that folder counts
    for path in paths.values():
        if _exists(path):
            return ClientFile(path, True)
    for template, path in paths.items():
        if any(map(_exists, _signs(client, template, path, machine))):
            return ClientFile(path, True)
    return ClientFile(next(iter(paths.values())), False)


def possible_files(client: Client, machine: Machine) -> dict[str, Path]:
    """Return template -> path, for each possible place of a client's file on this machine, best first."""
    templates = filter(machine.has, client.templates(machine.platform))
    return {template: machine.path(template) for template in templates}


def _signs(client: Client, template: str, path: Path, machine: Machine) -> list[Path]:
    """Return paths of which at least one exists if the client of a file is installed."""
    if client.installed and template.startswith("{home}"):
        return [machine.path(sign) for sign in client.installed]
    extension = path.parent.parent
    return [path.parent, extension] if extension.parent.name == "globalStorage" else [path.parent]


def _exists(path: Path) -> bool:
    try:
        return path.exists() or path.is_symlink()
    except (OSError, ValueError):
        return False


def read_text(path: Path) -> str | None:
    """Return the file's text, with its byte order mark; None if it is missing. Raises StorageError, UnparsableError."""
    data = read_bytes(path, LARGEST)
    return None if data is None else decode(data, str(path), LARGEST)


def backup_of(path: Path, ending: str = BACKUP) -> Path:
    """Return the path of a file's backup, with the suffix `ending`."""
    return path.with_name(path.name + ending)


def replace_text(path: Path, before: str | None, after: str, backup: Path | None) -> None:
    """Replace the file's text if it is still `before` (None: missing). First save `before` at `backup`, if given.

    The write is atomic, keeps the file's mode and follows a link. Raises FileChangedError and StorageError; the file is
    then unchanged.
    """
    _refuse_read_only(path)

    def still_as_seen() -> None:
        data = read_bytes(path, LARGEST)
        if (None if data is None else data.decode("utf-8", "surrogateescape")) != before:
            raise FileChangedError(f"{path} was changed in the meantime", "Try again")

    with locked(path):
        if backup is not None and before is not None:
            with contextlib.suppress(OSError):  # an existing backup would keep its mode; the text may hold secrets
                backup.chmod(FILE_MODE)
            write_atomic(backup, before.encode("utf-8"), still_as_seen)
        write_atomic(path, after.encode("utf-8"), still_as_seen)


def retried(change: Callable[[], Result]) -> Result:
    """Return the result of `change`. If it raises FileChangedError, call it again, up to ATTEMPTS times in all.

    The last error is raised.
    """
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(FileChangedError):
            return change()
    return change()


def remove(path: Path, before: str) -> None:
    """Remove a file if its text is still `before`. Raises FileChangedError, StorageError."""
    try:
        with locked(path):
            if read_text(path) != before:
                raise FileChangedError(f"{path} was changed in the meantime", "Try again")
            path.unlink()
    except OSError as error:
        raise storage_error(error, path, "remove") from error


def forget(path: Path) -> None:
    """Remove a backup that is no longer needed. Errors are ignored."""
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def _refuse_read_only(path: Path) -> None:
    """Raise StorageError if no write permission is set on the file, even if we are root and could write."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise StorageError(f"{path} is read-only", "Make it writable, or make the change by hand")
