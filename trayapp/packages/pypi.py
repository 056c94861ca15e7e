"""PyPI packages, locked with their dependencies by uv. A locked package starts without uv.

Only wheels are locked: a build would run code that no hash names.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from trayapp.packages.lock_file import LockedPackage, PackageError, WithdrawnReleaseError
from trayapp.packages.tools import ToolError, Tools

COMPLETE = ".complete"  # written last
WHEELS = ("--only-binary", ":all:")
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_REQUIREMENT = re.compile(rf"({_NAME})(\[[\w,. -]+\])?(?:@([\w.!+-]+)|((?:[=<>!~]=?=?[\w.!+*-]+,?)+))?")


@dataclass(frozen=True, slots=True)
class PypiRequest:
    """A use of uvx, `uv tool run` or `pipx run`. `limits` are version limits in pip's form."""

    package: str
    extras: str
    limits: str
    program: str
    args: tuple[str, ...]
    beside: tuple[str, ...] = ()  # requirements of --with
    python: str | None = None

    @property
    def spec(self) -> str:
        return f"pypi:{'|'.join((self._requirement(), *self.beside, self.python or ''))}".rstrip("|")

    @property
    def pinned(self) -> bool:
        return self.limits.startswith("==") and "*" not in self.limits and "," not in self.limits

    def _requirement(self, version: str | None = None) -> str:
        return f"{self.package}{self.extras}{f'=={version}' if version else self.limits}"

    @property
    def has_versions(self) -> bool:
        return True

    def resolve(self, tools: Tools, now: float, version: str | None = None) -> LockedPackage:
        text = self._compiled(tools, version)
        found = re.search(rf"(?im)^{_spelled(self.package)}(?:\[[^\]]*\])?==([^\s\\;]+)((?:\s*\\\s*--hash=\S+)+)", text)
        if found is None:
            raise PackageError(f"uv gave no version with hashes of {self.package}", "To start it unlocked: lock: false")
        hashes = " ".join(re.findall(r"--hash=(\S+)", found[2]))
        return LockedPackage("pypi", self.package, found[1], hashes, text, now)

    def newest(self, tools: Tools, before: float, locked: LockedPackage) -> str | None:
        at = datetime.fromtimestamp(before, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        text = self._compiled(tools, None, "--exclude-newer", at)
        found = re.search(rf"(?im)^{_spelled(self.package)}(?:\[[^\]]*\])?==([^\s\\;]+)", text)
        return found[1] if found and _key(found[1]) > _key(locked.version) else None

    def _compiled(self, tools: Tools, version: str | None, *more: str) -> str:
        with tempfile.TemporaryDirectory(prefix="multi-mcp-") as name:
            wanted = Path(name, "requirements.in")
            wanted.write_text("\n".join((self._requirement(version), *self.beside)) + "\n", "utf-8")
            python = ("--python-version", self.python) if self.python else ()
            try:
                return tools.run(
                    "uv", "pip", "compile", str(wanted), "--generate-hashes", "--no-header", "--no-annotate",
                    "--quiet", *WHEELS, *python, *more, cwd=Path(name),
                )  # fmt: skip
            except ToolError as error:
                raise _explained(error, self._requirement(version)) from None

    def is_fetched(self, locked: LockedPackage, folder: Path) -> bool:
        return (folder / COMPLETE).is_file()

    def fetch(self, locked: LockedPackage, folder: Path, tools: Tools, *, scripts: bool) -> None:
        wanted = folder / "requirements.txt"
        wanted.write_text(str(locked.content), "utf-8")
        python = ("--python", self.python) if self.python else ()
        try:
            tools.run("uv", "venv", "--quiet", *python, str(folder / "venv"), cwd=folder)
            tools.run(
                "uv", "pip", "install", "--quiet", "--require-hashes", "--no-deps", *WHEELS, "-r", str(wanted),
                "--python", str(_programs(folder) / _exe("python")), cwd=folder,
            )  # fmt: skip
        except ToolError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise _explained(error, f"{locked.package}=={locked.version}") from None
        (folder / COMPLETE).touch()

    def argv(self, locked: LockedPackage, folder: Path, env: Mapping[str, str]) -> tuple[str, ...]:
        program = _programs(folder) / _exe(self.program)
        if not program.is_file():
            raise PackageError(
                f"{locked.package} {locked.version} has no program {self.program}",
                f"Name it: uvx --from {locked.package} PROGRAM",
            )
        return (str(program), *self.args)


def read_uvx(argv: tuple[str, ...]) -> PypiRequest | None:
    """Return the package that a command line of uvx, `uv tool run` or `pipx run` asks for, or None if it is not
    understood.
    """
    if argv[:1] == ("uvx",):
        rest = list(argv[1:])
    elif argv[:3] == ("uv", "tool", "run"):
        rest = list(argv[3:])
    elif argv[:2] == ("pipx", "run"):
        rest = list(argv[2:])
    else:
        return None
    chosen, beside, python = "", list[str](), None
    while rest and rest[0].startswith("-"):
        name, equals, value = rest.pop(0).partition("=")
        if name == "--":
            break
        if name in ("-q", "--quiet", "--no-progress"):
            continue
        if name not in ("--from", "--spec", "--with", "--python", "-p") or (not equals and not rest):
            return None
        value = value if equals else rest.pop(0)
        if name in ("--from", "--spec"):
            chosen = value
        elif name == "--with":
            beside += [part.strip() for part in value.split(",")]
        else:
            python = value
    if not rest:
        return None
    found = _REQUIREMENT.fullmatch((chosen or rest[0]).replace(" ", ""))
    if found is None or not all(_REQUIREMENT.fullmatch(one) for one in beside):
        return None
    at = found[3]
    limits = found[4] or ("" if at in (None, "latest") else f"=={at}")
    return PypiRequest(
        found[1], found[2] or "", limits, rest[0] if chosen else found[1], tuple(rest[1:]), tuple(beside), python
    )


def _spelled(package: str) -> str:
    """Return a pattern that matches all spellings of a package's name."""
    return r"[-_.]+".join(map(re.escape, re.split(r"[-_.]+", package)))


def _programs(folder: Path) -> Path:
    return folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")


def _exe(name: str) -> str:
    return f"{name}.exe" if sys.platform == "win32" else name


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0]))


def _explained(error: ToolError, wanted: str) -> PackageError:
    output = error.output
    if "ash mismatch" in output:
        return PackageError(f"{wanted} changed: its content is not what was locked", "Do not use it; ask its author")
    if "no wheels" in output or "no usable wheels" in output or "no compatible wheel" in output:
        return PackageError(f"{wanted} has to be built, which cannot be locked", "To start it unlocked: lock: false")
    if "No solution found" in output or "not found in the package registry" in output:
        return WithdrawnReleaseError(f"The package index does not have {wanted}", "Check its versions")
    if "Failed to fetch" in output or "error sending request" in output or "Could not connect" in output:
        return PackageError(f"The package index cannot be reached for {wanted}", "Go online, then try again")
    return PackageError(error.title, error.hint)
