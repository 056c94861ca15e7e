"""Remember the lists that one client has, and decide which changes to report to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "templates",
}
LIST_KINDS = (*LISTS.values(), "events")  # kinds whose changes are reported
NOTIFIED_AS = {
    **{kind: kind for kind in LIST_KINDS},
    "templates": "resources",
}  # they have no notification of their own


class ClientLists:
    """Lists of one client, by LIST_KINDS, each as JSON."""

    def __init__(self) -> None:
        self._had: dict[str, bytes] = {}  # as the client last got them, or was notified of a change
        self._given: set[str] = set()  # kinds that it asked for
        self._awaited: Counter[str] = Counter()  # kinds whose requests are not answered yet

    def given(self, kind: str, listing: bytes) -> None:
        """Note that the client is given that list."""
        self._given.add(kind)
        self._had[kind] = listing

    @contextmanager
    def awaiting(self, kind: str) -> Iterator[None]:
        """Report no change of that list in the block: its answer, which is due, has it."""
        self._awaited[kind] += 1
        try:
            yield
        finally:
            self._awaited[kind] -= 1

    def begin(self, listings: Mapping[str, bytes]) -> None:
        """Use these lists as the basis for changes, even of lists that the client never asked for."""
        self._had = {**listings, **self._had}

    def begin_again(self, listings: Mapping[str, bytes]) -> None:
        """Use these lists as the basis for changes of lists that the client never asked for."""
        self._had |= {kind: listing for kind, listing in listings.items() if kind not in self._given}

    def is_current(self, kind: str, listing: bytes) -> bool:
        """Return True if the client has that list, or was notified of its change."""
        return self._had.get(kind) == listing

    def changed(self, listings: Mapping[str, bytes]) -> list[str]:
        """Return the kinds of list_changed notifications that these lists require."""
        listings = {kind: listing for kind, listing in listings.items() if not self._awaited[kind]}
        changed = [NOTIFIED_AS[kind] for kind, listing in listings.items() if self._had.get(kind, listing) != listing]
        self._had.update(listings)
        return list(dict.fromkeys(changed))
