"""One server's offer, with every field that the server sent. A connection reads the offer, and the cache stores it.

The connection removes known secrets from the offer, and repairs text that strict parsers reject.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Item = dict[str, Any]  # one tool, prompt, resource, template, skill or event, with the fields that the server sent
LISTS = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "templates": "resource templates",
    "skills": "skills",
    "events": "events",
}
# The member that identifies an item
ITEM_KEYS = {
    "tools": "name",
    "prompts": "name",
    "resources": "uri",
    "templates": "uriTemplate",
    "skills": "uri",
    "events": "name",
}
UNREAD = "no answer yet"  # reason for a list that is still being read


@dataclass(frozen=True, slots=True)
class Offer:
    """One server's lists and the facts of its handshake, one field for each. Items keep every field, known or not."""

    tools: tuple[Item, ...] = ()
    prompts: tuple[Item, ...] = ()
    resources: tuple[Item, ...] = ()
    templates: tuple[Item, ...] = ()
    capabilities: Item | None = None
    server_info: Item | None = None
    instructions: str | None = None
    protocol: str = ""  # the negotiated revision; "" if never connected
    ttl_ms: int | None = None  # the smallest `ttlMs` of the lists; None if the server sent none
    skills: tuple[Item, ...] = ()
    events: tuple[Item, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)  # list that could not be read completely -> the reason
    results: Mapping[str, Item] = field(default_factory=dict)  # list -> the other fields of its result
    signed: bool = False  # True if read with the user's sign-in
    older: Mapping[str, tuple[Item, ...]] = field(default_factory=dict)  # list -> items as defined for the older era
    older_instructions: str | None = None  # as defined for the older era; None: the same as for the newer
    older_capabilities: Item | None = None  # as defined for the older era; None: the same as for the newer

    @property
    def has_items(self) -> bool:
        return any(getattr(self, name) for name in LISTS)

    @property
    def of_older_era(self) -> Offer | None:
        """Return an offer with only the members that differ in the older era, or None if nothing differs."""
        if not self.older and self.older_instructions is None and self.older_capabilities is None:
            return None
        lists: dict[str, Any] = dict(self.older)
        return Offer(**lists, instructions=self.older_instructions, capabilities=self.older_capabilities)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Return the names of the lists that were not read and have no known items."""
        return tuple(name for name in LISTS if name in self.failed and not getattr(self, name))

    @property
    def failure(self) -> str:
        """Return the reasons for the failed lists, such as `did not list its tools: license expired`, or ""."""
        alike: dict[str, list[str]] = {}
        for name, why in self.failed.items():
            if why != UNREAD:
                alike.setdefault(why, []).append(LISTS.get(name, name))
        listed = {why: " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) for why, names in alike.items()}
        return "; ".join(f"did not list its {names}: {why}" for why, names in listed.items())


class ServerTraits(NamedTuple):
    """Traits of one version of a server. For each era: True if supported, False if not, None if never tried."""

    older: bool | None = None
    newer: bool | None = None
    asks: frozenset[str] = frozenset()  # the server's requests to clients: `sampling`, `roots`, ..., or a method's name

    def speaks(self, *, newer: bool) -> bool | None:
        """Return True if the server is known to support that era, False if known not to, None if unknown."""
        return self.newer if newer else self.older


NO_TRAITS = ServerTraits()
