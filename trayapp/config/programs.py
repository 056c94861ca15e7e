"""Programs that are installed where the PATH does not lead.

Never here: what a server needs, running anything.
"""

from __future__ import annotations

import os
from pathlib import Path

# Where installers put programs without the PATH of every desktop knowing it
_FOLDERS = (
    "~/.local/bin", "~/.cargo/bin", "~/bin", "~/.bun/bin", "~/.deno/bin", "~/.volta/bin", "~/go/bin", "/usr/local/bin",
    "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin", "/snap/bin",
)  # fmt: skip


def found_elsewhere(command: str, home: str) -> str:
    """Return `There is one at ~/.local/bin/uvx: ...` for a program that the PATH does not have; "" without one."""
    if os.sep in command or not command:
        return ""
    for folder in _FOLDERS:
        path = Path(folder.replace("~", home, 1), command)
        if path.is_file() and os.access(path, os.X_OK):
            return f"There is one at {folder}/{command}: write that in servers.yaml, or add its folder to the PATH"
    return ""
