"""Programs that are installed outside the PATH."""

from __future__ import annotations

import os
from pathlib import Path

# Folders that installers use, although the PATH of some desktops lacks them
_FOLDERS = (
    "~/.local/bin", "~/.cargo/bin", "~/bin", "~/.bun/bin", "~/.deno/bin", "~/.volta/bin", "~/go/bin", "/usr/local/bin",
    "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin", "/snap/bin",
)  # fmt: skip


def found_elsewhere(command: str, home: str) -> str:
    """Return `There is one at ~/.local/bin/uvx: ...` for a program that is not on the PATH, or "" if none is found."""
    if os.sep in command or not command:
        return ""
    for folder in _FOLDERS:
        path = Path(folder.replace("~", home, 1), command)
        if path.is_file() and os.access(path, os.X_OK):
            return f"There is one at {folder}/{command}: write that in servers.yaml, or add its folder to the PATH"
    return ""
