"""All packages of the current system, built from the packaged programs: installers, wheel, SBOM and checksums.

The packaged program that tests run is also built here, and rebuilt whenever its sources change.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from pathlib import Path

from devtools import deb, macos, windows
from devtools.bundle import NAME, build_bundle, build_environment
from devtools.places import CACHE, PACKAGING, PYPROJECT, REQUIREMENTS, ROOT
from devtools.steps import StepFailed, fingerprint, is_stamped, once, optional, run, say

VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
CHECKSUMS = "SHA256SUMS"
HATCHLING = ("-m", "hatchling", "build")
TWINE = ("-m", "twine", "check", "--strict")
CYCLONEDX = ("-m", "cyclonedx_py", "requirements", "--short-PURLs", "--output-reproducible", "--of", "JSON")
SHOWN = 10  # the most names that an error message lists
PACKAGED = CACHE / "packaged"
OF_PROGRAM = ("trayapp/**/*.py", "assets/*.svg", "assets/*.png", "packaging/devtools/*.py", "packaging/programs/*.py")
OF_PACKAGE = ("packaging/linux/*", "packaging/*.spec", "packaging/requirements*.txt")


def build_packages(python: Path, work: Path, out: Path) -> list[Path]:
    """Build all packages for this system into `out`. Return their paths. Raises StepFailed."""
    bundle = build_bundle(python, work)
    deb.write_texts(python, work)
    made = [*build_installers(bundle, work, out), *build_source(python, work, version(), out)]
    return [*made, write_checksums(made, out)]


def build_installers(bundle: Path, work: Path, out: Path) -> list[Path]:
    """Build this system's installers from the packaged programs, and return their paths. Raises StepFailed."""
    if sys.platform == "win32":
        return [windows.build_installer(bundle, version(), out)]
    if sys.platform == "darwin":
        return [macos.build_image(work, version(), out)]
    return [deb.build_deb(bundle, work, version(), out), deb.build_archive(bundle, work, version(), out)]


def build_source(python: Path, work: Path, version: str, out: Path) -> list[Path]:
    """Write the wheel, source archive and SBOM into `out`. Check the first two by PyPI's rules. Raises StepFailed."""
    environment = build_environment(work)
    del environment["PYTHONPYCACHEPREFIX"]  # without stored bytecode, these tools take three times as long to start
    folder = work / "source"
    shutil.rmtree(folder, ignore_errors=True)
    run([python, *HATCHLING, "-d", folder], cwd=ROOT, env=environment)
    made = sorted(folder.iterdir())
    run([python, *TWINE, *made], env=environment)
    sbom = folder / f"multi_mcp-{version}.cdx.json"
    run([python, *CYCLONEDX, "--pyproject", PYPROJECT, "-o", sbom, REQUIREMENTS], env=environment)
    out.mkdir(parents=True, exist_ok=True)
    return [Path(shutil.copy(path, out)) for path in (*made, sbom)]


def write_checksums(made: list[Path], out: Path) -> Path:
    """Write SHA256SUMS in the format of `sha256sum -c`, and return its path."""
    target = out / CHECKSUMS
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(made))
    target.write_text("".join(lines), encoding="ascii", newline="\n")
    return target


def build_twice(python: Path, work: Path, out: Path) -> list[Path]:
    """Build the packages twice, and return those of the first build. Raises StepFailed if the two builds differ."""
    made = build_packages(python, work, out)
    other = work.with_name(f"{work.name}-again")
    again = build_packages(python, other, other / "packages")
    unlike = differences(work / "out" / NAME, other / "out" / NAME)
    pairs = zip(made, again, strict=True)
    unlike += [one.name for one, second in pairs if one.read_bytes() != second.read_bytes()]
    if unlike:
        raise StepFailed(f"a second build differs: {listed(unlike)}", f"Compare {work} and {other}.")
    say("a second build is identical")
    return made


def manifest(folder: Path) -> dict[str, str]:
    """Return each file below the folder, with its mode and the hash of its content, or with the target of a link."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = f"{path.stat().st_mode & 0o777:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    return found


def differences(one: Path, other: Path) -> list[str]:
    """Return the files that only one folder has, or whose content or mode differs."""
    first, second = manifest(one), manifest(other)
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def listed(names: list[str]) -> str:
    """Return the first names as text, and how many more there are."""
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def version() -> str:
    """Return the version of the checkout. Raises StepFailed."""
    found = VERSION.search((ROOT / "trayapp" / "__init__.py").read_text(encoding="utf-8"))
    if found is None:
        raise StepFailed("trayapp/__init__.py has no version")
    return found[1]


def state() -> str:
    """Return a hash of everything that goes into the packaged program."""
    paths = [path for pattern in (*OF_PROGRAM, *OF_PACKAGE) for path in sorted(ROOT.glob(pattern))]
    named = [part for path in paths for part in (path.relative_to(ROOT).as_posix(), path)]
    return fingerprint(sys.version, *named, PYPROJECT, PACKAGING / "CHANGELOG.md")


def is_current() -> bool:
    """Return True if the packaged program was built from the present sources."""
    return is_stamped(PACKAGED, "packaged", state())


def ensure_packaged(python: Path) -> None:
    """On Linux, build the packaged program unless it is current. If that fails, CI fails; elsewhere its tests skip."""

    def build() -> None:
        work = PACKAGED / "work"
        bundle = build_bundle(python, work)
        deb.write_texts(python, work)
        for old in PACKAGED.glob("*.deb"):
            old.unlink()
        deb.build_deb(bundle, work, version(), PACKAGED)

    if sys.platform == "linux":
        with optional("build the packaged program"):
            once(PACKAGED, "packaged", state(), build)


if __name__ == "__main__":
    ensure_packaged(Path(sys.executable))
