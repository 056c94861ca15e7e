"""The command lines that the lock reads, its file, and container images."""

from __future__ import annotations

from pathlib import Path

import pytest

from trayapp.model.errors import ConnectFailedError
from trayapp.packages.lock_file import LockFile, UnreadableLockError
from trayapp.packages.locks import Locks, read_package
from trayapp.packages.tools import Tools


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
    assert kept.file.find("s", "oci:mcp/demo:1")[0].version == "1@aa"


@pytest.mark.parametrize(
    ("says", "title"),
    [
        ("Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?", "docker is not running"),
        ("pull access denied for mcp/demo, repository does not exist", "No registry has the image mcp/demo"),
        ("dial tcp: lookup registry.test: no such host", "docker failed: dial tcp"),
    ],
)
def test_an_image_that_cannot_be_had_says_what_to_do(tmp_path: Path, says: str, title: str) -> None:
    program = tmp_path / "docker"
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 1\n", "utf-8")
    program.chmod(0o755)
    kept = Locks(LockFile(tmp_path / "servers.lock"), tmp_path / "store")
    with pytest.raises(ConnectFailedError, match=title):
        kept.argv("s", ("docker", "run", "-i", "mcp/demo"), Tools({"PATH": f"{tmp_path}:/bin"}), scripts=True)
