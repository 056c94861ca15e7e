"""The tools of one offer made ready for clients, once for as long as the server offers the same.

Never here: names (a catalog gives them), switches, which session sees what.
"""

from __future__ import annotations

from functools import cached_property

from trayapp.catalog.schema import Repaired, Withheld, repair, served_tool
from trayapp.model.offer import Item, Offer
from trayapp.wire.jsonio import dumps


class PreparedTool:
    """One tool, its schemas repaired when they are first needed."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self._name: str | None = None
        self._json = b""

    @cached_property
    def withheld(self) -> str | None:
        """Why no client could take it; None when clients can."""
        return self._repaired.reason if isinstance(self._repaired, Withheld) else None

    @cached_property
    def _repaired(self) -> Repaired | Withheld:
        return repair(self.item.get("inputSchema"))

    def served(self, exposed: str) -> Item:
        """As a client gets it."""
        return served_tool(self.item, exposed, None if isinstance(self._repaired, Withheld) else self._repaired.schema)

    def listed(self, exposed: str) -> bytes:
        """The same as JSON; kept, since lists are asked for again and again."""
        if self._name != exposed:
            self._name, self._json = exposed, dumps(self.served(exposed))
        return self._json


class PreparedOffer:
    """One server's tools by their own names; of a name listed twice the first counts."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer

    def prepare(self) -> None:
        """Do now what the first list would have to wait for."""
        for tool in self.tools.values():
            _ = tool.withheld

    @cached_property
    def tools(self) -> dict[str, PreparedTool]:
        """In the server's order."""
        tools: dict[str, PreparedTool] = {}
        for item in self.offer.tools:
            name = item.get("name")
            if isinstance(name, str) and name not in tools:
                tools[name] = PreparedTool(item)
        return tools


class Prepared:
    """The prepared offers of running servers, by the keys under which they run."""

    def __init__(self) -> None:
        self._offers: dict[str, PreparedOffer] = {}

    def of(self, key: str, offer: Offer) -> PreparedOffer:
        """Prepared anew when the server offers something else now."""
        known = self._offers.get(key)
        if known is None or known.offer is not offer:
            known = self._offers[key] = PreparedOffer(offer)
        return known

    def keep(self, keys: frozenset[str]) -> None:
        """Forget all others: their servers are gone."""
        self._offers = {key: offer for key, offer in self._offers.items() if key in keys}
