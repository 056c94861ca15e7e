"""Which tools are held back until the user approves them, and in which form they are served meanwhile.

Judges an offer once, by the pins of its server; `settings.approve_changes` says what a judgement does.
Never here: showing it, what a definition hides (catalog/inspect), what differs (catalog/changes).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trayapp.catalog import pins
from trayapp.catalog.changes import difference, in_approved_form, still_takes, whole
from trayapp.catalog.hidden import folded
from trayapp.catalog.inspect import Finding, finding, inspect_text, inspect_tool, is_serious
from trayapp.catalog.pins import Pin, ServerPins, definition_hash
from trayapp.model.errors import StorageError
from trayapp.model.offer import Item, Offer

log = logging.getLogger(__name__)

Mode = Literal["ask", "notify", "off"]
INSTRUCTIONS = "(instructions)"  # under which a server's instructions are looked over; a tool of that name is withheld
SIBLING_TOOLS = 3  # names that two servers of one program have in common, and at least half of all


@dataclass(frozen=True, slots=True)
class Waiting:
    """One tool that waits for the user: the definition that an approval would be of, and why it waits."""

    server: str
    tool: str
    hash: str
    reason: str
    changed: bool  # else it is new, and suspicious
    served: bool  # in its approved form; with `notify` as it is now
    findings: tuple[Finding, ...]
    difference: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of one tool: `item` is served unless it is `withheld`, for that reason. `held`: None = approved."""

    item: Item
    withheld: str | None = None
    held: Held | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """Why a tool waits."""

    old: Item | None
    new: Item
    hash: str
    findings: tuple[Finding, ...]
    served: bool


class Approvals:
    """Of one gateway. `mode`: the setting. `others`: the names of what each server but the named one offers."""

    def __init__(
        self, folder: Path, mode: Callable[[], Mode], others: Callable[[str], Iterable[tuple[str, frozenset[str]]]]
    ) -> None:
        self._folder = folder
        self._mode = mode
        self._others = others
        self._pins: dict[str, ServerPins] = {}
        self._verdicts: dict[str, dict[str, Verdict]] = {}
        self._told: set[tuple[str, str, str]] = set()
        self.unsaved: Callable[[], None] = lambda: None  # pins are to be written

    def judge(self, server: str, offer: Offer) -> dict[str, Verdict]:
        """What becomes of each tool of an offer; of a name listed twice the first counts."""
        items: dict[str, Item] = {}
        for item in offer.tools:
            if isinstance(name := item.get("name"), str):
                items.setdefault(name, item)
        if offer.instructions:
            items[INSTRUCTIONS] = {"name": INSTRUCTIONS, "description": offer.instructions}
        mode = self._mode()
        if mode == "off":
            verdicts = {name: Verdict(item) for name, item in items.items()}
        else:
            known = self._of(server)
            known.listed = frozenset(items) - {INSTRUCTIONS}
            verdicts = {name: self._verdict(known, name, item, mode) for name, item in items.items()}
            known.known = True
            if known.dirty:
                self.unsaved()
        self._verdicts[server] = verdicts
        self._tell(server, verdicts)
        return verdicts

    def _of(self, server: str) -> ServerPins:
        if server not in self._pins:
            self._pins[server] = pins.load(self._folder, server)
        return self._pins[server]

    def _verdict(self, known: ServerPins, name: str, item: Item, mode: Mode) -> Verdict:
        pin, digest = known.tools.get(name), definition_hash(item)
        if pin is not None and pin.hash == digest:
            return Verdict(item) if pin.approved else _suspicious(known.server, name, item, pin, mode)
        if pin is None or not pin.approved or name == INSTRUCTIONS:  # these may hold what changes from day to day
            return self._first_sight(known, name, item, digest, mode)
        takes = still_takes(pin.definition, item)
        served = takes or mode == "notify"
        held = Held(pin.definition, item, digest, _findings_of(name, item), served)
        if mode == "notify":
            return Verdict(item, None, held)
        if takes:
            return Verdict(in_approved_form(pin.definition, item), None, held)
        return Verdict(item, f"its definition changed; {_remedy(known.server, name)}", held)

    def _first_sight(self, known: ServerPins, name: str, item: Item, digest: str, mode: Mode) -> Verdict:
        findings = _findings_of(name, item)
        if known.known and (shadowed := self._shadowed(known, name)) is not None:
            findings = (shadowed, *findings)
        pin = Pin(digest, pins.pinned(item), not is_serious(findings), findings if is_serious(findings) else ())
        known.pin(name, pin)
        return Verdict(item) if pin.approved else _suspicious(known.server, name, item, pin, mode)

    def _shadowed(self, known: ServerPins, name: str) -> Finding | None:
        """A tool that turns up later under the name of another server's: a call may be meant for that one. Servers
        that have most of their tools in common are two of the same program."""
        twin, own = _comparable(name), known.listed - {name}
        for other, tools in self._others(known.server):
            alike = next((tool for tool in tools if _comparable(tool) == twin), None)
            if alike is not None and not (len(own & tools) >= SIBLING_TOOLS and len(own & tools) * 2 >= len(own)):
                return finding("name.shadows", True, "name", f"turned up later with the name of {other}'s {alike}")
        return None

    # -- what waits ----------------------------------------------------------------------------------------------

    def waiting(self, server: str | None = None) -> list[Waiting]:
        """All that waits, of one server or of all, in the order of the lists."""
        return [
            _waiting(of, name, verdict.held)
            for of, verdicts in self._verdicts.items()
            if server in (None, of)
            for name, verdict in verdicts.items()
            if verdict.held is not None
        ]

    def names(self, server: str) -> tuple[str, ...]:
        """The tools of a server that wait."""
        return tuple(name for name, verdict in self._verdicts.get(server, {}).items() if verdict.held is not None)

    def approve(self, server: str, tool: str, digest: str) -> bool:
        """Approve that very definition; False when the tool does not wait with it (any more)."""
        verdict = self._verdicts.get(server, {}).get(tool)
        if verdict is None or verdict.held is None or verdict.held.hash != digest:
            return False
        self._of(server).pin(tool, Pin(digest, pins.pinned(verdict.held.new)))
        log.info("Approved: %s/%s", server, tool)
        self.unsaved()
        return True

    def keep(self, servers: frozenset[str]) -> None:
        """Forget the judgements of all others; their pins stay on disk."""
        self._verdicts = {name: verdicts for name, verdicts in self._verdicts.items() if name in servers}

    def save(self) -> None:
        """Write the pins that changed. Blocks; what cannot be written is tried again with the next change."""
        for known in list(self._pins.values()):
            if known.dirty:
                known.dirty = False
                try:
                    pins.save(self._folder, known.server, dict(known.tools))
                except StorageError as error:
                    known.dirty = True
                    log.warning("%s", error)

    def _tell(self, server: str, verdicts: dict[str, Verdict]) -> None:
        """Say each thing once in the log."""
        for name, verdict in verdicts.items():
            held = verdict.held
            if held is None or (server, name, held.hash) in self._told:
                continue
            self._told.add((server, name, held.hash))
            what = "changed" if held.old is not None else "is suspicious"
            codes = ", ".join(found.code for found in held.findings) or "no findings"
            log.warning("%s/%s %s (%s) and waits for an approval", server, name, what, codes)


def _findings_of(name: str, item: Item) -> tuple[Finding, ...]:
    if name == INSTRUCTIONS:
        return inspect_text(str(item.get("description", "")), "instructions")
    return inspect_tool(item)


def _waiting(server: str, name: str, held: Held) -> Waiting:
    changed = held.old is not None
    reason = _why(held.findings)
    if changed:
        reason = "its definition changed" + (f"; {reason}" if is_serious(held.findings) else "")
    lines = difference(held.old, held.new) if held.old is not None else whole(held.new)
    return Waiting(server, name, held.hash, reason, changed, held.served, held.findings, tuple(lines))


def _suspicious(server: str, name: str, item: Item, pin: Pin, mode: Mode) -> Verdict:
    held = Held(None, item, pin.hash, pin.findings, mode == "notify")
    if mode == "notify":
        return Verdict(item, None, held)
    return Verdict(item, f"{_why(pin.findings)}; {_remedy(server, name)}", held)


def _why(findings: tuple[Finding, ...]) -> str:
    return f"{findings[0].code}: {findings[0].evidence}" if findings else "it was found suspicious"


def _remedy(server: str, tool: str) -> str:
    return f"look at it with: multi-mcp approve {server}/{tool}"


def _comparable(name: str) -> str:
    """Names that people and models take for the same have the same."""
    return folded(name).casefold().replace("-", "").replace("_", "")
