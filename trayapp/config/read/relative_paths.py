"""Relative paths in a server's command line. Their meaning depends on the folder in which it runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

_DOTTED = re.compile(r"\.{1,2}(?:[/\\:].*)?", re.DOTALL)  # ., .., ./x, ..\x, .:/data
_FOLDER = re.compile(r"[^\s:@$%{}~/\\-][^\s:@$%{}]*/")  # src/
_FILE = re.compile(  # server.py, dist/index.js; not *.py, ${DIR}/x.py, https://x.test/y.json, @scope/pkg
    r"(?![/\\~@-])[^\s:*?\[\]$%{}<>|;]*\.(?:pyz?|[cm]?[jt]sx?|sh|rb|php|pl|jar|dll|lua|ps1|bat|cmd|exe|db|sqlite3?"
    r"|json[c5l]?|ya?ml|toml|csv|env)",
    re.IGNORECASE,
)
_PACKAGE_RUNNERS = frozenset(("npx", "bunx", "pnpx", "uvx", "pipx"))  # their first word that is no option is no file


def relative_paths(command: str, args: Sequence[str]) -> list[str]:
    """Return the words that are or contain a relative path, in order."""
    package = _package(command, args)
    found = [command] if re.search(r"[/\\]", command) and is_relative(command) else []
    return found + [arg for at, arg in enumerate(args) if any(_is_path(part, at == package) for part in _parts(arg))]


def is_relative(path: str) -> bool:
    """Return True if a path is relative: it begins with no root, home folder, drive or variable."""
    return not re.match(r"[/\\~$%{]|[A-Za-z]:", path)


def _package(command: str, args: Sequence[str]) -> int:
    """Return the index of the package that a package runner starts, or -1."""
    name = PurePath(command.replace("\\", "/")).name.lower().removesuffix(".cmd").removesuffix(".exe")
    plain = (at for at, arg in enumerate(args) if not arg.startswith("-") and arg != "run")
    return next(plain, -1) if name in _PACKAGE_RUNNERS else -1


def _parts(arg: str) -> list[str]:
    """Return the parts of a word that `=` and `,` separate: --dir=./x, type=bind,src=.,dst=/data."""
    return [part for part in re.split(r"[=,]", arg) if part]


def _is_path(part: str, is_package: bool) -> bool:
    if _DOTTED.fullmatch(part):
        return True
    return not is_package and bool(_FILE.fullmatch(part) or _FOLDER.fullmatch(part))
