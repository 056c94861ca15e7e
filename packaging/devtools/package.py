"""Build all packages of the current system from the packaged programs. Never here: how each package is made."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from devtools import deb, macos, windows
from devtools.alike import differences, listed
from devtools.bundle import NAME, build_bundle
from devtools.places import ROOT
from devtools.source import build_source, write_checksums
from devtools.steps import StepFailed, say

VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


def build_packages(python: Path, work: Path, out: Path) -> list[Path]:
    """Build everything for this system into `out`, including wheel, SBOM and checksums. Return the files. Raises
    StepFailed.
    """
    bundle = build_bundle(python, work)
    deb.write_texts(python, work)
    made = [*build_installers(bundle, work, out), *build_source(python, work, version(), out)]
    return [*made, write_checksums(made, out)]


def build_installers(bundle: Path, work: Path, out: Path) -> list[Path]:
    """Build this system's installers from the packaged programs. Raises StepFailed."""
    if sys.platform == "win32":
        return [windows.build_installer(bundle, version(), out)]
    if sys.platform == "darwin":
        return [macos.build_image(work, version(), out)]
    return [deb.build_deb(bundle, work, version(), out), deb.build_archive(bundle, work, version(), out)]


def build_twice(python: Path, work: Path, out: Path) -> list[Path]:
    """Call `build_packages`, and build once more in another folder. Raises StepFailed if the two builds differ."""
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


def version() -> str:
    """Return the version of the checkout."""
    found = VERSION.search((ROOT / "trayapp" / "__init__.py").read_text(encoding="utf-8"))
    if found is None:
        raise StepFailed("trayapp/__init__.py has no version")
    return found[1]
