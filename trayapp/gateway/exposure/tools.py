"""The tools of one offer made ready for clients, once for as long as the server offers the same.

Never here: names (a catalog gives them), switches, which session sees what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial

from trayapp.catalog.schema import Repaired, Withheld, repair, served_tool
from trayapp.gateway.exposure.approvals import Verdict
from trayapp.inspection.subjects import INSTRUCTIONS, is_apart, subject_name
from trayapp.model.offer import Item, Offer
from trayapp.wire.jsonio import dumps

Judge = Callable[[str, Offer], Mapping[str, Verdict]]
Sound = Callable[[str, Offer], frozenset[int]]  # the places of tools that clients can take as they are
NONE_SOUND: frozenset[int] = frozenset()


class ServedTool:
    """One tool, its schemas repaired when they are first needed; of a `sound` one there is nothing to repair."""

    def __init__(self, item: Item, held_back: str | None = None, *, sound: bool = False) -> None:
        self.item = item
        self.held_back = held_back
        self._sound = sound
        self._name: str | None = None
        self._json = b""

    @cached_property
    def withheld(self) -> str | None:
        """Why no client gets it: the user has to approve it, or none could take it; None when clients do."""
        if self.held_back is not None:
            return self.held_back
        if self._sound:
            return None
        return self._repaired.reason if isinstance(self._repaired, Withheld) else None

    @cached_property
    def _repaired(self) -> Repaired | Withheld:
        return repair(self.item.get("inputSchema"))

    def served(self, exposed: str) -> Item:
        """As a client gets it."""
        if self._sound:
            return {**self.item, "name": exposed}
        return served_tool(self.item, exposed, None if isinstance(self._repaired, Withheld) else self._repaired.schema)

    def listed(self, exposed: str) -> bytes:
        """The same as JSON; kept, since lists are asked for again and again."""
        if self._name != exposed:
            self._name, self._json = exposed, dumps(self.served(exposed))
        return self._json


class ServedOffer:
    """One server's tools by their own names; of a name listed twice the first counts."""

    def __init__(
        self,
        offer: Offer,
        judge: Callable[[Offer], Mapping[str, Verdict]] | None = None,
        sound: frozenset[int] = NONE_SOUND,
    ) -> None:
        self.offer = offer
        self._judge = judge
        self._sound = sound

    def prepare(self) -> None:
        """Do now what the first list would have to wait for."""
        for tool in self.tools.values():
            _ = tool.withheld

    @cached_property
    def tools(self) -> dict[str, ServedTool]:
        """In the server's order."""
        tools: dict[str, ServedTool] = {}
        for place, item in enumerate(self.offer.tools):
            name = item.get("name")
            if isinstance(name, str) and name not in tools:
                tools[name] = self._prepared(name, item, place in self._sound)
        return tools

    def _prepared(self, name: str, item: Item, sound: bool) -> ServedTool:
        if is_apart(name):
            return ServedTool(item, "its name stands for something else here")
        verdict = self._verdicts.get(name)
        if verdict is None:
            return ServedTool(item, sound=sound)
        if verdict.item is item:
            return ServedTool(item, verdict.withheld, sound=sound)
        return ServedTool(verdict.item, verdict.withheld)  # its approved form, which nobody has looked at

    def waits(self, name: str) -> bool:
        """Whether a tool is held back until the user approves it."""
        verdict = self._verdicts.get(name)
        return verdict is not None and verdict.withheld is not None

    def is_told(self, name: str) -> bool:
        """True if a tool is served although its definition reads like an order."""
        verdict = self._verdicts.get(name)
        return verdict is not None and verdict.told is not None

    @cached_property
    def _verdicts(self) -> Mapping[str, Verdict]:
        return {} if self._judge is None else self._judge(self.offer)

    def listed(self, kind: str) -> Iterator[Item]:
        """The prompts, resources or templates that are not held back."""
        for item in getattr(self.offer, kind):
            verdict = self._verdicts.get(subject_name(kind, item) or "")
            if verdict is None or verdict.withheld is None:
                yield item

    @cached_property
    def instructions(self) -> str:
        """What the server says of itself, as far as it is approved."""
        verdict = self._verdicts.get(INSTRUCTIONS)
        said = self.offer.instructions if verdict is None or verdict.withheld is None else None
        return (said or "").strip()


class ServedTools:
    """The prepared offers of running servers, by the keys under which they run. `judge`: what is held back of them."""

    def __init__(self, judge: Judge | None = None, sound: Sound = lambda _key, _offer: NONE_SOUND) -> None:
        self._judge = judge
        self._sound = sound
        self._offers: dict[str, ServedOffer] = {}

    def of(self, key: str, offer: Offer) -> ServedOffer:
        """ServedTools anew when the server offers something else now."""
        known = self._offers.get(key)
        if known is None or known.offer is not offer:
            judge = partial(self._judge, key) if self._judge is not None else None
            known = self._offers[key] = ServedOffer(offer, judge, self._sound(key, offer))
        return known

    def forget(self) -> None:
        """What is held back is to be judged anew."""
        self._offers = {}

    def keep(self, keys: frozenset[str]) -> None:
        """Forget all others: their servers are gone."""
        self._offers = {key: offer for key, offer in self._offers.items() if key in keys}
