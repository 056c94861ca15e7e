"""Two builds of the same source give the same bytes."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux's packages are built by the tests", allow_module_level=True)

from devtools import deb
from devtools.bundle import build_bundle, disguised
from devtools.package import differences, listed, manifest
from tests.tools import require
from trayapp.service.command_line import SHIM

VERSION = "1.2.3"


@pytest.fixture
def small(built: Path, tmp_path: Path) -> Path:
    """Create a build folder with only the shim, the texts and the icons, and return it."""
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


@pytest.mark.requirement("package-repeatable")
def test_a_program_built_again_elsewhere_has_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    # A build of all programs would take a minute.
    again = manifest(build_bundle(Path(sys.executable), tmp_path / "elsewhere", only=SHIM))
    whole = manifest(bundle)
    assert SHIM in again
    assert {name: whole.get(name) for name in again} == again


def test_builds_that_differ_are_told_by_the_names_of_their_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "same").write_text("same")
        (tmp_path / name / "other").write_text(name)
        (tmp_path / name / "link").symlink_to("deep")
    assert differences(tmp_path / "one", tmp_path / "two") == ["other"]
    (tmp_path / "two" / "deep" / "same").chmod(0o755)
    (tmp_path / "two" / "link").unlink()
    assert differences(tmp_path / "one", tmp_path / "two") == ["deep/same", "link", "other"]
    assert listed([str(number) for number in range(12)]).endswith("9 and 2 more")


@pytest.mark.requirement("package-no-trace")
@pytest.mark.parametrize("path", [b"/home/me/python/3.11.7", b"/a/b", b"/home/somebody/.pyenv/versions/3.12"])
def test_a_disguised_path_has_its_length_and_its_last_name(path: bytes) -> None:
    other = disguised(path)
    assert len(other) == len(path)
    assert other.endswith(b"/" + path.rpartition(b"/")[2])
    assert b"home" not in other
