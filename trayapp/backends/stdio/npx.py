"""Start a server written as `npx PACKAGE` or `npm exec` without npm if npm's cache already has the package.

On any doubt the result is None, and the command runs as written. Functions block on small files; callers use a thread.
The layout of npm's cache is in npx_cache.

Decided: an exact version must be the cached one, and a range must contain it. No version takes what npx cached for the
package without a version. For a tag (`latest`), npm decides once a day; within that day the version it cached runs.
"""

from __future__ import annotations

import logging
import re
import shutil
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from trayapp.backends.stdio.npm_versions import Version, is_range, read_version, satisfies
from trayapp.backends.stdio.npx_cache import (
    TELLING_SETTINGS,
    CachedPackage,
    configured_folder,
    copies,
    exists,
    npmrc,
    npx_folder,
    program_file,
    read_manifest,
    read_small,
    user_settings,
    wants_node,
)
from trayapp.config.files import write_atomic
from trayapp.model.errors import StorageError

log = logging.getLogger(__name__)

TAG_FOR_S = 86_400.0  # npm resolves a tag once a day
TAGS_FILE = "npx-tags.json"  # {"PACKAGE@TAG": Unix seconds of npm's last decision}; never holds arguments
TAGS_LARGEST = 256 << 10  # bytes; an entry has about 40

_YES = ("-y", "--yes")
_NAME = r"[A-Za-z0-9~-][\w.~-]*"
_WORDS = re.compile(rf"(?P<package>(?:@{_NAME}/)?{_NAME})(?:@(?P<wanted>[^@]+))?", re.ASCII)
_TAG = re.compile(r"[A-Za-z][\w.~-]*", re.ASCII)
_DEFAULT_TAG = "latest"
_tags_change = threading.Lock()  # several servers may start at once, each in its own thread


@dataclass(frozen=True, slots=True)
class NpxRequest:
    """A use of npx. `words` is the package as written; `bin` the program named, or None for the package's default."""

    words: str
    package: str
    wanted: str | None  # after the `@`
    bin: str | None
    args: tuple[str, ...]

    @property
    def tag(self) -> str | None:
        """Return the tag as written, or None for a version or a range."""
        return None if self.wanted is None or is_range(self.wanted) else self.wanted

    def accepts(self, version: Version) -> bool:
        """Return True if that version may run. Which version a tag means is npm's decision."""
        if self.wanted is None or self.tag is not None:
            return True
        exact = read_version(self.wanted)
        return version == exact if exact else satisfies(version, self.wanted)


def resolve_npx(
    argv: tuple[str, ...], env: Mapping[str, str], cache_dir: Path | None, now: float, cwd: str | None = None
) -> tuple[str, ...] | None:
    """Return the command to run instead of `argv`, with an absolute program path, or None to run it as written.

    `env` and `cwd` are the server's. `cache_dir` is our own cache folder; without it no tag is ever resolved. `now` is
    in Unix seconds. Never raises because of the files on disk.
    """
    request = read_request(argv)
    if request is None:
        return None
    home = Path(env["HOME"]) if env.get("HOME") else Path.home()
    settings = user_settings(env, home)
    npx = npx_folder(settings, env, home)
    if npx is None or TELLING_SETTINGS & settings.keys():
        return None
    if _in_project(request, home, Path(cwd or ".")) or _installed(request, settings, env, home):
        return None
    if request.tag is not None and not _decided_today(request, cache_dir, now):
        return None
    copy = _best(request, npx)
    return argv_of(request, copy, env) if copy else None


def cached_version(request: NpxRequest, env: Mapping[str, str]) -> str | None:
    """Return the version that npx would take from its cache without asking npm, None without one."""
    if request.tag is not None:
        return None
    home = Path(env["HOME"]) if env.get("HOME") else Path.home()
    npx = npx_folder(user_settings(env, home), env, home)
    copy = _best(request, npx) if npx is not None else None
    return str((read_manifest(copy.folder) or {}).get("version")) if copy is not None else None


# -- the command line ------------------------------------------------------------------------------------------------


def read_request(argv: tuple[str, ...]) -> NpxRequest | None:
    """Return the package that an argv asks npx for; None for forms left to npm (other flags, files, git, aliases)."""
    if argv[:1] == ("npx",):
        return _after_flags(list(argv[1:]), ("-p", "--package"))
    if argv[:2] == ("npm", "exec"):
        rest = list(argv[2:])
        # Without `--`, npm takes flags from anywhere in the line. Its `-p` has another meaning.
        return _after_flags(rest, ("--package",)) if "--" in rest else None
    return None


def _after_flags(rest: list[str], package_flags: tuple[str, ...]) -> NpxRequest | None:
    package: str | None = None
    while rest and rest[0].startswith("-"):
        flag = rest.pop(0)
        if flag == "--":
            return _request(package, rest) if package else None
        if flag in _YES:
            continue
        name, equals, value = flag.partition("=")
        if package is not None or name not in package_flags or (equals and name == "-p"):
            return None
        package = value if equals else rest.pop(0) if rest else ""
        if not package:
            return None
    return _request(package, rest) if package_flags[0] == "-p" else None


def _request(package: str | None, rest: list[str]) -> NpxRequest | None:
    if not rest:
        return None
    found = _WORDS.fullmatch(package or rest[0])
    wanted = found["wanted"] if found else None
    if found is None or not (wanted is None or is_range(wanted) or _TAG.fullmatch(wanted)):
        return None
    return NpxRequest(found[0], found["package"], wanted, rest[0] if package else None, tuple(rest[1:]))


# -- where npm would run something else ------------------------------------------------------------------------------


def _in_project(request: NpxRequest, home: Path, cwd: Path) -> bool:
    """Return True if a project around the working folder has the package or its own settings."""
    try:
        folders = [cwd.resolve(), *cwd.resolve().parents]
    except (OSError, RuntimeError):
        return True
    command = request.bin or request.words
    if any(_has(folder / "node_modules", request.package, f".bin/{command}") for folder in folders):
        return True
    project = next((folder for folder in folders if _has(folder, "package.json", "node_modules")), None)
    if project is None:
        return False
    manifest = read_manifest(project) or {}
    bins = manifest.get("bin")
    if manifest.get("name") == request.package or (isinstance(bins, dict) and command in bins):
        return True
    own = {} if project == home.resolve() else npmrc(project / ".npmrc")
    return bool((TELLING_SETTINGS | {"cache"}) & own.keys())


def _installed(request: NpxRequest, settings: Mapping[str, str], env: Mapping[str, str], home: Path) -> bool:
    """Return True if the package or a program of its name is, or may be, installed globally. `-p` ignores those."""
    if request.bin is not None:
        return False
    places = (f"lib/node_modules/{request.package}", f"node_modules/{request.package}", f"bin/{request.words}")
    if settings.get("prefix"):
        prefix = configured_folder(settings["prefix"], home)
        return prefix is None or _has(prefix, *places)
    if sys.platform == "win32":
        return _has(Path(env.get("APPDATA", home), "npm"), *places)
    node = shutil.which("node", path=env.get("PATH"))
    programs = {Path(node), Path(node).resolve()} if node else set()
    return any(_has(program.parent.parent, *places) for program in programs)


def _has(folder: Path, *names: str) -> bool:
    return any(exists(folder / name) for name in names)


# -- tags ------------------------------------------------------------------------------------------------------------


def _decided_today(request: NpxRequest, cache_dir: Path | None, now: float) -> bool:
    """Return True if npm resolved the tag within the last day. If not, npm is about to: record the time."""
    if cache_dir is None:
        return False
    path = cache_dir / TAGS_FILE
    with _tags_change:
        try:
            told = orjson.loads(read_small(path, TAGS_LARGEST) or b"{}")
        except orjson.JSONDecodeError:
            told = None
        pairs = told.items() if isinstance(told, dict) else ()
        known = {words: float(at) for words, at in pairs if isinstance(at, int | float)}
        fresh = {words: at for words, at in known.items() if 0 <= now - at < TAG_FOR_S}
        if request.words in fresh:
            return True
        try:
            write_atomic(path, orjson.dumps({**fresh, request.words: now}))
        except StorageError as error:
            log.info("Cannot save what npm answered, so npm is asked again: %s", error)
    return False


# -- the package -----------------------------------------------------------------------------------------------------


def _best(request: NpxRequest, npx: Path) -> CachedPackage | None:
    """Return the copy that npx would use: the one made for these words, or else the newest that may run, or None."""
    best: tuple[tuple[int, object, int], CachedPackage] | None = None
    for copy in copies(npx, request.package, request.words):
        fit = _fit(request, copy)
        if fit is None or not request.accepts(copy.version):
            continue
        if copy.hashed:
            return copy
        rank = (fit, copy.version.key, copy.modified_ns)
        if best is None or rank > best[0]:
            best = rank, copy
    return best[1] if best else None


def _fit(request: NpxRequest, copy: CachedPackage) -> int | None:
    """Return how well the words for which the copy was made match the request, or None if npm would make a new copy."""
    if copy.hashed or copy.asked is None:
        return 2 if copy.hashed else 0
    if request.words in copy.asked:
        return 2
    if request.wanted is None or request.tag is not None:
        same = {request.package, f"{request.package}@{_DEFAULT_TAG}"}
        return 1 if request.words in same and same & copy.asked else None
    return 1


def argv_of(request: NpxRequest, copy: CachedPackage, env: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the command that runs that copy without npm, or None if the copy has no such program."""
    name = request.bin
    if not name:  # the only program, or the one named like the package without its scope
        own, bins = request.package.rpartition("/")[2], copy.bins
        name = next(iter(bins)) if len(set(bins.values())) == 1 else own if own in bins else None
    program = program_file(copy, name) if name else None
    by_node = wants_node(program) if program else None
    if program is None or by_node is None:
        return None
    if not by_node:
        return (str(program), *request.args)
    node = shutil.which("node", path=env.get("PATH"))
    return (str(Path(node).absolute()), str(program), *request.args) if node else None
