"""A project's own servers file, the programs in the project that its commands name, and the user's approval of both.

The servers file of a cloned repository can start programs. Using it requires a `TrustedFile`, which only TrustStore
creates. The file is read once, so that the hash and the parser get the same bytes. Approval also covers the programs,
since a git pull may change only `./run.sh`. It does not cover the files that such a program loads.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from trayapp.config.files import FILE_MODE, locked, read_bytes, write_atomic
from trayapp.config.interpolate import expand, secret_commands
from trayapp.config.problems import InvalidValueError, UnparsableError
from trayapp.config.programs import program_of, script_of
from trayapp.config.read.command import is_relative
from trayapp.config.read.fields import field_of
from trayapp.config.read.parse import read_top, server_pairs
from trayapp.config.read.text import MAX_BYTES, decode, without_comments
from trayapp.config.yaml.nodes import Mapping, Node, Pair, Scalar, Sequence, follow, pairs
from trayapp.model.config import ServerConfig
from trayapp.model.errors import Problem, StorageError
from trayapp.model.late import late

PROJECT_FILES = (".multi-mcp.yaml", ".mcp.json")  # only the first that exists in a folder counts
MOST = 1000  # the most paths that are examined for one server
LARGEST = 64_000_000  # bytes; for a larger file, only its size and modification time are hashed
_SEPARATORS = late(r"[\s;&|<>()'\"`,]+")
_CODE = late(
    r".*\.(?:pyz?|[cm]?[jt]sx?|sh|bash|zsh|fish|rb|php|pl|jar|dll|so|dylib|wasm|lua|ps1|bat|cmd|exe|env(?:\.\w+)?)"
    r"|.*requirements[\w.-]*\.txt",
    re.IGNORECASE,
)
_MANIFESTS = {  # program -> files that define the commands it runs
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
_ONLY_WITH = {  # program -> arguments, at least one of which makes it run a project's files
    **dict.fromkeys(("npx", "bunx", "node"), frozenset((".", "./", "..", "../"))),
    "docker": frozenset(("compose", "build")),
}


class ProjectFile(NamedTuple):
    """The content of a project's file at the time of reading."""

    path: Path  # its folder is resolved, so each folder has only one name
    data: bytes
    scripts: tuple[Script, ...] = ()  # programs inside the project that its servers run
    watched: tuple[Path, ...] = ()  # paths where such a program is, or may appear

    @property
    def folder(self) -> Path:
        return self.path.parent

    @property
    def digest(self) -> str:
        """Return a hash of the file's exact bytes and of the scripts. Any change of these changes the hash."""
        whole = hashlib.sha256(self.data)
        for script in self.scripts:
            whole.update(f"\0{script.name}\0{script.digest}".encode("utf-8", "surrogateescape"))
        return f"sha256:{whole.hexdigest()}"

    def text(self) -> str:
        """Return the text for the parser, with comments in JSON replaced by blanks. Raises UnparsableError."""
        text = decode(self.data, str(self.path))
        return without_comments(text) if self.path.suffix == ".json" else text


def find_project(folder: Path, home: Path) -> Path | None:
    """Return the project file for a session in `folder`: the nearest one there or above, up to `home` or the root.

    Return None if there is none, or if the folder is relative or unreadable. Blocks.
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
    """Return the project file in exactly that folder, or None if it has none."""
    for name in PROJECT_FILES:
        with suppress(OSError, ValueError):
            if (path := folder / name).is_file():
                return path
    return None


def read_project(path: Path) -> ProjectFile | None:
    """Return the file's content and the programs that it names; None if it is gone. Blocks. Raises StorageError."""
    data = read_bytes(path, MAX_BYTES)
    if data is None:
        return None
    file = ProjectFile(path.parent.resolve() / path.name, data)
    try:
        entries = server_pairs(read_top(file.text(), str(path)), str(path))
    except UnparsableError:
        return file  # an unparsable file defines no servers, so it runs no scripts
    found: dict[Path, Script | None] = {}
    for name, entry in entries.items():
        for each, run in watched_paths(entry, file.folder).items():
            found[each] = read_script(name, each, file.folder, run=run)
    scripts = sorted((script for script in found.values() if script), key=lambda script: script.name)
    return file._replace(scripts=tuple(scripts), watched=tuple(found))


class Script(NamedTuple):
    """A program in the project."""

    server: str  # the name of a server that runs it
    name: str  # its path relative to the project's folder
    digest: str  # the hash of its content


def watched_paths(entry: Pair, folder: Path) -> dict[Path, bool]:
    """Return the paths in a project that one server's entry may run, whether or not they exist. Blocks.

    The value of a path is True if an interpreter runs the file, whatever its name. There are at most about MOST paths.
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
    """Return the program at a path, or None if there is no readable program. Blocks.

    With `run`, an interpreter runs the file, so it counts as a program whatever its name and mode.
    """
    try:
        facts = path.stat()
        program = run or bool(_CODE.fullmatch(path.name)) or any(path.name in names for names in _MANIFESTS.values())
        if not path.is_file() or not (program or (os.name != "nt" and facts.st_mode & 0o111)):
            return None
        content = path.read_bytes() if facts.st_size <= LARGEST else f"{facts.st_size} {facts.st_mtime_ns}".encode()
    except (OSError, ValueError):
        return None
    name = os.path.relpath(path, folder)
    return Script(server, name, hashlib.sha256(content).hexdigest())


def _words(entry: Pair) -> tuple[list[str], str]:
    """Return the words of an entry that may name a program, beginning with its command, and its cwd ("" for none)."""
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
    """Return the text with variables replaced by their defaults, because `${X:-./run.sh}` also names a program."""
    return expand(text, lambda name: None, lambda name: None).text


def _named(words: list[str]) -> Iterator[str]:
    """Yield the paths that these words may name, and the manifest files of the programs that they name."""
    pieces = _pieces(words)
    for piece in pieces:
        yield from {piece, piece.rpartition("=")[2]}
    for before, module in itertools.pairwise(pieces):
        if before == "-m" and re.fullmatch(r"[\w.]+", module):
            way = module.replace(".", "/")
            yield from (f"{way}{end}" for end in (".py", "/__main__.py", "/__init__.py"))
    programs = set(map(program_of, pieces))
    for program in programs & _MANIFESTS.keys():
        if program not in _ONLY_WITH or not _ONLY_WITH[program].isdisjoint(pieces):
            yield from _MANIFESTS[program]


def _pieces(words: list[str]) -> list[str]:
    return [piece for word in words for piece in dict.fromkeys((word, *_SEPARATORS.split(word))) if piece]


def _in_project(part: str, base: Path, folder: Path) -> Path | None:
    """Return the absolute path that a part of a command names, if it is relative or inside the project's folder.

    Otherwise return None, because the file does not belong to the project.
    """
    if not part or "\0" in part or part.startswith("~"):
        return None
    if is_relative(part):
        return Path(os.path.normpath(base / part))
    path = Path(os.path.realpath(part))
    return path if path.is_relative_to(folder) else None


log = logging.getLogger(__name__)

TRUST_NAME = "trusted.json"  # beside servers.yaml
VERSION = 1


class TrustedFile(NamedTuple):
    """A project's file whose exact content was approved. Created only by TrustStore.check."""

    file: ProjectFile


class TrustStore:
    """The user's approvals of projects' files and of commands, stored in the file at `path`.

    The file contains {"version": 1, "trusted": {path of a project's file: digest}, "commands": [...]}. `commands` are
    the approved commands for secrets (`${cmd:...}`), verbatim. If the file cannot be read, no project is trusted and no
    command is approved.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._told = ""

    def check(self, file: ProjectFile) -> TrustedFile | None:
        """Return the file as a TrustedFile, or None if its content is not approved. Blocks."""
        try:
            known = self._trusted(self._content())
        except StorageError as error:
            if str(error) != self._told:  # log it only once, since this is called often
                self._told = str(error)
                log.warning("No project is trusted: %s", error)
            return None
        return TrustedFile(file) if known.get(str(file.path)) == file.digest else None

    def approve(self, file: ProjectFile) -> bool:
        """Trust this content of the file. Return True if it was not trusted before. Blocks. Raises StorageError."""
        return self._change(str(file.path), file.digest)

    def revoke(self, path: Path) -> bool:
        """Stop trusting that file. Return True if it was trusted with any content. Blocks. Raises StorageError."""
        return self._change(str(path), None)

    def paths(self) -> list[Path]:
        """Return the paths of the project files that are trusted with some content. Blocks. Raises StorageError."""
        return [Path(path) for path in self._trusted(self._content())]

    def is_approved(self, command: str) -> bool:
        """Return True if the user approved exactly this command; False if the file cannot be read. Blocks."""
        try:
            return command in self._commands(self._content())
        except StorageError as error:
            log.warning("No command is approved: %s", error)
            return False

    def unapproved(self, servers: Iterable[ServerConfig]) -> dict[str, list[str]]:
        """Return the commands for secrets that the user has not approved, by server name. Blocks."""
        found: dict[str, list[str]] = {}
        for server in servers:
            if commands := [one for one in secret_commands(server) if not self.is_approved(one)]:
                found[server.name] = commands
        return found

    def approve_commands(self, commands: Iterable[str]) -> None:
        """Approve exactly these commands. Blocks. Raises StorageError."""
        with locked(self.path):
            content = self._content()
            self._write(content | {"commands": list(dict.fromkeys((*self._commands(content), *commands)))})

    def _change(self, path: str, digest: str | None) -> bool:
        with locked(self.path):
            content = self._content()
            known = self._trusted(content)
            if known.get(path) == digest:
                return False
            known.pop(path, None)
            self._write(content | {"trusted": known | ({path: digest} if digest else {})})
            return True

    def _write(self, content: dict[str, Any]) -> None:
        text = json.dumps({"version": VERSION, "trusted": {}} | content, indent=2, ensure_ascii=False)
        write_atomic(self.path, text.encode("utf-8", "surrogatepass") + b"\n")

    @staticmethod
    def _trusted(content: dict[str, Any]) -> dict[str, str]:
        trusted = content.get("trusted")
        entries = trusted.items() if isinstance(trusted, dict) else ()
        return {path: digest for path, digest in entries if isinstance(digest, str)}

    @staticmethod
    def _commands(content: dict[str, Any]) -> list[str]:
        commands = content.get("commands")
        return [command for command in commands if isinstance(command, str)] if isinstance(commands, list) else []

    def _content(self) -> dict[str, Any]:
        """Return the stored content, or {} if the file is missing or not in our format. Raises StorageError."""
        self._check_owner()
        data = read_bytes(self.path, MAX_BYTES)
        try:
            content: Any = json.loads((data or b"{}").decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) and content.get("version") == VERSION else {}

    def _check_owner(self) -> None:
        """Raise StorageError for a file that another user owns or can write. That user could trust any project."""
        if os.name == "nt":
            return
        try:
            facts = self.path.stat()
        except OSError:
            return  # the file is missing, or reading it will report the reason
        if facts.st_uid != os.geteuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            hint = f"Remove it and trust your projects again, or review it and run: chmod {FILE_MODE:o} {self.path}"
            raise StorageError(f"{self.path} is owned or writable by another user", hint)


def untrusted_problem(file: ProjectFile) -> Problem:
    """Return a problem which reports that a project's file is ignored, and how to trust the file."""
    folder = str(file.folder)
    quoted = f'"{folder}"' if any(letter.isspace() for letter in folder) else folder
    what = "this content of the file, or of the programs that it runs, is not approved"
    hint = f"Review it, then: multi-mcp trust {quoted}"
    return Problem(str(file.path), 0, f"The project's servers are ignored: {what}", hint, fatal=False)
