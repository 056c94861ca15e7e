"""What `dev.py build` makes on each system, out of the packaged programs. Never here: how each thing is made."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from devtools import deb, macos, windows
from devtools.bundle import build_bundle
from devtools.places import ROOT
from devtools.steps import StepFailed

VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


def build_packages(python: Path, work: Path, out: Path) -> list[Path]:
    """Build everything of this system into `out`; the files. Raises StepFailed."""
    bundle = build_bundle(python, work)
    deb.write_texts(python, work)
    if sys.platform == "win32":
        return [windows.build_installer(bundle, version(), out)]
    if sys.platform == "darwin":
        return [macos.build_image(work, version(), out)]
    return [deb.build_deb(bundle, work, version(), out), deb.build_archive(bundle, work, version(), out)]


def version() -> str:
    """Of the checkout."""
    found = VERSION.search((ROOT / "trayapp" / "__init__.py").read_text(encoding="utf-8"))
    if found is None:
        raise StepFailed("trayapp/__init__.py names no version")
    return found[1]
