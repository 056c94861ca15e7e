"""A project's own servers file, and the programs inside the project that its servers' commands name.

The file is found from a session's folder, and read once, so that the hash and the parser get equal bytes. The
programs are approved together with it: a git pull can change `./run.sh` and leave the file that runs it unchanged.
The files that such a program loads are not followed.

trust decides if the file may be used, overlay decides what it changes.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath
from typing import NamedTuple

from trayapp.config.files import read_bytes
from trayapp.config.interpolate import expand
from trayapp.config.problems import InvalidValueError, UnparsableError
from trayapp.config.programs import script_of
from trayapp.config.read.command import is_relative
from trayapp.config.read.parse import read_top, server_pairs
from trayapp.config.read.spelling import field_of
from trayapp.config.read.text import MAX_BYTES, decode, without_comments
from trayapp.config.yaml.nodes import Mapping, Node, Pair, Scalar, Sequence, follow, pairs
from trayapp.model.late import late

PROJECT_FILES = (".multi-mcp.yaml", ".mcp.json")  # the first one in a folder counts
MOST = 1000  # paths that are examined for one server
LARGEST = 64_000_000  # bytes that are read of one file; for a larger one, size and time count
_SEPARATORS = late(r"[\s;&|<>()'\"`,]+")
_CODE = late(
    r".*\.(?:pyz?|[cm]?[jt]sx?|sh|bash|zsh|fish|rb|php|pl|jar|dll|so|dylib|wasm|lua|ps1|bat|cmd|exe|env(?:\.\w+)?)"
    r"|.*requirements[\w.-]*\.txt",
    re.IGNORECASE,
)
_MANIFESTS = {  # files in which a program looks up what to run
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun", "bunx"), ("package.json",)),
    "node": ("package.json", "index.js"),
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile"),
    "deno": ("deno.json", "deno.jsonc"),
    "task": ("Taskfile.yml",),
    "docker": ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml", "Dockerfile"),
    "uv": ("pyproject.toml",),
    "cargo": ("Cargo.toml",),
    "go": ("go.mod",),
}
_HERE = frozenset((".", "./", "..", "../"))
_ONLY_WITH = {  # these run a project's files only with one of these words
    **dict.fromkeys(("npx", "bunx", "node"), _HERE),
    "docker": frozenset(("compose", "build")),
}


class ProjectFile(NamedTuple):
    """Content of a project's file at one moment."""

    path: Path  # with its folder resolved, so that each folder has only one name
    data: bytes
    scripts: tuple[Script, ...] = ()  # programs inside the project that its servers run
    watched: tuple[Path, ...] = ()  # where these files are or would be

    @property
    def folder(self) -> Path:
        """Return the project's folder."""
        return self.path.parent

    @property
    def digest(self) -> str:
        """Return the hash of the exact bytes and of the programs that they name. Any change of content changes it."""
        whole = hashlib.sha256(self.data)
        for script in self.scripts:
            whole.update(f"\0{script.name}\0{script.digest}".encode("utf-8", "surrogateescape"))
        return f"sha256:{whole.hexdigest()}"

    def text(self) -> str:
        """Return the text for the parser. JSON loses its comments; lines and columns stay. Raises UnparsableError."""
        text = decode(self.data, str(self.path))
        return without_comments(text) if self.path.suffix == ".json" else text


def find_project(folder: Path, home: Path) -> Path | None:
    """Return the file that applies to a session in `folder`: the nearest, up to and including home, or the root.

    A folder that is not absolute has none. Blocks: each check is a stat.
    """
    if not folder.is_absolute():
        return None
    try:
        start, last = folder.resolve(), home.resolve()
    except (OSError, ValueError, RuntimeError):  # unreadable, not a path, or a link that leads back to itself
        return None
    for place in (start, *start.parents):
        found = project_file_in(place)
        if found is not None or place == last:
            return found
    return None


def project_file_in(folder: Path) -> Path | None:
    """Return the file of exactly that folder, or None."""
    for name in PROJECT_FILES:
        with suppress(OSError, ValueError):
            if (path := folder / name).is_file():
                return path
    return None


def read_project(path: Path) -> ProjectFile | None:
    """Return the current file with the programs that it names, or None if it is gone. Blocks. Raises StorageError."""
    data = read_bytes(path, MAX_BYTES)
    if data is None:
        return None
    file = ProjectFile(path.parent.resolve() / path.name, data)
    try:
        entries = server_pairs(read_top(file.text(), str(path)), str(path))
    except UnparsableError:
        return file  # it starts nothing
    watched = {name: watched_paths(entry, file.folder) for name, entry in entries.items()}
    found = {
        each: read_script(name, each, file.folder, run=run)
        for name, paths in watched.items()
        for each, run in paths.items()
    }
    scripts = sorted((script for script in found.values() if script), key=lambda script: script.name)
    return file._replace(scripts=tuple(scripts), watched=tuple(found))


class Script(NamedTuple):
    """One program. `name`: relative to the project's folder; `digest`: of its content."""

    server: str
    name: str
    digest: str


def watched_paths(entry: Pair, folder: Path) -> dict[Path, bool]:
    """Return the paths in a project that one server's entry may run, existing or not; a bounded number. Blocks.

    The value is True if an interpreter runs the file, whatever its name.
    """
    words, cwd = _words(entry)
    bases = dict.fromkeys((folder, Path(folder, cwd)) if cwd and not cwd.startswith("~") else (folder,))
    found: dict[Path, bool] = {}
    for base in bases:

        def is_file(part: str, base: Path = base) -> bool:
            path = _in_project(part, base, folder)
            try:
                return path is not None and path.is_file()
            except OSError:
                return False

        run = script_of(_pieces(words), is_file)
        if run is not None and (path := _in_project(run, base, folder)) is not None:
            found[path] = True
        for part in _named(words):
            path = _in_project(part, base, folder)
            if path is not None and len(found) < MOST:
                found.setdefault(path, False)
    return found


def read_script(server: str, path: Path, folder: Path, *, run: bool) -> Script | None:
    """Return the program at a path, or None if nothing is there, or only data. Blocks.

    `run`: an interpreter runs it, whatever its name.
    """
    try:
        facts = path.stat()
        program = run or bool(_CODE.fullmatch(path.name)) or path.name in _ALL_MANIFESTS
        if not path.is_file() or not (program or (os.name != "nt" and facts.st_mode & 0o111)):
            return None
        content = path.read_bytes() if facts.st_size <= LARGEST else f"{facts.st_size} {facts.st_mtime_ns}".encode()
    except (OSError, ValueError):
        return None
    name = os.path.relpath(path, folder)
    return Script(server, name, hashlib.sha256(content).hexdigest())


_ALL_MANIFESTS = frozenset(name for names in _MANIFESTS.values() for name in names)


def _words(entry: Pair) -> tuple[list[str], str]:
    """Return the words of an entry that may name a program, the command's first, and its cwd."""
    found: dict[str, list[str]] = {}
    try:
        members = pairs(entry.value) if isinstance(entry.value, Mapping) else []
    except InvalidValueError:
        members = []
    for pair in members:
        found.setdefault(field_of(pair.name), []).extend(_texts(pair.value))
    cwd = next(iter(found.get("cwd", [])), "")
    return [word for field in ("command", "args", "env") for word in found.get(field, [])], _expanded(cwd)


def _texts(node: Node) -> Iterator[str]:
    node = follow(node)
    if isinstance(node, Scalar):
        yield _expanded(node.text)
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from _texts(item)
    elif isinstance(node, Mapping):
        for _, value in node.pairs:
            yield from _texts(value)


def _expanded(text: str) -> str:
    """Return the text with its variables' defaults: `${X:-./run.sh}` names a program, too."""
    return expand(text, lambda name: None, lambda name: None).text


def _named(words: list[str]) -> Iterator[str]:
    """Yield the paths that these words may mean."""
    pieces = _pieces(words)
    for piece in pieces:
        yield from {piece, piece.rpartition("=")[2]}
    for before, module in itertools.pairwise(pieces):
        if before == "-m" and re.fullmatch(r"[\w.]+", module):
            way = module.replace(".", "/")
            yield from (f"{way}{end}" for end in (".py", "/__main__.py", "/__init__.py"))
    programs = {PurePath(piece).name.removesuffix(".exe").removesuffix(".cmd") for piece in pieces}
    for program in programs & _MANIFESTS.keys():
        if program not in _ONLY_WITH or not _ONLY_WITH[program].isdisjoint(pieces):
            yield from _MANIFESTS[program]


def _pieces(words: list[str]) -> list[str]:
    return [piece for word in words for piece in dict.fromkeys((word, *_SEPARATORS.split(word))) if piece]


def _in_project(part: str, base: Path, folder: Path) -> Path | None:
    """Return the path in a part of a command if it may have come with the project: relative, or inside its folder."""
    if not part or "\0" in part or part.startswith("~"):
        return None
    if is_relative(part):
        return Path(os.path.normpath(base / part))
    path = Path(os.path.realpath(part))
    return path if path.is_relative_to(folder) else None
