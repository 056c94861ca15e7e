"""Functions that open files and web addresses and copy text to the clipboard, with the user's own programs.

On X displays, copying needs no program (tray/linux/selection).
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from trayapp.config.programs import own_environment
from trayapp.model.errors import MultiMcpError
from trayapp.service.command_line import NO_WINDOW

COPY_S = 3.0  # limit for a clipboard program, which hangs if there is no clipboard service
CLIPBOARD = {"darwin": "pbcopy", "win32": "clip"}  # elsewhere: wl-copy


def edit_in_terminal(path: Path, editor: str, environ: Mapping[str, str]) -> int:
    """Run the user's terminal editor on the file, wait for it and return its exit code. Raises MultiMcpError."""
    try:
        return subprocess.run([*shlex.split(editor), str(path)], env=own_environment(environ), check=False).returncode
    except (OSError, ValueError):
        raise MultiMcpError(f"Cannot start the editor: {editor}", "Set EDITOR to an installed editor") from None


def open_file(path: Path, environ: Mapping[str, str], patience_s: float = 0.0) -> None:
    """Open the file or folder in a window, without waiting for it. Raises MultiMcpError if that is not possible.

    `patience_s` is the time to wait for the opener to fail. If it is still running then, it has found a program.
    With 0, the error suggests setting EDITOR, which helps in a terminal.
    """
    if not _open(str(path), ["open", "-t"], environ, patience_s):
        hint = "Install xdg-utils, or open it yourself" if patience_s else "Set EDITOR, or open it yourself"
        raise MultiMcpError(f"No program was found that opens {path}", hint)


def open_url(url: str, environ: Mapping[str, str], patience_s: float = 0.0) -> bool:
    """Open a web address in the browser. Return False if that is not possible. `patience_s` is as in `open_file`."""
    return url.startswith(("http://", "https://")) and _open(url, ["open"], environ, patience_s)


def copy(text: str, environ: Mapping[str, str]) -> bool:
    """Copy `text` to the clipboard. Return False if there is no program for this or if it fails."""
    program = CLIPBOARD.get(sys.platform, "wl-copy")
    found = shutil.which(program, path=environ.get("PATH"))
    if found is None or (program == "wl-copy" and not environ.get("WAYLAND_DISPLAY")):
        return False
    env, data, null = own_environment(environ), encoded(text, sys.platform), subprocess.DEVNULL
    try:  # no output pipes, because wl-copy stays in the background and would keep them open
        subprocess.run(
            [found], env=env, input=data, stdout=null, stderr=null, timeout=COPY_S, check=True, creationflags=NO_WINDOW
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def encoded(text: str, platform: str) -> bytes:
    """Encode the text for the clipboard program. On Windows, `clip` needs a byte order mark to read Unicode."""
    return f"\ufeff{text}".encode("utf-16-le") if platform == "win32" else text.encode()


def _open(target: str, on_macos: list[str], environ: Mapping[str, str], patience_s: float) -> bool:
    """Open a file or an address with the opener of the system or desktop. Return False if that is not possible."""
    try:
        if sys.platform == "win32":
            os.startfile(target)
            return True
        opener = on_macos
        if sys.platform != "darwin":
            has_display = environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")
            found = shutil.which("xdg-open", path=environ.get("PATH"))
            if not (has_display and found):
                return False
            opener = [found]
        process = subprocess.Popen(
            [*opener, target], env=own_environment(environ), cwd="/", stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        threading.Thread(target=process.wait, name="opener", daemon=True).start()  # otherwise it would remain a zombie
        return not patience_s or process.wait(patience_s) == 0
    except subprocess.TimeoutExpired:
        return True
    except OSError:
        return False
