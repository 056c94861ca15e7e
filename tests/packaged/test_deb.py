"""The content of the Debian package."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux's packages are built by the tests", allow_module_level=True)

from tests.tools import require

DEB_MOST = 28 << 20


@pytest.fixture(scope="module")
def root(deb: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the package and return the folder with its files, as on an installed system."""
    folder = tmp_path_factory.mktemp("root")
    subprocess.run([require("dpkg-deb"), "-x", deb, folder], check=True)
    return folder


@pytest.mark.requirement("package-size")
def test_the_package_stays_within_its_budget(deb: Path) -> None:
    assert deb.stat().st_size <= DEB_MOST


@pytest.mark.requirement("package-deb")
@pytest.mark.timeout(180)  # takes 24 s on an idle machine, and far longer on a busy one
def test_lintian_finds_no_error(deb: Path) -> None:
    done = subprocess.run([require("lintian"), "--fail-on=error", deb], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "changelog" not in done.stdout


@pytest.mark.requirement("package-deb")
def test_the_desktops_entry_is_valid_and_starts_what_is_there(root: Path) -> None:
    entry = root / "usr/share/applications/multi-mcp.desktop"
    subprocess.run([require("desktop-file-validate"), entry], check=True)
    groups = ConfigParser(interpolation=None)
    groups.read(entry, "utf-8")
    keys = groups["Desktop Entry"]
    actions = [f"Desktop Action {name}" for name in keys["Actions"].rstrip(";").split(";")]
    assert groups.sections() == ["Desktop Entry", *actions]
    assert os.access(root / keys["Exec"].lstrip("/"), os.X_OK)
    assert keys["TryExec"] == keys["Exec"]
    for action in actions:
        program, verb = groups[action]["Exec"].split()
        subprocess.run([root / program.lstrip("/"), verb, "--help"], stdout=subprocess.DEVNULL, check=True)
    assert (root / f"usr/share/icons/hicolor/48x48/apps/{keys['Icon']}.png").exists()
    assert list(root.rglob("autostart")) == []  # autostart is off until the user switches it on


@pytest.mark.requirement("package-deb")
def test_every_file_has_its_sum_and_no_file_is_writable_for_all(deb: Path, root: Path, tmp_path: Path) -> None:
    subprocess.run([require("dpkg-deb"), "-e", deb, tmp_path / "control"], check=True)
    rows = [line.split("  ", 1) for line in (tmp_path / "control/md5sums").read_text().splitlines()]
    sums = {name: digest for digest, name in rows}
    files = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file() and not path.is_symlink()}
    assert sums.keys() == files.keys()
    for name, path in files.items():
        assert hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest() == sums[name]
        assert path.stat().st_mode & 0o022 == 0


@pytest.mark.requirement("package-deb")
def test_the_man_page_and_the_completions_are_read_without_complaint(root: Path) -> None:
    page = root / "usr/share/man/man1/multi-mcp.1.gz"
    done = subprocess.run(
        [require("man"), "--warnings", "-l", page], env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "disconnect" in done.stdout
    assert done.stderr == ""
    shells = {
        "bash": "usr/share/bash-completion/completions/multi-mcp",
        "zsh": "usr/share/zsh/vendor-completions/_multi-mcp",
        "fish": "usr/share/fish/vendor_completions.d/multi-mcp.fish",
    }
    for shell, path in shells.items():
        subprocess.run([require(shell), "-n", root / path], check=True)


@pytest.mark.requirement("package-deb")
def test_the_licence_of_every_library_is_told(root: Path) -> None:
    import gzip

    doc = root / "usr/share/doc/multi-mcp"
    told = gzip.decompress((doc / "third-party.txt.gz").read_bytes()).decode()
    for name in ("Python 3", "mcp ", "pystray ", "cryptography ", "jeepney ", "click "):
        assert f"\n{name}" in f"\n{told}", name
    assert "Permission is hereby granted" in (doc / "copyright").read_text()
