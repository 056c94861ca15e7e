"""The .venv of packaging/dev.py: atomic replacement, repair, and missing Debian packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv as venvs
from collections.abc import Callable
from pathlib import Path

import pytest

from devtools import commands, debian, environment, steps

pytestmark = [
    pytest.mark.requirement("dev-environment"),
    pytest.mark.skipif(sys.platform == "win32", reason="programs of .venv are shell scripts here"),
]


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a .venv with a working program and return it. Replace the installation steps that need a network."""
    folder = tmp_path / ".venv"
    program = folder / "bin" / "multi-mcp"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho before\n", encoding="utf-8")
    program.chmod(0o755)
    for module in (environment, commands):
        monkeypatch.setattr(module, "VENV", folder)
    monkeypatch.setattr(steps, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(environment, "install_locked", lambda venv, requirements: None)
    monkeypatch.setattr(environment, "make_venv", make_bare)
    monkeypatch.setattr(environment, "_drop_setuptools", lambda venv: None)
    monkeypatch.setattr(environment, "_install_checkout", lambda: write_program(folder))
    return folder


def make_bare(folder: Path) -> None:
    """Make an environment without pip, whose installation takes seconds."""
    venvs.create(folder, clear=True, prompt=".venv")


def write_program(venv: Path) -> None:
    program = venv / "bin" / "multi-mcp"
    program.write_text("#!/bin/sh\necho after\n", encoding="utf-8")
    program.chmod(0o755)


def said(venv: Path) -> str:
    return subprocess.run([venv / "bin" / "multi-mcp"], capture_output=True, text=True, check=True).stdout.strip()


def cannot_start(program: Path) -> None:
    """Write a program whose interpreter does not exist."""
    program.write_text("#!/no/such/python\n", encoding="utf-8")


def fails(*args: object) -> None:
    raise steps.StepFailed("no network")


def test_a_new_environment_takes_the_place_of_the_old_one_and_names_its_own_folder(venv: Path) -> None:
    environment.ensure_app()
    assert said(venv) == "after"
    assert sorted(path.name for path in venv.parent.iterdir()) == [".venv", "cache"]
    assert [path.name for path in (venv / "bin").iterdir() if b".venv.new" in path.read_bytes()] == []
    assert f"{venv}\n" in (venv / "bin" / "activate").read_text(encoding="utf-8").replace('"', "")


@pytest.mark.parametrize("breaks", [Path.unlink, lambda program: program.chmod(0o644), cannot_start])
def test_an_environment_that_broke_is_repaired(
    venv: Path, monkeypatch: pytest.MonkeyPatch, breaks: Callable[[Path], object]
) -> None:
    environment.ensure_app()
    breaks(venv / "bin" / "multi-mcp")
    monkeypatch.setattr(environment, "install_locked", fails)  # the repair must not need a network
    environment.ensure_app()
    assert said(venv) == "after"


def test_an_environment_that_cannot_be_repaired_is_made_again(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment.ensure_app()
    cannot_start(venv / "bin" / "multi-mcp")
    installs = [fails, lambda: write_program(venv)]
    monkeypatch.setattr(environment, "_install_checkout", lambda: installs.pop(0)())
    environment.ensure_app()
    assert (said(venv), installs) == ("after", [])


@pytest.mark.parametrize("step", ["make_venv", "install_locked", "_install_checkout"])
def test_what_fails_leaves_the_program_that_works(venv: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    monkeypatch.setattr(environment, step, fails)
    with pytest.raises(steps.StepFailed):
        environment.ensure_app()
    assert said(venv) == "before"
    assert environment.has_program()


def test_run_goes_on_with_what_there_is(
    venv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "install_locked", fails)
    assert what_run_starts(monkeypatch) == [str(venv / "bin" / "multi-mcp"), "status"]
    assert "continuing with the present .venv" in capsys.readouterr().err


def test_run_names_the_program_as_a_developer_in_the_checkout_would(
    venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(venv.parent)
    assert what_run_starts(monkeypatch) == [".venv/bin/multi-mcp", "status"]


def what_run_starts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run `dev.py run status` and return the command line that it would execute."""
    started: list[list[str]] = []

    def execv(program: str, argv: list[str]) -> None:
        started.append(argv)
        raise SystemExit  # the real execv does not return

    monkeypatch.setattr(os, "execv", execv)
    with pytest.raises(SystemExit):
        commands.main(["run", "status"])
    return started[0]


def test_what_is_interrupted_leaves_the_program_that_works(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(environment, "_install_checkout", interrupt)
    with pytest.raises(KeyboardInterrupt):
        environment.ensure_app()
    assert said(venv) == "before"


def test_what_was_killed_between_two_steps_is_put_back_first(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv.rename(venv.with_name(".venv.old"))
    venv.mkdir()
    monkeypatch.setattr(environment, "install_locked", fails)
    with pytest.raises(steps.StepFailed):
        environment.ensure_app()
    assert said(venv) == "before"


def test_without_a_program_the_failure_is_told(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (venv / "bin" / "multi-mcp").unlink()
    monkeypatch.setattr(environment, "install_locked", fails)
    assert commands.main(["run", "status"]) == 1


def test_missing_debian_packages_are_named_with_their_reasons_whoever_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed: list[str] = []
    monkeypatch.setattr(debian, "PACKAGES", {"no-such-program": ("no-package", "a reason"), "python3": ("x", "y")})
    monkeypatch.setattr(debian, "_install", lambda prefix, packages: installed.extend(packages))
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "no-such-program" else f"/bin/{name}")
    ways: list[list[str] | None] = [[], None]  # popped from the end: first no administrator, then root
    monkeypatch.setattr(debian, "_administrator", ways.pop)
    for _ in range(2):
        debian.ensure_debian_packages()
        assert "no-package: a reason" in capsys.readouterr().err
    assert installed == ["no-package"]


def test_every_debian_package_has_its_reason() -> None:
    assert [package for package, why in debian.PACKAGES.values() if len(why.split()) < 2] == []
