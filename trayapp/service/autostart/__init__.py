"""Start at login: switch our autostart entry on and off, and keep it up to date."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from trayapp.service.autostart.entry import APP, HOME, AutostartEntry, StartCommand


class Autostart:
    """The switch for start at login. `start`: the command to start."""

    def __init__(self, entry: AutostartEntry, start: StartCommand) -> None:
        self._entry = entry
        self._start = start

    @property
    def where(self) -> str:
        """The place of the entry, for display."""
        return self._entry.where

    def is_on(self) -> bool:
        """Return True if multi-mcp starts at login. Raises StorageError."""
        return self._entry.is_on()

    def turn(self, on: bool) -> None:
        """Switch start at login on or off. Raises MultiMcpError."""
        if on:
            self._entry.write(self._start)
        else:
            self._entry.remove()

    def refresh_command(self) -> bool:
        """Rewrite the entry if its command is outdated: an update may have moved the program. Return True if it was.

        Only an entry that is on and has the same home is changed. Raises MultiMcpError.
        """
        written = self._entry.written() if self._entry.is_on() else None
        if written is None or written.home != self._start.home or written == self._start:
            return False
        self._entry.write(self._start)
        return True


def find_autostart(environ: Mapping[str, str], argv: list[str]) -> Autostart:
    """Return the switch of this platform. `argv`: the command to start."""
    return Autostart(_entry(environ), StartCommand(tuple(argv), absolute_home(environ).get(HOME, "")))


def absolute_home(environ: Mapping[str, str]) -> dict[str, str]:
    """Return `environ` with an absolute MULTI_MCP_HOME, if it is set."""
    home = environ.get(HOME, "").strip()
    absolute = {HOME: os.path.abspath(os.path.expanduser(home))} if home else {}  # noqa: PTH100, PTH111 (as wire/rundir)
    return {**environ, **absolute}


def _entry(environ: Mapping[str, str]) -> AutostartEntry:
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
