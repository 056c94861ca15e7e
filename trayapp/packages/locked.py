"""A locked package, and the Protocol of package requests. npm, pypi and images implement it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import orjson

from trayapp.model.errors import ConfigError, MultiMcpError

if TYPE_CHECKING:
    from trayapp.packages.tools import Tools

Kind = Literal["npm", "pypi", "oci", "mcpb"]


class PackageError(MultiMcpError):
    """Raised if a package cannot be locked, fetched or run."""

    code = "package"


class WithdrawnReleaseError(PackageError):
    """Raised if the registry no longer has a version."""


class UnreadableLockError(ConfigError):
    """Raised if servers.lock cannot be read. Then no package starts."""

    code = "lock_unreadable"


@dataclass(frozen=True, slots=True)
class Locked:
    """One exact package. `content` lists everything to fetch for it, with hashes, in the form that its tool reads.

    `integrity` is the hash of the package itself, from its registry. `at` is the time of the lock in Unix seconds.
    """

    kind: Kind
    package: str
    version: str
    integrity: str
    content: Any
    at: float

    @property
    def folder_name(self) -> str:
        """Return the name of its folder. Each content has a folder of its own."""
        told = orjson.dumps([self.kind, self.package, self.version, self.content], option=orjson.OPT_SORT_KEYS)
        digest = hashlib.sha256(told).hexdigest()[:24]
        plain = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in self.package)
        return f"{self.kind}-{plain}-{digest}"[-120:]

    def to_json(self) -> dict[str, Any]:
        """Return the package as servers.lock stores it."""
        return asdict(self)


def read_locked(told: Any) -> Locked:
    """Return a package from its entry in servers.lock. Raises UnreadableLockError."""
    try:
        one = Locked(**told)
        texts = (one.kind, one.package, one.version, one.integrity)
        if all(isinstance(text, str) for text in texts) and one.kind in get_args(Kind):
            return one
    except TypeError:
        pass
    raise UnreadableLockError("servers.lock has an entry that cannot be read", "Restore the file, or remove it")


class PackageRequest(Protocol):
    """What a command line asks a package runner for. `spec` is the same for all that ask for the same package."""

    @property
    def spec(self) -> str:
        """Return the package as written, after its kind."""

    @property
    def pinned(self) -> bool:
        """Return True if the command line names one version."""

    @property
    def has_versions(self) -> bool:
        """Return True if one of its versions can be asked for."""

    def resolve(self, tools: Tools, now: float, version: str | None = None) -> Locked:
        """Return the version and content that the runner would take now. Raises PackageError, ToolError."""

    def newest(self, tools: Tools, before: float, locked: Locked) -> str | None:
        """Return the newest version published before a time, or None if none is newer than the locked one.

        Raises PackageError, ToolError.
        """

    def is_fetched(self, locked: Locked, folder: Path) -> bool:
        """Return True if the folder holds all of the content."""

    def fetch(self, locked: Locked, folder: Path, tools: Tools, *, scripts: bool) -> None:
        """Fetch the content and check each part against its hash. Raises PackageError, ToolError.

        With `scripts` a package may run its install scripts.
        """

    def argv(self, locked: Locked, folder: Path, env: Mapping[str, str]) -> tuple[str, ...]:
        """Return the command line that starts the package. Raises PackageError."""
