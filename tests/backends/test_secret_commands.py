"""Commands that supply secrets: they need approval, run within limits, and their output is treated as secret."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from tests.fixtures.secrets import no_secrets
from trayapp.auth.vault import Secrets
from trayapp.backends import secret_commands as module
from trayapp.backends.launch import NO_SECRETS, StdioLaunch, prepare_start
from trayapp.backends.secret_commands import SecretSources
from trayapp.config.layers.project import TrustStore
from trayapp.model.config import ServerConfig
from trayapp.model.errors import CommandNotApprovedError, ConfigError
from trayapp.model.redact import REDACTED, redacted

pytestmark = pytest.mark.anyio

SECRET = "cmd-plum-tree-4-lantern"
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="the commands are of a POSIX system")


def sources(*approved: str) -> SecretSources:
    async def vault(names: Sequence[str]) -> Secrets:
        return Secrets({"kept": "of-the-vault"})

    return SecretSources(vault, approved.__contains__, {"PATH": "/usr/bin:/bin"})


async def launched(entry: str, commands: SecretSources) -> StdioLaunch:
    server = ServerConfig("one", command="/bin/sh", env={"TOKEN": entry, "K": "${keyring:kept}"})
    launch = await prepare_start(server, {"PATH": "/usr/bin:/bin"}, commands.secrets, time.time())
    assert isinstance(launch, StdioLaunch)
    return launch


@POSIX
@pytest.mark.requirement("secret-command")
async def test_the_output_of_an_approved_command_is_the_secret() -> None:
    command = f"printf '%s\\n' {SECRET}"
    launch = await launched(f"Bearer ${{cmd:{command}}}", sources(command))
    assert launch.env["TOKEN"] == f"Bearer {SECRET}"
    assert launch.env["K"] == "of-the-vault"
    assert redacted(f"it is {SECRET}") == f"it is {REDACTED}"


@pytest.mark.requirement("secret-command")
@pytest.mark.parametrize("approved", ["", "echo b", "echo a ", "echo"])
async def test_another_command_than_the_approved_one_is_not_run(tmp_path: Path, approved: str) -> None:
    with pytest.raises(CommandNotApprovedError, match="The command of a secret is not approved: `touch "):
        await launched(f"${{cmd:touch {tmp_path / 'ran'}}}", sources(approved))
    assert not (tmp_path / "ran").exists()


@POSIX
@pytest.mark.requirement("secret-command")
@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("sh -c 'echo no vault >&2; exit 3'", "failed: no vault"),
        ("false", "failed with exit code 1"),
        ("true", "printed no usable secret"),
        ("no-such-program-here x", "Cannot find the program that prints a secret"),
        ("head -c 70000 /dev/zero", "printed no usable secret"),
        ("echo 'x", "Cannot read the command"),
    ],
)
async def test_a_command_that_brings_nothing_says_why(command: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        await launched(f"${{cmd:{command}}}", sources(command))


@POSIX
@pytest.mark.requirement("secret-command")
async def test_one_that_hangs_is_ended_with_what_it_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "LIMIT_S", 0.2)
    command = f"sh -c 'sleep 1; echo x > {tmp_path / 'late'}'"
    with pytest.raises(ConfigError, match=r"took longer than 0\.2 s"):
        await launched(f"${{cmd:{command}}}", sources(command))
    await anyio.sleep(1.5)
    assert not (tmp_path / "late").exists()


@POSIX
async def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    command = f"echo a; touch {tmp_path / 'ran'}"
    launch = await launched(f"${{cmd:{command}}}", sources(command))
    assert launch.env["TOKEN"] == f"a; touch {tmp_path / 'ran'}"
    assert not (tmp_path / "ran").exists()


async def test_without_commands_the_vault_alone_is_asked() -> None:
    assert await SecretSources(no_secrets, lambda command: False, {}).secrets(["a"]) is NO_SECRETS


@pytest.mark.requirement("secret-command", "trust-content")
def test_approvals_of_commands_and_of_projects_stand_beside_each_other(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "trusted.json")
    assert not store.is_approved("op read x")
    store.approve_commands(["op read x", "op read x", "pass show y"])
    store.revoke(tmp_path / ".mcp.json")
    assert store.is_approved("op read x")
    assert store.is_approved("pass show y")
    assert not store.is_approved("op read  x")
    assert store.paths() == []
