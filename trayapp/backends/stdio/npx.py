"""Find the command that runs `npx PACKAGE` or `npm exec` without npm, if npm's cache already has the package.

In case of doubt the result is None, and the command runs as written. Functions block on files; callers use a thread.

The cached version must be exactly the requested version, or in the requested range. A request without a version runs
what npx cached for such a request. For a tag (`latest`), npm decides once a day which version to cache.

Only a bounded number of small regular files in npm's cache is read. Source: npm's libnpmexec (folder `_npx/HASH`, the
hash of the requested packages; `_npx.packages` in its package.json).
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import stat
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import orjson

from trayapp.backends.stdio.npm_versions import Version, is_range, read_version, satisfies
from trayapp.config.files import write_atomic
from trayapp.config.read.command import OptionTable, UncertainError, options
from trayapp.model.errors import StorageError
from trayapp.model.late import late

log = logging.getLogger(__name__)

TAG_FOR_S = 86_400.0  # npm resolves a tag once a day
TAGS_FILE = "npx-tags.json"  # {"PACKAGE@TAG": Unix seconds when npm last resolved it}; never holds arguments
TAGS_LARGEST = 256 << 10  # limit in bytes; an entry has about 40

_NAME = r"[A-Za-z0-9~-][\w.~-]*"
_WORDS = re.compile(rf"(?P<package>(?:@{_NAME}/)?{_NAME})(?:@(?P<wanted>[^@]+))?", re.ASCII)
_TAG = re.compile(r"[A-Za-z][\w.~-]*", re.ASCII)
_tags_change = threading.Lock()  # several servers may start at the same time, each in its own thread


@dataclass(frozen=True, slots=True)
class NpxRequest:
    """A request to npx. `words`: the package as written. `bin`: the named program, or None for the package's default.

    `beside`: further packages, as written. `passed`: the options that decide which release npm takes. `plain`: True
    if it has no further packages, and no options other than `-p` and `-y`.
    """

    words: str
    package: str
    wanted: str | None  # the version, range or tag after the `@`
    bin: str | None
    args: tuple[str, ...]
    beside: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    plain: bool = True

    @property
    def tag(self) -> str | None:
        """Return the tag as written, or None for a version or a range."""
        return None if self.wanted is None or is_range(self.wanted) else self.wanted

    def accepts(self, version: Version) -> bool:
        """Return True if `version` may run. For a tag or a plain name, any version may: npm decided which to cache."""
        if self.wanted is None or self.tag is not None:
            return True
        exact = read_version(self.wanted)
        return version == exact if exact else satisfies(version, self.wanted)


def resolve_npx(
    argv: tuple[str, ...], env: Mapping[str, str], cache_dir: Path | None, now: float, cwd: str | None = None
) -> tuple[str, ...] | None:
    """Return the command to run instead of `argv`, with an absolute program path, or None to run it as written.

    `env` and `cwd` are the server's. `cache_dir` is our own cache folder; without it, a request with a tag always runs
    as written. `now` is in Unix seconds. Missing or invalid files on disk never cause an exception.
    """
    try:
        request = read_request(argv)
    except UncertainError:
        return None
    if request is None or not request.plain:
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
    """Return the version that npx would run from its cache without asking npm, or None."""
    if request.tag is not None or request.beside or request.passed:
        return None
    home = Path(env["HOME"]) if env.get("HOME") else Path.home()
    npx = npx_folder(user_settings(env, home), env, home)
    copy = _best(request, npx) if npx is not None else None
    return str(read_manifest(copy.folder).get("version")) if copy is not None else None


# -- the command line ------------------------------------------------------------------------------------------------


# The options of npx and npm exec that are known here (sources: npm's definitions.js and npx-cli.js). An option that is
# not listed may take the next word, or change what runs. These change nothing about a package:
_QUIET = options("""
    -y --yes -q --quiet -s --silent --verbose -d -dd -ddd --prefer-offline --progress --no-progress --no-color --audit
    --no-audit --fund --no-fund --update-notifier --no-update-notifier --timing --unicode --no-unicode
""")
_QUIET_VALUES = options("""
    --loglevel --logs-dir --logs-max --maxsockets --fetch-retries --fetch-retry-factor --fetch-retry-mintimeout
    --fetch-retry-maxtimeout --fetch-timeout
""")
# These decide which release is taken and from where, so npm gets them for the lock, too:
_PASSED = options("""
    --prefer-online --offline --force -f --legacy-peer-deps --strict-peer-deps --ignore-scripts --strict-ssl
    --no-strict-ssl
""")
_PASSED_VALUES = options("--registry --reg --before --min-release-age --omit --include --https-proxy --noproxy")
_PASSED_PATHS = options("--cache --userconfig --globalconfig --cafile")
_LOCAL_ONLY = options("-n --no --no-yes --no-install")  # with one of these, npm installs nothing
_PACKAGE = options("-p --package")
_MISSING = late("[<{]")  # in a package name: a variable, or a placeholder that the user has to replace
_PLAIN = options("-y --yes -p --package --")
_NPX = OptionTable(
    _QUIET | _PASSED | _LOCAL_ONLY,
    _QUIET_VALUES | _PASSED_VALUES | _PASSED_PATHS | _PACKAGE,
    named=r"--@[\w.-]+:registry",
    joins=False,
)
_NPM = replace(_NPX, values=_NPX.values - {"-p"})  # npm's `-p` has another meaning


def read_request(argv: tuple[str, ...]) -> NpxRequest | None:
    """Return the request of a command line of npx or npm exec, or None if it names no package.

    Raises UncertainError if the words do not show what runs.
    """
    if argv[:1] == ("npx",):
        found, rest = _NPX.read(argv[1:])
        before = argv[1 : len(argv) - len(rest)]
        return _request(before, found, rest, plain="--" not in before or bool(_PACKAGE & {name for name, _ in found}))
    if argv[:1] == ("npm",):
        return _read_npm(argv[1:])
    return None


def _read_npm(words: tuple[str, ...]) -> NpxRequest | None:
    """Return the request made by the words after `npm`, or None if they are not `exec` or name no package.

    npm accepts options anywhere before a `--`. Raises UncertainError.
    """
    end = words.index("--") if "--" in words else len(words)
    head, rest, found = words[:end], words[:end], list[tuple[str, str]]()
    names: tuple[str, ...] = ()
    try:
        while rest:
            more, rest = _NPM.read(rest)
            found, names, rest = [*found, *more], (*names, *rest[:1]), rest[1:]
    except UncertainError:
        if "exec" not in head and head[:1] != ("x",):
            return None
        raise
    if names[:1] not in (("exec",), ("x",)):
        return None
    plain = words[:1] == ("exec",) and end < len(words) and len(names) == 1 and "--package" in dict(found)
    return _request(head, found, (*names[1:], *words[end + 1 :]), plain=plain)


def _request(
    before: tuple[str, ...], found: list[tuple[str, str]], rest: tuple[str, ...], *, plain: bool
) -> NpxRequest | None:
    """Return the request made by the options (`found`) and the words after them (`rest`), or None if it has no package.

    `before`: the words that contained the options. Raises UncertainError.
    """
    for name, value in found:
        if name in _LOCAL_ONLY or (name in ("-y", "--yes") and value not in ("", "true")):
            raise UncertainError(f"the copy that is installed here ({name})", is_local=True)
        relative = name in _PASSED_PATHS and not value.startswith("~/") and not Path(value).is_absolute()
        if relative or value.startswith("-") or (name in _NPX.values and not value):
            raise UncertainError(f"the value {value} of {name}" if value else f"{name} without a value")
    words_of_options = pairwise((*before, *rest[:1]))
    follows = next((flag for flag, word in words_of_options if flag[:1] == "-" and word in ("true", "false")), None)
    if follows is not None:
        raise UncertainError(f"a value of {follows}")
    packages = [value for name, value in found if name in _PACKAGE]
    if not rest:
        return None
    for words in packages or rest[:1]:
        if package_of(words) is not None:
            continue
        if re.match(r"[.~/]|[^@]*[:/]|@[^/]*/[^/]*/", words):
            raise UncertainError("a folder or an address", is_local=True)
        if _MISSING.search(words):
            return None
        raise UncertainError(f"the package name {words}")
    words, *beside = packages or rest[:1]
    package, wanted = package_of(words) or ("", None)
    kept = _QUIET | _QUIET_VALUES | _PACKAGE
    passed = tuple(f"{name}={value}" if value else name for name, value in found if name not in kept)
    plain = (
        plain and all(word[:1] != "-" or word in _PLAIN or word[:10] == "--package=" for word in before) and not beside
    )
    return NpxRequest(
        words, package, wanted, rest[0] if packages else None, rest[1:], tuple(beside), passed, plain=plain
    )


def package_of(words: str) -> tuple[str, str | None] | None:
    """Return a registry package's name, and its version, range or tag (or None). Return None for any other words."""
    found = _WORDS.fullmatch(words)
    wanted = found["wanted"] if found else None
    if found is None or not (wanted is None or is_range(wanted) or _TAG.fullmatch(wanted)):
        return None
    return found["package"], wanted


# -- where npm would run something else ------------------------------------------------------------------------------


def _in_project(request: NpxRequest, home: Path, cwd: Path) -> bool:
    """Return True if a project around the working folder has the package, or settings that change what runs."""
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
    manifest = read_manifest(project)
    if manifest.get("name") == request.package or command in _object(manifest.get("bin")):
        return True
    own = {} if project == home.resolve() else npmrc(project / ".npmrc")
    return bool((TELLING_SETTINGS | {"cache"}) & own.keys())


def _installed(request: NpxRequest, settings: Mapping[str, str], env: Mapping[str, str], home: Path) -> bool:
    """Return True if the package or a program with its name may be installed globally. With `-p`, return False."""
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


def _decided_today(request: NpxRequest, cache_dir: Path | None, now: float) -> bool:
    """Return True if npm resolved the tag within the last day. If not, record that npm resolves it now."""
    if cache_dir is None:
        return False
    path = cache_dir / TAGS_FILE
    with _tags_change:
        pairs = _object_in(read_small(path, TAGS_LARGEST)).items()
        fresh = {words: at for words, at in pairs if isinstance(at, int | float) and 0 <= now - at < TAG_FOR_S}
        if request.words in fresh:
            return True
        try:
            write_atomic(path, orjson.dumps({**fresh, request.words: now}))
        except StorageError as error:
            log.info("Cannot record when npm resolves a tag, so it will do so again: %s", error)
    return False


# -- the package -----------------------------------------------------------------------------------------------------


def _best(request: NpxRequest, npx: Path) -> CachedPackage | None:
    """Return the copy that npx would use: one cached for exactly these words, or else the best that fits, or None."""
    best: tuple[tuple[int, object, int], CachedPackage] | None = None
    for copy in _copies(npx, request):
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
    """Return how well (0 to 2) a copy fits the words of the request, or None if npm would cache a new one."""
    if copy.hashed:
        return 2
    if copy.asked is None:
        return 0
    if request.words in copy.asked:
        return 2
    same = {request.package, f"{request.package}@latest"}
    if (request.wanted is None or request.tag is not None) and not (request.words in same and same & copy.asked):
        return None
    return 1


def argv_of(request: NpxRequest, copy: CachedPackage, env: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the command that runs that copy without npm, or None if the program is unusable or node is missing."""
    name = request.bin
    if not name:  # the only program, or the one named like the package without its scope
        is_only = len(set(copy.bins.values())) == 1
        name = next(iter(copy.bins)) if is_only else request.package.rpartition("/")[2]
    program = program_file(copy, name)
    by_node = wants_node(program) if program else None
    if program is None or by_node is None:
        return None
    if not by_node:
        return (str(program), *request.args)
    node = shutil.which("node", path=env.get("PATH"))
    return (str(Path(node).absolute()), str(program), *request.args) if node else None


MANIFEST_LARGEST = 1 << 20  # limit in bytes; real files have up to about 100 kB
NPMRC_LARGEST = 64 << 10
ENTRIES_MOST = 1000  # the most folders in `_npx` that are read
HEAD_BYTES = 256  # bytes read of a program: the kernel's limit for a shebang
MANIFEST = "package.json"

# npm settings, from a project or a shell, that make npm run something else, or run the package differently.
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


def npmrc(path: Path) -> dict[str, str]:
    """Return the plain `name=value` lines of an npmrc, or {} if it is missing or cannot be read."""
    text = (read_small(path, NPMRC_LARGEST) or b"").decode(errors="replace")
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and line.strip()[:1] not in "#;")
    return {name.strip().replace("-", "_"): value.strip().strip("\"'") for name, _, value in pairs}


def user_settings(env: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return npm's settings for a process: the user's npmrc, overridden by `npm_config_NAME` variables (any case)."""
    own = {k.lower().replace("-", "_"): v for k, v in env.items() if k.lower().startswith("npm_config_")}
    variables = {name.removeprefix("npm_config_"): value for name, value in own.items()}
    user_file = variables.get("userconfig")
    return {**npmrc(Path(user_file) if user_file else home / ".npmrc"), **variables}


def npx_folder(settings: Mapping[str, str], env: Mapping[str, str], home: Path) -> Path | None:
    """Return the folder in which npx keeps packages, or None if it is uncertain."""
    if not (told := settings.get("cache")):
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


def _copies(npx: Path, request: NpxRequest) -> Iterator[CachedPackage]:
    """Yield the usable copies of a package, first the one for the exact words of the request.

    Read the rest of the folder only after that, because the first copy is usually enough.
    """
    first = npx / entry_name(request.words)
    if (copy := copy_in(first, request.package, hashed=True)) is not None:
        yield copy
    with suppress(OSError):
        for entry in islice(npx.iterdir(), ENTRIES_MOST):
            if entry != first and (copy := copy_in(entry, request.package, hashed=False)) is not None:
                yield copy


def copy_in(entry: Path, package: str, *, hashed: bool) -> CachedPackage | None:
    """Return the package that was installed in a folder, or None if it is unusable."""
    folder = entry / "node_modules" / package
    manifest = read_manifest(folder)
    if not manifest or manifest.get("name", package) != package or exists(entry / "concurrency.lock"):
        return None
    version = read_version(str(manifest.get("version")))
    own = read_manifest(entry)
    asked = _asked(own, package)
    usable = asked != frozenset()
    if not own:  # npm writes this file last, so the installation may be unfinished: check the dependencies
        places = (entry / "node_modules", folder / "node_modules")
        names = _object(manifest.get("dependencies"))
        usable = all(any(exists(place / name) for place in places) for name in names)
    if version is None or not usable:
        return None
    bins = manifest.get("bin")
    programs = {package.rpartition("/")[2]: bins} if isinstance(bins, str) else _object(bins)
    by_name = {name: file for name, file in programs.items() if isinstance(file, str)}
    try:
        modified = (folder / MANIFEST).stat().st_mtime_ns
        return CachedPackage(folder.resolve(), version, by_name, asked, hashed, modified)
    except OSError:
        return None


def _asked(manifest: Mapping[str, Any], package: str) -> frozenset[str] | None:
    """Return the words for which npm installed this package: empty if only as a dependency, None if unknown."""
    told = _object(manifest.get("_npx")).get("packages")
    if isinstance(told, list):
        words = (word for word in told if isinstance(word, str))
        return frozenset(word for word in words if word[:1] + word[1:].partition("@")[0] == package)
    needs = manifest.get("dependencies")
    return None if not isinstance(needs, dict) or package in needs else frozenset()


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


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the object in a folder's package.json, or {} if there is no valid one."""
    return _object_in(read_small(folder / MANIFEST, MANIFEST_LARGEST))


def _object_in(data: bytes | None) -> dict[str, Any]:
    try:
        return _object(orjson.loads(data or b"{}"))
    except orjson.JSONDecodeError:
        return {}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def read_small(path: Path, limit: int, *, cut: bool = False) -> bytes | None:
    """Return the bytes of a regular file, or None if it cannot be read. Never block on a pipe.

    For a file over `limit` bytes, return None, or with `cut` its first `limit` bytes.
    """
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
    if data is not None and len(data) > limit:
        return data[:limit] if cut else None
    return data
