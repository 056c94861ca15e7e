"""Tests of the command lines that multi-mcp uses to start its own programs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trayapp.backends.stdio.orphans import guardian_command
from trayapp.service.command_line import (
    gateway_command,
    own_command,
    sample_command,
    shim_command,
    tray_command,
    typed_command,
)
from trayapp.service.version import version_text


def test_the_program_runs_from_any_working_folder_without_an_installation(tmp_path: Path) -> None:
    (tmp_path / "select.py").write_text("raise SystemExit('a module out of the working folder')")
    (tmp_path / "trayapp").mkdir()
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*own_command(), "--version"], cwd=tmp_path, env=env, capture_output=True, check=True)
    assert done.stdout.decode().strip() == f"multi-mcp {version_text()}"


@pytest.mark.parametrize("command", [own_command(), gateway_command(linger=True), shim_command(), sample_command()])
def test_every_command_is_absolute(command: list[str]) -> None:
    assert Path(command[0]).is_absolute()
    assert all(Path(word).is_absolute() for word in command if os.sep in word)


def test_gateway_and_shim_are_verbs_of_the_program() -> None:
    assert gateway_command(linger=False) == [*own_command(), "start"]
    assert gateway_command(linger=True) == [*own_command(), "start", "--linger"]
    assert shim_command()[-1] == "stdio"


@pytest.fixture
def packaged(tmp_path: Path) -> Iterator[Path]:
    """Turn this process into the tray of a program packaged by PyInstaller. Yield the package's folder."""
    before = sys.executable
    for name in ("multi-mcp", "multi-mcp-tray", "multi-mcp-shim"):
        path = tmp_path / (f"{name}.exe" if os.name == "nt" else name)
        path.write_bytes(b"")
        path.chmod(0o755)
    sys.executable = str(tmp_path / "multi-mcp-tray")
    sys.frozen = True  # type: ignore[attr-defined]
    yield tmp_path
    del sys.frozen  # type: ignore[attr-defined]
    sys.executable = before


@pytest.mark.requirement("package-stable")
def test_a_packaged_programs_parts_call_each_other_by_their_lasting_paths(packaged: Path) -> None:
    def named(command: list[str]) -> list[str]:
        assert Path(command[0]).parent == packaged
        return [Path(command[0]).stem, *command[1:]]

    assert named(own_command()) == ["multi-mcp"]
    assert named(gateway_command(linger=False)) == ["multi-mcp", "start"]
    assert named(shim_command()) == ["multi-mcp-shim", "stdio"]
    assert named(sample_command()) == ["multi-mcp-shim", "sample-server"]
    assert named(tray_command()) == ["multi-mcp-tray", "tray", "--autostart"]
    assert named(guardian_command()) == ["multi-mcp-shim", "guardian"]


def test_a_packaged_program_that_stands_alone_does_all_by_itself(packaged: Path) -> None:
    for path in list(packaged.iterdir()):
        path.unlink()
    assert own_command() == [sys.executable]
    assert shim_command() == [sys.executable, "stdio"]
    assert sample_command() == [sys.executable, "sample-server"]


@pytest.mark.skipif(sys.platform == "win32", reason="its programs end in .exe")
@pytest.mark.requirement("cli-first-screen")
def test_a_next_step_can_be_typed_as_the_program_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [".venv/bin/multi-mcp", "setup"])
    assert typed_command() == ".venv/bin/multi-mcp"
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "my files" / "multi-mcp")])
    assert typed_command() == f"'{tmp_path}/my files/multi-mcp'"
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "__main__.py")])
    assert typed_command() == "multi-mcp"
    on_path = tmp_path / "multi-mcp"
    on_path.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(on_path)])
    assert typed_command() == "multi-mcp"
