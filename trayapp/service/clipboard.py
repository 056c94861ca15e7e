"""Copy text to the clipboard by a program of the system. X displays need none (tray/linux/selection)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping

from trayapp.config.environment import own_environment
from trayapp.service.command_line import NO_WINDOW

COPY_S = 3.0  # no clipboard service answers if it takes longer
# The command, and the environment variable that it needs.
LINUX = (["wl-copy"], "WAYLAND_DISPLAY")
OTHERS = {"darwin": (["pbcopy"], ""), "win32": (["clip"], "")}


def copy(text: str, environ: Mapping[str, str]) -> bool:
    """Copy `text` to the clipboard. Return False if no program can do it."""
    argv, needs = OTHERS.get(sys.platform, LINUX)
    return (not needs or bool(environ.get(needs))) and _copied(argv, encoded(text, sys.platform), environ)


def encoded(text: str, platform: str) -> bytes:
    """Encode the text for the program: Windows' `clip` reads text without a byte order mark in its code page."""
    return f"\ufeff{text}".encode("utf-16-le") if platform == "win32" else text.encode()


def _copied(argv: list[str], data: bytes, environ: Mapping[str, str]) -> bool:
    found = shutil.which(argv[0], path=environ.get("PATH"))
    if found is None:
        return False
    null = subprocess.DEVNULL
    try:  # no output pipes: wl-copy stays in the background and would keep them open
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
