"""Opens a file of ours with the program that the user has for it.

Never here: what is in the file.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from trayapp.model.errors import MultiMcpError


def edit_here(path: Path, editor: str, environ: Mapping[str, str]) -> int:
    """Run the user's terminal editor on the file and wait for it; its exit code. Raises MultiMcpError."""
    try:
        return subprocess.run([*shlex.split(editor), str(path)], env=dict(environ), check=False).returncode
    except (OSError, ValueError):
        raise MultiMcpError(f"The editor cannot be started: {editor}", "Set EDITOR to one that can") from None


def open_file(path: Path, environ: Mapping[str, str]) -> None:
    """Open the file in a window, and do not wait for it. Raises MultiMcpError where there is no way to."""
    try:
        if sys.platform == "win32":
            os.startfile(path)
        else:
            _start([*_opener(environ), str(path)], environ)
    except OSError:
        raise MultiMcpError(f"No program was found that opens {path}", "Set EDITOR, or open it yourself") from None


def _opener(environ: Mapping[str, str]) -> list[str]:
    if sys.platform == "darwin":
        return ["open", "-t"]
    has_display = environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")
    found = shutil.which("xdg-open", path=environ.get("PATH"))
    if not (has_display and found):
        raise FileNotFoundError("xdg-open")
    return [found]


def _start(argv: list[str], environ: Mapping[str, str]) -> None:
    null = subprocess.DEVNULL
    process = subprocess.Popen(
        argv, env=dict(environ), cwd="/", stdin=null, stdout=null, stderr=null, start_new_session=True
    )
    process.returncode = 0  # let go: nobody waits for it, and that is no mistake to warn of
