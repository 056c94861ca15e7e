"""The lock over random states of registries, and the command lines that it reads."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from trayapp.model.errors import ConnectFailedError
from trayapp.packages import locks as locks_module
from trayapp.packages.lock_file import LockedPackage, LockFile, PackageError, UnreadableLockError
from trayapp.packages.locks import Locks, read_package
from trayapp.packages.pypi import PypiRequest
from trayapp.packages.tools import Tools


@dataclass
class Registry:
    """A registry with one package: content by version. Versions may go, and content may change."""

    versions: dict[str, str] = field(default_factory=dict)
    online: bool = True


@dataclass
class FakeRequest:
    """A Request of that registry. It checks hashes as npm, uv and docker do."""

    registry: Registry
    spec: str = "npm:demo"
    pinned: bool = False
    has_versions: bool = True

    def resolve(self, tools: Tools, now: float, version: str | None = None) -> LockedPackage:
        if not self.registry.online or not self.registry.versions:
            raise PackageError("not to be had")
        version = version or max(self.registry.versions)
        content = self.registry.versions[version]
        return LockedPackage("npm", "demo", version, f"hash of {content}", content, now)

    def newest(self, tools: Tools, before: float, locked: LockedPackage) -> str | None:
        return max(self.registry.versions, default=None)

    def is_fetched(self, locked: LockedPackage, folder: Path) -> bool:
        return (folder / "program").is_file()

    def fetch(self, locked: LockedPackage, folder: Path, tools: Tools, *, scripts: bool) -> None:
        found = self.registry.versions.get(locked.version) if self.registry.online else None
        if f"hash of {found}" != locked.integrity:
            raise PackageError("changed, withdrawn or offline")
        (folder / "program").write_text(str(found), "utf-8")

    def argv(self, locked: LockedPackage, folder: Path, env: Mapping[str, str]) -> tuple[str, ...]:
        return ((folder / "program").read_text("utf-8"),)


@pytest.mark.requirement("lock-only")
def test_nothing_that_is_not_locked_starts_in_a_thousand_random_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, registry, started, refused = random.Random(23), Registry(), 0, 0
    monkeypatch.setattr(locks_module, "read_package", lambda argv: FakeRequest(registry))
    kept = Locks(LockFile(tmp_path / "servers.lock"), tmp_path / "store")
    approved = ""
    for step in range(1000):
        what = chance.random()
        if what < 0.3:
            registry.versions[f"{len(registry.versions) % 7}"] = f"content {step}"  # a release, or other content
        elif what < 0.4 and registry.versions:
            del registry.versions[chance.choice(sorted(registry.versions))]
        elif what < 0.5:
            registry.online = not registry.online
        elif what < 0.55:
            for folder in (tmp_path / "store").glob("*/program"):
                folder.unlink()
        elif what < 0.6 and registry.online and registry.versions:  # an update that the user agreed to
            one = FakeRequest(registry).resolve(Tools({}), step)
            kept.file.put("s", "npm:demo", one)
            approved = one.content
            kept.clean()
        locked = kept.file.find("s", "npm:demo")
        try:
            (content,) = kept.argv("s", ("npx", "demo"), Tools({}), scripts=True)
        except ConnectFailedError:
            refused += 1
            continue
        started += 1
        approved = approved if locked else content
        assert content == approved == kept.file.find("s", "npm:demo")[0].content
    assert started > 100
    assert refused > 20


@pytest.mark.parametrize(
    ("line", "spec"),
    [
        ("npx -y demo", "npm:demo"),
        ("npx @a/demo@1.2.3 x", "npm:@a/demo@1.2.3"),
        ("npx -y -p @a/demo@^1 demo-mcp", "npm:@a/demo@^1"),
        ("npm exec -y --package=demo -- demo", "npm:demo"),
        ("uvx demo", "pypi:demo"),
        ("uvx demo@latest", "pypi:demo"),
        ("uvx demo@1.2", "pypi:demo==1.2"),
        ("uvx demo==1.2 --flag", "pypi:demo==1.2"),
        ("uvx --from demo[cli]>=1,<2 demo-mcp", "pypi:demo[cli]>=1,<2"),
        ("uvx --python 3.12 --with extra --with more==1 demo", "pypi:demo|extra|more==1|3.12"),
        ("uv tool run demo", "pypi:demo"),
        ("pipx run --spec demo==1 demo-mcp", "pypi:demo==1"),
        ("docker run -i --rm mcp/demo", "oci:mcp/demo"),
        ("docker run -i --rm -e TOKEN -v /a:/b ghcr.io/a/demo:1 serve", "oci:ghcr.io/a/demo:1"),
        ("podman run --rm --env=A=b -i demo", "oci:demo"),
        ("docker run -itd --rm demo", "oci:demo"),
        ("/usr/bin/npx -y demo", "npm:demo"),
        (r"C:\\node\\npx.cmd -y demo", "npm:demo"),
        ("cmd /c npx -y demo", "npm:demo"),
        ("~/.local/bin/uvx demo", "pypi:demo"),
    ],
)
@pytest.mark.requirement("lock-forms")
def test_a_command_line_names_its_package(line: str, spec: str) -> None:
    request = read_package(tuple(line.split()))
    assert request is not None
    assert request.spec == spec


@pytest.mark.parametrize(
    "line",
    [
        "node server.js", "npx", "npx -c demo", "npx ./demo", "npx github:a/b", "uvx --from git+https://h/a demo",
        "uvx ./demo", "uvx --offline demo", "uvx", "docker compose up", "docker run -i", "uv run demo",
        "docker run -i demo@sha256:00", "/opt/my-npx demo",
    ],
)  # fmt: skip
@pytest.mark.requirement("lock-forms")
def test_other_command_lines_start_as_written(line: str, tmp_path: Path) -> None:
    kept = Locks(LockFile(tmp_path / "servers.lock"), tmp_path / "store")
    assert kept.argv("s", tuple(line.split()), Tools({}), scripts=True) == tuple(line.split())
    assert not any(tmp_path.iterdir())


@pytest.mark.requirement("lock-only")
@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"version":2,"servers":{}}', '{"version":1,"servers":{"s":{"npm:demo":[{}]}}}']
)
def test_a_lock_file_that_cannot_be_read_starts_nothing(text: str, tmp_path: Path) -> None:
    path = tmp_path / "servers.lock"
    path.write_text(text, "utf-8")
    with pytest.raises(UnreadableLockError, match="Restore the file"):
        Locks(LockFile(path), tmp_path / "store").argv("s", ("npx", "demo"), Tools({}), scripts=True)
    assert path.read_text("utf-8") == text


UV = """#!/bin/sh
case "$1 $2" in
"pip compile") printf 'demo==%s \\\\\n    --hash=sha256:aa \\\\\n    --hash=sha256:bb\n' "$DEMO" ;;
"venv --quiet") mkdir -p "$3/bin" ;;
"pip install") [ -z "$BAD" ] || { echo "Hash mismatch for demo" >&2; exit 1; }
    printf '#!/bin/sh\n' > "$(dirname "${!#}")/demo" ;;
esac
"""


@pytest.mark.requirement("lock-only")
def test_a_package_of_pypi_is_installed_by_its_hashes(tmp_path: Path) -> None:
    """By a uv of ours that says what uv says; the real one is tried by hand."""
    program = tmp_path / "uv"
    program.write_text(UV.replace("#!/bin/sh\ncase", "#!/bin/bash\ncase", 1), "utf-8")
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "DEMO": "1.0"}
    kept = Locks(LockFile(tmp_path / "servers.lock"), tmp_path / "store")
    with pytest.raises(ConnectFailedError, match=r"demo==1\.0 changed"):
        kept.argv("s", ("uvx", "demo"), Tools(env | {"BAD": "1"}), scripts=True)
    started, *rest = kept.argv("s", ("uvx", "demo", "word"), Tools(env | {"DEMO": "2.0"}), scripts=True)
    assert Path(started).is_file()
    assert rest == ["word"]
    (one,) = kept.file.find("s", "pypi:demo")
    assert (one.version, one.integrity) == ("1.0", "sha256:aa sha256:bb")
    assert isinstance(read_package(("uvx", "demo")), PypiRequest)


@pytest.mark.requirement("lock-only")
def test_a_server_that_was_renamed_starts_what_was_locked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, present = Registry({"1": "old"}), {"before", "beside"}
    monkeypatch.setattr(locks_module, "read_package", lambda argv: FakeRequest(registry))
    kept = Locks(LockFile(tmp_path / "servers.lock"), tmp_path / "store", configured=lambda: present)
    assert kept.argv("before", ("x",), Tools({}), scripts=True) == ("old",)
    registry.versions["2"] = "new"
    assert kept.argv("beside", ("x",), Tools({}), scripts=True) == ("new",)  # a server of its own
    present.remove("before")
    present.add("after")
    registry.online = False
    assert kept.argv("after", ("x",), Tools({}), scripts=True) == ("old",)
    assert [one.version for one in kept.file.find("after", "npm:demo")] == ["1"]


DOCKER = """#!/bin/sh
case "$1" in
pull) echo x > "$STATE" ;;
image) [ -f "$STATE" ] || exit 1; echo '["mcp/demo@sha256:'$DIGEST'"] sha256:id' ;;
esac
"""


@pytest.mark.requirement("lock-only")
def test_an_image_runs_by_the_digest_that_was_locked(tmp_path: Path) -> None:
    program = tmp_path / "docker"
    program.write_text(DOCKER, "utf-8")
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "STATE": str(tmp_path / "state"), "DIGEST": "aa"}
    kept = Locks(LockFile(tmp_path / "servers.lock"), tmp_path / "store")
    line = ("docker", "run", "-i", "--rm", "mcp/demo:1", "serve")
    locked = ("docker", "run", "-i", "--rm", "mcp/demo@sha256:aa", "serve")
    assert kept.argv("s", line, Tools(env), scripts=True) == locked
    assert kept.argv("s", line, Tools(env | {"DIGEST": "bb"}), scripts=True) == locked
