"""A project's own servers file: found from a session's folder, read once, as bytes that are hashed and parsed alike.

Never here: whether it may be used (trust), what it changes (overlay).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from trayapp.config.files import read_bytes
from trayapp.config.text import MAX_BYTES, decode, without_comments

PROJECT_FILES = (".multi-mcp.yaml", ".mcp.json")  # in one folder the first one counts


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """What lay in a folder at one moment."""

    path: Path  # its folder resolved, so that one folder has one name
    data: bytes

    @property
    def folder(self) -> Path:
        """The project."""
        return self.path.parent

    @property
    def digest(self) -> str:
        """Of the very bytes; another content has another one."""
        return f"sha256:{hashlib.sha256(self.data).hexdigest()}"

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
    """The file as it is now; None when it is gone. Blocks. Raises StorageError."""
    data = read_bytes(path, MAX_BYTES)
    return None if data is None else ProjectFile(path.parent.resolve() / path.name, data)
