"""Relative paths among the words of a server's command line: what they name depends on the folder in which it runs.

Never here: which folder that is.
"""

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
_PACKAGE_RUNNERS = frozenset(("npx", "bunx", "pnpx", "uvx", "pipx"))  # their first plain word is no file


def relative_paths(command: str, args: Sequence[str]) -> list[str]:
    """Return the words that are, or hold, a relative path; in order."""
    package = _package(command, args)
    found = [command] if re.search(r"[/\\]", command) and is_relative(command) else []
    return found + [arg for at, arg in enumerate(args) if any(_is_path(part, at == package) for part in _parts(arg))]


def is_relative(path: str) -> bool:
    """True if a path begins nowhere: not at a root, the home folder, a drive or a variable."""
    return not re.match(r"[/\\~$%{]|[A-Za-z]:", path)


def _package(command: str, args: Sequence[str]) -> int:
    """Return the place of the package that a package runner starts, -1 if this is none."""
    name = PurePath(command.replace("\\", "/")).name.lower().removesuffix(".cmd").removesuffix(".exe")
    plain = (at for at, arg in enumerate(args) if not arg.startswith("-") and arg != "run")
    return next(plain, -1) if name in _PACKAGE_RUNNERS else -1


def _parts(arg: str) -> list[str]:
    """Return the word, or what stands in it behind `=` and `,`: --dir=./x, type=bind,src=.,dst=/data."""
    return [part for part in re.split(r"[=,]", arg) if part]


def _is_path(part: str, is_package: bool) -> bool:
    if _DOTTED.fullmatch(part):
        return True
    return not is_package and bool(_FILE.fullmatch(part) or _FOLDER.fullmatch(part))
