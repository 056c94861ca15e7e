"""PyPI packages, locked with their dependencies by uv. A locked package starts without uv.

Only wheels are locked, because a build would run code that no hash covers.
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

from trayapp.config.read.command import OptionTable, UncertainError, options
from trayapp.packages.lock_file import LockedPackage, PackageError, PackageRequest, WithdrawnReleaseError, with_options
from trayapp.packages.tools import UNLOCK, ToolError, Tools

WHEELS = ("--only-binary", ":all:")
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_REQUIREMENT = re.compile(rf"({_NAME})(\[[\w,. -]+\])?(?:@([\w.!+-]+)|((?:[=<>!~]=?=?[\w.!+*-]+,?)+))?")


@dataclass(frozen=True, slots=True)
class PypiRequest(PackageRequest):
    """The package in a command line of uvx, `uv tool run` or `pipx run`."""

    package: str
    extras: str
    limits: str  # version limits in pip's form
    program: str
    args: tuple[str, ...]
    beside: tuple[str, ...] = ()  # requirements of --with
    python: str | None = None
    passed: tuple[str, ...] = ()  # the options that determine the release

    @property
    def spec(self) -> str:
        package = f"pypi:{'|'.join((self._requirement(), *self.beside, self.python or ''))}".rstrip("|")
        return with_options(package, self.passed)

    @property
    def pinned(self) -> bool:
        return self.limits.startswith("==") and "*" not in self.limits and "," not in self.limits

    def _requirement(self, version: str | None = None) -> str:
        return f"{self.package}{self.extras}{f'=={version}' if version else self.limits}"

    def resolve(self, tools: Tools, version: str | None = None, before: float | None = None) -> LockedPackage:
        text = self._compiled(tools, version, before)
        found = re.search(rf"(?im)^{_spelled(self.package)}(?:\[[^\]]*\])?==([^\s\\;]+)((?:\s*\\\s*--hash=\S+)+)", text)
        if found is None:
            raise PackageError(f"uv found no version of {self.package} with hashes", UNLOCK)
        hashes = " ".join(re.findall(r"--hash=(\S+)", found[2]))
        return LockedPackage("pypi", self.package, found[1], hashes, text)

    def newest(self, tools: Tools, before: float, locked: LockedPackage) -> str | None:
        text = self._compiled(tools, None, before)
        found = re.search(rf"(?im)^{_spelled(self.package)}(?:\[[^\]]*\])?==([^\s\\;]+)", text)
        from packaging.version import InvalidVersion, Version  # loaded only to look for updates

        try:
            return found[1] if found and Version(found[1]) > Version(locked.version) else None
        except InvalidVersion:
            title = f"{self.package}: {locked.version} in servers.lock is not a version"
            raise PackageError(title, "Remove that entry; the next start locks it again") from None

    def _compiled(self, tools: Tools, version: str | None, before: float | None) -> str:
        limit: tuple[str, ...] = ()
        # uv accepts --exclude-newer only once, and prefers it to UV_EXCLUDE_NEWER
        own = any(option.startswith("--exclude-newer") for option in self.passed) or "UV_EXCLUDE_NEWER" in tools.env
        if before is not None and not own:
            limit = ("--exclude-newer", datetime.fromtimestamp(before, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        with tempfile.TemporaryDirectory(prefix="multi-mcp-") as name:
            wanted = Path(name, "requirements.in")
            limited = (self._requirement(),) if version else ()  # the version has to be within the limits
            wanted.write_text("\n".join((self._requirement(version), *limited, *self.beside)) + "\n", "utf-8")
            python = ("--python-version", self.python) if self.python else ()
            try:
                return tools.run(
                    "uv", "pip", "compile", str(wanted), "--generate-hashes", "--no-header", "--no-annotate",
                    "--quiet", *WHEELS, *python, *limit, *self.passed, cwd=Path(name),
                )  # fmt: skip
            except ToolError as error:
                name = _spelled(self.package)
                if version and re.search(rf"(?i)Because you require {name}\S* and {name}", error.output):
                    title = f"{self.package} {version} is not within the command's limits, {self.limits}"
                    hint = f"Write {self._requirement(version)} in the command: multi-mcp edit"
                    raise PackageError(title, hint) from None
                raise _explained(error, self._requirement(version)) from None

    def fetch(self, locked: LockedPackage, folder: Path, tools: Tools, *, scripts: bool) -> None:
        wanted = folder / "requirements.txt"
        wanted.write_text(str(locked.content), "utf-8")
        python = ("--python", self.python) if self.python else ()
        try:
            common = (option for option in self.passed if option.partition("=")[0] in _GLOBAL)
            tools.run("uv", "venv", "--quiet", *python, *common, str(folder / "venv"), cwd=folder)
            tools.run(
                "uv", "pip", "install", "--quiet", "--require-hashes", "--no-deps", *WHEELS, "-r", str(wanted),
                "--python", str(_programs(folder) / _exe("python")), *self.passed, cwd=folder,
            )  # fmt: skip
        except ToolError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise _explained(error, f"{locked.package}=={locked.version}") from None

    def argv(self, locked: LockedPackage, folder: Path, env: Mapping[str, str]) -> tuple[str, ...]:
        program = _programs(folder) / _exe(self.program)
        if not program.is_file():
            title = f"{locked.package} {locked.version} has no program {self.program}"
            raise PackageError(title, f"Name it: uvx --from {locked.package} PROGRAM")
        return (str(program), *self.args)


# The options of `uv tool run` (uv's CLI reference) and of `pipx run` (pipx's manual) that we understand. Any other
# option may take the next word, or change what runs. These options have no effect on a locked package:
_QUIET = options("""
    -q --quiet -v --verbose --no-progress --isolated --refresh -U --upgrade --reinstall -n --no-cache --compile-bytecode
    --no-env-file --no-build --lfs
""")
_QUIET_VALUES = options("--color --link-mode --refresh-package -P --upgrade-package --reinstall-package")
# These determine the release and its source, so uv also gets them when it locks. Every command of uv accepts the global
# ones:
_GLOBAL_FLAGS = options("""
    --offline --native-tls --system-certs --no-config --managed-python --no-managed-python --no-python-downloads
""")
_GLOBAL = _GLOBAL_FLAGS | options("--allow-insecure-host --python-preference --config-file --cache-dir")
_PASSED = _GLOBAL_FLAGS | options("--no-index")
_PASSED_VALUES = options("""
    --index --default-index -i --index-url --extra-index-url --index-strategy --keyring-provider --allow-insecure-host
    --python-preference --resolution --prerelease --exclude-newer --torch-backend
""")
_LONG = {"-i": "--index-url", "-f": "--find-links"}
_PASSED_PATHS = options("-f --find-links --config-file --cache-dir")
_FROM, _WITH, _PYTHON = options("--from --spec"), options("-w --with"), options("-p --python")
_MISSING = re.compile(r"[{]|^<")  # in a package name: a variable or a placeholder (`<name>`)
_FOLDERS = options("--with-editable --editable")
_UVX = OptionTable(
    _QUIET | _PASSED,
    _QUIET_VALUES | _PASSED_VALUES | _PASSED_PATHS | _WITH | _PYTHON | options("--from --with-editable"),
)
_PIPX = OptionTable(
    options("-q --quiet -v --verbose --no-cache --editable"), options("--spec --with --python -i --index-url")
)


def read_uvx(argv: tuple[str, ...]) -> PypiRequest | None:
    """Return the package that a command line of uvx, `uv tool run` or `pipx run` runs.

    Return None if it runs no package, or has a placeholder for the name. Raises UncertainError.
    """
    if argv[:1] == ("uvx",):
        return _request(*_UVX.read(argv[1:]))
    if argv[:2] == ("pipx", "run"):
        return _request(*_PIPX.read(argv[2:]))
    if argv[:1] == ("uv",) and "tool" in argv:
        before, rest = _UVX.read(argv[1:])
        if rest[:2] == ("tool", "run"):
            after, rest = _UVX.read(rest[2:])
            return _request([*before, *after], rest)
    return None


def _request(found: list[tuple[str, str]], rest: tuple[str, ...]) -> PypiRequest | None:
    for name, value in found:
        address = "://" in value or Path(value).is_absolute()
        if name in _FOLDERS:
            raise UncertainError("a folder or an address", is_local=True)
        if value.startswith("-") or (name in _PASSED_PATHS and not address):
            raise UncertainError(f"the value {value} of {name}")
    if not rest:
        return None
    chosen = [value for name, value in found if name in _FROM]
    beside = [part.strip() for name, value in found if name in _WITH for part in value.split(",")]
    python = [value for name, value in found if name in _PYTHON]
    asked = (chosen[-1] if chosen else rest[0]).replace(" ", "")
    package = _REQUIREMENT.fullmatch(asked)
    for text in (asked, *beside):
        if _REQUIREMENT.fullmatch(text) is None:
            is_local = text.startswith((".", "~")) or "/" in text or "\\" in text
            what = "a folder or an address" if is_local else f"the package name {text}"
            if not is_local and _MISSING.search(text):
                return None
            raise UncertainError(what, is_local=is_local)
    assert package is not None
    at, limits = package[3], package[4]
    limits = limits or ("" if at in (None, "latest") else f"=={at}")
    passed = tuple(
        f"{_LONG.get(name, name)}={value}" if value else name
        for name, value in found
        if name in _PASSED | _PASSED_VALUES | _PASSED_PATHS
    )
    return PypiRequest(
        package[1], package[2] or "", limits, rest[0] if chosen else package[1], tuple(rest[1:]), tuple(beside),
        python[-1] if python else None, passed,
    )  # fmt: skip


def _spelled(package: str) -> str:
    """Return a pattern that matches all spellings of a package's name."""
    return r"[-_.]+".join(map(re.escape, re.split(r"[-_.]+", package)))


def _programs(folder: Path) -> Path:
    return folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")


def _exe(name: str) -> str:
    return f"{name}.exe" if sys.platform == "win32" else name


def _explained(error: ToolError, wanted: str) -> PackageError:
    output = error.output
    if "ash mismatch" in output:
        return PackageError(f"{wanted} changed: it no longer has the locked content", "Do not use it; ask its author")
    if "no wheels" in output or "no usable wheels" in output or "no compatible wheel" in output:
        return PackageError(f"{wanted} has to be built, and a build cannot be locked", UNLOCK)
    if "No solution found" in output or "not found in the package registry" in output:
        return WithdrawnReleaseError(f"The package index does not have {wanted}", "Check its versions")
    if "Failed to fetch" in output or "error sending request" in output or "Could not connect" in output:
        return PackageError(f"Cannot reach the package index for {wanted}", "Go online, then try again")
    return PackageError(error.title, error.hint)
