"""The wheel that pipx and pip build from the checkout, and the program that it installs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.tools import missing
from trayapp import __version__

ROOT = Path(__file__).resolve().parents[2]
PIP = ("-m", "pip", "--disable-pip-version-check", "-q")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the checkout with the locked tools, and return its path."""
    folder = tmp_path_factory.mktemp("wheel")
    found = subprocess.run([sys.executable, "-c", "import hatchling, pip"], capture_output=True, check=False)
    if found.returncode != 0:
        missing("hatchling is not installed")
    options = ("--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder))
    subprocess.run([sys.executable, *PIP, "wheel", *options, str(ROOT)], check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into a fresh environment and return the program. It uses the tests' own libraries."""
    place = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    options = ("--no-deps", "--no-index", "--python", str(place / "bin" / "python"))
    subprocess.run([sys.executable, *PIP, *options[2:], "install", *options[:2], str(wheel)], check=True)
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place / "bin" / "multi-mcp"


@pytest.mark.requirement("package-version")
def test_the_wheel_holds_program_pictures_and_commit_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"trayapp", f"multi_mcp-{__version__}.dist-info"}
    assert "trayapp/assets/app.png" in names
    commits = [zipfile.ZipFile(wheel).read(name).decode() for name in names if name == "trayapp/commit"]
    assert not (ROOT / ".git").exists() or re.fullmatch(r"[0-9a-f]{40}\n", commits[0])


@pytest.mark.skipif(os.name != "posix", reason="an environment of another layout")
@pytest.mark.requirement("package-pipx", "package-version")
def test_what_pipx_installs_is_the_same_program(program: Path, home: Path) -> None:
    env = {"PATH": "/nonexistent", "HOME": str(home)}

    def run(*argv: str) -> str:
        done = subprocess.run([program, *argv], cwd="/", env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("--version").startswith(f"multi-mcp {__version__} (" if (ROOT / ".git").exists() else "multi-mcp")
    steps = {step["name"]: step for step in json.loads(run("demo", "--json"))["steps"]}
    assert steps["call_again"]["said"] == "2 + 3 = 5"
    (home / ".cursor").mkdir()
    entry = json.loads(run("connect", "cursor", "--dry-run", "--json"))
    assert str(program) in json.dumps(entry)
