"""The YAML family: servers by name in a mapping (MAPPED), or in a list of named items (LISTED).

config/yaml/foreign reads and edits the YAML.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trayapp.clients.family import Document, Keys
from trayapp.config.yaml import foreign


@dataclass(frozen=True, slots=True)
class YamlFamily:
    """Implements Family. `listed`: path[0] is a list and path[1] an item's name; `read` returns it as a mapping."""

    listed: bool

    def read(self, text: str, file: str) -> Document:
        """Parse the text (Family.read)."""
        return foreign.read(text, file, listed=self.listed)

    def put(self, text: str, path: Keys, value: Any, file: str) -> str:
        """Set the value at a path (Family.put)."""
        return foreign.put_value(text, path, value, file, listed=self.listed)

    def drop(self, text: str, path: Keys, file: str) -> str:
        """Remove the value at a path (Family.drop)."""
        return foreign.drop_value(text, path, file, listed=self.listed)

    def lines(self, text: str, path: Keys) -> dict[str, int]:
        """Return the line of each key at a path (Family.lines)."""
        return foreign.lines_of(text, path, listed=self.listed)


MAPPED = YamlFamily(listed=False)
LISTED = YamlFamily(listed=True)
