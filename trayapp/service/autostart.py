"""Start at login: functions that switch our autostart entry on and off and keep it up to date.

- Linux: XDG autostart (freedesktop.org "Desktop Application Autostart").
- macOS: a property list in the user's LaunchAgents.
- Windows: a value in the user's Run key, and the value in which Task Manager stores its on/off switch.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trayapp.config.files import read_bytes, storage_error, write_atomic
from trayapp.model.errors import MultiMcpError, StorageError

APP = "multi-mcp"
HOME = "MULTI_MCP_HOME"
READ_MOST = 1 << 20  # bytes of an entry's file


@dataclass(frozen=True, slots=True)
class StartCommand:
    """The command to start at login. Its program is an absolute path. `home`: MULTI_MCP_HOME, or "" if unset."""

    argv: tuple[str, ...]
    home: str = ""


class AutostartEntry(Protocol):
    """Our autostart entry on this platform."""

    @property
    def where(self) -> str:
        """Return the path of the file, or the key in the Windows registry, for display."""

    def is_on(self) -> bool:
        """Return True if the desktop will start the entry. Raises StorageError."""

    def written(self) -> StartCommand | None:
        """Return the command in the entry, even if off, or None if there is no valid entry. Raises StorageError."""

    def write(self, start: StartCommand) -> None:
        """Write the entry, switched on. Raises MultiMcpError."""

    def remove(self) -> None:
        """Remove the entry, if there is one. Raises StorageError."""


class FileEntry:
    """An entry with its own file. Its subclasses implement the rest of AutostartEntry."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.where = str(path)

    def remove(self) -> None:
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(error, self._path, "remove") from None


@dataclass(frozen=True, slots=True)
class Autostart:
    """The switch for start at login. `start` is the command to start."""

    entry: AutostartEntry
    start: StartCommand

    def turn(self, on: bool) -> None:
        """Switch start at login on or off. Raises MultiMcpError."""
        if on:
            self.entry.write(self.start)
        else:
            self.entry.remove()

    def refresh_command(self) -> bool:
        """Rewrite an outdated entry, because an update may have moved the program. Return True if it was rewritten.

        The entry is changed only if it is on and has the same home. Raises MultiMcpError.
        """
        written = self.entry.written() if self.entry.is_on() else None
        if written is None or written.home != self.start.home or written == self.start:
            return False
        self.entry.write(self.start)
        return True


def find_autostart(environ: Mapping[str, str], argv: list[str]) -> Autostart:
    """Return the switch for this platform. `argv` is the command to start."""
    start = StartCommand(tuple(argv), absolute_home(environ).get(HOME, ""))
    if sys.platform == "win32":
        return Autostart(RunKey(WindowsRegistry()), start)
    if sys.platform == "darwin":
        return Autostart(LaunchAgent(Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist"), start)
    config = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(config) if Path(config).is_absolute() else Path.home() / ".config"
    return Autostart(XdgEntry(folder / "autostart" / f"{APP}.desktop"), start)


def absolute_home(environ: Mapping[str, str]) -> dict[str, str]:
    """Return `environ` with an absolute MULTI_MCP_HOME, if it is set."""
    home = environ.get(HOME, "").strip()
    absolute = {HOME: os.path.abspath(os.path.expanduser(home))} if home else {}  # noqa: PTH100, PTH111 (as wire/rundir)
    return {**environ, **absolute}


# Characters that no quoting preserves on every desktop: some launchers double `$` and `%` or add a backslash.
UNSAFE = re.compile(r"[$%`\n\r]")


class XdgEntry(FileEntry):
    """A desktop entry in the user's autostart folder."""

    def is_on(self) -> bool:
        keys = self._keys()  # most desktops switch an entry off with Hidden; GNOME has its own key
        off = keys.get("Hidden", "").lower() == "true" or keys.get("X-GNOME-Autostart-enabled", "").lower() == "false"
        return "Exec" in keys and not off

    def written(self) -> StartCommand | None:
        command = self._keys().get("Exec", "").replace("\\\\", "\\")  # undoes the escapes of the string type
        words = re.findall(r'"(?:[^"\\]|\\.)*"|\S+', command)
        words = [re.sub(r"\\(.)", r"\1", word[1:-1]) if word.startswith('"') else word for word in words]
        home = ""
        if words[:1] == ["/usr/bin/env"] and words[1:2] and words[1].startswith(f"{HOME}="):
            home = words[1].partition("=")[2]
            words = words[2:]
        return StartCommand(tuple(words), home) if words else None

    def write(self, start: StartCommand) -> None:
        """Write the entry, switched on. Raises MultiMcpError, also for a word that a desktop entry cannot hold."""
        words = [*(["/usr/bin/env", f"{HOME}={start.home}"] if start.home else []), *start.argv]
        for word in words:
            if found := UNSAFE.search(word):
                title = f"Start at login is not possible: {word!r} contains {found.group()!r}"
                raise MultiMcpError(title, "Some desktops would change it. Use a path without $, % or `")
        write_atomic(self._path, desktop_text(words, start.argv[0]).encode())

    def _keys(self) -> dict[str, str]:
        text = (read_bytes(self._path, READ_MOST) or b"").decode(errors="replace")
        section, keys = "", dict[str, str]()
        for line in text.splitlines():
            if line.startswith("["):
                section = line.strip()
            elif section == "[Desktop Entry]" and "=" in line and not line.startswith("#"):
                name, _, value = line.partition("=")
                keys[name.strip()] = value.strip()
        return keys


def desktop_text(words: list[str], program: str) -> str:
    """Return the entry (freedesktop.org "Desktop Entry Specification"), with every word quoted.

    With TryExec, desktops silently skip the entry if `program` was deleted.
    """
    # Quotes and backslashes in a word are escaped. The string type of the value then doubles all backslashes.
    quoted = (_escaped(word.replace("\\", "\\\\").replace('"', '\\"')) for word in words)
    command = " ".join(f'"{word}"' for word in quoted)
    return (
        "[Desktop Entry]\n"
        "Type=Application\n"
        "Version=1.0\n"
        f"Name={APP}\n"
        "Comment=All your MCP servers behind one local endpoint\n"
        f"Exec={command}\n"
        f"TryExec={_escaped(program)}\n"
        f"Icon={APP}\n"
        "Terminal=false\n"
        "StartupNotify=false\n"
        "X-GNOME-Autostart-enabled=true\n"
        "X-GNOME-Autostart-Delay=2\n"  # seconds, so that the panel starts first
        "X-KDE-autostart-after=panel\n"
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\")


LABEL = "dev.multimcp.tray"  # label of the LaunchAgent, and identifier of the app bundle


class LaunchAgent(FileEntry):
    """Our property list in the user's LaunchAgents, which launchd reads at the next login."""

    def is_on(self) -> bool:
        values = self._values()
        return bool(values.get("ProgramArguments")) and bool(values.get("RunAtLoad")) and not values.get("Disabled")

    def written(self) -> StartCommand | None:
        values = self._values()
        words, environment = values.get("ProgramArguments"), values.get("EnvironmentVariables")
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            return None
        home = environment.get(HOME, "") if isinstance(environment, dict) else ""
        return StartCommand(tuple(words), str(home))

    def write(self, start: StartCommand) -> None:
        """Write the entry, switched on, but do not load it into launchd, which would start a second tray."""
        import plistlib  # imported late: takes 5 ms, and only macOS needs it

        values: dict[str, object] = {  # launchd.plist(5): start once at login, only in a graphical session
            "Label": LABEL,
            "ProgramArguments": list(start.argv),
            "RunAtLoad": True,
            "KeepAlive": False,
            "ProcessType": "Interactive",
            "LimitLoadToSessionType": "Aqua",
            "AssociatedBundleIdentifiers": LABEL,
        }
        if start.home:
            values["EnvironmentVariables"] = {HOME: start.home}
        write_atomic(self._path, plistlib.dumps(values))

    def _values(self) -> dict[str, object]:
        import plistlib
        from xml.parsers.expat import ExpatError

        try:
            values = plistlib.loads(read_bytes(self._path, READ_MOST) or b"")
        except (plistlib.InvalidFileException, ExpatError, ValueError):
            return {}
        return values if isinstance(values, dict) else {}


RUN = r"Software\Microsoft\Windows\CurrentVersion\Run"
APPROVED = r"Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run"  # an odd first byte means "off"


class Registry(Protocol):
    """Values below HKEY_CURRENT_USER. All methods raise OSError."""

    def get(self, key: str, name: str) -> str | bytes | None: ...
    def set(self, key: str, name: str, value: str) -> None: ...
    def delete(self, key: str, name: str) -> None:
        """Delete the value, if there is one."""


class RunKey:
    """Our value in the Run key. Implements AutostartEntry."""

    where = rf"HKEY_CURRENT_USER\{RUN}\{APP}"

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def is_on(self) -> bool:
        command, switch = self._get(RUN), self._get(APPROVED)
        off = isinstance(switch, bytes) and bool(switch) and switch[0] % 2 == 1
        return isinstance(command, str) and bool(command) and not off

    def written(self) -> StartCommand | None:
        from trayapp.config.read.command import split_command  # imported late: only Windows needs it

        command = self._get(RUN)
        with suppress(ValueError):  # an unclosed quote
            words = split_command(command if isinstance(command, str) else "", exists=lambda path: False, windows=True)
            return StartCommand(tuple(words)) if words else None
        return None

    def write(self, start: StartCommand) -> None:
        """Write the entry, switched on. Raises MultiMcpError, also if `start` has a home."""
        if start.home:
            title = f"Start at login is not possible while {HOME} is set"
            raise MultiMcpError(title, "Unset it: the Run key cannot hold variables")
        command = f'"{start.argv[0]}" {subprocess.list2cmdline(start.argv[1:])}'.strip()  # for CommandLineToArgvW
        try:
            self._registry.set(RUN, APP, command)
            self._registry.delete(APPROVED, APP)  # Task Manager then shows the entry as enabled
        except OSError as error:
            raise self._error("write", error) from None

    def remove(self) -> None:
        try:
            self._registry.delete(RUN, APP)
            self._registry.delete(APPROVED, APP)
        except OSError as error:
            raise self._error("remove", error) from None

    def _get(self, key: str) -> str | bytes | None:
        try:
            return self._registry.get(key, APP)
        except OSError as error:
            raise self._error("read", error) from None

    def _error(self, action: str, error: OSError) -> StorageError:
        return StorageError(f"Cannot {action} {self.where}: {error.strerror}", "Check the permissions of the key")


if sys.platform == "win32":
    import winreg

    class WindowsRegistry:
        """The real registry. Implements Registry."""

        def get(self, key: str, name: str) -> str | bytes | None:
            try:
                with winreg.OpenKey(winreg.HKEY_CURRENT_USER, key) as opened:
                    value: str | bytes = winreg.QueryValueEx(opened, name)[0]
                    return value
            except FileNotFoundError:
                return None

        def set(self, key: str, name: str, value: str) -> None:
            with winreg.CreateKey(winreg.HKEY_CURRENT_USER, key) as opened:
                winreg.SetValueEx(opened, name, 0, winreg.REG_SZ, value)

        def delete(self, key: str, name: str) -> None:
            try:
                with winreg.OpenKey(winreg.HKEY_CURRENT_USER, key, 0, winreg.KEY_SET_VALUE) as opened:
                    winreg.DeleteValue(opened, name)
            except FileNotFoundError:
                return
