"""`multi-mcp secret` in real processes: with a fake gateway, and without a gateway but with a real keyring."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.auth.places import desk
from tests.cli.running import PROGRAM, RUN_TIMEOUT_S, FakeGateway, environment, run_cli
from trayapp.model.errors import KeyringUnavailableError, MissingVariableError
from trayapp.wire.control import SECRET_DELETE, SECRET_LIST, SECRET_SET

VALUE = "s3cr3t ✓ value"


@pytest.fixture(scope="module")
def session() -> Iterator[dict[str, str]]:
    with desk() as made:
        yield made.environ


def own(home: Path, session: dict[str, str], **more: str) -> dict[str, str]:
    return {**environment(home), **session, "MULTI_MCP_HOME": str(home), "PYTHONIOENCODING": "utf-8", **more}


@pytest.mark.requirement("secret-verbs")
def test_without_a_gateway_secrets_are_kept_listed_and_deleted(home: Path, session: dict[str, str]) -> None:
    env = own(home, session)
    ran = run_cli(home, "secret", "set", "github", stdin=f"{VALUE}\n", env=env)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "Kept: ${keyring:github}\n", "")
    assert run_cli(home, "secret", "list", env=env).stdout == "github\n"
    assert json.loads(run_cli(home, "secret", "list", "--json", env=env).stdout) == ["github"]
    assert run_cli(home, "secret", "delete", "github", env=env).stdout == "Deleted github\n"
    again = run_cli(home, "secret", "delete", "github", env=env)
    assert (again.returncode, again.stderr) == (1, "Error: No secret is named github\nSee: multi-mcp secret list\n")
    assert run_cli(home, "secret", "list", env=env).stdout == "No secrets\n"


@pytest.mark.requirement("secret-verbs")
def test_each_home_has_secrets_of_its_own(home: Path, session: dict[str, str], tmp_path: Path) -> None:
    run_cli(home, "secret", "set", "mine", stdin=VALUE, env=own(home, session))
    other = own(home, session, MULTI_MCP_HOME=str(tmp_path))
    assert run_cli(home, "secret", "list", env=other).stdout == "No secrets\n"


@pytest.mark.requirement("secret-verbs")
def test_the_encrypted_file_takes_the_place_of_the_keyring(home: Path) -> None:
    (home / "servers.yaml").write_text("settings: {token_store: file}\n", encoding="utf-8")
    env = environment(home, MULTI_MCP_PASSPHRASE="correct horse")
    assert run_cli(home, "secret", "set", "github", stdin=VALUE, env=env).returncode == 0
    assert run_cli(home, "secret", "list", env=env).stdout == "github\n"
    assert "s3cr3t" not in (home / "secrets.sealed").read_text(encoding="utf-8")
    wrong = run_cli(home, "secret", "list", env=environment(home, MULTI_MCP_PASSPHRASE="wrong"))
    assert wrong.returncode == 1
    assert "does not open" in wrong.stderr


def test_without_a_keyring_it_says_so_and_keeps_nothing(home: Path) -> None:
    env = environment(home, DBUS_SESSION_BUS_ADDRESS="unix:path=/nowhere", XDG_RUNTIME_DIR="/nowhere")
    ran = run_cli(home, "secret", "set", "github", stdin=VALUE, env=env)
    assert ran.returncode == 1
    assert ran.stderr.startswith("Error: There is no keyring\nInstall")
    assert VALUE not in ran.stdout + ran.stderr


@pytest.mark.requirement("secret-verbs")
def test_a_gateway_is_asked_where_one_runs(home: Path) -> None:
    answers = {SECRET_SET: {"kept": True}, SECRET_LIST: {"names": ["a", "b"]}, SECRET_DELETE: {"deleted": True}}
    with FakeGateway(home, answers) as gateway:
        run_cli(home, "secret", "set", "a", stdin=f"{VALUE}\r\n")
        assert run_cli(home, "secret", "list").stdout == "a\nb\n"
        run_cli(home, "secret", "delete", "a")
    assert gateway.requests == [
        (SECRET_SET, {"name": "a", "value": VALUE}),
        (SECRET_LIST, {}),
        (SECRET_DELETE, {"name": "a"}),
    ]


def test_a_value_that_lives_in_memory_only_is_said_to(home: Path) -> None:
    with FakeGateway(home, {SECRET_SET: {"kept": False}}):
        ran = run_cli(home, "secret", "set", "a", stdin=VALUE)
    assert ran.returncode == 0
    assert "lost when the gateway ends" in ran.stderr


@pytest.mark.parametrize("error", [KeyringUnavailableError("The keyring is locked", "Unlock it", "locked"),
                                   MissingVariableError(["keyring:x"])])  # fmt: skip
def test_what_the_gateway_refuses_is_said(home: Path, error: KeyringUnavailableError) -> None:
    with FakeGateway(home, {SECRET_SET: error}):
        ran = run_cli(home, "secret", "set", "a", stdin=VALUE)
    assert ran.stderr == f"Error: {error.title}\n{error.hint}\n"


@pytest.mark.requirement("secret-verbs")
@pytest.mark.parametrize("argv", [["set", "a", "hush"], ["set", "a", "hush", "--json"], ["set", "a", "hush", "more"]])
def test_a_value_on_the_command_line_is_refused_and_not_repeated(home: Path, argv: list[str]) -> None:
    ran = run_cli(home, "secret", *argv)
    assert ran.returncode == 2
    assert "hush" not in ran.stdout + ran.stderr
    assert "stdin" in ran.stderr


@pytest.mark.parametrize(("name", "value"), [("a:b", "x"), ("a}", "x"), (" ", "x"), ("a", "")])
def test_a_name_or_value_that_cannot_be_is_a_usage_error(
    home: Path, session: dict[str, str], name: str, value: str
) -> None:
    ran = run_cli(home, "secret", "set", name, stdin=value, env=own(home, session))
    assert (ran.returncode, ran.stdout) == (2, "")


@pytest.mark.requirement("secret-verbs")
def test_a_person_is_asked_without_echo(home: Path) -> None:
    with FakeGateway(home, {SECRET_SET: {"kept": True}}) as gateway:
        ours, theirs = pty.openpty()
        argv = [*PROGRAM, "secret", "set", "a"]
        with subprocess.Popen(argv, cwd=home, env=environment(home), stdin=theirs, stdout=theirs, stderr=theirs) as ran:
            os.close(theirs)
            shown = os.read(ours, 100)
            os.write(ours, b"typed-s3cr3t\n")
            try:
                while more := os.read(ours, 1000):
                    shown += more
            except OSError:  # raised when the other end closes
                pass
            assert ran.wait(RUN_TIMEOUT_S) == 0
        os.close(ours)
    assert gateway.requests == [(SECRET_SET, {"name": "a", "value": "typed-s3cr3t"})]
    assert b"Value of a" in shown
    assert b"typed" not in shown
