"""What is known of how a server speaks, beside what it offers: its eras of the protocol, and what it asks clients.

Never here: the connections that follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerTraits:
    """Traits of one version of a server. An era: True if it speaks it, None if nobody has tried.

    `asks`: the client capabilities that it has used (`sampling`, `elicitation`, `roots`), or a method of its own.
    """

    older: bool | None = None
    newer: bool | None = None
    asks: frozenset[str] = frozenset()

    def speaks(self, *, newer: bool) -> bool | None:
        """Return what is known of that era."""
        return self.newer if newer else self.older


NO_TRAITS = ServerTraits()
