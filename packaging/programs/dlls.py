"""On Windows, keeps child processes from searching our folder for DLLs.

This module imports nothing that slows a start on another system.
"""

import sys

TYPE_CHECKING = False  # replaces typing.TYPE_CHECKING: importing typing takes too long
if TYPE_CHECKING:
    from typing import Any


def forget_folder(kernel32: "Any" = None) -> None:
    """On Windows, remove the bundle's folder from the DLL search path, which child processes inherit.

    PyInstaller's bootloader adds the folder with SetDllDirectoryW. Python does not need it: it finds the libraries of
    our own modules next to each module.
    """
    if kernel32 is None and sys.platform == "win32":
        import ctypes

        kernel32 = ctypes.WinDLL("kernel32")
    if kernel32 is not None:
        kernel32.SetDllDirectoryW(None)
