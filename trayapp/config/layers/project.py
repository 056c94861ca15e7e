"""A project's own servers file: found from a session's folder, read once, as bytes that are hashed and parsed alike.

Never here: whether it may be used (trust), what it changes (overlay).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trayapp.config.files import read_bytes
from trayapp.config.problems import Unparsable
from trayapp.config.read.parse import read_top, server_pairs
from trayapp.config.read.text import MAX_BYTES, decode, without_comments

if TYPE_CHECKING:
    from trayapp.config.layers.scripts import Script

PROJECT_FILES = (".multi-mcp.yaml", ".mcp.json")  # in one folder the first one counts


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """What lay in a folder at one moment."""

    path: Path  # its folder resolved, so that one folder has one name
    data: bytes
    scripts: tuple[Script, ...] = ()  # the programs inside the project that its servers run
    watched: tuple[Path, ...] = ()  # where these are, or would be

    @property
    def folder(self) -> Path:
        """The project."""
        return self.path.parent

    @property
    def digest(self) -> str:
        """Of the very bytes, and of the programs that they name; another content has another one."""
        whole = hashlib.sha256(self.data)
        for script in self.scripts:
            whole.update(f"\0{script.name}\0{script.digest}".encode("utf-8", "surrogateescape"))
        return f"sha256:{whole.hexdigest()}"

    def text(self) -> str:
        """What the parser gets: JSON loses its comments, lines and columns stay. Raises Unparsable."""
        text = decode(self.data, str(self.path))
        return without_comments(text) if self.path.suffix == ".json" else text


def find_project(folder: Path, home: Path) -> Path | None:
    """The file that counts for a session in `folder`: the nearest, up to and including the home folder, else the root.

    A folder that is not absolute has none. Blocks: each look is a stat.
    """
    if not folder.is_absolute():
        return None
    try:
        start, last = folder.resolve(), home.resolve()
    except (OSError, ValueError, RuntimeError):  # unreadable, no path at all, a link that leads back to itself
        return None
    for place in (start, *start.parents):
        found = project_file_in(place)
        if found is not None or place == last:
            return found
    return None


def project_file_in(folder: Path) -> Path | None:
    """The file of that very folder."""
    return next((path for name in PROJECT_FILES if _is_file(path := folder / name)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def read_project(path: Path) -> ProjectFile | None:
    """The file as it is now, with the programs that it names; None when it is gone. Blocks. Raises StorageError."""
    data = read_bytes(path, MAX_BYTES)
    if data is None:
        return None
    file = ProjectFile(path.parent.resolve() / path.name, data)
    try:
        entries = server_pairs(read_top(file.text(), str(path)), str(path))
    except Unparsable:
        return file  # it starts nothing
    from trayapp.config.layers.scripts import (  # 1 ms, for those whose client is in a project
        read_script,
        watched_paths,
    )

    watched = {name: watched_paths(entry, file.folder) for name, entry in entries.items()}
    found = {each: read_script(name, each, file.folder) for name, paths in watched.items() for each in paths}
    scripts = sorted((script for script in found.values() if script), key=lambda script: script.name)
    return replace(file, scripts=tuple(scripts), watched=tuple(found))
