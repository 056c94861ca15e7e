"""The words of servers' names: a query with such a word is most likely about that server's tools.

Never here: tools, documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from trayapp.catalog.search.vocabulary import rarity


class ServerNames:
    """The stems of each server's name, and how much each of them says."""

    def __init__(self) -> None:
        self._stems: dict[str, frozenset[str]] = {}
        self._shares: dict[str, float] = {}  # valid until the next change

    def add(self, server: str, stems: Iterable[str]) -> None:
        """Add a server's name. Call it also if only the server's tools have changed."""
        self._stems[server] = frozenset(stems)
        self._shares.clear()

    def remove(self, server: str) -> None:
        """Remove a server, if it is known."""
        self._stems.pop(server, None)
        self._shares.clear()

    def shares(self, asked: Iterable[str], having: Callable[[str], int]) -> dict[str, float]:
        """Return the stems that are in a server's name, each with how much it says (0 to 1).

        A stem that no other server's tools contain gets 1. `having` counts the servers whose tools have a stem.
        """
        named = [stem for stem in asked if any(stem in stems for stems in self._stems.values())]
        for stem in named:
            if stem not in self._shares:
                most = rarity(1, len(self._stems))
                self._shares[stem] = min(1.0, rarity(having(stem), len(self._stems)) / most)
        return {stem: self._shares[stem] for stem in named}
