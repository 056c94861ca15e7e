"""The program's version, and the commit that it was built from, if known."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from trayapp import __version__
from trayapp.service.command_line import PACKAGE

COMMIT_FILE = "commit"  # beside the package's modules, written when a program is packaged
SHORT = 7
_HASH = re.compile(r"[0-9a-f]{7,64}")


def version_text(package: Path = Path(PACKAGE)) -> str:
    """Return the version with the short commit if known: `0.1.0` or `0.1.0 (3de80d5)`."""
    commit = commit_of(package)
    return f"{__version__} ({commit[:SHORT]})" if commit else __version__


def commit_of(package: Path) -> str:
    """Return the commit of a packaged program or of a checkout; "" if it is unknown."""
    with suppress(OSError, UnicodeDecodeError):
        return _checked((package / COMMIT_FILE).read_text(encoding="ascii"))
    with suppress(OSError, UnicodeDecodeError):
        return _head(package.parent / ".git")
    return ""


def _head(git: Path) -> str:
    head = (_git_dir(git) / "HEAD").read_text(encoding="ascii").strip()
    kind, _, name = head.partition(" ")
    if kind != "ref:":
        return _checked(head)
    common = _common_dir(_git_dir(git))
    with suppress(FileNotFoundError):
        return _checked((common / name).read_text(encoding="ascii"))
    packed = (common / "packed-refs").read_text(encoding="utf-8").splitlines()
    return next((_checked(line.partition(" ")[0]) for line in packed if line.endswith(f" {name}")), "")


def _git_dir(git: Path) -> Path:
    """Return the git folder. For a linked worktree or submodule `.git` is a file naming it (gitrepository-layout)."""
    if git.is_dir():
        return git
    return git.parent / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()


def _common_dir(folder: Path) -> Path:
    """Return the folder with the branches: a linked worktree has them in the main worktree's git folder."""
    with suppress(FileNotFoundError):
        return folder / (folder / "commondir").read_text(encoding="utf-8").strip()
    return folder


def _checked(text: str) -> str:
    found = _HASH.fullmatch(text.strip())
    return found[0] if found else ""
