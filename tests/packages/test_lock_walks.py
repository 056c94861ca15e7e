"""Random walks through states of registries on loopback: only locked content starts.

npm, uv and node are real. docker is a fake."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.packages.loopback import running
from tests.packages.npm_registry import NpmRegistry
from tests.packages.oci_registry import OciRegistry
from tests.packages.pypi_registry import PypiRegistry
from tests.patience import stretched
from trayapp.model.errors import ConnectFailedError
from trayapp.packages.lock_file import LockFile, PackageError
from trayapp.packages.locks import Locks, read_package
from trayapp.packages.tools import ToolError, Tools

# Seeds of walks with enough starts, updates, refusals, and starts of content that the registry no longer has.
SEEDS = {"npm": (1, 20, 33), "pypi": (5, 6, 9, 14, 22, 24, 33), "oci": (3, 8, 15, 18, 23, 49, 57, 73)}
STATES = {"npm": 20, "pypi": 68, "oci": 58}  # per walk, which makes 1,000 in all
WALKS = [(kind, STATES[kind], seed) for kind, seeds in SEEDS.items() for seed in seeds]
LINES = {  # equivalent forms, of which each start draws one
    "npm": (
        "npx -y demo", "npx demo", "npx -y --quiet demo", "npx --loglevel=error -y demo",
        "npx -q --prefer-offline demo", "npx -y -- demo", "npx -p demo demo", "npm exec -y demo",
        "npm --silent x demo --", "npm exec --package=demo -- demo",
    ),
    "pypi": (
        "uvx demo", "uvx -q --refresh demo", "uvx --isolated --no-cache demo", "uvx --from demo demo",
        "uv tool run demo", "uv --quiet tool run --color never demo", "pipx run --no-cache demo",
        "pipx run --spec demo demo",
    ),
    "oci": (
        "docker run -i --rm demo", "docker container run -i demo", "docker run -ieA=b -v/a:/b --rm demo",
        "docker run demo", "docker run --name x --restart no demo",
    ),
}  # fmt: skip
VERSIONS = 6  # few enough that some are published again with different content
SLOW = stretched(90.0)


@dataclass
class Machine:
    """A user's machine and one registry with one package.

    `offered`: the current output of each version. `texts`: the output of all content that was ever offered, by hash.
    """

    kind: str
    root: Path
    registry: NpmRegistry | PypiRegistry | OciRegistry
    env: dict[str, str]
    offered: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.locks = Locks(LockFile(self.root / "servers.lock"), self.root / "store")
        self.forms = random.Random(self.kind)

    @property
    def line(self) -> tuple[str, ...]:
        """The command line in a random form."""
        return tuple(self.forms.choice(LINES[self.kind]).split())

    def publish(self, version: str, text: str) -> None:
        """Add a version that prints a text, or replace its content. An image has only one tag, which moves."""
        if isinstance(self.registry, OciRegistry):
            version = "latest"
            self.registry.push("demo", f"print({text!r})\n")
        elif isinstance(self.registry, PypiRegistry):
            self.registry.publish("demo", version, f"def main():\n    print({text!r})\n")
        else:
            self.registry.publish("demo", version, text)
        self.offered[version] = text
        self.texts[self._integrity(version)] = text

    def withdraw(self, version: str) -> None:
        if isinstance(self.registry, OciRegistry):
            self.registry.withdraw("demo")
        else:
            self.registry.withdraw("demo", version)
        del self.offered[version]

    def lose_files(self) -> None:
        """Delete everything that was fetched, as on another machine. uv's records about its Python stay."""
        for name in ("store", "npm-cache", "images"):
            shutil.rmtree(self.root / name, ignore_errors=True)
        for folder in (self.root / "uv-cache").glob("*-v*"):
            if not folder.name.startswith("interpreter-"):
                shutil.rmtree(folder)

    def start(self) -> str | None:
        """Start the server and return its output, or None if nothing starts."""
        try:
            argv = self.locks.argv("s", self.line, Tools(self.env), scripts=True)
        except ConnectFailedError:
            return None
        program = shutil.which(argv[0], path=self.env["PATH"])
        assert program is not None
        done = subprocess.run([program, *argv[1:]], env=self.env, check=False, capture_output=True, text=True)
        return done.stdout.strip() or None

    def update(self) -> None:
        """Lock what the package tool resolves now, as if the user had agreed. Offline, this may be older content."""
        request = read_package(self.line)
        assert request is not None
        with suppress(PackageError, ToolError):
            if self.kind == "oci":
                # This pulls the image.
                request.newest(Tools(self.env), time.time(), self.locks.file.find("s", request.spec)[0])
            self.locks.file.put("s", request.spec, request.resolve(Tools(self.env)))
            self.locks.clean()

    def locked(self) -> str | None:
        """Return the output of the locked content, or None if nothing is locked."""
        return next((self.texts[kept[0].integrity] for _, _, kept in self.locks.file.all()), None)

    def _integrity(self, version: str) -> str:
        """Return the hash that the registry gives for a version."""
        if self.kind == "oci":
            _, manifest = self.registry.answer("/v2/demo/manifests/latest") or ("", b"")
            return f"demo@sha256:{hashlib.sha256(manifest).hexdigest()}"
        _, page = self.registry.answer("/demo" if self.kind == "npm" else "/simple/demo/") or ("", b"")
        document = json.loads(page)
        if self.kind == "npm":
            return str(document["versions"][version]["dist"]["integrity"])
        (file,) = (one for one in document["files"] if one["filename"].split("-")[1] == version)
        return f"sha256:{file['hashes']['sha256']}"


@contextmanager
def machine(kind: str, root: Path) -> Iterator[Machine]:
    """Serve a registry of this kind, and yield a machine below `root` that uses it."""
    here = {"HOME": str(root), "PATH": f"{root}:/usr/bin:/bin"}
    with ExitStack() as stack:
        if kind == "npm":
            npm = stack.enter_context(running(NpmRegistry()))
            yield Machine(kind, root, npm, {"HOME": str(root)} | npm.env(root))
        elif kind == "pypi":
            pypi = stack.enter_context(running(PypiRegistry()))
            pypi.install_uv(root)
            yield Machine(kind, root, pypi, here | pypi.env(root))
        else:
            oci = stack.enter_context(running(OciRegistry()))
            oci.install_docker(root)
            yield Machine(kind, root, oci, here)


@pytest.mark.requirement("lock-only")
@pytest.mark.timeout(SLOW)
@pytest.mark.parametrize(("kind", "states", "seed"), WALKS)
def test_nothing_that_is_not_locked_starts_in_random_states_of_a_registry(
    kind: str, states: int, seed: int, tmp_path: Path
) -> None:
    """The walks have 1,000 states of three registries. In each state, only locked content may start."""
    chance, refused = random.Random(f"{kind} {seed}"), 0
    started: list[str] = []
    held = 0  # starts of content that the registry no longer offers
    with machine(kind, tmp_path) as here:
        for step in range(states):
            what = chance.random()
            if what < 0.12 and here.locked():
                here.update()
            elif what < 0.3:
                here.publish(f"1.{chance.randrange(VERSIONS)}.0", f"content {step}")
            elif what < 0.38 and here.offered:
                here.publish(chance.choice(sorted(here.offered)), f"content {step}")
            elif what < 0.46 and here.offered:
                here.withdraw(chance.choice(sorted(here.offered)))
            elif what < 0.56:
                here.registry.online = not here.registry.online
            elif what < 0.64:
                here.lose_files()
            before, printed, locked = here.locked(), here.start(), here.locked()
            assert before in (None, locked)  # a start never changes a lock
            if printed is None:
                refused += 1
                continue
            assert printed == locked
            started.append(printed)
            held += printed not in here.offered.values()
    assert len(started) >= states / 4
    assert refused >= states / 25
    assert held >= states / 25
    assert len(set(started)) >= 2
