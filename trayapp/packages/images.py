"""Container images, locked and started by their digest, which Docker or podman checks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import orjson

from trayapp.config.read.command import OptionTable, UncertainError, options
from trayapp.packages.lock_file import LockedPackage, PackageError, PackageRequest, with_options
from trayapp.packages.tools import ToolError, Tools

_IMAGE = re.compile(r"[a-z0-9][\w./:-]*", re.ASCII)
# Options that `docker run` and `podman run` document, without and with a value. An option that is not listed here may
# take the next word as its value, so that the image cannot be found.
_RUN = OptionTable(
    options("""
        -d --detach --disable-content-trust --env-host --http-proxy --init -i --interactive --no-healthcheck
        --no-hostname --no-hosts --oom-kill-disable --passwd --privileged -P --publish-all -q --quiet --read-only
        --read-only-tmpfs --replace --rm --rmi --sig-proxy --tls-verify -t --tty --unsetenv-all --use-api-socket
    """),
    options("""
        --add-host --annotation --arch -a --attach --authfile --blkio-weight --blkio-weight-device --cap-add
        --cap-drop --cert-dir --cgroup-conf --cgroup-parent --cgroupns --cgroups --cidfile --conmon-pidfile
        --cpu-count --cpu-percent --cpu-period --cpu-quota --cpu-rt-period --cpu-rt-runtime --cpu-shares -c --cpus
        --cpuset-cpus --cpuset-mems --detach-keys --device --device-cgroup-rule --device-read-bps --device-read-iops
        --device-write-bps --device-write-iops --dns --dns-opt --dns-option --dns-search --domainname --entrypoint -e
        --env --env-file --env-merge --expose --gidmap --gpus --group-add --group-entry --health-cmd --health-interval
        --health-log-destination --health-max-log-count --health-max-log-size --health-on-failure --health-retries
        --health-start-interval --health-start-period --health-startup-cmd --health-startup-interval
        --health-startup-retries --health-startup-success --health-startup-timeout --health-timeout -h --hostname
        --hosts-file --hostuser --image-volume --init-path --io-maxbandwidth --io-maxiops --ip --ip6 --ipc --isolation
        --kernel-memory -l --label --label-file --link --link-local-ip --log-driver --log-opt --mac-address -m
        --memory --memory-reservation --memory-swap --memory-swappiness --mount --name --net --net-alias --network
        --network-alias --oom-score-adj --os --passwd-entry --personality --pid --pidfile --pids-limit --platform
        --pod --pod-id-file --preserve-fd --preserve-fds -p --publish --pull --restart --retry --retry-delay --runtime
        --sdnotify --seccomp-policy --secret --security-opt --shm-size --shm-size-systemd --stop-signal --stop-timeout
        --storage-opt --subgidname --subuidname --sysctl --systemd --timeout --tmpfs --tz --uidmap --ulimit --umask
        --unsetenv -u --user --userns --uts --variant -v --volume --volume-driver --volumes-from -w --workdir
    """),
)
_PULLED = options("--arch --authfile --cert-dir --os --platform --tls-verify --variant")  # options that `pull` also has
# Options of docker and podman themselves, before `run`. They select the daemon.
_DOCKER = OptionTable(
    options("-D --debug --tls --tlsverify"),
    options("--config -c --context -H --host -l --log-level --tlscacert --tlscert --tlskey --connection --url"),
)


@dataclass(frozen=True, slots=True)
class ImageRequest(PackageRequest):
    """The image in a `docker run` or `podman run` command line."""

    words: tuple[str, ...]
    at: int  # the index of the image in `words`
    client: tuple[str, ...]  # the program, with the options that select its daemon
    passed: tuple[str, ...] = ()  # the options that a pull needs, too

    has_versions = False  # `pinned` stays False, too, because a tag may move to another image

    @property
    def image(self) -> str:
        return self.words[self.at]

    @property
    def spec(self) -> str:
        return with_options(f"oci:{self.image}", self.passed)

    def resolve(self, tools: Tools, version: str | None = None, before: float | None = None) -> LockedPackage:
        if version is not None:
            raise PackageError(f"{self.image} has no versions to choose from", "Write another tag in servers.yaml")
        found = self._inspected(tools)
        if found is None:
            self._pull(tools)
            found = self._inspected(tools)
        if found is None:
            raise PackageError(f"{self.words[0]} has no image {self.image}", "Correct its name")
        return LockedPackage("oci", self.image, self._version(found), found, found)

    def newest(self, tools: Tools, before: float, locked: LockedPackage) -> str | None:
        if "@" not in str(locked.content):
            return None  # the image was built on this machine
        self._pull(tools)
        found = self._inspected(tools)
        if found is None or found == locked.content or self._created(tools) > before:
            return None
        return self._version(found)

    def is_fetched(self, folder: Path) -> bool:
        return True

    def fetch(self, locked: LockedPackage, folder: Path, tools: Tools, *, scripts: bool) -> None:
        """Do nothing, because docker fetches the image at the start and checks its digest."""

    def argv(self, locked: LockedPackage, folder: Path, env: Mapping[str, str]) -> tuple[str, ...]:
        return (*self.words[: self.at], str(locked.content), *self.words[self.at + 1 :])

    def _version(self, content: str) -> str:
        """Return the tag, with the beginning of the digest because the tag may later name a newer image."""
        tag = self.image.rpartition("/")[2].partition(":")[2] or "latest"
        return f"{tag}@{content.rpartition(':')[2][:12]}"

    def _pull(self, tools: Tools) -> None:
        try:
            tools.run(*self.client, "pull", "--quiet", *self.passed, self.image)
        except ToolError as error:
            if re.search("Cannot connect to (?:the Docker daemon|Podman)", error.output):
                raise PackageError(f"{self.words[0]} is not running", "Start it, then try again") from None
            if re.search("pull access denied|manifest unknown|not found|does not exist", error.output):
                raise PackageError(f"No registry has the image {self.image}", "Correct its name, or sign in") from None
            raise PackageError(error.title, error.hint or "Go online, then try again") from None

    def _inspected(self, tools: Tools) -> str | None:
        """Return the image's digest (its ID if no registry has it), or None if the image is not on this machine."""
        try:
            output = tools.run(
                *self.client, "image", "inspect", "--format", "{{json .RepoDigests}} {{.Id}}", self.image
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
            output = tools.run(*self.client, "image", "inspect", "--format", "{{.Created}}", self.image).strip()
            return datetime.fromisoformat(output).timestamp()
        except (ToolError, ValueError):
            return float("inf")


def read_docker(argv: tuple[str, ...]) -> ImageRequest | None:
    """Return the image that a command line of docker or podman runs.

    Return None if it runs no image, names the image by its digest, or has a placeholder for the name. Raises
    UncertainError.
    """
    if argv[:1] not in (("docker",), ("podman",)) or "run" not in argv:
        return None
    _, rest = _DOCKER.read(argv[1:])
    start = len(argv) - len(rest)
    rest = rest[1:] if rest[:1] == ("container",) else rest
    if rest[:1] != ("run",):
        return None
    found, rest = _RUN.read(rest[1:])
    if not rest or "@" in rest[0]:
        return None
    if not _IMAGE.fullmatch(rest[0]):
        if re.search("[<{]", rest[0]):  # a variable, or an example that the user has to replace
            return None
        raise UncertainError(f"the image name {rest[0]}")
    passed = tuple(f"{name}={value}" if value else name for name, value in found if name in _PULLED)
    return ImageRequest(argv, len(argv) - len(rest), argv[:start], passed)
