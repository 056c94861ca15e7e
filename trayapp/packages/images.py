"""Container images, locked and started by their digest. Docker or podman checks it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import orjson

from trayapp.packages.lock_file import LockedPackage, PackageError
from trayapp.packages.tools import ToolError, Tools

_IMAGE = re.compile(r"[a-z0-9][\w./:-]*", re.ASCII)
_SHORT_SWITCHES = re.compile(r"-[itdqP]+")
# Options of `docker run` that take no value. After any other one without `=`, the next word is the value.
_SWITCHES = frozenset((
    "-i", "--interactive", "-t", "--tty", "-it", "-ti", "--rm", "--init", "--read-only", "--privileged", "-P",
    "--publish-all", "--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "-d", "--detach", "-q", "--quiet",
    "--disable-content-trust", "--no-hosts", "--no-hostname", "--replace", "--rmi", "--tls-verify",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """A use of `docker run` or `podman run`. `at` is the index of the image in the command line."""

    words: tuple[str, ...]
    at: int

    @property
    def image(self) -> str:
        return self.words[self.at]

    @property
    def spec(self) -> str:
        return f"oci:{self.image}"

    @property
    def pinned(self) -> bool:
        return False  # a tag may move to another image

    @property
    def has_versions(self) -> bool:
        return False

    def resolve(self, tools: Tools, now: float, version: str | None = None) -> LockedPackage:
        if version is not None:
            raise PackageError(f"{self.image} has no versions to choose from", "Write another tag in servers.yaml")
        found = self._inspected(tools)
        if found is None:
            self._pull(tools)
            found = self._inspected(tools)
        if found is None:
            raise PackageError(f"{self.words[0]} has no image {self.image}", "Correct its name")
        return LockedPackage("oci", self.image, self._version(found), found, found, now)

    def newest(self, tools: Tools, before: float, locked: LockedPackage) -> str | None:
        if "@" not in str(locked.content):
            return None  # built here
        self._pull(tools)
        found = self._inspected(tools)
        if found is None or found == locked.content or self._created(tools) > before:
            return None
        return self._version(found)

    def is_fetched(self, locked: LockedPackage, folder: Path) -> bool:
        return True

    def fetch(self, locked: LockedPackage, folder: Path, tools: Tools, *, scripts: bool) -> None:
        """Do nothing: docker fetches the image at the start and checks its digest."""

    def argv(self, locked: LockedPackage, folder: Path, env: Mapping[str, str]) -> tuple[str, ...]:
        return (*self.words[: self.at], str(locked.content), *self.words[self.at + 1 :])

    def _version(self, content: str) -> str:
        """Return the tag with the beginning of the digest: a tag alone may later name a newer image."""
        tag = self.image.rpartition("/")[2].partition(":")[2] or "latest"
        return f"{tag}@{content.rpartition(':')[2][:12]}"

    def _pull(self, tools: Tools) -> None:
        try:
            tools.run(self.words[0], "pull", "--quiet", self.image)
        except ToolError as error:
            if re.search("Cannot connect to (?:the Docker daemon|Podman)", error.output):
                raise PackageError(f"{self.words[0]} is not running", "Start it, then try again") from None
            if re.search("pull access denied|manifest unknown|not found|does not exist", error.output):
                raise PackageError(f"No registry has the image {self.image}", "Correct its name, or sign in") from None
            raise PackageError(error.title, error.hint or "Go online, then try again") from None

    def _inspected(self, tools: Tools) -> str | None:
        """Return the image with its digest, or its ID if no registry has it. None if it is not on this machine."""
        try:
            output = tools.run(
                self.words[0], "image", "inspect", "--format", "{{json .RepoDigests}} {{.Id}}", self.image
            )
            listed, _, own = output.strip().rpartition(" ")
            digests = orjson.loads(listed or b"[]") or []
        except (ToolError, orjson.JSONDecodeError):
            return None
        head, slash, last = self.image.rpartition("/")
        name = head + slash + last.partition(":")[0]
        ours = [one for one in digests if one.partition("@")[0].endswith(name)]
        return str((ours or digests or [own])[0])

    def _created(self, tools: Tools) -> float:
        try:
            output = tools.run(self.words[0], "image", "inspect", "--format", "{{.Created}}", self.image).strip()
            return datetime.fromisoformat(output).timestamp()
        except (ToolError, ValueError):
            return float("inf")


def read_docker(argv: tuple[str, ...]) -> ImageRequest | None:
    """Return the image that a command line of docker or podman runs, or None if it is not named by a tag."""
    if argv[:2] not in (("docker", "run"), ("podman", "run")):
        return None
    at = 2
    while at < len(argv) and argv[at].startswith("-"):
        word = argv[at]
        at += 1 if word in _SWITCHES or "=" in word or _SHORT_SWITCHES.fullmatch(word) else 2
    if at >= len(argv) or "@" in argv[at] or not _IMAGE.fullmatch(argv[at]):
        return None
    return ImageRequest(argv, at)
