"""Text put where Paste finds it, with whatever program the system has for that.

Never here: what the text is, X displays (tray/linux/selection), where no program is needed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping

from trayapp.config.environment import own_environment
from trayapp.service.command_line import NO_WINDOW

COPY_S = 3.0  # a clipboard that takes longer has nobody who serves it
# Program, arguments, and the variable that must be set for it to have a place to copy to.
LINUX = (["wl-copy"], "WAYLAND_DISPLAY")
OTHERS = {"darwin": (["pbcopy"], ""), "win32": (["clip"], "")}


def copy(text: str, environ: Mapping[str, str]) -> bool:
    """Copy `text`; False where no program can."""
    argv, needs = OTHERS.get(sys.platform, LINUX)
    return (not needs or bool(environ.get(needs))) and _copied(argv, encoded(text, sys.platform), environ)


def encoded(text: str, platform: str) -> bytes:
    """Encode as the program reads it: Windows' `clip` takes what has no byte order mark for text of its code page."""
    return f"\ufeff{text}".encode("utf-16-le") if platform == "win32" else text.encode()


def _copied(argv: list[str], data: bytes, environ: Mapping[str, str]) -> bool:
    found = shutil.which(argv[0], path=environ.get("PATH"))
    if found is None:
        return False
    null = subprocess.DEVNULL
    try:  # no pipes to read: wl-copy stays in the background and would hold them
        subprocess.run(
            [found, *argv[1:]],
            env=own_environment(environ),
            input=data,
            stdout=null,
            stderr=null,
            timeout=COPY_S,
            check=True,
            creationflags=NO_WINDOW,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return True
