"""YAML as a family: servers by name in a mapping (MAPPED), or in a list of items with a name each (LISTED).

Never here: YAML itself (config/yaml/foreign).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trayapp.clients.family import Document, Keys
from trayapp.config.yaml import foreign


@dataclass(frozen=True, slots=True)
class YamlFamily:
    """See Family. `listed`: path[0] is a list, path[1] the name of its item, which `read` makes a mapping of."""

    listed: bool

    def read(self, text: str, file: str) -> Document:
        """See Family.read."""
        return foreign.read(text, file, listed=self.listed)

    def put(self, text: str, path: Keys, value: Any, file: str) -> str:
        """See Family.put."""
        return foreign.put_value(text, path, value, file, listed=self.listed)

    def drop(self, text: str, path: Keys, file: str) -> str:
        """See Family.drop."""
        return foreign.drop_value(text, path, file, listed=self.listed)

    def lines(self, text: str, path: Keys) -> dict[str, int]:
        """See Family.lines."""
        return foreign.lines_of(text, path, listed=self.listed)


MAPPED = YamlFamily(listed=False)
LISTED = YamlFamily(listed=True)
