"""The Debian package: what it holds, and a real installation of it. Never here: what the programs do (test_program)."""

from __future__ import annotations

import hashlib
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux's packages are built by the tests", allow_module_level=True)

from tests.tools import require

DEB_MOST = 28 << 20
USERS_PATH = "/usr/bin/multi-mcp"
GUEST = "multi-mcp-guest"  # a user of the tests' own, on the system as long as the package is


@pytest.fixture(scope="module")
def root(deb: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All files of the package, as they lie on a system."""
    folder = tmp_path_factory.mktemp("root")
    subprocess.run([require("dpkg-deb"), "-x", deb, folder], check=True)
    return folder


@pytest.mark.requirement("package-size")
def test_the_package_stays_within_its_budget(deb: Path) -> None:
    assert deb.stat().st_size <= DEB_MOST


@pytest.mark.requirement("package-deb")
def test_lintian_finds_no_error(deb: Path) -> None:
    done = subprocess.run([require("lintian"), "--fail-on=error", deb], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "changelog" not in done.stdout


@pytest.mark.requirement("package-deb")
def test_the_desktops_entry_is_valid_and_starts_what_is_there(root: Path) -> None:
    entry = root / "usr/share/applications/multi-mcp.desktop"
    subprocess.run([require("desktop-file-validate"), entry], check=True)
    keys = dict(line.split("=", 1) for line in entry.read_text().splitlines() if "=" in line)
    assert os.access(root / keys["Exec"].lstrip("/"), os.X_OK)
    assert (root / f"usr/share/icons/hicolor/48x48/apps/{keys['Icon']}.png").exists()
    assert list(root.rglob("autostart")) == []  # off until the user switches it on


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


# -- a real installation ---------------------------------------------------------------------------------------------


@pytest.fixture
def guest(installed: None) -> Iterator[Path]:
    """The home of another user, who has nothing yet."""
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", GUEST], check=True, capture_output=True)
    yield Path(pwd.getpwnam(GUEST).pw_dir)
    subprocess.run(["userdel", "--force", "--remove", GUEST], check=True, capture_output=True)


@pytest.fixture
def installed(deb: Path) -> Iterator[None]:
    """The package, on this very system: where that harms nobody, and nothing of the kind is installed already."""
    if os.environ.get("CI", "").lower() not in ("1", "true") or os.geteuid() != 0:
        pytest.skip("only on CI and as root is a package installed")
    known = subprocess.run(["dpkg", "-s", "multi-mcp"], capture_output=True, check=False)
    assert known.returncode != 0, "multi-mcp is installed here already"
    subprocess.run(["dpkg", "-i", deb], check=True, capture_output=True)
    yield
    subprocess.run(["dpkg", "--purge", "multi-mcp"], check=True, capture_output=True)


def as_guest(guest: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run it as that user, with nothing but the home, and no Python or node on PATH."""
    command = ["runuser", "-u", GUEST, "--", "env", "-i", f"HOME={guest}", "PATH=/nonexistent", *argv]
    return subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)


def ours() -> list[str]:
    """Ids of all processes of the installed program."""
    found = []
    for path in Path("/proc").glob("[0-9]*/exe"):
        try:
            target = str(path.readlink())
        except OSError:
            continue
        found += [path.parent.name] if target.startswith("/usr/lib/multi-mcp/") else []
    return found


@pytest.mark.requirement("package-deb", "package-upgrade", "autostart")
def test_a_fresh_user_runs_it_updates_it_and_after_its_removal_has_only_their_files(deb: Path, guest: Path) -> None:
    demo = as_guest(guest, USERS_PATH, "demo")
    assert demo.returncode == 0, demo.stdout + demo.stderr
    started = as_guest(guest, USERS_PATH, "start", "--detach")
    assert started.returncode == 0, started.stderr
    before = ours()
    assert before
    subprocess.run(["dpkg", "-i", deb], check=True, capture_output=True)  # in place: the gateway hands over
    again = as_guest(guest, USERS_PATH, "status", "--json")
    assert again.returncode in (0, 4)
    as_guest(guest, USERS_PATH, "start", "--detach")
    assert as_guest(guest, USERS_PATH, "autostart", "on").returncode == 0
    entry = guest / ".config/autostart/multi-mcp.desktop"
    assert "/usr/lib/multi-mcp/" in entry.read_text()
    (kept := entry.with_name("other.desktop")).write_text("[Desktop Entry]\nExec=/usr/bin/other\n")
    assert ours()
    assert not set(ours()) & set(before)
    subprocess.run(["dpkg", "--remove", "multi-mcp"], check=True, capture_output=True)
    assert ours() == []
    assert not Path("/usr/lib/multi-mcp").exists()
    assert (guest / ".config/multi-mcp/servers.yaml").exists()
    assert not entry.exists()
    assert kept.exists()
