"""Start at login on macOS: a property list in the user's LaunchAgents.

Never here: another platform's way.
"""

from __future__ import annotations

import plistlib
from xml.parsers.expat import ExpatError

from trayapp.service.autostart.entry import HOME, FileEntry, Start, remove_file, unreadable, write_file

LABEL = "dev.multimcp.tray"  # of the LaunchAgent, and of the app bundle


class LaunchAgent(FileEntry):
    """A property list in the user's LaunchAgents; launchd reads it at the next login."""

    def is_on(self) -> bool:
        """See Entry."""
        values = self._values()
        return bool(values.get("ProgramArguments")) and bool(values.get("RunAtLoad")) and not values.get("Disabled")

    def written(self) -> Start | None:
        """See Entry."""
        values = self._values()
        words, environment = values.get("ProgramArguments"), values.get("EnvironmentVariables")
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            return None
        home = environment.get(HOME, "") if isinstance(environment, dict) else ""
        return Start(tuple(words), str(home))

    def write(self, start: Start) -> None:
        """See Entry. It is not loaded now: that would start a second one."""
        write_file(self._path, plistlib.dumps(launch_agent(start)))

    def remove(self) -> None:
        """See Entry."""
        remove_file(self._path)

    def _values(self) -> dict[str, object]:
        try:
            values = plistlib.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise unreadable(self._path, error) from None
        except (plistlib.InvalidFileException, ExpatError, ValueError):
            return {}
        return values if isinstance(values, dict) else {}


def launch_agent(start: Start) -> dict[str, object]:
    """The keys of launchd.plist(5): once at login, in the graphical session only."""
    values: dict[str, object] = {
        "Label": LABEL,
        "ProgramArguments": list(start.argv),
        "RunAtLoad": True,
        "KeepAlive": False,
        "ProcessType": "Interactive",
        "LimitLoadToSessionType": "Aqua",
        "AssociatedBundleIdentifiers": LABEL,
    }
    return {**values, "EnvironmentVariables": {HOME: start.home}} if start.home else values
