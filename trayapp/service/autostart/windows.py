"""Start at login on Windows: a value of the user's Run key, and the switch that Task Manager keeps for it."""

from __future__ import annotations

import subprocess
import sys
from typing import Protocol

from trayapp.model.errors import MultiMcpError, StorageError
from trayapp.service.autostart.entry import APP, HOME, StartCommand

RUN = r"Software\Microsoft\Windows\CurrentVersion\Run"
APPROVED = r"Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run"  # first byte odd = switched off


class Registry(Protocol):
    """Values below HKEY_CURRENT_USER."""

    def get(self, key: str, name: str) -> str | bytes | None:
        """Return the value, None if there is none. Raises OSError."""

    def set(self, key: str, name: str, value: str) -> None:
        """Set the value, as a string. Raises OSError."""

    def delete(self, key: str, name: str) -> None:
        """Delete the value, if there is one. Raises OSError."""


class RunKey:
    """Our value in the Run key. Implements entry.AutostartEntry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    @property
    def where(self) -> str:
        """The path of the value in the registry (AutostartEntry)."""
        return rf"HKEY_CURRENT_USER\{RUN}\{APP}"

    def is_on(self) -> bool:
        """Return True if Windows starts the entry (AutostartEntry)."""
        command, switch = self._get(RUN), self._get(APPROVED)
        off = isinstance(switch, bytes) and bool(switch) and switch[0] % 2 == 1
        return isinstance(command, str) and bool(command) and not off

    def written(self) -> StartCommand | None:
        """Return the command in the entry (AutostartEntry)."""
        command = self._get(RUN)
        return StartCommand(tuple(split_command(command))) if isinstance(command, str) and command else None

    def write(self, start: StartCommand) -> None:
        """Write the entry (AutostartEntry). Raises MultiMcpError if `start` has a home, too."""
        if start.home:
            raise MultiMcpError(
                f"Start at login is not possible while {HOME} is set", "Unset it: the Run key cannot hold variables"
            )
        try:
            self._registry.set(RUN, APP, windows_command(start))
            self._registry.delete(APPROVED, APP)  # Task Manager then shows the entry as enabled
        except OSError as error:
            raise StorageError(
                f"Cannot write {self.where}: {error.strerror}", "Check the permissions of the key"
            ) from None

    def remove(self) -> None:
        """Remove the entry (AutostartEntry)."""
        try:
            self._registry.delete(RUN, APP)
            self._registry.delete(APPROVED, APP)
        except OSError as error:
            raise StorageError(f"Cannot remove {self.where}: {error.strerror}", "Remove it yourself") from None

    def _get(self, key: str) -> str | bytes | None:
        try:
            return self._registry.get(key, APP)
        except OSError as error:
            raise StorageError(
                f"Cannot read {self.where}: {error.strerror}", "Check the permissions of the key"
            ) from None


def windows_command(start: StartCommand) -> str:
    """Return the command line for the Run key, quoted for CommandLineToArgvW. The program is always in quotes."""
    return " ".join([f'"{start.argv[0]}"', subprocess.list2cmdline(start.argv[1:])]).strip()


def split_command(command: str) -> list[str]:
    """Split a command line written by `windows_command` into program and arguments. Only quotes are interpreted."""
    words, quoted, word, begun = list[str](), False, "", False
    for letter in command:
        if letter == '"':
            quoted, begun = not quoted, True
        elif letter == " " and not quoted:
            words += [word] if begun else []
            word, begun = "", False
        else:
            word, begun = word + letter, True
    return [*words, word] if begun else words


if sys.platform == "win32":
    import winreg

    class WindowsRegistry:
        """The real registry. Implements Registry."""

        def get(self, key: str, name: str) -> str | bytes | None:
            """Return the value (Registry)."""
            try:
                with winreg.OpenKey(winreg.HKEY_CURRENT_USER, key) as opened:
                    value: str | bytes = winreg.QueryValueEx(opened, name)[0]
                    return value
            except FileNotFoundError:
                return None

        def set(self, key: str, name: str, value: str) -> None:
            """Set the value (Registry)."""
            with winreg.CreateKey(winreg.HKEY_CURRENT_USER, key) as opened:
                winreg.SetValueEx(opened, name, 0, winreg.REG_SZ, value)

        def delete(self, key: str, name: str) -> None:
            """Delete the value (Registry)."""
            try:
                with winreg.OpenKey(winreg.HKEY_CURRENT_USER, key, 0, winreg.KEY_SET_VALUE) as opened:
                    winreg.DeleteValue(opened, name)
            except FileNotFoundError:
                return
