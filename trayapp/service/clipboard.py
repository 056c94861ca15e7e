"""Text put where Paste finds it, with whatever program the system has for that.

Never here: what the text is.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping

from trayapp.config.environment import own_environment
from trayapp.service.command import NO_WINDOW

COPY_S = 3.0  # a clipboard that takes longer has nobody who serves it
# Program, arguments, and the variable that must be set for it to have a place to copy to.
LINUX = (
    (["wl-copy"], "WAYLAND_DISPLAY"),
    (["xclip", "-selection", "clipboard"], "DISPLAY"),
    (["xsel", "--clipboard", "--input"], "DISPLAY"),
)
OTHERS = {"darwin": (["pbcopy"], ""), "win32": (["clip"], "")}


def copy(text: str, environ: Mapping[str, str]) -> bool:
    """Copy `text`; False where nothing can."""
    ways = (OTHERS[sys.platform],) if sys.platform in OTHERS else LINUX
    return any(_copied(argv, text, environ) for argv, needs in ways if not needs or environ.get(needs))


def _copied(argv: list[str], text: str, environ: Mapping[str, str]) -> bool:
    found = shutil.which(argv[0], path=environ.get("PATH"))
    if found is None:
        return False
    null = subprocess.DEVNULL
    data = text.encode("utf-16-le" if sys.platform == "win32" else "utf-8")
    try:  # no pipes to read: xclip stays in the background and would hold them
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
