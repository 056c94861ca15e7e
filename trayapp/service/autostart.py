"""Start at login: the one entry that the desktop reads, written, taken away and kept true.

XDG autostart (freedesktop.org "Desktop Application Autostart"), a LaunchAgent, or the Run key of the user. Never here:
when the user wants it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trayapp.model.errors import MultiMcpError, StorageError

APP = "multi-mcp"
HOME = "MULTI_MCP_HOME"
# What no quoting carries through every desktop's launcher: `$` and `%` come out doubled or with a backslash.
UNSAFE = re.compile(r"[$%`\n\r]")


@dataclass(frozen=True, slots=True)
class Start:
    """What is started at login: absolute program and arguments; `home`: the value of MULTI_MCP_HOME, "" = none."""

    argv: tuple[str, ...]
    home: str = ""


class Entry(Protocol):
    """The desktop's entry for us."""

    @property
    def where(self) -> str:
        """For people: the file, or the registry's key."""

    def is_on(self) -> bool:
        """Whether the desktop will start what is written. Raises StorageError."""

    def written(self) -> Start | None:
        """What is written, on or off; None = nothing that can be read."""

    def write(self, start: Start) -> None:
        """Write it, switched on. Raises MultiMcpError, and changes nothing then."""

    def remove(self) -> None:
        """Take it away; nothing there is fine. Raises StorageError."""


class Autostart:
    """The switch. `start`: what is to be started, from now on."""

    def __init__(self, entry: Entry, start: Start) -> None:
        self._entry = entry
        self._start = start

    @property
    def where(self) -> str:
        """For people: where the entry lies."""
        return self._entry.where

    def is_on(self) -> bool:
        """Whether it is started at login. Raises StorageError."""
        return self._entry.is_on()

    def turn(self, on: bool) -> None:
        """Raises MultiMcpError."""
        if on:
            self._entry.write(self._start)
        else:
            self._entry.remove()

    def keep_true(self) -> bool:
        """The program may lie elsewhere since an update: write it anew; True when that was needed.

        Only an entry that is on and of the same home is ours to change. Raises MultiMcpError.
        """
        written = self._entry.written() if self._entry.is_on() else None
        if written is None or written.home != self._start.home or written == self._start:
            return False
        self._entry.write(self._start)
        return True


def find_autostart(environ: Mapping[str, str], argv: list[str]) -> Autostart:
    """The switch of this system; `argv` is what it is to start."""
    return Autostart(_entry(environ), Start(tuple(argv), absolute_home(environ).get(HOME, "")))


def absolute_home(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` with a MULTI_MCP_HOME that means the same in every working folder."""
    home = environ.get(HOME, "").strip()
    absolute = {HOME: os.path.abspath(os.path.expanduser(home))} if home else {}  # noqa: PTH100, PTH111 (as wire/rundir)
    return {**environ, **absolute}


def _entry(environ: Mapping[str, str]) -> Entry:
    if sys.platform == "win32":
        from trayapp.service.autostart_windows import RunKey, WindowsRegistry

        return RunKey(WindowsRegistry())
    if sys.platform == "darwin":
        from trayapp.service.autostart_macos import LABEL, LaunchAgent

        return LaunchAgent(Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist")
    config = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(config) if Path(config).is_absolute() else Path.home() / ".config"
    return XdgEntry(folder / "autostart" / f"{APP}.desktop")


class FileEntry:
    """What entries have in common that are files of their own."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def where(self) -> str:
        """See Entry."""
        return str(self._path)


# -- Linux -----------------------------------------------------------------------------------------------------------


class XdgEntry(FileEntry):
    """A desktop entry in the user's autostart folder."""

    def is_on(self) -> bool:
        """See Entry. Desktops switch one off by Hidden, GNOME by a key of its own."""
        keys = self._keys()
        off = keys.get("Hidden", "").lower() == "true" or keys.get("X-GNOME-Autostart-enabled", "").lower() == "false"
        return "Exec" in keys and not off

    def written(self) -> Start | None:
        """See Entry."""
        command = self._keys().get("Exec", "").replace("\\\\", "\\")  # the string type's own escapes
        words = [_unquoted(word) for word in re.findall(r'"(?:[^"\\]|\\.)*"|\S+', command)]
        home = ""
        if words[:1] == ["/usr/bin/env"] and words[1:2] and words[1].startswith(f"{HOME}="):
            home = words[1].partition("=")[2]
            words = words[2:]
        return Start(tuple(words), home) if words else None

    def write(self, start: Start) -> None:
        """See Entry."""
        words = [*(["/usr/bin/env", f"{HOME}={start.home}"] if start.home else []), *start.argv]
        refuse_unsafe(words)
        write_file(self._path, desktop_text(words, start.argv[0]).encode())

    def remove(self) -> None:
        """See Entry."""
        remove_file(self._path)

    def _keys(self) -> dict[str, str]:
        try:
            text = self._path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise unreadable(self._path, error) from None
        section, keys = "", dict[str, str]()
        for line in text.splitlines():
            if line.startswith("["):
                section = line.strip()
            elif section == "[Desktop Entry]" and "=" in line and not line.startswith("#"):
                name, _, value = line.partition("=")
                keys[name.strip()] = value.strip()
        return keys


def refuse_unsafe(words: list[str]) -> None:
    """Raise MultiMcpError for a path that no desktop entry can carry."""
    for word in words:
        found = UNSAFE.search(word)
        if found:
            raise MultiMcpError(
                f"Start at login is not possible: {word!r} holds {found.group()!r}",
                "Desktops would start something else: use a path without $, % and `",
            )


def desktop_text(words: list[str], program: str) -> str:
    """The entry (freedesktop.org "Desktop Entry Specification"); every word quoted. Where `program` was deleted since,
    TryExec has desktops pass over it in silence."""
    return (
        "[Desktop Entry]\n"
        "Type=Application\n"
        "Version=1.0\n"
        f"Name={APP}\n"
        "Comment=All your MCP servers behind one local endpoint\n"
        f"Exec={' '.join(map(_quoted, words))}\n"
        f"TryExec={_escaped(program)}\n"
        f"Icon={APP}\n"
        "Terminal=false\n"
        "StartupNotify=false\n"
        "X-GNOME-Autostart-enabled=true\n"
        "X-GNOME-Autostart-Delay=2\n"  # the panel first
        "X-KDE-autostart-after=panel\n"
    )


def _quoted(word: str) -> str:
    """In quotes, with `\\` and `"` escaped; then once more for the string type of the value."""
    inner = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_escaped(inner)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\")


def _unquoted(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word[1:-1]) if word.startswith('"') else word


# -- files -----------------------------------------------------------------------------------------------------------


def write_file(path: Path, data: bytes) -> None:
    """All of it or nothing. Raises StorageError."""
    fresh = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(data)
        fresh.replace(path)
    except OSError as error:
        raise StorageError(f"Cannot write {path}: {error.strerror}", "Check the folder's owner and rights") from None


def remove_file(path: Path) -> None:
    """Nothing there is fine. Raises StorageError."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"Cannot remove {path}: {error.strerror}", "Remove it yourself") from None


def unreadable(path: Path, error: OSError) -> StorageError:
    """For one that is there."""
    return StorageError(f"Cannot read {path}: {error.strerror}", "Check the file's owner and rights")


def windows_command(start: Start) -> str:
    """As the Run key has it: one line in the quoting of CommandLineToArgvW, the program always in quotes."""
    return " ".join([f'"{start.argv[0]}"', subprocess.list2cmdline(start.argv[1:])]).strip()
