"""Programs that are installed outside the PATH, and programs that run the text of others."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

# Folders that installers use, although the PATH of some desktops lacks them
_FOLDERS = (
    "~/.local/bin", "~/.cargo/bin", "~/bin", "~/.bun/bin", "~/.deno/bin", "~/.volta/bin", "~/go/bin", "/usr/local/bin",
    "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin", "/snap/bin",
)  # fmt: skip
_INTERPRETER = re.compile(
    r"(?:.*[/\\])?(?:python|pypy|node|nodejs|deno|bun|tsx|ts-node|sh|bash|dash|ash|ksh|zsh|fish|ruby|perl|php|lua|luajit"
    r"|Rscript|pwsh|powershell|osascript)[\d.]*(?:\.exe|\.cmd)?",
    re.IGNORECASE,
)
_TEXT_FOLLOWS = ("-c", "-m", "--eval", "--print", "-Command", "-EncodedCommand")


def script_of(words: Sequence[str], is_file: Callable[[str], bool]) -> str | None:
    """Return the file that an interpreter among the words runs, whatever its name (`python3 x.txt`); None if none."""
    for place, word in enumerate(words):
        if _INTERPRETER.fullmatch(word) is None:
            continue
        for later in words[place + 1 :]:
            if later in _TEXT_FOLLOWS:
                break
            if is_file(later):
                return later
    return None


def found_elsewhere(command: str, home: str) -> str:
    """Return `There is one at ~/.local/bin/uvx: ...` for a program that is not on the PATH, or "" if none is found."""
    if os.sep in command or not command:
        return ""
    for folder in _FOLDERS:
        path = Path(folder.replace("~", home, 1), command)
        if path.is_file() and os.access(path, os.X_OK):
            return f"There is one at {folder}/{command}: write that in servers.yaml, or add its folder to the PATH"
    return ""
