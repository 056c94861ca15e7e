"""One session's lists: as its client has them, what the client is told of them, what they hold for it alone.

Which is the tools that it has called though its list held them back: from then on they are listed, too. With
`expose: auto` alone: whoever says `search` gets one tool and a list that never changes.
Never here: what all sessions of a window list (expose), the calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from trayapp.catalog.names import Key
from trayapp.gateway.expose import Exposure

if TYPE_CHECKING:
    from trayapp.gateway.window import Window

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "templates",
}
LIST_KINDS = tuple(LISTS.values())
TOLD_AS = {**{kind: kind for kind in LIST_KINDS}, "templates": "resources"}  # there is no notification for them alone


class Lists:
    """Of one session; at most as many tools of its own as `defer_above`, since so many were not too many to list."""

    def __init__(self) -> None:
        self._had: dict[str, bytes] = {}  # as the client had them, or was told that they changed
        self._called: dict[Key, None] = {}

    def note_call(self, exposure: Exposure, key: Key) -> bool:
        """A tool is called; whether the session's list is another one by that."""
        if not exposure.defers or key in self._called or key in exposure.direct_keys or key not in exposure.tools:
            return False
        if len(self._called) >= exposure.choice.defer_above:
            return False
        self._called[key] = None
        return True

    def give(self, window: Window, kind: str) -> bytes:
        """JSON of the result of a list request, which the client has from now on; `kind` is one of LIST_KINDS."""
        own = self._own_tools(window.exposure) if kind == "tools" else None
        self._had[kind] = listing = own or window.listing(kind)
        return listing

    def had_by_now(self, window: Window) -> None:
        """Changes are to be told from now on: of what the client never asked for, too."""
        self._had = {**{kind: window.listing(kind) for kind in LIST_KINDS}, **self._had}

    def changed(self, window: Window, listings: Mapping[str, bytes]) -> list[str]:
        """What the client has to be told of, by the names that notifications have, when `listings` (by LIST_KINDS) are
        what all sessions of the window get; told once."""
        own = self._own_tools(window.exposure)
        listings = listings if own is None else {**listings, "tools": own}
        told = [TOLD_AS[kind] for kind, listing in listings.items() if self._had.get(kind, listing) != listing]
        self._had.update(listings)
        return list(dict.fromkeys(told))

    def _own_tools(self, exposure: Exposure) -> bytes | None:
        """JSON of the result of tools/list; None when it is the same as for all others."""
        return exposure.tools_listing(self._called) if self._called and exposure.defers else None
