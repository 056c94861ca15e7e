"""npm packages, locked with their dependencies by npm's own lock file. A locked package starts without npm."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from trayapp.backends.stdio.npm_versions import Version, is_range, read_version, satisfies
from trayapp.backends.stdio.npx import NpxRequest, argv_of, cached_version, copy_in, package_of, read_request
from trayapp.packages.lock_file import LockedPackage, PackageError, PackageRequest, WithdrawnReleaseError, with_options
from trayapp.packages.tools import NO_NODE, UNLOCK, ToolError, Tools

QUIET = ("--no-audit", "--no-fund", "--loglevel=error")
# By default, npm retries after 10 s and 60 s. When offline, the user would wait for more than a minute.
ONE_RETRY = ("--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=1000")
AGE_LIMITS = ("--before", "--min-release-age")
_LEFT_OUT = frozenset(("license", "funding", "deprecated"))


@dataclass(frozen=True, slots=True)
class NpmRequest(PackageRequest):
    """The package in a command line of npx or npm exec."""

    asked: NpxRequest

    @property
    def spec(self) -> str:
        named = self.asked.package + (f"@{self.asked.wanted}" if self.asked.wanted else "")
        words = self.asked.words if self.asked.bin is None else named
        return with_options("|".join((f"npm:{words}", *self.asked.beside)), self.asked.passed)

    @property
    def pinned(self) -> bool:
        return self.asked.wanted is not None and read_version(self.asked.wanted) is not None

    @property
    def runs_scripts(self) -> bool:
        return "--ignore-scripts" not in self.asked.passed

    def resolve(self, tools: Tools, version: str | None = None, before: float | None = None) -> LockedPackage:
        cached = cached_version(self.asked, tools.env) if version is None else None
        package, asked = self.asked.package, self.asked.wanted
        wanted = version or cached or asked or "latest"
        one = read_version(version or "")
        if one is not None and asked is not None and is_range(asked) and not satisfies(one, asked):
            title = f"{package}@{version} is not within the command's range, {asked}"
            raise PackageError(title, f"Write {package}@{version} in the command: multi-mcp edit")
        with tempfile.TemporaryDirectory(prefix="multi-mcp-") as name:
            folder = Path(name)
            _write(folder / "package.json", self._project(package, wanted))
            try:
                limit = []
                if before is not None and not self._has_limit(tools, folder):
                    limit = [f"--before={datetime.fromtimestamp(before, UTC):%Y-%m-%dT%H:%M:%SZ}"]
                tools.run(
                    "npm", "install", "--package-lock-only", "--ignore-scripts", "--omit-lockfile-registry-resolved",
                    "--prefer-offline" if cached else "--prefer-online", *QUIET, *limit, *self.asked.passed, cwd=folder,
                )  # fmt: skip
            except ToolError as error:
                if limit and "ETARGET" in error.output:
                    title = f"{package}@{wanted} needs a release that is younger than settings.min_age"
                    hint = f"Wait, or name the version: multi-mcp update SERVER --to {wanted}"
                    raise PackageError(title, hint) from None
                raise _explained(error, package, wanted) from None
            packages = None
            with suppress(OSError, orjson.JSONDecodeError, KeyError, TypeError):
                packages = orjson.loads((folder / "package-lock.json").read_bytes())["packages"]
        if not isinstance(packages, dict):
            raise PackageError("npm wrote no package-lock.json", "Update npm to 9 or newer")
        found = packages.get(f"node_modules/{package}")
        if not isinstance(found, dict) or not isinstance(found.get("version"), str):
            raise PackageError(f"npm found no package {package}", "Correct its name")
        content = {place: _kept(place, entry) for place, entry in packages.items() if place}
        return LockedPackage("npm", package, found["version"], str(found.get("integrity")), content)

    def _has_limit(self, tools: Tools, folder: Path) -> bool:
        """Return True if the user limits the age of releases, because our option would replace that limit. Runs npm."""
        if any(option.startswith(AGE_LIMITS) for option in self.asked.passed):
            return True
        said = tools.run("npm", "config", "get", *(name.removeprefix("--") for name in AGE_LIMITS), cwd=folder)
        return any(line.partition("=")[2] not in ("null", "undefined", "") for line in said.splitlines())

    def newest(self, tools: Tools, before: float, locked: LockedPackage) -> str | None:
        package = self.asked.package
        try:
            words = ("view", package, "time", "dist-tags", "versions", "--json", *QUIET, *ONE_RETRY, *self.asked.passed)
            answer = orjson.loads(tools.run("npm", *words))
        except ToolError as error:
            raise _explained(error, package, "") from None
        except orjson.JSONDecodeError:
            raise PackageError(f"npm's answer about {package} cannot be read", "Try again later") from None
        answer = answer[0] if isinstance(answer, list) and answer else answer
        document = answer if isinstance(answer, dict) else {}
        times, versions = document.get("time") or {}, document.get("versions") or []
        versions = versions if isinstance(versions, list) else [versions]
        limit = read_version(str((document.get("dist-tags") or {}).get(self.asked.tag or "latest")))
        now = read_version(locked.version)

        def fits(one: Version, text: str) -> bool:
            if self.asked.wanted is not None and is_range(self.asked.wanted):
                return satisfies(one, self.asked.wanted)
            return limit is not None and one.key <= limit.key and (one == limit or "-" not in text)

        read = [(one, text) for text in map(str, versions) if (one := read_version(text)) is not None]
        newer = [pair for pair in read if now is not None and pair[0].key > now.key and fits(*pair)]
        offered = [pair for pair in newer if _is_before(times.get(pair[1]), before)]
        return max(offered, key=lambda pair: pair[0].key)[1] if offered else None

    def _project(self, package: str, version: str) -> dict[str, Any]:
        others = filter(None, map(package_of, self.asked.beside))
        beside = {name: asked or "latest" for name, asked in others if name != package}
        return {"private": True, "dependencies": {package: version} | beside}

    def fetch(self, locked: LockedPackage, folder: Path, tools: Tools, *, scripts: bool) -> None:
        project = self._project(locked.package, locked.version)
        _write(folder / "package.json", project)
        lock = {"lockfileVersion": 3, "requires": True, "packages": {"": project, **locked.content}}
        _write(folder / "package-lock.json", lock)
        more = self.asked.passed if scripts else (*self.asked.passed, "--ignore-scripts")
        try:
            try:
                tools.run("npm", "ci", "--prefer-offline", *QUIET, *more, cwd=folder)
            except ToolError as error:
                if "ETARGET" not in error.output:
                    raise
                tools.run("npm", "ci", "--prefer-online", *QUIET, *more, cwd=folder)  # the cached metadata is too old
        except ToolError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise _explained(error, locked.package, locked.version) from None

    def argv(self, locked: LockedPackage, folder: Path, env: Mapping[str, str]) -> tuple[str, ...]:
        for package in self._project(locked.package, locked.version)["dependencies"]:
            copy = copy_in(folder, package, hashed=True)
            if copy is not None and (found := argv_of(self.asked, copy, env)) is not None:
                return found
        if shutil.which("node", path=env.get("PATH")) is None:
            raise PackageError(*NO_NODE)
        program = self.asked.bin or "of its own"
        raise PackageError(f"{locked.package} {locked.version} has no program {program} that node can run", UNLOCK)


def read_npx(argv: tuple[str, ...]) -> NpmRequest | None:
    """Return the package that a command line of npx or npm exec runs, or None if none. Raises UncertainError."""
    asked = read_request(argv)
    return NpmRequest(asked) if asked is not None else None


def _write(path: Path, value: Any) -> None:
    path.write_bytes(orjson.dumps(value))


def _kept(place: str, entry: Any) -> dict[str, Any]:
    """Return a package's entry in npm's lock file, without unneeded members. Raises PackageError if it has no hash."""
    if not isinstance(entry, dict) or not (entry.get("integrity") or entry.get("inBundle")) or entry.get("link"):
        name = place.rpartition("node_modules/")[2]
        raise PackageError(f"{name} has no hash", f"Only packages from a registry can be locked. {UNLOCK}")
    return {key: value for key, value in entry.items() if key not in _LEFT_OUT}


def _is_before(published: Any, before: float) -> bool:
    """Return True if a release was published before a time. A release without a date counts as later."""
    try:
        at = datetime.fromisoformat(str(published))
    except ValueError:
        return False
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() <= before


def _explained(error: ToolError, package: str, version: str) -> PackageError:
    output, name = error.output, f"{package}@{version}" if version else package
    if "EINTEGRITY" in output:
        return PackageError(f"{name} changed: it no longer has the locked content", "Do not use it; ask its author")
    if "E404" in output or "ETARGET" in output or "ENOVERSIONS" in output:
        return WithdrawnReleaseError(
            f"npm's registry does not have {name}", f"Check its name and versions: npm view {package} versions"
        )
    if any(code in output for code in ("ENOTFOUND", "ECONNREFUSED", "EAI_AGAIN", "ENOTCACHED", "ETIMEDOUT")):
        return PackageError(f"Cannot reach npm's registry for {name}", "Go online, then try again")
    return PackageError(error.title, error.hint)
