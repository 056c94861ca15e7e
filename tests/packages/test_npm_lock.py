"""The lock with the real npm and a test registry on loopback."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packages.loopback import running
from tests.packages.npm_registry import NpmRegistry
from trayapp.model.errors import ConnectFailedError
from trayapp.packages.lock_file import LockFile, PackageError
from trayapp.packages.locks import Locks, read_package
from trayapp.packages.tools import Tools

LINE = ("npx", "-y", "demo", "word")


class World:
    """A user's machine with npm, a registry and a lock file."""

    def __init__(self, root: Path, registry: NpmRegistry) -> None:
        self.registry = registry
        self.root = root
        self.configured = {"s"}
        self.locks = Locks(LockFile(root / "servers.lock"), root / "store", configured=lambda: self.configured)
        self.env = {"HOME": str(root)} | registry.env(root)

    def start(self, line: tuple[str, ...] = LINE, server: str = "s", **env: str) -> str:
        """Start the server with a command line and return its output."""
        argv = self.locks.argv(server, line, Tools(self.env | env), scripts=True)
        return subprocess.run(argv, env=self.env, check=True, capture_output=True, text=True).stdout.strip()

    def forget_files(self) -> None:
        """Delete everything that was fetched, as on another machine."""
        shutil.rmtree(self.locks.store)
        shutil.rmtree(self.root / "npm-cache")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with running(NpmRegistry()) as registry:
        registry.publish("part", "1.0.0", "part 1")
        registry.publish("demo", "1.0.0", "one", needs={"part": "^1.0.0"})
        yield World(tmp_path, registry)


@pytest.mark.requirement("lock-first")
@pytest.mark.requirement("lock-only")
@pytest.mark.requirement("lock-offline")
def test_what_was_locked_first_starts_whatever_the_registry_says_later(world: World) -> None:
    assert world.start() == "one"
    (one,) = world.locks.file.find("s", "npm:demo")
    assert (one.version, one.integrity[:7]) == ("1.0.0", "sha512-")
    assert set(one.content) == {"node_modules/demo", "node_modules/part"}
    asked = world.registry.asked
    world.registry.publish("demo", "2.0.0", "two")
    assert world.start() == "one"
    world.registry.withdraw("demo", "1.0.0")
    node = world.root / "bin"
    node.mkdir()
    (node / "node").symlink_to(shutil.which("node") or "")
    assert world.start(PATH=str(node)) == "one"  # without npm
    assert world.registry.asked == asked


def test_without_node_the_error_names_node_before_and_after_the_package_is_locked(world: World) -> None:
    tools = world.root / "tools"
    tools.mkdir()
    (tools / "npm").symlink_to(shutil.which("npm") or "")
    for _ in range(2):
        with pytest.raises(ConnectFailedError, match="node is not on the PATH") as raised:
            world.start(PATH=str(tools))
        assert raised.value.hint == "Install Node.js (https://nodejs.org), or correct the PATH"
        assert world.start() == "one"


@pytest.mark.requirement("lock-only")
def test_content_that_changed_under_one_version_does_not_start(world: World) -> None:
    assert world.start() == "one"
    world.forget_files()
    world.registry.publish("demo", "1.0.0", "evil", needs={"part": "^1.0.0"})
    with pytest.raises(ConnectFailedError, match="no longer has the locked content"):
        world.start()
    assert not any(world.locks.store.iterdir())


@pytest.mark.requirement("lock-only")
def test_another_release_of_a_dependency_is_not_taken(world: World) -> None:
    assert world.start() == "one"
    world.forget_files()
    world.registry.publish("part", "1.1.0", "evil")
    assert world.start() == "one"
    (folder,) = world.locks.store.iterdir()
    assert '"version":"1.0.0"' in (folder / "node_modules/part/package.json").read_text("utf-8").replace(" ", "")


@pytest.mark.requirement("lock-only")
def test_a_withdrawn_release_that_is_not_here_is_an_error(world: World) -> None:
    assert world.start() == "one"
    world.forget_files()
    world.registry.publish("demo", "1.0.1", "two")
    world.registry.withdraw("demo", "1.0.0")
    with pytest.raises(ConnectFailedError, match=r"does not have demo@1\.0\.0"):
        world.start()


@pytest.mark.requirement("lock-first")
def test_without_its_registry_a_package_is_not_locked(world: World) -> None:
    with pytest.raises(ConnectFailedError, match="Cannot reach npm's registry"):
        world.start(npm_config_registry="http://127.0.0.1:9")
    with pytest.raises(ConnectFailedError, match=r"does not have nothing.*npm view nothing versions"):
        world.start(("npx", "nothing"))
    assert list(world.locks.file.all()) == []


@pytest.mark.requirement("lock-update", "lock-offline")
def test_going_back_asks_no_registry_and_runs_no_package_tool(world: World) -> None:
    assert world.start() == "one"
    (first,) = world.locks.file.find("s", "npm:demo")
    request = read_package(LINE)
    assert request is not None
    world.registry.publish("demo", "2.0.0", "two")
    world.locks.file.put("s", request.spec, request.resolve(Tools(world.env)))
    assert world.start() == "two"
    world.locks.clean()
    asked = world.registry.asked
    world.locks.file.put("s", request.spec, first)
    node = world.root / "bin"
    node.mkdir()
    (node / "node").symlink_to(shutil.which("node") or "")
    assert world.start(PATH=str(node)) == "one"
    assert world.registry.asked == asked


@pytest.mark.requirement("lock-update")
def test_a_release_is_offered_once_it_is_old_enough(world: World) -> None:
    world.start()
    now, day = time.time(), 86_400
    world.registry.publish("demo", "1.1.0", "old enough", at=now - 4 * day)
    world.registry.publish("demo", "1.2.0", "too young", at=now - 2 * day)
    (one,) = world.locks.file.find("s", "npm:demo")
    request = read_package(LINE)
    assert request is not None
    assert request.newest(Tools(world.env), now - 3 * day, one) == "1.1.0"
    assert request.newest(Tools(world.env), now, one) == "1.2.0"
    newer = request.resolve(Tools(world.env), "1.1.0")
    world.locks.file.put("s", request.spec, newer)
    assert world.start() == "old enough"
    assert [kept.version for kept in world.locks.file.find("s", "npm:demo")] == ["1.1.0", "1.0.0"]
    assert request.newest(Tools(world.env), now - 3 * day, newer) is None


@pytest.mark.requirement("lock-update")
@pytest.mark.parametrize(
    ("line", "env", "part"),
    [
        ("npx -y demo", {}, "1.1.0"),
        ("npx -y --before=1999-12-31 demo", {}, "1.0.0"),
        ("npx -y demo", {"npm_config_before": "1999-12-31"}, "1.0.0"),
        ("npx -y --min-release-age=9999 demo", {}, "1.0.0"),
    ],
)
def test_the_dependencies_of_an_update_are_old_enough_too(
    world: World, line: str, env: dict[str, str], part: str
) -> None:
    """If the user has set a limit, we add none, because ours would replace it."""
    world.start()
    now, day = time.time(), 86_400
    world.registry.publish("part", "1.1.0", "old enough", at=now - 4 * day)
    world.registry.publish("part", "1.2.0", "too young", at=now - 2 * day)
    world.registry.publish("demo", "1.0.1", "two", needs={"part": "^1.0.0"})
    request = read_package(tuple(line.split()))
    assert request is not None
    tools = Tools(world.env | env)
    one = request.resolve(tools, "1.0.1", now - 3 * day)
    assert (one.version, one.content["node_modules/part"]["version"]) == ("1.0.1", part)


@pytest.mark.requirement("lock-update")
def test_an_update_that_needs_a_release_that_is_too_young_says_so(world: World) -> None:
    now, day = time.time(), 86_400
    world.registry.publish("part", "2.0.0", "too young", at=now - 2 * day)
    world.registry.publish("demo", "1.1.0", "two", at=now - 4 * day, needs={"part": "^2.0.0"})
    request = read_package(LINE)
    assert request is not None
    with pytest.raises(PackageError, match=r"demo@1\.1\.0 needs a release that is younger") as raised:
        request.resolve(Tools(world.env), "1.1.0", now - 3 * day)
    assert raised.value.hint == "Wait, or name the version: multi-mcp update SERVER --to 1.1.0"
    assert request.resolve(Tools(world.env), "1.1.0").version == "1.1.0"


@pytest.mark.requirement("lock-only", "lock-forms")
def test_every_written_form_starts_what_was_locked(world: World) -> None:
    """Each form has a separate lock. Forms with the same content share the fetched files."""
    lines = (
        "npx -y --quiet demo", "npx --loglevel=error -y demo", "npm exec -y demo", "npx -y -- demo", "npm x demo",
        "npx -y -p demo -p part demo", "npx --ignore-scripts demo",
    )  # fmt: skip
    locked = dict.fromkeys(lines, "one")
    world.configured = set(lines)

    def printed() -> dict[str, str]:
        return {line: world.start(tuple(line.split()), server=line) for line in lines}

    assert printed() == locked
    world.registry.publish("demo", "2.0.0", "two")
    assert printed() == locked
    world.forget_files()
    assert printed() == locked


@pytest.mark.requirement("lock-forms")
def test_a_program_of_the_second_of_two_packages_is_started_as_locked(world: World) -> None:
    line = ("npx", "-y", "-p", "demo", "-p", "part@^1", "part")
    assert world.start(line) == "part 1"
    world.registry.publish("part", "1.1.0", "part 2")
    assert world.start(line) == "part 1"


@pytest.mark.requirement("lock-forms")
def test_a_registry_that_the_command_line_names_is_asked_for_the_lock(world: World) -> None:
    with running(NpmRegistry()) as other:
        other.publish("demo", "3.0.0", "three")
        line = ("npx", "-y", "--registry", other.url, "demo")
        assert world.start(line) == "three"
        other.publish("demo", "4.0.0", "four")
        world.forget_files()
        assert world.start(line) == "three"
    assert world.start() == "one"


@pytest.mark.requirement("lock-update")
def test_an_update_stays_within_the_range_of_the_command_line(world: World) -> None:
    line = ("npx", "-y", "demo@<2")
    assert world.start(line) == "one"
    request = read_package(line)
    assert request is not None
    world.registry.publish("demo", "1.5.0", "one and a half")
    world.registry.publish("demo", "2.0.0", "two")
    with pytest.raises(PackageError, match=r"demo@2\.0\.0 is not within the command's range, <2") as raised:
        request.resolve(Tools(world.env), "2.0.0")
    assert raised.value.hint == "Write demo@2.0.0 in the command: multi-mcp edit"
    assert request.resolve(Tools(world.env), "1.5.0").version == "1.5.0"


@pytest.mark.requirement("lock-only")
def test_a_server_that_was_renamed_starts_what_was_locked_for_it(world: World) -> None:
    world.configured |= {"beside"}
    assert world.start() == "one"
    world.registry.publish("demo", "2.0.0", "two")
    shutil.rmtree(world.root / "npm-cache")
    assert world.start(server="beside") == "two"  # a new server, which locks the newest version
    world.configured = {"after", "beside"}
    world.registry.online = False
    assert world.start(server="after") == "one"
    assert [one.version for one in world.locks.file.find("after", "npm:demo")] == ["1.0.0"]
