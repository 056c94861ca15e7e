"""Start at login on macOS: a property list in the user's LaunchAgents."""

from __future__ import annotations

import plistlib
from xml.parsers.expat import ExpatError

from trayapp.service.autostart.entry import HOME, FileEntry, StartCommand, remove_file, unreadable, write_file

LABEL = "dev.multimcp.tray"  # label of the LaunchAgent, and identifier of the app bundle


class LaunchAgent(FileEntry):
    """Our property list in the user's LaunchAgents, which launchd reads at the next login."""

    def is_on(self) -> bool:
        """Return True if launchd starts the entry (AutostartEntry)."""
        values = self._values()
        return bool(values.get("ProgramArguments")) and bool(values.get("RunAtLoad")) and not values.get("Disabled")

    def written(self) -> StartCommand | None:
        """Return the command in the entry (AutostartEntry)."""
        values = self._values()
        words, environment = values.get("ProgramArguments"), values.get("EnvironmentVariables")
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            return None
        home = environment.get(HOME, "") if isinstance(environment, dict) else ""
        return StartCommand(tuple(words), str(home))

    def write(self, start: StartCommand) -> None:
        """Write the entry (AutostartEntry). It is not loaded now, because that would start a second tray."""
        write_file(self._path, plistlib.dumps(launch_agent(start)))

    def remove(self) -> None:
        """Remove the entry (AutostartEntry)."""
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


def launch_agent(start: StartCommand) -> dict[str, object]:
    """Return the keys of launchd.plist(5) for a start at login, once, in the graphical session only."""
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
