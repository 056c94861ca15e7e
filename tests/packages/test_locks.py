"""The lock: the command lines that it reads, its file, and container images."""

from __future__ import annotations

from pathlib import Path

import pytest

from trayapp.model.errors import ConnectFailedError
from trayapp.packages.lock_file import LockFile, UnreadableLockError
from trayapp.packages.locks import Locks, not_locked, read_package
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
        ("npx -y --quiet demo --verbose", "npm:demo"),
        ("npx -y --silent @acme/wiki-mcp@1.2.3", "npm:@acme/wiki-mcp@1.2.3"),
        ("npx --loglevel=error -y demo", "npm:demo"),
        ("npx --loglevel error -q -s -d --no-audit --prefer-offline demo", "npm:demo"),
        ("npx -y -- demo", "npm:demo"),
        ("npx --yes=true demo", "npm:demo"),
        ("npx -p demo -p part demo", "npm:demo|part"),
        ("npx --reg https://u:secret@h/ demo", "npm:demo|--reg=https://[redacted]@h/"),
        ("npx --@a:registry=https://h/ --cache /c demo", "npm:demo|--@a:registry=https://h/|--cache=/c"),
        ("npm exec -y demo", "npm:demo"),
        ("npm exec demo --silent -- --port 3", "npm:demo"),
        ("npm --silent x demo", "npm:demo"),
        ("uvx -q --refresh --isolated --no-cache -U --color never demo", "pypi:demo"),
        ("uvx -qp3.12 -w extra demo", "pypi:demo|extra|3.12"),
        ("uvx -i https://h/s --prerelease=allow demo", "pypi:demo|--index-url=https://h/s|--prerelease=allow"),
        ("uvx --offline demo", "pypi:demo|--offline"),
        ("uv --quiet tool run --no-progress demo", "pypi:demo"),
        ("pipx run --no-cache -i https://h/s demo", "pypi:demo|--index-url=https://h/s"),
        ("docker container run -i demo", "oci:demo"),
        ("docker --context away run -ieA=b -v/a:/b -p 1:1 --restart no demo:1 -x", "oci:demo:1"),
        ("docker run --platform linux/amd64 demo", "oci:demo|--platform=linux/amd64"),
        ("podman container run --replace --tz local demo", "oci:demo"),
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
        "node server.js", "npx", "npx ./demo", "npx github:a/b", "npx --no-install demo", "npm run exec",
        "uvx --from git+https://h/a demo", "uvx ./demo", "uvx --with-editable . demo", "uvx", "uv tool install demo",
        "docker compose up", "docker run -i", "uv run demo", "docker run -i demo@sha256:00", "/opt/my-npx demo",
        "npx -y <package>", "docker run ${IMAGE}",
    ],
)  # fmt: skip
@pytest.mark.requirement("lock-forms")
def test_other_command_lines_start_as_written(line: str, tmp_path: Path) -> None:
    kept = Locks(LockFile(tmp_path / "servers.lock"), tmp_path / "store")
    assert kept.argv("s", tuple(line.split()), Tools({}), scripts=True) == tuple(line.split())
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("npx -c demo", "npx with its option -c"),
        ("npx --unheard-of demo", "npx with its option --unheard-of"),
        ("npx --yes true demo", "npx with a value of --yes"),
        ("npx --cache near demo", "npx with the value near of --cache"),
        ("npx demo@npm:other@1", "npx with the package name demo@npm:other@1"),
        ("npm exec demo --port 3", "npm with its option --port"),
        ("npm --prefix /p exec demo", "npm with its option --prefix"),
        ("uvx --with-requirements r.txt demo", "uvx with its option --with-requirements"),
        ("pipx run --pip-args=--pre demo", "pipx with its option --pip-args"),
        ("docker run --unheard-of demo", "docker with its option --unheard-of"),
        ("podman run Demo", "podman with the image name Demo"),
    ],
)
@pytest.mark.requirement("lock-only")
def test_a_runner_whose_release_cannot_be_read_does_not_start_and_says_what_to_write(
    line: str, what: str, tmp_path: Path
) -> None:
    kept = Locks(LockFile(tmp_path / "servers.lock"), tmp_path / "store")
    with pytest.raises(ConnectFailedError) as raised:
        kept.argv("s", tuple(line.split()), Tools({}), scripts=True)
    assert raised.value.title == f"Cannot start s: {what} cannot be locked"
    assert raised.value.hint.startswith("To pin one release, write: ")
    assert raised.value.hint.endswith(". To start it without a locked version, set lock: false for the server")


@pytest.mark.parametrize(
    ("line", "why", "hint"),
    [
        ("npx github:a/b", "npx runs a folder or an address, which may change at any start", "npx -y PACKAGE"),
        ("npx --no demo", "npx runs the copy that is installed here (--no), which may change at any start", "npx -y"),
        ("uvx --from git+https://h/a demo", "uvx runs a folder or an address, which may", "uvx PACKAGE"),
        ("bunx demo", "bunx runs the newest release at each start", "npx -y PACKAGE"),
        ("/home/a/.bun/bin/bunx --bun demo", "bunx runs", "npx -y PACKAGE"),
        ("bun x demo", "bun runs", "npx -y PACKAGE"),
        ("pnpm --silent dlx demo", "pnpm runs", "npx -y PACKAGE"),
        ("yarn dlx demo", "yarn runs", "npx -y PACKAGE"),
        ("deno run -A npm:demo", "deno runs", "npx -y PACKAGE"),
        ("uv run --with mcp mcp run server.py", "uv runs", "uvx --from PACKAGE PROGRAM"),
        ("dnx demo", "dnx runs", "dnx PACKAGE@VERSION"),
        ("sh -c npx\xa0demo", "sh starts npx, which runs", "without sh"),
        ("env A=b uvx demo", "env starts uvx, which runs", "without env"),
    ],
)
@pytest.mark.requirement("lock-said")
def test_what_runs_a_package_that_is_not_locked_says_so_and_what_to_write(line: str, why: str, hint: str) -> None:
    told = not_locked(tuple(word.replace("\xa0", " ") for word in line.split(" ")))
    assert told is not None
    assert told.why.startswith(why)
    assert hint in told.hint
    assert told.starts


@pytest.mark.parametrize(
    "line",
    [
        "node server.js", "npx -y demo", "uvx demo", "docker run demo", "uv run server.py", "deno run main.ts",
        "bun run x", "pnpm start", "dnx demo@1.2", "docker run demo@sha256:" + "0" * 64, "python -m npx",
    ],
)  # fmt: skip
@pytest.mark.requirement("lock-said")
def test_what_is_locked_or_runs_no_package_by_name_says_nothing(line: str) -> None:
    assert not_locked(tuple(line.split())) is None


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
