"""Lets a packaged program outlive its own update. Never here: imports beyond sys, which the shim would pay for."""

import sys

SELF = "/proc/self/exe"


def keep_archive() -> None:
    """Read modules out of the running program, not out of the file of its name.

    PyInstaller's importer opens the program's file anew for each module. An update puts another file there, in which
    the same places hold other bytes; a shim that then loads what a lost gateway needs would die with its session.
    Linux alone replaces a running program under its name and still shows the old one.
    """
    if sys.platform == "linux":
        import pyimod02_importers  # type: ignore[import-not-found]  # the importer of every PyInstaller program

        archive = pyimod02_importers.pyz_archive
        if getattr(archive, "_filename", None) == sys.executable:
            archive._filename = SELF
