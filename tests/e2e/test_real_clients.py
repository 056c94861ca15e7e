"""Real AI tools in a home of their own: their own `mcp list` sees the entry that connect wrote.

Claude Code and Gemini CLI start the shim for it and say that it answers; others only list. None needs an account.
Never here: what connect writes (tests/clients).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from devtools.places import NPM_CLIENTS
from tests.cli.running import environment, run_cli
from tests.servers import REMEDY
from tests.tools import require, require_file
from trayapp.config.sample import sample_text
from trayapp.service.command import shim_command

PATIENCE_S = 50.0
MODULES = NPM_CLIENTS / "node_modules"
# nothing of it is sent anywhere, and nothing is fetched
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
    "GEMINI_TELEMETRY_ENABLED": "false", "TERM": "dumb", "NO_COLOR": "1",
}  # fmt: skip


def native(package: str, name: str) -> list[str]:
    """A program that its package brings for this platform in a package of its own."""
    folder, _, prefix = package.rpartition("/")
    found = [
        path
        for platform in sorted((MODULES / folder).glob(f"{prefix}-*"))
        for path in platform.rglob(name)
        if path.is_file() and os.access(path, os.X_OK)
    ]
    return [str(require_file(found[0] if found else MODULES / folder / name, REMEDY))]


def claude_code() -> list[str]:
    return native("@anthropic-ai/claude-code", "claude")


def gemini_cli() -> list[str]:
    script = MODULES / "@google" / "gemini-cli" / "bundle" / "gemini.js"
    return [require("node"), str(require_file(script, REMEDY))]


class Person:
    """Somebody's home with that tool in it; `folder` is where they work."""

    def __init__(self, home: Path, mine: Path) -> None:
        self.home = home
        self.folder = mine / "work"
        self.folder.mkdir(parents=True)
        kept = {name: value for name, value in environment(home).items() if not name.startswith(("XDG_", "CLAUDE"))}
        self.env = kept | QUIET | {"HOME": str(mine), "USERPROFILE": str(mine)}
        (home / "servers.yaml").write_text(sample_text(), encoding="utf-8")

    def connect(self, client: str) -> None:
        done = run_cli(self.home, "connect", client, env=self.env)
        assert done.returncode == 0, done.stderr

    def lists(self, argv: list[str]) -> str:
        """What `ARGV mcp list` says."""
        done = subprocess.run(
            [*argv, "mcp", "list"],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE_S,
            check=False,
        )
        return done.stdout + done.stderr


@pytest.fixture
def person(home: Path, tmp_path: Path) -> Iterator[Person]:
    yield Person(home, tmp_path)
    run_cli(home, "stop")


@pytest.mark.requirement("client-real")
def test_claude_code_is_connected(person: Person, tmp_path: Path) -> None:
    argv = claude_code()
    (tmp_path / ".claude").mkdir()
    person.connect("claude-code")
    (line,) = [line for line in person.lists(argv).splitlines() if line.startswith("multi-mcp:")]
    assert " ".join(shim_command()) in line
    assert line.endswith("Connected")


@pytest.mark.requirement("client-real")
def test_gemini_cli_is_connected(person: Person, tmp_path: Path) -> None:
    argv = gemini_cli()
    (tmp_path / ".gemini").mkdir()
    trusted = tmp_path / ".gemini" / "trustedFolders.json"
    trusted.write_text(json.dumps({str(person.folder): "TRUST_FOLDER"}), encoding="utf-8")
    person.connect("gemini-cli")
    (line,) = [line for line in person.lists(argv).splitlines() if "multi-mcp:" in line]
    assert line.endswith("Connected")


# All were tried and saw the entry (Codex 0.169.0: its command and "enabled"; OpenCode: "connected"; Copilot CLI:
# "multi-mcp (local)"); they are 404, 350 and 190 MB, which is too much for every run of the tests.
LARGE = {
    "codex": (".codex", "codex"), "opencode": (".config/opencode", "opencode"), "copilot-cli": (".copilot", "copilot"),
}  # fmt: skip


@pytest.mark.parametrize("client", LARGE)
def test_a_tool_that_is_installed_sees_the_entry(person: Person, tmp_path: Path, client: str) -> None:
    folder, program = LARGE[client]
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not on the PATH; it is too large to be installed for the tests")
    (tmp_path / folder).mkdir(parents=True)
    person.connect(client)
    (line,) = [line for line in person.lists([found]).splitlines() if "multi-mcp" in line]
    assert client != "codex" or (shim_command()[0] in line and " enabled " in line)
