"""What the desktop's entry for us holds, whatever desktop it is, and how an entry is written that is a file.

Never here: one platform's way.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trayapp.model.errors import StorageError

APP = "multi-mcp"
HOME = "MULTI_MCP_HOME"


@dataclass(frozen=True, slots=True)
class Start:
    """What is started at login: absolute program and arguments; `home`: the value of MULTI_MCP_HOME, "" = none."""

    argv: tuple[str, ...]
    home: str = ""


class Entry(Protocol):
    """The desktop's entry for us."""

    @property
    def where(self) -> str:
        """For people: the file, or the registry's key."""

    def is_on(self) -> bool:
        """Whether the desktop will start what is written. Raises StorageError."""

    def written(self) -> Start | None:
        """What is written, on or off; None = nothing that can be read."""

    def write(self, start: Start) -> None:
        """Write it, switched on. Raises MultiMcpError, and changes nothing then."""

    def remove(self) -> None:
        """Take it away; nothing there is fine. Raises StorageError."""


class FileEntry:
    """What entries have in common that are files of their own."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def where(self) -> str:
        """See Entry."""
        return str(self._path)


def write_file(path: Path, data: bytes) -> None:
    """All of it or nothing. Raises StorageError."""
    fresh = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(data)
        fresh.replace(path)
    except OSError as error:
        raise StorageError(f"Cannot write {path}: {error.strerror}", "Check the folder's owner and rights") from None


def remove_file(path: Path) -> None:
    """Nothing there is fine. Raises StorageError."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"Cannot remove {path}: {error.strerror}", "Remove it yourself") from None


def unreadable(path: Path, error: OSError) -> StorageError:
    """For one that is there."""
    return StorageError(f"Cannot read {path}: {error.strerror}", "Check the file's owner and rights")
