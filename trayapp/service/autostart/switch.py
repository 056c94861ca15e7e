"""Start at login: the one entry that the desktop reads, switched on and off and kept true.

Never here: when the user wants it, how each platform is told.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from trayapp.service.autostart.entry import APP, HOME, Entry, Start


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
        from trayapp.service.autostart.windows import RunKey, WindowsRegistry

        return RunKey(WindowsRegistry())
    if sys.platform == "darwin":
        from trayapp.service.autostart.macos import LABEL, LaunchAgent

        return LaunchAgent(Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist")
    from trayapp.service.autostart.linux import XdgEntry

    config = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(config) if Path(config).is_absolute() else Path.home() / ".config"
    return XdgEntry(folder / "autostart" / f"{APP}.desktop")
