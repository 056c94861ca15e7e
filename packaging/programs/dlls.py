"""Keeps the folder of our own libraries from the programs that we start, on Windows.

Never here: imports that a start on another system would pay for.
"""

import sys

TYPE_CHECKING = False  # as in typing, whose import is felt
if TYPE_CHECKING:
    from typing import Any


def forget_folder(kernel32: "Any" = None) -> None:
    """PyInstaller's start program makes it the first place where libraries are looked for, and children inherit that
    (SetDllDirectoryW). Our own modules find theirs beside themselves: Python loads them that way.
    """
    if kernel32 is None and sys.platform == "win32":
        import ctypes

        kernel32 = ctypes.WinDLL("kernel32")
    if kernel32 is not None:
        kernel32.SetDllDirectoryW(None)
