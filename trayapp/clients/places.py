"""Paths of clients' files on this machine: the table's templates, resolved by platform, home and environment."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_TOKEN = re.compile(r"\{(\w+)\}")
_FOLDERS = {  # token -> (variable that sets the folder, its default below the home folder)
    "config": ("XDG_CONFIG_HOME", ".config"),
    "appdata": ("APPDATA", "AppData/Roaming"),
    "localappdata": ("LOCALAPPDATA", "AppData/Local"),
}


def _home() -> Path:
    """Return the user's home folder; a folder that does not exist if the home is unknown."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("~")


@dataclass(frozen=True, slots=True)
class Machine:
    """The platform (as sys.platform), home and environment that decide where other programs keep their files."""

    home: Path = field(default_factory=_home)
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    platform: str = sys.platform

    def path(self, template: str) -> Path:
        """Return the path of a template.

        It starts with `{home}`, `{config}`, `{library}`, `{appdata}`, `{localappdata}` or `{VARIABLE}`. An unset
        VARIABLE resolves to the home folder: check `has` first, and use the next template if it is False.
        """
        return Path(_TOKEN.sub(lambda found: str(self._folder(found[1])), template))

    def has(self, template: str) -> bool:
        """Return True if every variable in the template is set."""
        return all(name.islower() or self.environ.get(name) for name in _TOKEN.findall(template))

    def _folder(self, token: str) -> Path:
        if token == "home":
            return self.home
        if token == "library":
            return self.home / "Library" / "Application Support"
        variable, below = _FOLDERS.get(token, (token, ""))
        value = self.environ.get(variable, "").strip()
        return Path(value) if value and Path(value).is_absolute() else self.home / below


def shown_path(path: Path, home: Path) -> str:
    """Return a path with `~` for the home folder."""
    try:
        return str(Path("~") / path.relative_to(home))
    except ValueError:
        return str(path)
