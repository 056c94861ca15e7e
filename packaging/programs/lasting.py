"""A workaround that lets a packaged program survive its own update. It imports only sys, for the shim's fast start."""

import sys

SELF = "/proc/self/exe"


def keep_archive() -> None:
    """Read modules from the running program, not from the file that now has its name.

    PyInstaller's importer opens the program's file again for each module. An update replaces that file, and the same
    offsets then hold other bytes. A shim that loads a module late, after it lost its gateway, would crash and end its
    session. Only Linux keeps the running program's file readable after it was replaced.
    """
    if sys.platform == "linux":
        import pyimod02_importers  # type: ignore[import-not-found]  # the importer of every PyInstaller program

        archive = pyimod02_importers.pyz_archive
        if getattr(archive, "_filename", None) == sys.executable:
            archive._filename = SELF
