"""The packaged program that tests run, rebuilt when its sources change. Never here: how it is built."""

from __future__ import annotations

import sys
from pathlib import Path

from devtools import deb
from devtools.bundle import build_bundle
from devtools.package import version
from devtools.places import CACHE, PACKAGING, PYPROJECT, ROOT
from devtools.steps import StepFailed, fingerprint, in_ci, installing, is_stamped, say, stamping

PACKAGED = CACHE / "packaged"
OF_PROGRAM = ("trayapp/**/*.py", "assets/*.svg", "assets/*.png", "packaging/devtools/*.py", "packaging/programs/*.py")
OF_PACKAGE = ("packaging/linux/*", "packaging/*.spec", "packaging/requirements*.txt")


def state() -> str:
    """Return a hash of everything that goes into the packaged program."""
    paths = [path for pattern in (*OF_PROGRAM, *OF_PACKAGE) for path in sorted(ROOT.glob(pattern))]
    named = [part for path in paths for part in (path.relative_to(ROOT).as_posix(), path)]
    return fingerprint(sys.version, *named, PYPROJECT, PACKAGING / "CHANGELOG.md")


def is_current() -> bool:
    """Return True if the packaged program was built from these sources."""
    return is_stamped(PACKAGED, "packaged", state())


def ensure_packaged(python: Path) -> None:
    """Build the program unless it is current. If that fails, CI fails; elsewhere its tests skip."""
    if sys.platform != "linux" or is_current():
        return
    try:
        with installing(PACKAGED):
            wanted = state()
            if is_stamped(PACKAGED, "packaged", wanted):
                return
            PACKAGED.mkdir(parents=True, exist_ok=True)
            with stamping(PACKAGED, "packaged", wanted):
                work = PACKAGED / "work"
                bundle = build_bundle(python, work)
                deb.write_texts(python, work)
                for old in PACKAGED.glob("*.deb"):
                    old.unlink()
                deb.build_deb(bundle, work, version(), PACKAGED)
    except StepFailed as failure:
        if in_ci():
            raise
        say(f"cannot build the packaged program, so its tests skip: {failure}. {failure.hint}".rstrip())


if __name__ == "__main__":
    ensure_packaged(Path(sys.executable))
