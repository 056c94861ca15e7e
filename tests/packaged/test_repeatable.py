"""That two makings of one thing give the same bytes. Never here: PyInstaller's own part of it."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux's packages are built by the tests", allow_module_level=True)

from devtools import deb
from devtools.bundle import disguised
from tests.tools import require

VERSION = "1.2.3"


@pytest.fixture
def small(built: Path, tmp_path: Path) -> Path:
    """The program without most of its weight, and the texts."""
    work = tmp_path / "work"
    bundle = work / "out" / "multi-mcp"
    bundle.mkdir(parents=True)
    shutil.copy2(built / "work" / "out" / "multi-mcp" / "multi-mcp-shim", bundle / "multi-mcp-shim")
    for name in ("texts", "icons"):
        shutil.copytree(built / "work" / name, work / name)
    return work


@pytest.mark.requirement("package-repeatable")
def test_package_and_archive_are_the_same_bytes_again(small: Path, tmp_path: Path) -> None:
    require("dpkg-deb")

    def made(out: Path) -> list[str]:
        bundle = small / "out" / "multi-mcp"
        paths = [deb.build_deb(bundle, small, VERSION, out), deb.build_archive(bundle, small, VERSION, out)]
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]

    assert made(tmp_path / "one") == made(tmp_path / "two")


@pytest.mark.requirement("package-no-trace")
@pytest.mark.parametrize("path", [b"/home/me/python/3.11.7", b"/a/b", b"/home/somebody/.pyenv/versions/3.12"])
def test_a_disguised_path_has_its_length_and_its_last_name(path: bytes) -> None:
    other = disguised(path)
    assert len(other) == len(path)
    assert other.endswith(b"/" + path.rpartition(b"/")[2])
    assert b"home" not in other
