"""Hints and questions on a terminal for a person whose AI tools have servers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.cli.persons import Person
from tests.cli.running import PROGRAM, RUN_TIMEOUT_S

if sys.platform == "win32":
    pytest.skip("terminals are another thing there", allow_module_level=True)

import pty

WORDS = "Cursor has 2 servers of its own. Next: multi-mcp setup"
CONNECT = "No AI tool is connected yet. Connect yours with: multi-mcp setup"
SERVERS = """\
{"mcpServers": {
  "a": {"command": "x"},
  "b": {"command": "y", "env": {"TOKEN": "ghp_abcdefghijklmnop123456"}}
}}"""


def on_terminal(person: Person, *words: str, typed: Sequence[str] = (), stopped_at: str = "") -> str:
    """Run `multi-mcp WORDS...` on a terminal, type the lines, and return what is shown.

    `stopped_at`: stop the gateway when this text appears.
    """
    terminal, other = pty.openpty()
    env = person.env | {"TERM": "xterm" if stopped_at else "dumb"}  # a dumb terminal shows no live screen
    process = subprocess.Popen([*PROGRAM, *words], cwd=person.folder, env=env, stdin=other, stdout=other, stderr=other)
    os.close(other)
    for line in typed:
        os.write(terminal, f"{line}\n".encode())
    shown = b""
    try:
        while data := os.read(terminal, 65536):
            shown += data
            if stopped_at and stopped_at in shown.decode(errors="replace"):
                stopped_at = ""
                person.says("stop")
    except OSError:  # raised on Linux when the other end of the terminal closes
        pass
    os.close(terminal)
    process.wait(RUN_TIMEOUT_S)
    return shown.decode().replace("\r\n", "\n")


@pytest.fixture
def cursor(person: Person) -> Iterator[Path]:
    yield person.file(".cursor/mcp.json", SERVERS)
    person.says("stop")


def test_a_first_start_on_a_terminal_says_whose_servers_can_be_taken_over(person: Person, cursor: Path) -> None:
    assert WORDS in on_terminal(person, "start", "--detach")
    assert WORDS in on_terminal(person, "status")
    assert WORDS not in person.says("status").stderr
    person.says("import", "--yes")
    assert WORDS not in on_terminal(person, "status")


@pytest.mark.requirement("cli-first-screen")
def test_the_first_screen_names_the_next_step_until_an_ai_tool_is_connected(person: Person) -> None:
    (person.mine / ".cursor").mkdir()
    assert CONNECT in on_terminal(person, "start", "--detach")
    person.says("stop")
    assert CONNECT in first_screen(person)
    person.says("connect", "cursor")
    assert "No AI tool" not in first_screen(person)


def first_screen(person: Person) -> str:
    """Run `multi-mcp` on a terminal without a desktop until its screen appears. Return what is shown."""
    return on_terminal(person, stopped_at="SERVER")


@pytest.mark.requirement("import-shown")
def test_on_a_terminal_every_step_is_asked(person: Person, cursor: Path) -> None:
    shown = on_terminal(person, "import", typed=["n"])
    assert "Import 2 servers? (all, none, or numbers such as 1,3-5): " in shown
    assert not person.servers.exists()
    shown = on_terminal(person, "import", typed=["y", "y"])
    assert (
        "No keyring here can keep secrets. In clear text: 1 secret (b.TOKEN)" in shown
    )  # so import does not offer one
    assert "Remove them from the AI tools' files (--move), so that each server runs only once? [y/N]: " in shown
    assert "ghp_" not in shown
    assert "command: x" in person.servers.read_text()
    assert '"a"' not in cursor.read_text()
