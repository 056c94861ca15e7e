"""Start at login on Linux: XDG autostart (freedesktop.org "Desktop Application Autostart")."""

from __future__ import annotations

import re

from trayapp.model.errors import MultiMcpError
from trayapp.service.autostart.entry import APP, HOME, FileEntry, StartCommand, remove_file, unreadable, write_file

# Characters that no quoting preserves in every desktop: launchers double `$` and `%` or add a backslash.
UNSAFE = re.compile(r"[$%`\n\r]")


class XdgEntry(FileEntry):
    """A desktop entry in the user's autostart folder."""

    def is_on(self) -> bool:
        """Return True if the desktop starts the entry (AutostartEntry).

        Desktops disable an entry by Hidden, GNOME by its own key.
        """
        keys = self._keys()
        off = keys.get("Hidden", "").lower() == "true" or keys.get("X-GNOME-Autostart-enabled", "").lower() == "false"
        return "Exec" in keys and not off

    def written(self) -> StartCommand | None:
        """Return the command in the entry (AutostartEntry)."""
        command = self._keys().get("Exec", "").replace("\\\\", "\\")  # undoes the escapes of the string type
        words = re.findall(r'"(?:[^"\\]|\\.)*"|\S+', command)
        words = [re.sub(r"\\(.)", r"\1", word[1:-1]) if word.startswith('"') else word for word in words]
        home = ""
        if words[:1] == ["/usr/bin/env"] and words[1:2] and words[1].startswith(f"{HOME}="):
            home = words[1].partition("=")[2]
            words = words[2:]
        return StartCommand(tuple(words), home) if words else None

    def write(self, start: StartCommand) -> None:
        """Write the entry (AutostartEntry)."""
        words = [*(["/usr/bin/env", f"{HOME}={start.home}"] if start.home else []), *start.argv]
        refuse_unsafe(words)
        write_file(self._path, desktop_text(words, start.argv[0]).encode())

    def remove(self) -> None:
        """Remove the entry (AutostartEntry)."""
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
    """Raise MultiMcpError for a word that a desktop entry cannot hold."""
    for word in words:
        found = UNSAFE.search(word)
        if found:
            raise MultiMcpError(
                f"Start at login is not possible: {word!r} contains {found.group()!r}",
                "Desktops would start something else. Use a path without $, % and `",
            )


def desktop_text(words: list[str], program: str) -> str:
    """Return the entry (freedesktop.org "Desktop Entry Specification"), with every word quoted.

    TryExec makes desktops skip the entry silently if `program` was deleted.
    """
    # Quotes and backslashes of a word are escaped, and then again for the string type of the value.
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
        "X-GNOME-Autostart-Delay=2\n"  # after the panel
        "X-KDE-autostart-after=panel\n"
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\")
