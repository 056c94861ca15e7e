"""Known facts about how a server speaks: its protocol eras, and the client features that it uses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerTraits:
    """Traits of one version of a server. For each era: True if the server speaks it, None if never tried.

    `asks`: the client capabilities that it has used (`sampling`, `elicitation`, `roots`), or a method of its own.
    """

    older: bool | None = None
    newer: bool | None = None
    asks: frozenset[str] = frozenset()

    def speaks(self, *, newer: bool) -> bool | None:
        """Return True if the server is known to speak that era, False if known not to, None if unknown."""
        return self.newer if newer else self.older


NO_TRAITS = ServerTraits()
