"""A project's own servers file: found from a session's folder, and read once, so that hash and parser get equal bytes.

trust decides if it may be used, overlay what it changes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trayapp.config.files import read_bytes
from trayapp.config.problems import UnparsableError
from trayapp.config.read.parse import read_top, server_pairs
from trayapp.config.read.text import MAX_BYTES, decode, without_comments

if TYPE_CHECKING:
    from trayapp.config.layers.scripts import Script

PROJECT_FILES = (".multi-mcp.yaml", ".mcp.json")  # the first one in a folder counts


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """Content of a project's file at one moment."""

    path: Path  # with its folder resolved, so that each folder has only one name
    data: bytes
    scripts: tuple[Script, ...] = ()  # programs inside the project that its servers run
    watched: tuple[Path, ...] = ()  # where these are or would be

    @property
    def folder(self) -> Path:
        """Return the project's folder."""
        return self.path.parent

    @property
    def digest(self) -> str:
        """Return the hash of the exact bytes and of the programs that they name. Any change of content changes it."""
        whole = hashlib.sha256(self.data)
        for script in self.scripts:
            whole.update(f"\0{script.name}\0{script.digest}".encode("utf-8", "surrogateescape"))
        return f"sha256:{whole.hexdigest()}"

    def text(self) -> str:
        """Return the text for the parser. JSON loses its comments; lines and columns stay. Raise UnparsableError."""
        text = decode(self.data, str(self.path))
        return without_comments(text) if self.path.suffix == ".json" else text


def find_project(folder: Path, home: Path) -> Path | None:
    """Return the file that applies to a session in `folder`: the nearest, up to and including home, or the root.

    A folder that is not absolute has none. Blocks: each check is a stat.
    """
    if not folder.is_absolute():
        return None
    try:
        start, last = folder.resolve(), home.resolve()
    except (OSError, ValueError, RuntimeError):  # unreadable, not a path, or a link that leads back to itself
        return None
    for place in (start, *start.parents):
        found = project_file_in(place)
        if found is not None or place == last:
            return found
    return None


def project_file_in(folder: Path) -> Path | None:
    """Return the file of exactly that folder, or None."""
    return next((path for name in PROJECT_FILES if _is_file(path := folder / name)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def read_project(path: Path) -> ProjectFile | None:
    """Return the current file with the programs that it names, or None if it is gone. Blocks. Raise StorageError."""
    data = read_bytes(path, MAX_BYTES)
    if data is None:
        return None
    file = ProjectFile(path.parent.resolve() / path.name, data)
    try:
        entries = server_pairs(read_top(file.text(), str(path)), str(path))
    except UnparsableError:
        return file  # it starts nothing
    from trayapp.config.layers.scripts import (  # 1 ms, only for sessions in a project
        read_script,
        watched_paths,
    )

    watched = {name: watched_paths(entry, file.folder) for name, entry in entries.items()}
    found = {
        each: read_script(name, each, file.folder, run=run)
        for name, paths in watched.items()
        for each, run in paths.items()
    }
    scripts = sorted((script for script in found.values() if script), key=lambda script: script.name)
    return replace(file, scripts=tuple(scripts), watched=tuple(found))
