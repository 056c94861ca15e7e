"""What the history wants to know of a call besides what the call itself knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trayapp.catalog.tool_class import classify
from trayapp.history.ended_call import Caller
from trayapp.model.offer import Offer


class CallFacts:
    """Facts about callers and tools of one gateway (history.recorder.CallLookup). Called in the history's thread."""

    def __init__(self, offer_of: Callable[[str], Offer | None]) -> None:
        self._offer_of = offer_of

    def caller(self, caller: Any) -> Caller:
        """Return who called."""
        if isinstance(caller, Caller):
            return caller
        return Caller(caller.client.name, f"{caller.transport} {caller.number}", caller.cwd or "")

    def kind(self, server: str, tool: str) -> str:
        """Return the class of a tool, "" if it is unknown."""
        offer = self._offer_of(server)
        item = next((item for item in offer.tools if item.get("name") == tool), None) if offer is not None else None
        return classify(item).tool_class if item is not None else ""
