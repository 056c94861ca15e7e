"""The other files of a release: wheel, source, SBOM, checksums, and manifests for other package managers."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest
import yaml

from devtools import commands, package
from devtools.manifests import Release, write_manifests
from devtools.package import write_checksums
from devtools.places import REQUIREMENTS
from devtools.steps import StepFailed
from tests.tools import missing, require
from trayapp import __version__

HOME = "https://github.com/owner/multi-mcp"
FILES = ("multi-mcp_1.2.3_amd64.deb", "multi-mcp_1.2.3_arm64.deb", "multi-mcp-1.2.3-macos-arm64.dmg",
         "multi-mcp-1.2.3-macos-x86_64.dmg", "multi-mcp-1.2.3-setup.exe")  # fmt: skip
# Stand-ins for the words of a Homebrew cask, which print their arguments.
CASK_READER = """
def cask(name) = yield
def version(is = nil) = is || "1.2.3"
def arch(**more) = more.empty? ? "arm64" : puts(more.inspect)
def method_missing(name, *said, **more) = puts([name, said, more].inspect)
"""
# Runs cyclonedx-py without the grammar with which jsonschema checks IRIs, because that grammar takes 2.5 s.
QUICK_SBOM = """
import runpy, sys
sys.modules["rfc3987_syntax"] = None
runpy.run_module("cyclonedx_py", run_name="__main__")
"""
WINGET = "winget/manifests/m/multi-mcp/multi-mcp/1.2.3/multi-mcp.multi-mcp"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel, source and SBOM from this checkout, check them with twine, and return their folder."""
    found = subprocess.run([sys.executable, "-c", "import hatchling, twine, cyclonedx_py"], capture_output=True)
    if found.returncode != 0:
        missing("hatchling, twine or cyclonedx-bom is not installed")
    folder = tmp_path_factory.mktemp("release")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(package, "CYCLONEDX", ("-c", QUICK_SBOM, *package.CYCLONEDX[2:]))
        made = package.build_source(Path(sys.executable), folder / "work", __version__, folder / "out")
    write_checksums(made, folder / "out")
    return folder / "out"


@pytest.fixture
def release(tmp_path: Path) -> Release:
    """Create dummy packages for all systems and return their release."""
    for name in FILES:
        (tmp_path / name).write_text(name, encoding="utf-8")
    return Release("1.2.3", HOME, tmp_path)


def written(release: Release) -> Path:
    out = release.folder / "manifests"
    write_manifests(release, out)
    return out


def sum_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


@pytest.mark.requirement("package-release")
def test_wheel_source_sbom_and_checksums_are_all_there_and_nothing_else(sources: Path) -> None:
    base = f"multi_mcp-{__version__}"
    names = {f"{base}-py3-none-any.whl", f"{base}.tar.gz", f"{base}.cdx.json"}
    assert {path.name for path in sources.iterdir()} == {*names, "SHA256SUMS"}
    sums = dict(line.split("  ")[::-1] for line in (sources / "SHA256SUMS").read_text("ascii").splitlines())
    assert sums == {name: hashlib.sha256((sources / name).read_bytes()).hexdigest() for name in names}
    with tarfile.open(sources / f"{base}.tar.gz") as archive:
        assert f"{base}/packaging/dev.py" in archive.getnames()


@pytest.mark.requirement("package-release")
def test_the_sbom_names_every_locked_package_with_its_hashes(sources: Path) -> None:
    bom = json.loads(next(sources.glob("*.cdx.json")).read_text(encoding="utf-8"))
    assert (bom["bomFormat"], bom["metadata"]["component"]["name"]) == ("CycloneDX", "multi-mcp")
    locked = re.findall(r"^([\w.-]+)==([^\s;]+)", REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)
    assert {(one["name"], one["version"]) for one in bom["components"]} == set(locked)
    assert all(one["externalReferences"][0]["hashes"] for one in bom["components"])


@pytest.mark.requirement("package-release")
@pytest.mark.skipif(os.name != "posix", reason="makepkg is a shell script")
def test_the_recipe_for_aur_is_what_makepkg_reads(release: Release) -> None:
    makepkg = require("makepkg")
    aur = written(release) / "aur"
    with tempfile.TemporaryDirectory() as folder:  # world-writable, because makepkg refuses to run as root
        Path(folder).chmod(0o777)
        shutil.copy(aur / "PKGBUILD", folder)
        way = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        environment = {**os.environ, "HOME": folder, "BUILDDIR": folder, "PACMAN": "true"}  # makepkg installs nothing
        done = subprocess.run(
            [*way, makepkg, "--printsrcinfo"], cwd=folder, env=environment, capture_output=True, text=True
        )
    assert done.stdout == (aur / ".SRCINFO").read_text(encoding="utf-8"), done.stderr
    for deb, arch in ((FILES[0], "x86_64"), (FILES[1], "aarch64")):
        assert f"source_{arch} = {HOME}/releases/download/v1.2.3/{deb}" in done.stdout
        assert f"sha256sums_{arch} = {sum_of(deb)}" in done.stdout


@pytest.mark.requirement("package-release")
def test_the_cask_for_homebrew_is_ruby_and_names_both_images(release: Release) -> None:
    ruby = require("ruby")
    cask = written(release) / "homebrew" / "multi-mcp.rb"
    subprocess.run([ruby, "-wc", cask], check=True, capture_output=True)
    script = CASK_READER + cask.read_text(encoding="utf-8")
    done = subprocess.run([ruby, "-e", script], check=True, capture_output=True, text=True)
    assert f"{HOME}/releases/download/v1.2.3/multi-mcp-1.2.3-macos-arm64.dmg" in done.stdout
    assert sum_of(FILES[2]) in done.stdout
    assert sum_of(FILES[3]) in done.stdout


@pytest.mark.requirement("package-release")
def test_the_manifest_for_winget_has_three_parts_that_agree(release: Release) -> None:
    out = written(release)
    version, installer, locale = (
        yaml.safe_load((out / f"{WINGET}{part}.yaml").read_text(encoding="utf-8"))
        for part in ("", ".installer", ".locale.en-US")
    )
    for part, kind in ((version, "version"), (installer, "installer"), (locale, "defaultLocale")):
        assert (part["PackageIdentifier"], part["PackageVersion"]) == ("multi-mcp.multi-mcp", "1.2.3")
        assert (part["ManifestType"], part["ManifestVersion"]) == (kind, "1.6.0")
    assert installer["Installers"] == [{"Architecture": "x64", "InstallerSha256": sum_of(FILES[4]).upper(),
        "InstallerUrl": f"{HOME}/releases/download/v1.2.3/{FILES[4]}"}]  # fmt: skip
    assert (installer["InstallerType"], installer["Scope"]) == ("inno", "user")
    assert version["DefaultLocale"] == locale["PackageLocale"]


@pytest.mark.requirement("package-release")
def test_only_what_was_built_gets_a_manifest(release: Release, capsys: pytest.CaptureFixture[str]) -> None:
    for name in FILES[1:]:
        (release.folder / name).unlink()
    out = written(release)
    assert {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()} == {
        "aur/PKGBUILD", "aur/.SRCINFO"}  # fmt: skip
    assert "aarch64" not in (out / "aur" / "PKGBUILD").read_text(encoding="utf-8")
    (release.folder / FILES[0]).unlink()
    with pytest.raises(StepFailed, match=r"no package of 1\.2\.3"):
        write_manifests(release, out)
    assert commands.main(["manifests"]) == 1
    assert "address of the repository is missing" in capsys.readouterr().err
