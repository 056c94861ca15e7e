"""Our own command lines. Never here: a gateway."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trayapp import __version__
from trayapp.service.command import gateway_command, own_command, sample_command, shim_command


def test_the_program_runs_from_any_working_folder_without_an_installation(tmp_path: Path) -> None:
    (tmp_path / "select.py").write_text("raise SystemExit('a module out of the working folder')")
    (tmp_path / "trayapp").mkdir()
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*own_command(), "--version"], cwd=tmp_path, env=env, capture_output=True, check=True)
    assert done.stdout.decode().strip() == f"multi-mcp {__version__}"


@pytest.mark.parametrize("command", [own_command(), gateway_command(linger=True), shim_command(), sample_command()])
def test_every_command_is_absolute(command: list[str]) -> None:
    assert Path(command[0]).is_absolute()
    assert all(Path(word).is_absolute() for word in command if os.sep in word)


def test_gateway_and_shim_are_verbs_of_the_program() -> None:
    assert gateway_command(linger=False) == [*own_command(), "start"]
    assert gateway_command(linger=True) == [*own_command(), "start", "--linger"]
    assert shim_command()[-1] == "stdio"


@pytest.fixture
def frozen() -> object:
    """A program that was packaged, as PyInstaller marks it."""
    sys.frozen = True  # type: ignore[attr-defined]
    yield None
    del sys.frozen  # type: ignore[attr-defined]


@pytest.mark.usefixtures("frozen")
def test_a_packaged_program_has_no_interpreter_to_run_files() -> None:
    assert own_command() == [sys.executable]
    assert shim_command() == [sys.executable, "stdio"]
    assert sample_command() == [sys.executable, "sample-server"]
