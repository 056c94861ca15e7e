"""The lock with the real uv and a test package index on loopback."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packages.loopback import running
from tests.packages.pypi_registry import PypiRegistry
from trayapp.model.errors import ConnectFailedError
from trayapp.packages.lock_file import LockedPackage, LockFile, PackageError
from trayapp.packages.locks import Locks, read_package
from trayapp.packages.tools import Tools

LINE = ("uvx", "demo", "word")
PRINTS = "import sys\ndef main():\n    print({text!r}, *sys.argv[1:])\n"


class World:
    """A user's machine with uv, a package index and a lock file."""

    def __init__(self, root: Path, registry: PypiRegistry) -> None:
        self.registry = registry
        self.root = root
        self.locks = Locks(LockFile(root / "servers.lock"), root / "store")
        registry.install_uv(root)
        self.env = {"HOME": str(root), "PATH": f"{root}:/usr/bin:/bin"} | registry.env(root)
        self.publish("1.0", "one")

    def publish(self, version: str, text: str) -> None:
        self.registry.publish("demo", version, PRINTS.format(text=text))

    def start(self, line: tuple[str, ...] = LINE, **env: str) -> str:
        """Start the server with a command line and return its output."""
        argv = self.locks.argv("s", line, Tools(self.env | env), scripts=True)
        return subprocess.run(argv, env=self.env, check=True, capture_output=True, text=True).stdout.strip()

    def forget_files(self) -> None:
        """Delete everything that was fetched, as on another machine."""
        shutil.rmtree(self.locks.store)
        shutil.rmtree(self.root / "uv-cache")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with running(PypiRegistry()) as registry:
        yield World(tmp_path, registry)


@pytest.mark.requirement("lock-first")
@pytest.mark.requirement("lock-offline")
def test_what_was_locked_first_starts_without_uv_and_without_its_index(world: World) -> None:
    assert world.start() == "one word"
    (one,) = world.locks.file.find("s", "pypi:demo")
    assert (one.version, one.integrity[:7]) == ("1.0", "sha256:")
    world.publish("2.0", "two")
    world.registry.online = False
    assert world.start(PATH="/nothing") == "one word"


@pytest.mark.requirement("lock-only")
def test_content_that_changed_under_one_version_does_not_start(world: World) -> None:
    assert world.start() == "one word"
    world.forget_files()
    world.publish("1.0", "evil")
    with pytest.raises(ConnectFailedError, match=r"demo==1\.0 changed"):
        world.start()
    assert not any(world.locks.store.iterdir())


@pytest.mark.requirement("lock-only")
def test_a_withdrawn_release_that_is_not_here_is_an_error(world: World) -> None:
    assert world.start() == "one word"
    world.forget_files()
    world.publish("1.1", "two")
    world.registry.withdraw("demo", "1.0")
    with pytest.raises(ConnectFailedError, match=r"does not have demo==1\.0"):
        world.start()
    world.registry.online = False
    with pytest.raises(ConnectFailedError, match="Cannot reach the package index"):
        world.start()


@pytest.mark.requirement("lock-only", "lock-forms")
@pytest.mark.parametrize(
    "line",
    [
        "uvx -q --refresh --no-cache --isolated demo", "uv --quiet tool run demo", "pipx run --no-cache demo",
        "uvx --prerelease=allow --no-config demo", "uvx --no-python-downloads --python-preference system demo",
    ],
)  # fmt: skip
def test_every_written_form_starts_what_was_locked(world: World, line: str) -> None:
    words = tuple(line.split())
    assert world.start(words) == "one"
    world.publish("2.0", "two")
    assert world.start(words) == "one"
    world.forget_files()
    assert world.start(words) == "one"


@pytest.mark.requirement("lock-forms")
def test_an_index_that_the_command_line_names_is_asked_for_the_lock(world: World) -> None:
    with running(PypiRegistry()) as other:
        other.publish("demo", "3.0", PRINTS.format(text="three"))
        line = ("uvx", "--default-index", f"{other.url}/simple", "demo")
        assert world.start(line) == "three"
        other.publish("demo", "4.0", PRINTS.format(text="four"))
        world.forget_files()
        assert world.start(line) == "three"
    assert world.start() == "one word"


@pytest.mark.requirement("lock-update")
def test_an_update_stays_within_the_limits_of_the_command_line(world: World) -> None:
    request = read_package(("uvx", "demo<2"))
    assert request is not None
    world.publish("1.5", "one and a half")
    world.publish("2.0", "two")
    with pytest.raises(PackageError, match=r"demo 2\.0 is not within the command's limits, <2") as raised:
        request.resolve(Tools(world.env), "2.0")
    assert raised.value.hint == "Write demo==2.0 in the command: multi-mcp edit"
    assert request.resolve(Tools(world.env), "1.5").version == "1.5"


@pytest.mark.requirement("lock-update")
@pytest.mark.parametrize(
    ("locked", "released", "newest"),
    [("2.0rc1", "2.0", "2.0"), ("2.0", "2.0.0", None), ("2.0.post1", "2.0", None), ("2.9", "2.10", "2.10")],
)
def test_the_newest_release_is_newer_by_the_order_of_python_packages(
    world: World, locked: str, released: str, newest: str | None
) -> None:
    request = read_package(("uvx", "demo"))
    assert request is not None
    world.publish(released, "two")
    before = LockedPackage("pypi", "demo", locked, "sha256:0", "", 0)
    assert request.newest(Tools(world.env), time.time(), before) == newest
    with pytest.raises(PackageError, match=r"demo: two in servers\.lock is not a version"):
        request.newest(Tools(world.env), time.time(), LockedPackage("pypi", "demo", "two", "sha256:0", "", 0))


@pytest.mark.requirement("lock-update")
@pytest.mark.parametrize(
    ("line", "env", "part"),
    [
        ("uvx demo", {}, "1.1"),
        ("uvx --exclude-newer=2000-01-01 demo", {}, "1.0"),
        ("uvx demo", {"UV_EXCLUDE_NEWER": "2000-01-01"}, "1.0"),
    ],
)
def test_the_dependencies_of_an_update_are_old_enough_too(
    world: World, line: str, env: dict[str, str], part: str
) -> None:
    """If the user has set a limit, we add none, because ours would replace it."""
    now, day = time.time(), 86_400
    for version, at in (("1.0", 0.0), ("1.1", now - 4 * day), ("1.2", now - 2 * day)):
        world.registry.publish("part", version, PRINTS.format(text="part"), at)
    world.registry.publish("demo", "1.1", PRINTS.format(text="two"), needs="part")
    request = read_package(tuple(line.split()))
    assert request is not None
    one = request.resolve(Tools(world.env | env), "1.1", now - 3 * day)
    assert f"\npart=={part} " in f"\n{one.content}"
