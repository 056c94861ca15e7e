"""What one client has of each list: which ones it has to be told of when they change.

Never here: what a list holds (exposure), giving it, telling.
"""

from __future__ import annotations

from collections.abc import Mapping

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "templates",
}
LIST_KINDS = tuple(LISTS.values())
NOTIFIED_AS = {
    **{kind: kind for kind in LIST_KINDS},
    "templates": "resources",
}  # they have no notification of their own


class ClientLists:
    """The lists of one client, by LIST_KINDS, each as JSON."""

    def __init__(self) -> None:
        self._had: dict[str, bytes] = {}  # as the client had them, or was told that they changed

    def given(self, kind: str, listing: bytes) -> None:
        """Note that the client gets that list."""
        self._had[kind] = listing

    def begin(self, listings: Mapping[str, bytes]) -> None:
        """Tell of changes from these lists on, also of what the client never asked for."""
        self._had = {**listings, **self._had}

    def changed(self, listings: Mapping[str, bytes]) -> list[str]:
        """Return the kinds of list_changed notifications that these lists call for."""
        changed = [NOTIFIED_AS[kind] for kind, listing in listings.items() if self._had.get(kind, listing) != listing]
        self._had.update(listings)
        return list(dict.fromkeys(changed))
