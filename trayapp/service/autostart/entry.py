"""The interface of our autostart entry on every platform, and what entries that are files have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trayapp.model.errors import StorageError

APP = "multi-mcp"
HOME = "MULTI_MCP_HOME"


@dataclass(frozen=True, slots=True)
class StartCommand:
    """The command to start at login: absolute program and arguments. `home`: the value of MULTI_MCP_HOME, "" = none."""

    argv: tuple[str, ...]
    home: str = ""


class AutostartEntry(Protocol):
    """Our autostart entry on this platform."""

    @property
    def where(self) -> str:
        """The place of the entry, for display: the file, or the key of the Windows registry."""

    def is_on(self) -> bool:
        """Return True if the desktop will start the entry. Raises StorageError."""

    def written(self) -> StartCommand | None:
        """Return the command in the entry, on or off; None if there is none or it cannot be parsed."""

    def write(self, start: StartCommand) -> None:
        """Write the entry, switched on. Raises MultiMcpError; nothing has changed then."""

    def remove(self) -> None:
        """Remove the entry, if there is one. Raises StorageError."""


class FileEntry:
    """An entry that is its own file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def where(self) -> str:
        """The path of the file (AutostartEntry)."""
        return str(self._path)


def write_file(path: Path, data: bytes) -> None:
    """Write the file atomically. Raises StorageError."""
    fresh = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(data)
        fresh.replace(path)
    except OSError as error:
        raise StorageError(
            f"Cannot write {path}: {error.strerror}", "Check the folder's owner and permissions"
        ) from None


def remove_file(path: Path) -> None:
    """Remove the file, if it exists. Raises StorageError."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"Cannot remove {path}: {error.strerror}", "Remove it yourself") from None


def unreadable(path: Path, error: OSError) -> StorageError:
    """Return the error for a file that exists and cannot be read."""
    return StorageError(f"Cannot read {path}: {error.strerror}", "Check the file's owner and permissions")
