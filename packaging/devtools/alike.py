"""Compare two builds of one source, file by file. Never here: building."""

from __future__ import annotations

import hashlib
from pathlib import Path

SHOWN = 10  # names in an error message


def manifest(folder: Path) -> dict[str, str]:
    """Map each file below the folder to its mode and content hash, or to the target of a link."""
    return {path.relative_to(folder).as_posix(): _word(path) for path in sorted(folder.rglob("*")) if _holds(path)}


def differences(one: Path, other: Path) -> list[str]:
    """Return the files that only one folder has, or whose content or mode differs."""
    first, second = manifest(one), manifest(other)
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def listed(names: list[str]) -> str:
    """Return the first names as a readable list."""
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _holds(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def _word(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    return f"{path.stat().st_mode & 0o777:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
