"""Remember what one client has of each list, and which changes it has to be told."""

from __future__ import annotations

from collections.abc import Mapping

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "templates",
}
LIST_KINDS = (*LISTS.values(), "events")  # whose changes are told
NOTIFIED_AS = {
    **{kind: kind for kind in LIST_KINDS},
    "templates": "resources",
}  # they have no notification of their own


class ClientLists:
    """Lists of one client, by LIST_KINDS, each as JSON."""

    def __init__(self) -> None:
        self._had: dict[str, bytes] = {}  # as the client had them, or was told that they changed
        self._given: set[str] = set()  # kinds that it asked for

    def given(self, kind: str, listing: bytes) -> None:
        """Note that the client gets that list."""
        self._given.add(kind)
        self._had[kind] = listing

    def begin(self, listings: Mapping[str, bytes]) -> None:
        """Report changes from these lists on, even of lists that the client never asked for."""
        self._had = {**listings, **self._had}

    def begin_again(self, listings: Mapping[str, bytes]) -> None:
        """Report changes of lists that the client never asked for from these lists on."""
        self._had |= {kind: listing for kind, listing in listings.items() if kind not in self._given}

    def is_current(self, kind: str, listing: bytes) -> bool:
        """Return True if the client has that list, or was told that it changed."""
        return self._had.get(kind) == listing

    def changed(self, listings: Mapping[str, bytes]) -> list[str]:
        """Return the kinds of list_changed notifications that these lists require."""
        changed = [NOTIFIED_AS[kind] for kind, listing in listings.items() if self._had.get(kind, listing) != listing]
        self._had.update(listings)
        return list(dict.fromkeys(changed))
