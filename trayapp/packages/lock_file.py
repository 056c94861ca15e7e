"""The file servers.lock, and the interface of a package request, which the modules npm, pypi and images implement."""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import orjson

from trayapp.config.files import locked as lock_of
from trayapp.config.files import write_atomic
from trayapp.model.errors import ConfigError, MultiMcpError
from trayapp.model.redact import redacted
from trayapp.packages.tools import Tools

Kind = Literal["npm", "pypi", "oci", "mcpb"]
FORMAT = 1
KEPT_BEFORE = 2  # earlier versions to keep
COMPLETE = ".complete"  # a marker file in a package's folder, written last


class PackageError(MultiMcpError):
    """Raised if a package cannot be locked, fetched or run."""

    code = "package"


class WithdrawnReleaseError(PackageError):
    """Raised if the registry does not have the requested version, or no longer has it."""


class UnreadableLockError(ConfigError):
    """Raised if servers.lock cannot be read. Until it can be, no package starts."""

    code = "lock_unreadable"


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """One exact package."""

    kind: Kind
    package: str
    version: str
    integrity: str  # the hash of the package itself, from its registry
    content: Any  # the files to fetch and their hashes, in the format of the package tool
    at: float = field(default_factory=time.time)  # the time of the lock, in Unix seconds

    @property
    def folder_name(self) -> str:
        """Return the name of the package's folder. Each content has its own folder."""
        content = orjson.dumps([self.kind, self.package, self.version, self.content], option=orjson.OPT_SORT_KEYS)
        digest = hashlib.sha256(content).hexdigest()[:24]
        plain = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in self.package)
        return f"{self.kind}-{plain}-{digest}"[-120:]


def with_options(package: str, options: Iterable[str]) -> str:
    """Return a package's spec: its name as written, and the options that determine its release, redacted."""
    return "|".join((package, *(redacted(option) for option in options)))


class PackageRequest(ABC):
    """A package that a package runner's command line requests."""

    has_versions: ClassVar[bool] = True  # True if a particular version can be requested

    @property
    @abstractmethod
    def spec(self) -> str:
        """Return the kind and the name as written (`npm:NAME`). Equal for all requests for the same package."""

    @property
    def pinned(self) -> bool:
        """Return True if the command line names one version."""
        return False

    @property
    def runs_scripts(self) -> bool:
        """Return True unless the command line forbids the package's install scripts."""
        return True

    @abstractmethod
    def resolve(self, tools: Tools, version: str | None = None, before: float | None = None) -> LockedPackage:
        """Return the package to lock: `version`, or the one that the runner would use now. Runs the package tool.

        `before` (Unix seconds) excludes releases published later, unless the user's own settings limit their age. It is
        ignored for images. Raises PackageError, also for a version that the command line excludes, and ToolError.
        """

    @abstractmethod
    def newest(self, tools: Tools, before: float, locked: LockedPackage) -> str | None:
        """Return the newest version published before `before` (Unix seconds), or None if `locked` is not older.

        Runs the package tool. Raises PackageError, ToolError.
        """

    def is_fetched(self, folder: Path) -> bool:
        """Return True if a package's folder holds all of its content."""
        return (folder / COMPLETE).is_file()

    @abstractmethod
    def fetch(self, locked: LockedPackage, folder: Path, tools: Tools, *, scripts: bool) -> None:
        """Fetch the content into `folder`, and check each part's hash. With `scripts`, its install scripts may run.

        Raises PackageError, ToolError.
        """

    @abstractmethod
    def argv(self, locked: LockedPackage, folder: Path, env: Mapping[str, str]) -> tuple[str, ...]:
        """Return the command line that starts the package in `folder`. Raises PackageError."""


Table = dict[str, dict[str, list[LockedPackage]]]  # server -> package as written -> newest first


class LockFile:
    """The file servers.lock. It is read again when it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int, int] | None = None
        self._table: Table = {}

    def find(self, server: str, spec: str) -> list[LockedPackage]:
        """Return the locked package and the earlier ones, newest first, or [] if none. Raises UnreadableLockError."""
        return list(self._read().get(server, {}).get(spec, ()))

    def all(self) -> Iterator[tuple[str, str, list[LockedPackage]]]:
        """Yield (server, package as written, its locks, newest first). Raises UnreadableLockError."""
        for server, specs in self._read().items():
            for spec, versions in specs.items():
                yield server, spec, list(versions)

    def add(self, server: str, spec: str, versions: list[LockedPackage]) -> LockedPackage:
        """Lock the first of `versions`, unless a package is already locked. Return the locked package.

        The other `versions` are kept as earlier ones. Raises StorageError, UnreadableLockError.
        """
        with lock_of(self.path):
            kept = self.find(server, spec)
            if kept:
                return kept[0]
            table = dict(self._read())
            table[server] = {**table.get(server, {}), spec: versions}
            self._write(table)
            return versions[0]

    def put(self, server: str, spec: str, one: LockedPackage) -> None:
        """Lock a package, and keep at most KEPT_BEFORE earlier ones. Raises StorageError, UnreadableLockError."""
        with lock_of(self.path):
            table = dict(self._read())
            before = [old for old in table.get(server, {}).get(spec, ()) if old.content != one.content]
            table[server] = {**table.get(server, {}), spec: [one, *before[:KEPT_BEFORE]]}
            self._write(table)

    def remove(self, server: str) -> None:
        """Remove all locks of a server. Raises StorageError, UnreadableLockError."""
        with lock_of(self.path):
            table = self._read()
            if server in table:
                self._write({name: specs for name, specs in table.items() if name != server})

    def _read(self) -> Table:
        try:
            stat = self.path.stat()
            seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if seen != self._seen:
                self._table = _parsed(self.path.read_bytes())
                self._seen = seen
        except FileNotFoundError:
            self._table, self._seen = {}, None
        except OSError as error:
            raise UnreadableLockError(f"Cannot read {self.path}: {error.strerror}", "Make it readable") from None
        return self._table

    def _write(self, table: Table) -> None:
        servers = {
            server: {spec: [asdict(one) for one in versions] for spec, versions in specs.items()}
            for server, specs in sorted(table.items())
        }
        content = {"version": FORMAT, "servers": servers}
        write_atomic(self.path, orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


def _parsed(data: bytes) -> Table:
    try:
        content: Any = orjson.loads(data)
        servers: Any = content["servers"] if content["version"] == FORMAT else None
        return {
            server: {spec: [_locked(one) for one in versions] for spec, versions in specs.items()}
            for server, specs in servers.items()
        }
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        raise UnreadableLockError("servers.lock cannot be read", "Restore the file, or remove it") from None


def _locked(content: Any) -> LockedPackage:
    one = LockedPackage(**content)
    texts = (one.kind, one.package, one.version, one.integrity)
    if not all(isinstance(text, str) for text in texts) or one.kind not in get_args(Kind):
        raise TypeError("not a locked package")
    return one
