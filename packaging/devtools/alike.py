"""Whether two builds of one source are alike, file by file. Never here: building."""

from __future__ import annotations

import hashlib
from pathlib import Path

SHOWN = 10  # names in an error; the first tell enough


def manifest(folder: Path) -> dict[str, str]:
    """Each file below the folder: what it holds and how it may be used, as one word; a link by where it points."""
    return {path.relative_to(folder).as_posix(): _word(path) for path in sorted(folder.rglob("*")) if _holds(path)}


def differences(one: Path, other: Path) -> list[str]:
    """The files that only one of the folders has, or that are not the same in both."""
    first, second = manifest(one), manifest(other)
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def listed(names: list[str]) -> str:
    """The first of them, for people."""
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _holds(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def _word(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    return f"{path.stat().st_mode & 0o777:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
