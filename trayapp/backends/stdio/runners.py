"""Package runners by name: the programs that fetch a package and start it."""

from __future__ import annotations

from pathlib import Path

RUNNERS = frozenset(("npx", "npm", "uvx", "uv", "pipx", "docker", "podman"))
_SUFFIXES = (".exe", ".cmd", ".ps1", ".bat")


def runner_name(program: str) -> str:
    """Return the name of a runner that is written as a path or with a Windows suffix, other programs unchanged."""
    name = program.replace("\\", "/").rpartition("/")[2].lower()
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name if name in RUNNERS else program


def is_runner(argv: tuple[str, ...]) -> bool:
    """Return True if a command line starts a package runner, also by its path or through `cmd /c`."""
    return any(runner_name(word) in RUNNERS for word in argv[: 3 if argv[0].lower() in ("cmd", "cmd.exe") else 1])


def own_folder(argv: tuple[str, ...]) -> str:
    """Return the folder of a runner that is written by its absolute path, "" for every other one."""
    program = Path(argv[0])
    return str(program.parent) if program.is_absolute() else ""
