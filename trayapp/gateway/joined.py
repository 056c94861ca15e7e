"""The tools that one session has called though its list held them back: from then on it lists them, too.

With `expose: auto` alone: whoever says `search` gets one tool and a list that never changes. Never here: the call.
"""

from __future__ import annotations

from trayapp.catalog.names import Key
from trayapp.gateway.expose import Exposure


class Joined:
    """Of one session; at most as many as `defer_above`, since so many were not too many to list."""

    def __init__(self) -> None:
        self._keys: dict[Key, None] = {}

    def note(self, exposure: Exposure, key: Key) -> bool:
        """A tool is called; whether the session's list is another one by that."""
        if not exposure.defers or key in self._keys or key in exposure.direct_keys or key not in exposure.tools:
            return False
        if len(self._keys) >= exposure.choice.defer_above:
            return False
        self._keys[key] = None
        return True

    def listing(self, exposure: Exposure) -> bytes | None:
        """JSON of the result of tools/list; None when it is the same as for all others."""
        return exposure.tools_listing(self._keys) if self._keys and exposure.defers else None
