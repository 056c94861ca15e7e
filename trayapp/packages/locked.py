"""Define what is locked of one package, and what a way of packaging has to know."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import orjson

from trayapp.model.errors import ConfigError, MultiMcpError
from trayapp.packages.tools import Tools

Kind = Literal["npm", "pypi", "oci"]


class PackageError(MultiMcpError):
    """A package cannot be locked, fetched or run."""

    code = "package"


class WithdrawnReleaseError(PackageError):
    """A version is not to be had."""


class UnreadableLockError(ConfigError):
    """servers.lock cannot be used. Nothing that it decides starts."""

    code = "lock_unreadable"


@dataclass(frozen=True, slots=True)
class Locked:
    """One exact package. `content`: all that is fetched for it, each part with its hash, as its tool reads it.

    `integrity`: of the package itself, as its registry says it. `at`: Unix seconds of the lock.
    """

    kind: Kind
    package: str
    version: str
    integrity: str
    content: Any
    at: float

    @property
    def folder_name(self) -> str:
        """Return the name of the folder that holds it: one for each content."""
        told = orjson.dumps([self.kind, self.package, self.version, self.content], option=orjson.OPT_SORT_KEYS)
        digest = hashlib.sha256(told).hexdigest()[:24]
        plain = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in self.package)
        return f"{self.kind}-{plain}-{digest}"[-120:]

    def to_json(self) -> dict[str, Any]:
        """Return it as servers.lock holds it."""
        return asdict(self)


def read_locked(told: Any) -> Locked:
    """Read what servers.lock holds of one package. Raises UnreadableLockError."""
    try:
        one = Locked(**told)
        texts = (one.kind, one.package, one.version, one.integrity)
        if all(isinstance(text, str) for text in texts) and one.kind in ("npm", "pypi", "oci"):
            return one
    except TypeError:
        pass
    raise UnreadableLockError("servers.lock has an entry that is none of ours", "Restore the file, or remove it")


class PackageRequest(Protocol):
    """What a command line asks a package runner for. `spec`: the same for all lines that want the same package."""

    @property
    def spec(self) -> str:
        """Return the package as written, with what kind it is of."""

    @property
    def pinned(self) -> bool:
        """Return True if the command line names one version."""

    @property
    def has_versions(self) -> bool:
        """Return True if one of its versions can be asked for."""

    def resolve(self, tools: Tools, now: float, version: str | None = None) -> Locked:
        """Decide the version and content that it would run now. Raises PackageError."""

    def newest(self, tools: Tools, before: float, locked: Locked) -> str | None:
        """Return the newest version that was published before, None without a newer one. Raises PackageError."""

    def is_fetched(self, locked: Locked, folder: Path) -> bool:
        """True if that content lies in the folder, whole."""

    def fetch(self, locked: Locked, folder: Path, tools: Tools, *, scripts: bool) -> None:
        """Fetch the content, each part checked against its hash. Raises PackageError.

        `scripts`: programs that come with a package may run to build it.
        """

    def argv(self, locked: Locked, folder: Path, env: Mapping[str, str]) -> tuple[str, ...]:
        """Return what starts it. Raises PackageError."""
