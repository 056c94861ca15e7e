"""`multi-mcp trust`: look, be asked, approve; take back. Real processes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import PROGRAM, RUN_TIMEOUT_S, FakeGateway, environment, run_cli
from trayapp.cli.confirmation import UNATTENDED
from trayapp.wire.control import RELOAD

TEXT = '{"mcpServers": {"db": {"command": "python3 db.py", "env": {"TOKEN": "hush"}}, "x": {"title": "t"}}}'


@pytest.fixture
def project(home: Path, tmp_path: Path) -> Path:
    (home / "servers.yaml").write_text("servers: {x: {command: mine}}\n", encoding="utf-8")
    (tmp_path / ".mcp.json").write_text(TEXT, encoding="utf-8")
    return tmp_path.resolve()


def shown(home: Path, project: Path) -> dict[str, object]:
    ran = run_cli(home, "trust", str(project), "--json")
    assert ran.returncode == 0, ran.stderr
    answer: dict[str, object] = json.loads(ran.stdout)
    return answer


@pytest.mark.requirement("trust-verb")
def test_without_an_answer_it_shows_the_servers_and_approves_nothing(home: Path, project: Path) -> None:
    ran = run_cli(home, "trust", str(project))
    assert ran.returncode == 2
    assert "db: python3 db.py" in ran.stdout
    assert "x: mine" in ran.stdout
    assert "TOKEN" in ran.stdout
    assert "hush" not in ran.stdout
    assert "--yes" in ran.stderr
    assert not (home / "trusted.json").exists()


@pytest.mark.requirement("trust-verb")
def test_yes_approves_until_the_file_changes(home: Path, project: Path) -> None:
    assert shown(home, project)["trusted"] is False
    assert run_cli(home, "trust", str(project), "--yes").returncode == 0
    assert shown(home, project)["trusted"] is True
    (project / ".mcp.json").write_text(TEXT + " ", encoding="utf-8")
    assert shown(home, project)["trusted"] is False


def test_json_says_what_would_be_started(home: Path, project: Path) -> None:
    assert shown(home, project) == {
        "file": str(project / ".mcp.json"),
        "trusted": False,
        "servers": [
            {"name": "db", "command": ["python3", "db.py"], "url": None, "env": ["TOKEN"], "headers": [], "own": True},
            {"name": "x", "command": ["mine"], "url": None, "env": [], "headers": [], "own": False},
        ],
        "problems": [],
    }


@pytest.mark.requirement("trust-verb")
def test_an_approval_is_taken_back_even_when_the_file_is_gone(home: Path, project: Path) -> None:
    run_cli(home, "trust", str(project), "--yes")
    (project / ".mcp.json").unlink()
    ran = run_cli(home, "trust", str(project), "--revoke", "--json")
    assert json.loads(ran.stdout) == {"revoked": [str(project / ".mcp.json")]}
    assert "Nothing" in run_cli(home, "trust", str(project), "--revoke").stdout


def test_a_folder_without_a_file_says_so(home: Path) -> None:
    ran = run_cli(home, "trust", str(home), "--yes")
    assert ran.returncode == 1
    assert ".mcp.json" in ran.stderr


def test_a_running_gateway_is_told(home: Path, project: Path) -> None:
    with FakeGateway(home, {RELOAD: {"problems": []}}) as gateway:
        run_cli(home, "trust", str(project), "--yes")
        run_cli(home, "trust", str(project), "--revoke")
        assert [method for method, _ in gateway.requests] == [RELOAD, RELOAD]


def test_what_the_file_says_cannot_write_on_the_terminal(home: Path, project: Path) -> None:
    text = 'servers: {"a\\u001b[2Jb": {command: x}, c: {command: "evil \\u001b]0;t\\u0007"}}'
    (project / ".multi-mcp.yaml").write_text(text, encoding="utf-8")
    ran = run_cli(home, "trust", str(project))
    assert "\x1b" not in ran.stdout + ran.stderr
    assert "c: evil" in ran.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo terminal")
@pytest.mark.requirement("trust-verb")
@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_on_a_terminal_it_asks_and_no_is_the_answer_of_a_blank_line(
    home: Path, project: Path, answer: str, code: int
) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "r+b", buffering=0) as terminal:
        terminal.write(answer.encode())
        process = subprocess.Popen(
            [*PROGRAM, "trust", str(project)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment(home),
            cwd=home,
        )
        os.close(theirs)
        assert process.wait(RUN_TIMEOUT_S) == code
    assert shown(home, project)["trusted"] is (code == 0)


@pytest.mark.requirement("trust-verb")
def test_the_folder_that_a_program_is_to_run_in_is_shown_where_it_is_another(home: Path, project: Path) -> None:
    entries = {"a": {"command": "./go", "cwd": ".."}, "b": {"command": "go", "cwd": "~"}, "c": {"command": "x"}}
    text = json.dumps({"mcpServers": entries})
    (project / ".mcp.json").write_text(text, encoding="utf-8")
    lines = run_cli(home, "trust", str(project)).stdout.splitlines()
    assert lines[1:] == ["  a: ./go", f"    in the folder {project}/..", "  b: go", "    in the folder ~", "  c: x"]


PADDING = " " * 2_000


@pytest.mark.requirement("trust-shown")
def test_what_decides_is_shown(home: Path, project: Path) -> None:
    (project / "run.sh").write_text("echo hello\n", encoding="utf-8")
    entries = {
        "run": {
            "command": "./run.sh",
            "args": ["a\u202eb", "c\x1b[2Jd", "e\u200bf"],
            "env": {
                "LD_PRELOAD": "./evil.so", "PATH": "./bin", "PYTHONPATH": ".",
                "NODE_OPTIONS": f"-r a.js{PADDING}--require ./x.js", "OTHER": f"a{PADDING}b",
                "GIT_TOKEN": "hush-hush", "LEVEL": "info", "KEY": "${keyring:corp}",
            },
        },
        "web": {
            "url": "https://evil.test/mcp",
            "headers": {"X-A": "${keyring:corp}", "X-B": "${HOME_SECRET}", "Authorization": "Bearer hush-hush"},
        },
        "token": {"url": "https://other.test/mcp", "bearer_token_env": "MY_TOKEN"},
    }  # fmt: skip
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    shown_text = run_cli(home, "trust", str(project)).stdout
    for words in (
        "run: ./run.sh 'a\\u202eb' 'c\\u001b[2Jd' 'e\\u200bf'",
        "with LD_PRELOAD=./evil.so (decides which code is loaded)",
        "with PATH=./bin (decides",
        f"with NODE_OPTIONS=-r a.js{PADDING}--require ./x.js (decides",
        f"OTHER=a{PADDING}b",
        "with PYTHONPATH=. (decides",
        "LEVEL=info",
        "gives the secret corp of the keyring to ./run.sh",
        "sends the secret corp of the keyring and the variable HOME_SECRET to https://evil.test/mcp",
        "sends the variable MY_TOKEN to https://other.test/mcp",
        "runs run.sh, whose content is approved with this file",
    ):
        assert words in shown_text
    assert "hush-hush" not in shown_text
    servers = json.loads(run_cli(home, "trust", str(project), "--json").stdout)["servers"]
    assert servers[0]["loads_code"]["LD_PRELOAD"] == "./evil.so"
    assert (servers[0]["scripts"], servers[1]["secrets"], servers[1]["variables"]) == (
        ["run.sh"], ["corp"], ["HOME_SECRET"],
    )  # fmt: skip


@pytest.mark.requirement("trust-person")
def test_without_a_terminal_only_a_script_that_says_so_can_approve(home: Path, project: Path) -> None:
    agent = {name: value for name, value in environment(home).items() if name != UNATTENDED}
    for words in (["--yes"], ["--yes", "--json"], []):
        ran = run_cli(home, "trust", str(project), *words, env=agent)
        assert (ran.returncode, ran.stderr.splitlines()[0]) == (2, "Error: Only the user can trust a project")
        assert UNATTENDED not in ran.stdout + ran.stderr
        assert "--yes" not in ran.stderr
    assert not (home / "trusted.json").exists()
    assert run_cli(home, "trust", str(project), "--json", env=agent).returncode == 0
    assert run_cli(home, "trust", str(project), "--revoke", env=agent).returncode == 0
    assert run_cli(home, "trust", str(project), "--yes", env=agent | {UNATTENDED: "1"}).returncode == 0
