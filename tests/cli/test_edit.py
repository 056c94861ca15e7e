"""`multi-mcp edit` with real programs in the editor's place. Never here: a window."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.cli.running import PROGRAM, environment, run_cli

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shell scripts, xdg-open and terminals")


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_path_is_printed_and_nothing_written(home: Path) -> None:
    assert run_cli(home, "edit", "--path").stdout == f"{home}/servers.yaml\n"
    assert list(home.iterdir()) == []


def test_the_desktops_program_gets_the_file_and_is_not_waited_for(home: Path) -> None:
    programs, told = home / "bin", home / "told"
    programs.mkdir()
    os.mkfifo(told)
    script(programs / "xdg-open", f'echo "$1" > {told}\nexec sleep 0')
    env = environment(home, DISPLAY=":99", PATH=f"{programs}:{os.environ['PATH']}")
    done = run_cli(home, "edit", env=env)
    assert (done.stdout, done.returncode) == (f"Opened {home}/servers.yaml\n", 0)
    assert told.read_text() == f"{home}/servers.yaml\n"
    assert "sample:" in (home / "servers.yaml").read_text()


def test_where_nothing_can_open_it_the_error_says_where_it_is(home: Path) -> None:
    done = run_cli(home, "edit")
    assert done.stderr == (
        f"Error: No program was found that opens {home}/servers.yaml\nSet EDITOR, or open it yourself\n"
    )
    assert done.returncode == 1


def on_terminal(home: Path, *argv: str, **variables: str) -> tuple[str, int]:
    """What `multi-mcp ARGV...` shows on a terminal of its own, and its exit code."""
    import pty

    child, terminal = pty.fork()
    if child == 0:
        os.chdir(home)
        os.execve(PROGRAM[0], [*PROGRAM, *argv], environment(home, **variables))
    shown = b""
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # its end, on Linux
            break
        if not data:
            break
        shown += data
    os.close(terminal)
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_on_a_terminal_the_users_editor_runs_here_with_its_own_arguments(home: Path) -> None:
    editor = script(home / "my editor", 'echo "edits $1 $2"; exit 3')
    shown, code = on_terminal(home, "edit", EDITOR=f"'{editor}' --wait", TERM="dumb")
    assert shown.split() == ["edits", "--wait", f"{home}/servers.yaml"]
    assert code == 3


def test_an_editor_that_does_not_exist_is_an_error_in_two_lines(home: Path) -> None:
    shown, code = on_terminal(home, "edit", VISUAL="/no/such/editor", TERM="dumb")
    assert "Cannot start the editor: /no/such/editor" in shown
    assert "Traceback" not in shown
    assert code == 1
