"""Where a client's files lie on this machine: templates of the table to paths, by platform, home and environment.

Never here: which client has which template, reading a file.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_TOKEN = re.compile(r"\{(\w+)\}")
_FOLDERS = {  # token -> (variable that moves it, else this below the home folder)
    "config": ("XDG_CONFIG_HOME", ".config"),
    "appdata": ("APPDATA", "AppData/Roaming"),
    "localappdata": ("LOCALAPPDATA", "AppData/Local"),
}


def _home() -> Path:
    """The user's folder; where none is known, one below which nothing is."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("~")


@dataclass(frozen=True, slots=True)
class Machine:
    """What decides where other programs keep their files. `platform` as sys.platform."""

    home: Path = field(default_factory=_home)
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    platform: str = sys.platform

    def path(self, template: str) -> Path:
        """`{home}`, `{config}`, `{library}`, `{appdata}`, `{localappdata}` or `{VARIABLE}` at the start, then a path.

        A variable that is not set gives a path that cannot be: the templates after it say what holds then.
        """
        return Path(_TOKEN.sub(lambda found: str(self._folder(found[1])), template))

    def has(self, template: str) -> bool:
        """Whether every variable in the template is set."""
        return all(name.islower() or self.environ.get(name) for name in _TOKEN.findall(template))

    def _folder(self, token: str) -> Path:
        if token == "home":
            return self.home
        if token == "library":
            return self.home / "Library" / "Application Support"
        variable, below = _FOLDERS.get(token, (token, ""))
        said = self.environ.get(variable, "").strip()
        return Path(said) if said and Path(said).is_absolute() else self.home / below


def shown_path(path: Path, home: Path) -> str:
    """A path as people write it: `~` for the home folder."""
    try:
        return str(Path("~") / path.relative_to(home))
    except ValueError:
        return str(path)
