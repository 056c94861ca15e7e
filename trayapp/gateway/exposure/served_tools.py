"""Prepare the tools of an offer for clients, once for each offer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial

from trayapp.catalog.schema.mending import Schema
from trayapp.catalog.schema.tool import WithheldTool, allows_others, repair, served_tool
from trayapp.gateway.exposure.approvals import Verdict
from trayapp.inspection.subjects import INSTRUCTIONS, OLDER, is_tool, subject_name
from trayapp.model.offer import Item, Offer
from trayapp.wire.jsonio import dumps

Judge = Callable[[str, Offer], Mapping[str, Verdict]]
Sound = Callable[[str, Offer], frozenset[int]]  # returns the indexes of the tools that clients can take unchanged
NONE_SOUND: frozenset[int] = frozenset()


class ServedTool:
    """A tool as clients get it. `held_back`: why it is held back, or None.

    `sound`: its schemas need no repair. Otherwise, they are repaired when first needed.
    """

    def __init__(self, item: Item, held_back: str | None = None, *, sound: bool = False) -> None:
        self.item = item
        self.held_back = held_back
        self._sound = sound
        self._name: str | None = None
        self._json = b""

    @cached_property
    def withheld(self) -> str | None:
        """Return why no client gets the tool (it is held back, or unusable), or None if clients get it."""
        if self.held_back is not None or self._sound:
            return self.held_back
        return self._repaired.reason if isinstance(self._repaired, WithheldTool) else None

    @cached_property
    def _repaired(self) -> Schema | WithheldTool:
        return repair(self.item.get("inputSchema"))

    def served(self, exposed: str) -> Item:
        """Return the tool as a client gets it, with its exposed name and repaired schemas."""
        if self._sound:
            return {**self.item, "name": exposed}
        schema = None if isinstance(self._repaired, WithheldTool) else self._repaired
        return served_tool(self.item, exposed, schema)

    @property
    def returns_others(self) -> bool:
        """Return True if the tool's output schema allows values other than objects (valid since 2026-07-28)."""
        return not self._sound and allows_others(self.item.get("outputSchema"))

    def served_with_output(self, exposed: str) -> Item:
        """Return the tool as a client of 2026-07-28 gets it, with its output schema as the server sent it."""
        return {**self.served(exposed), "outputSchema": self.item["outputSchema"]}

    def listed(self, exposed: str) -> bytes:
        """Return the JSON of `served`. The last result is cached, because lists are requested often."""
        if self._name != exposed:
            self._name = exposed
            # Copy the bytes, because the object that orjson returns occupies 4 KB more.
            self._json = bytes(memoryview(dumps(self.served(exposed))))
        return self._json


class ServedOffer:
    """The tools, other items and instructions of one server. If several tools have the same name, the first is used."""

    def __init__(
        self,
        offer: Offer,
        judge: Callable[[Offer], Mapping[str, Verdict]] = lambda _offer: {},
        sound: frozenset[int] = NONE_SOUND,
    ) -> None:
        self.offer = offer
        self._judge = judge
        self._sound = sound

    def prepare(self) -> None:
        """Judge and repair all tools now, so that the first list is not delayed."""
        for tool in self.tools.values():
            _ = tool.withheld

    @cached_property
    def older(self) -> ServedOffer | None:
        """Return the part of the offer that the older era defines differently, or None if nothing differs."""
        if (offer := self.offer.of_older_era) is None:
            return None
        verdicts = {name[len(OLDER) :]: found for name, found in self._verdicts.items() if name.startswith(OLDER)}
        return ServedOffer(offer, lambda _: verdicts)

    @cached_property
    def tools(self) -> dict[str, ServedTool]:
        """Return the tools by name, in the server's order."""
        tools: dict[str, ServedTool] = {}
        for place, item in enumerate(self.offer.tools):
            if isinstance(name := item.get("name"), str) and name not in tools:
                tools[name] = self._make_tool(name, item, place in self._sound)
        return tools

    def _make_tool(self, name: str, item: Item, sound: bool) -> ServedTool:
        if not is_tool(name):
            return ServedTool(item, "multi-mcp reserves its name for something else")
        verdict = self._verdicts.get(name, Verdict(item))
        # `sound` does not apply to an earlier, approved form of the tool.
        return ServedTool(verdict.item, verdict.withheld, sound=sound and verdict.item is item)

    def waits(self, name: str) -> bool:
        """Return True if a tool or another subject is held back until the user approves it."""
        verdict = self._verdicts.get(name)
        return verdict is not None and verdict.withheld is not None

    def is_flagged(self, name: str) -> bool:
        """Return True if a tool is served in spite of findings in its definition."""
        verdict = self._verdicts.get(name)
        return verdict is not None and verdict.flagged is not None

    @cached_property
    def _verdicts(self) -> Mapping[str, Verdict]:
        return self._judge(self.offer)

    def listed(self, kind: str) -> Iterator[Item]:
        """Yield the server's items of one kind (other than tools), without those that are held back."""
        return (item for item in getattr(self.offer, kind) if not self.waits(subject_name(kind, item) or ""))

    @cached_property
    def instructions(self) -> str:
        """Return the server's instructions, or "" while they are held back."""
        return "" if self.waits(INSTRUCTIONS) else (self.offer.instructions or "").strip()


class ServedTools:
    """The prepared offers of servers, by server key. `judge`: decides what to hold back from an offer."""

    def __init__(self, judge: Judge = lambda _key, _offer: {}, sound: Sound = lambda _key, _offer: NONE_SOUND) -> None:
        self._judge = judge
        self._sound = sound
        self._offers: dict[str, ServedOffer] = {}

    def of(self, key: str, offer: Offer) -> ServedOffer:
        """Return the prepared form of an offer. Prepare it again if the offer has changed."""
        known = self._offers.get(key)
        if known is None or known.offer is not offer:
            known = self._offers[key] = ServedOffer(offer, partial(self._judge, key), self._sound(key, offer))
        return known

    def forget(self) -> None:
        """Forget all prepared offers, so that they are judged again."""
        self._offers = {}

    def keep(self, keys: frozenset[str]) -> None:
        """Forget the offers of all keys that are not in `keys`, because their servers were removed."""
        self._offers = {key: offer for key, offer in self._offers.items() if key in keys}
