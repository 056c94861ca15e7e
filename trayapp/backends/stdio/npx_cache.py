"""Read npm's cache for npx: the packages in it, the words that requested them, and the file of each `bin`.

It reads only a bounded number of small regular files, and never writes or runs anything.
Source: npm's libnpmexec (folder `_npx/HASH`, the hash of the requested packages; `_npx.packages` in its package.json).
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import orjson

from trayapp.backends.stdio.npm_versions import Version, read_version

MANIFEST_LARGEST = 1 << 20  # bytes; real ones have up to about 100 kB
NPMRC_LARGEST = 64 << 10
ENTRIES_MOST = 1000  # folders in `_npx` that are read
HEAD_BYTES = 256  # of a program: the kernel's limit of a shebang
MANIFEST = "package.json"

# npm settings, from a project or a shell, that make it run something else, or run the package differently.
TELLING_SETTINGS = frozenset({"call", "node_options", "package", "script_shell", "workspace", "workspaces"})

_NODE_SHEBANG = re.compile(rb"#![ \t]*(?:/usr/bin/env[ \t]+node|/[^ \t]*/node)[ \t\r]*")


@dataclass(frozen=True, slots=True)
class CachedPackage:
    """A package in npx's cache. `asked` holds the words for which npm installed it, or None if unknown."""

    folder: Path
    version: Version
    bins: dict[str, str]  # name -> file, relative to the folder, from its package.json
    asked: frozenset[str] | None
    hashed: bool  # True if the entry's name is the hash of the requested words
    modified_ns: int


def settings_in(env: Mapping[str, str]) -> dict[str, str]:
    """Return npm's settings from environment variables: `npm_config_NAME`, in any case, `-` as `_`."""
    prefix = "npm_config_"
    return {k.lower().removeprefix(prefix).replace("-", "_"): v for k, v in env.items() if k.lower().startswith(prefix)}


def npmrc(path: Path) -> dict[str, str]:
    """Return the plain `name=value` lines of an npmrc, or {} if there is no such file."""
    text = (read_small(path, NPMRC_LARGEST) or b"").decode(errors="replace")
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and line.strip()[:1] not in "#;")
    return {name.strip().replace("-", "_"): value.strip().strip("\"'") for name, _, value in pairs}


def user_settings(env: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return npm's settings for a process with that environment: the user's npmrc, overridden by its variables."""
    variables = settings_in(env)
    user_file = variables.get("userconfig")
    return {**npmrc(Path(user_file) if user_file else home / ".npmrc"), **variables}


def npx_folder(settings: Mapping[str, str], env: Mapping[str, str], home: Path) -> Path | None:
    """Return the folder in which npx keeps packages, or None if it is uncertain."""
    told = settings.get("cache")
    if not told:
        default = Path(env.get("LOCALAPPDATA", home), "npm-cache") if sys.platform == "win32" else home / ".npm"
        return default / "_npx"
    folder = configured_folder(told, home)
    return folder / "_npx" if folder else None


def configured_folder(told: str, home: Path) -> Path | None:
    """Return a folder named in npm's settings, or None if only npm can resolve it."""
    path = Path(str(home) + told[1:] if told.startswith("~/") else told)
    return path if path.is_absolute() and "${" not in told else None


def entry_name(words: str) -> str:
    """Return the name of the folder in `_npx` for one package requested as `words` (`demo`, `demo@1`)."""
    return hashlib.sha512(words.encode()).hexdigest()[:16]


def copies(npx: Path, package: str, words: str) -> Iterator[CachedPackage]:
    """Yield the usable copies of a package, first the one for exactly these `words`. Skip unfinished entries."""
    first = entry_name(words)
    for name in chain((first,), _entries(npx, first)):
        copy = copy_in(npx / name, package, hashed=name == first)
        if copy is not None:
            yield copy


def _entries(npx: Path, but: str) -> Iterator[str]:
    """Yield the folders' names. They are read only on demand: usually there is a copy for the exact words."""
    try:
        with os.scandir(npx) as found:
            names = [entry.name for entry in islice(found, ENTRIES_MOST) if entry.name != but]
    except OSError:
        return
    yield from names


def copy_in(entry: Path, package: str, *, hashed: bool) -> CachedPackage | None:
    """Return the package that was installed in a folder, or None if it is unusable."""
    folder = entry / "node_modules" / package
    manifest = read_manifest(folder)
    if manifest is None or manifest.get("name", package) != package or exists(entry / "concurrency.lock"):
        return None
    version = read_version(str(manifest.get("version")))
    own = read_manifest(entry)
    asked = _asked(own, package)
    usable = asked != frozenset()
    if own is None:  # npm writes this file last, so it may have been interrupted: the dependencies must be there, too
        needs = manifest.get("dependencies")
        places = (entry / "node_modules", folder / "node_modules")
        names = needs if isinstance(needs, dict) else ()
        usable = all(any(exists(place / name) for place in places) for name in names)
    if version is None or not usable:
        return None
    bins = manifest.get("bin")
    if isinstance(bins, str):
        bins = {package.rpartition("/")[2]: bins}
    programs = bins.items() if isinstance(bins, dict) else ()
    by_name = {name: file for name, file in programs if isinstance(file, str)}
    try:
        modified = (folder / MANIFEST).stat().st_mtime_ns
        return CachedPackage(folder.resolve(), version, by_name, asked, hashed, modified)
    except OSError:
        return None


def _asked(manifest: Mapping[str, Any] | None, package: str) -> frozenset[str] | None:
    """Return the words for which npm installed this package: empty if only as a dependency, None if unknown."""
    if manifest is None:
        return None
    note = manifest.get("_npx")
    told = note.get("packages") if isinstance(note, dict) else None
    if isinstance(told, list):
        return frozenset(word for word in told if isinstance(word, str) and without_version(word) == package)
    needs = manifest.get("dependencies")
    return None if not isinstance(needs, dict) or package in needs else frozenset()


def without_version(words: str) -> str:
    """Return the package name without its version: `@scope/name@1` -> `@scope/name`."""
    return words[:1] + words[1:].partition("@")[0]


def program_file(copy: CachedPackage, bin_name: str) -> Path | None:
    """Return the real path of a bin, or None if it is missing, not a file, or outside its package."""
    told = copy.bins.get(bin_name, "")
    if not told or "\0" in told:
        return None
    try:
        path = Path(copy.folder, told).resolve(strict=True)
        inside = path.is_relative_to(copy.folder) and not Path(told).is_absolute()
        return path if inside and path.is_file() else None
    except (OSError, RuntimeError):  # RuntimeError: a circular link
        return None


def wants_node(program: Path) -> bool | None:
    """Return True if node runs that file, False if it is executable itself, None if neither or uncertain."""
    head = read_small(program, HEAD_BYTES, cut=True)
    if head is None:
        return None
    line = head.partition(b"\n")[0]
    if line.startswith(b"#!"):
        if _NODE_SHEBANG.fullmatch(line):
            return True
    elif program.suffix in (".js", ".mjs", ".cjs"):
        return True
    is_executable = program.suffix.lower() == ".exe" if sys.platform == "win32" else os.access(program, os.X_OK)
    return False if is_executable else None


def exists(path: Path) -> bool:
    """Return True if the path exists. A path that may not be read counts as existing."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True
    return True


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the object in a folder's package.json, or None if there is no valid one."""
    data = read_small(folder / MANIFEST, MANIFEST_LARGEST)
    try:
        manifest = orjson.loads(data or b"")
    except orjson.JSONDecodeError:
        return None
    return manifest if isinstance(manifest, dict) else None


def read_small(path: Path, limit: int, *, cut: bool = False) -> bytes | None:
    """Return a regular file's bytes; for one over `limit`, None, or its beginning with `cut`. Never block on a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError):
        return None
    try:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        data = os.read(descriptor, limit + 1) if regular else None
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return data if data is None or len(data) <= limit else data[:limit] if cut else None
