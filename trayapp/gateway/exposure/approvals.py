"""Decide which tools are held back until the user approves them, and in which form they are served until then.

An offer is judged once, against the pins of its server: the definitions seen earlier.
`settings.approve_changes` applies to changed tools, `settings.suspicious` to findings in new ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cache
from pathlib import Path
from typing import NamedTuple

from trayapp.catalog import approval_store
from trayapp.catalog.approval_store import Pin, ServerPins, definition_hash
from trayapp.catalog.changes import difference, in_approved_form, still_takes
from trayapp.gateway.exposure.look_alikes import OtherTools, shadowed
from trayapp.inspection.finding import Finding, is_held
from trayapp.inspection.inspect import merged
from trayapp.inspection.subjects import (
    OLDER,
    SKILL,
    concealed_in,
    findings_of,
    is_apart,
    is_tool,
    orders_in,
    screened,
    subjects_of,
    tools_of,
)
from trayapp.model.config import Settings
from trayapp.model.errors import Problem, StorageError
from trayapp.model.offer import Item, Offer

log = logging.getLogger(__name__)

DECLINED = "its definition changed. The user keeps the earlier one, which the server no longer accepts"
LOGGED_MOST = 5  # log lines about one tool's changes: some tools change with every list


class PendingApproval(NamedTuple):
    """A tool that the user should review: the definition to approve, and why."""

    server: str
    tool: str
    hash: str
    reason: str
    changed: bool  # False: the tool is new and suspicious
    served: bool  # clients get the tool, in its approved form or as it is now (`as_now`)
    as_now: bool  # as the server lists it now, without approval (`notify`, or not held)
    held: bool  # the tool waits for approval; otherwise it is served and only flagged
    findings: tuple[Finding, ...]
    difference: tuple[str, ...]  # lines: what changed, or the whole definition if it is new


class Verdict(NamedTuple):
    """The decision about one tool: `item` is served unless `withheld` gives a reason against it.

    `held`: set if the tool waits for approval. `flagged`: set if the tool is served, but the user should review it.
    """

    item: Item
    withheld: str | None = None
    held: HeldDefinition | None = None
    flagged: Pin | None = None


class HeldDefinition(NamedTuple):
    """The definition of a tool that waits for approval (`new`), with its findings. `old`: the approved one, if any."""

    old: Item | None
    new: Item
    hash: str
    findings: tuple[Finding, ...]


class Inspection(NamedTuple):
    """The inspection of a definition before its offer is judged.

    `findings`: None if the definition equals its pin, or is not inspected yet.
    """

    item: Item
    hash: str
    findings: tuple[Finding, ...] | None


class PinStore:
    """Pins of all servers, and the calls that the user always allows: each server has one file for both."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pins: dict[str, ServerPins] = {}
        self._unsaved: dict[str, StorageError] = {}
        self.unsaved: Callable[[], None] = lambda: None  # called when a file has to be written

    def of(self, server: str) -> ServerPins:
        """Return the pins of a server. The first call for a server blocks, since it loads them."""
        known = self._pins.get(server)
        return known if known is not None else self._pins.setdefault(server, approval_store.load(self._folder, server))

    # -- calls that the user always allows -----------------------------------------------------------------------

    def is_allowed(self, server: str, tool: str, digest: str) -> bool:
        """Return True if the user always allows calls of a tool with that definition."""
        return self.of(server).allowed.get(tool) == digest

    def allow(self, server: str, tool: str, digest: str) -> None:
        """Allow all later calls of a tool with that definition without asking."""
        known = self.of(server)
        known.allowed[tool], known.dirty = digest, True
        self.unsaved()
        log.info("Always allowed: %s/%s", server, tool)

    def forbid(self, server: str, tool: str) -> bool:
        """Stop always allowing calls of a tool. Return False if they were not always allowed."""
        known = self.of(server)
        if known.allowed.pop(tool, None) is None:
            return False
        known.dirty = True
        self.unsaved()
        log.info("No longer always allowed: %s/%s", server, tool)
        return True

    def allowed(self, server: str) -> list[str]:
        """Return the tools of a server whose calls the user always allows."""
        return list(self.of(server).allowed)

    def unsaved_of(self, servers: Set[str]) -> list[str]:
        """Return why approvals for these servers are not on disk: a sentence for each failed write."""
        return [error.title for server, error in self._unsaved.items() if server in servers]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return the problems of reading and writing approvals, each with its server."""
        lost = [(known.server, known.lost) for known in list(self._pins.values()) if known.lost is not None]
        return tuple(
            Problem(str(self._folder), 0, error.title, error.hint, server=server, fatal=False)
            for server, error in (*lost, *list(self._unsaved.items()))
        )

    def save(self) -> None:
        """Write the files of changed pins. Blocks. A failed write is logged, and tried again with the next change."""
        for known in list(self._pins.values()):
            if known.dirty:
                known.dirty = False
                try:
                    approval_store.save(self._folder, known.server, dict(known.tools), dict(known.allowed))
                except StorageError as error:
                    known.dirty = True
                    self._unsaved[known.server] = error
                    log.warning("%s", error)
                else:
                    self._unsaved.pop(known.server, None)


class Approvals:
    """The verdicts of one gateway. `others`: yields every server but the given one, with the names of its tools.

    Orders are texts that a model may take for instructions. The class is broad because a pin and its verdict change
    together: with a new list, with an approval, and when orders are found later.
    """

    def __init__(
        self,
        folder: Path,
        settings: Callable[[], Settings],
        others: Callable[[str], Iterable[tuple[str, frozenset[str]]]],
    ) -> None:
        self.pins = PinStore(folder)
        self._settings = settings
        self._others = others
        self._verdicts: dict[str, dict[str, Verdict]] = {}
        self._logged: dict[tuple[str, str], list[str]] = {}
        self._looked: dict[str, dict[str, Inspection]] = {}  # server -> name -> what an earlier inspection found
        self.unread: Callable[[], None] = lambda: None  # called when definitions have to be searched for orders

    # -- verdicts ------------------------------------------------------------------------------------------------

    def look_ahead(self, server: str, offer: Offer) -> Iterator[None]:
        """Inspect an offer's new and changed definitions before `judge`, some per step. Steps may run in a thread."""
        settings = self._settings()
        if settings.suspicious == "off":
            return
        pins, new = self.pins.of(server).tools, dict[str, Item]()
        looked = self._looked[server] = dict[str, Inspection]()
        for name, item in subjects_of(offer).items():
            looked[name] = Inspection(item, digest := definition_hash(item), None)
            if (pin := pins.get(name)) is None or pin.hash != digest:
                new[name] = item
        for group, may_conceal in screened(new):
            for name, item in group.items():
                at_once = _searched_at_once(name, pins.get(name), settings)
                findings = concealed_in(name, item) if may_conceal else ()
                if at_once:
                    findings = merged(findings, orders_in(name, item))
                looked[name] = Inspection(item, looked[name].hash, findings)
                if may_conceal or at_once:
                    yield
            yield

    def judge(self, server: str, offer: Offer) -> dict[str, Verdict]:
        """Return the verdict on each tool of an offer, and on each of its other texts (inspection/subjects)."""
        items, settings = subjects_of(offer), self._settings()
        if settings.approve_changes == settings.suspicious == "off":
            verdicts = {name: Verdict(item) for name, item in items.items()}
        else:
            known = self.pins.of(server)
            known.listed = frozenset(filter(is_tool, items))
            others = cache(lambda: OtherTools(self._others(server)))  # needed only for new tools
            verdicts = {name: self._judge_one(known, name, item, settings, others) for name, item in items.items()}
            known.known = True
            known.forget_apart(name for name in known.tools if is_apart(name) and name not in items)
            if settings.suspicious != "off" and any(pin.unread for pin in known.tools.values()):
                self.unread()  # the pins are written later, with the orders that are found
            elif known.dirty:
                self.pins.unsaved()
        self._looked.pop(server, None)
        self._verdicts[server] = verdicts
        for name, verdict in verdicts.items():
            if (held := verdict.held) is None:
                continue
            logged = self._logged.get((server, name), [])
            if held.hash not in logged and len(logged) < LOGGED_MOST:
                self._logged[(server, name)] = [*logged, held.hash]
                what = "changed" if held.old is not None else "is suspicious"
                codes = ", ".join(found.code for found in held.findings) or "no findings"
                log.warning("%s/%s %s (%s) and waits for approval", server, name, what, codes)
        return verdicts

    def split(self, server: str, offer: Offer | None, known_to_older: Mapping[str, Set[str]]) -> None:
        """Copy a definition's pin for the older era, if both eras shared the definition until now and no longer do.

        Without a pin of its own, the older era's form would count as new instead of changed.
        `known_to_older`: list -> the names that the older era listed before.
        """
        if offer is None or (apart := offer.of_older_era) is None:
            return
        known = self.pins.of(server)
        names = [name for name in tools_of(apart) if name in known_to_older["tools"]]
        names += [f"{SKILL}{item['uri']}" for item in apart.skills if item["uri"] in known_to_older["skills"]]
        for name in names:
            if name in known.tools and f"{OLDER}{name}" not in known.tools:
                known.pin(f"{OLDER}{name}", known.tools[name])

    def _judge_one(
        self, known: ServerPins, name: str, item: Item, settings: Settings, others: Callable[[], OtherTools]
    ) -> Verdict:
        pin, look = known.tools.get(name), self._looked.get(known.server, {}).get(name)
        digest = look.hash if look is not None and look.item is item else definition_hash(item)
        if pin is not None and pin.hash == digest:
            if not pin.seen and settings.suspicious != "off":
                return self._judge_new(known, name, item, digest, settings, others)
            if pin.unread and settings.suspicious == "hold":
                pin = self._note_orders(known, name, pin, orders_in(name, item))
            return _judge_pinned(known.server, name, item, pin, settings)
        # Texts other than tools and skills may change from day to day: a changed text is judged as a new one.
        if pin is None or not pin.approved or is_apart(name) or settings.approve_changes == "off":
            return self._judge_new(known, name, item, digest, settings, others)
        takes = is_tool(name) and still_takes(pin.definition, item)  # a skill's earlier version cannot be served
        if pin.declined == digest:
            kept = in_approved_form(pin.definition, item) if takes else item
            return Verdict(kept, None if takes else DECLINED)
        findings = self._findings(known.server, name, item, digest, settings, whole=True)
        held = HeldDefinition(pin.definition, item, digest, findings)
        if settings.approve_changes == "notify":
            return Verdict(item, None, held)
        if takes:
            return Verdict(in_approved_form(pin.definition, item), None, held)
        return Verdict(item, f"its definition changed; {_approve_hint(known.server, name)}", held)

    def _judge_new(
        self,
        known: ServerPins,
        name: str,
        item: Item,
        digest: str,
        settings: Settings,
        others: Callable[[], OtherTools],
    ) -> Verdict:
        looks, whole = settings.suspicious != "off", _searched_at_once(name, known.tools.get(name), settings)
        findings = self._findings(known.server, name, item, digest, settings, whole=whole)
        if looks and is_tool(name) and (alike := shadowed(name, known.listed, others(), late=known.known)) is not None:
            findings = (alike, *findings)
        # Texts other than tools and skills are never compared with an earlier form, so theirs is not kept.
        kept = approval_store.pinned(item) if findings or not is_apart(name) else "{}"
        pin = Pin(digest, kept, not is_held(findings), findings, unread=looks and not whole, seen=looks)
        known.pin(name, pin)
        return _judge_pinned(known.server, name, item, pin, settings)

    def _findings(
        self, server: str, name: str, item: Item, digest: str, settings: Settings, *, whole: bool
    ) -> tuple[Finding, ...]:
        if settings.suspicious == "off":
            return ()
        look = self._looked.get(server, {}).get(name)
        if look is not None and look.hash == digest and look.findings is not None:
            return look.findings
        return findings_of(name, item) if whole else concealed_in(name, item)

    # -- orders, searched for later ------------------------------------------------------------------------------

    def unread_servers(self) -> list[str]:
        """Return the judged servers with definitions that have not been searched for orders yet."""
        if self._settings().suspicious == "off":
            return []
        return [name for name in self._verdicts if any(pin.unread for pin in self.pins.of(name).tools.values())]

    def orders(self, server: str, offer: Offer) -> dict[str, tuple[str, tuple[Finding, ...]]]:
        """Search the definitions of an offer that are `unread` for orders. Return name -> (hash, findings). Blocks."""
        pins = dict(self.pins.of(server).tools)
        return {
            name: (pins[name].hash, orders_in(name, item))
            for name, item in subjects_of(offer).items()
            if name in pins and pins[name].unread
            if definition_hash(item) == pins[name].hash  # otherwise the pin is for an earlier definition
        }

    def take_orders(self, server: str, found: Mapping[str, tuple[str, tuple[Finding, ...]]]) -> None:
        """Record the findings of `orders`, and update the verdict on each served tool that has any."""
        known, verdicts, settings = self.pins.of(server), self._verdicts.get(server, {}), self._settings()
        for name, (digest, findings) in found.items():
            pin, verdict = known.tools.get(name), verdicts.get(name)
            if pin is None or pin.hash != digest or not pin.unread:
                continue  # the definition has changed since
            pin = self._note_orders(known, name, pin, findings)
            if findings and verdict is not None and verdict.withheld is None and verdict.held is None:
                verdicts[name] = _judge_pinned(server, name, verdict.item, pin, settings)
        if known.dirty:
            self.pins.unsaved()

    @staticmethod
    def _note_orders(known: ServerPins, name: str, pin: Pin, findings: tuple[Finding, ...]) -> Pin:
        read = pin._replace(findings=merged(pin.findings, findings), unread=False)
        known.pin(name, read)
        return read

    # -- tools that wait for approval ----------------------------------------------------------------------------

    def waiting(self, server: str | None = None) -> list[PendingApproval]:
        """Return the tools that the user should review, of one server or all: first those that wait for approval."""
        found = list[PendingApproval]()
        for of, verdicts in self._verdicts.items():
            for name, verdict in verdicts.items() if server in (None, of) else ():
                if (seen := verdict.held or verdict.flagged) is not None:
                    old, new = (verdict.held.old, verdict.held.new) if verdict.held else (None, verdict.item)
                    changed, served = old is not None, verdict.withheld is None
                    why = ["its definition changed"] if changed else []
                    why += [_first_reason(seen.findings)] if seen.findings else []
                    shown, lines = served and verdict.item is new, tuple(difference(old or {}, new))
                    rest = changed, served, shown, verdict.held is not None, seen.findings, lines
                    found.append(PendingApproval(of, name, seen.hash, "; ".join(why), *rest))
        return sorted(found, key=lambda one: not one.held)

    def flagged(self, server: str) -> tuple[str, ...]:
        """Return the tools of a server that are served in spite of findings."""
        return tuple(name for name, verdict in self._verdicts.get(server, {}).items() if verdict.flagged is not None)

    def held(self, server: str) -> dict[str, tuple[Finding, ...]]:
        """Return the server's tools that wait for approval, each with its findings."""
        verdicts = self._verdicts.get(server, {})
        return {name: verdict.held.findings for name, verdict in verdicts.items() if verdict.held is not None}

    def approve(self, server: str, tool: str, digest: str) -> bool:
        """Approve a tool's definition by its hash.

        Return False unless that definition waits for approval or is flagged.
        """
        verdict = self._verdicts.get(server, {}).get(tool, Verdict({}))
        if (seen := verdict.held or verdict.flagged) is None or seen.hash != digest:
            return False
        definition = approval_store.pinned(verdict.held.new if verdict.held else verdict.item)
        self.pins.of(server).pin(tool, Pin(digest, definition))
        log.info("Approved: %s/%s", server, tool)
        self.pins.unsaved()
        return True

    def decline(self, server: str, tool: str, digest: str) -> bool:
        """Keep the approved definition of a changed tool. Return False if that change is not waiting for approval."""
        held, known = self._verdicts.get(server, {}).get(tool, Verdict({})).held, self.pins.of(server)
        if held is None or held.old is None or held.hash != digest:
            return False
        known.pin(tool, known.tools[tool]._replace(declined=digest))
        log.info("Declined a change: %s/%s", server, tool)
        self.pins.unsaved()
        return True

    def keep(self, servers: frozenset[str]) -> None:
        """Forget the verdicts on all servers except these. The pins of the others stay on disk."""
        self._verdicts = {name: verdicts for name, verdicts in self._verdicts.items() if name in servers}
        self._logged = {key: hashes for key, hashes in self._logged.items() if key[0] in servers}


def _searched_at_once(name: str, pin: Pin | None, settings: Settings) -> bool:
    """Return True if a definition must be searched for orders before it is judged.

    This is so if orders would hold it back (`hold`), or if it replaces the approved definition of a tool or skill.
    ListIntake.read_words searches all others later, so that clients do not have to wait.
    """
    replaces = pin is not None and pin.approved and pin.seen and not is_apart(name)
    return replaces or settings.suspicious == "hold"


def _judge_pinned(server: str, name: str, item: Item, pin: Pin, settings: Settings) -> Verdict:
    """Return the verdict on a definition that equals its pin."""
    if not pin.findings or settings.suspicious == "off":
        return Verdict(item)
    if is_held(pin.findings) or settings.suspicious == "hold":
        held = HeldDefinition(None, item, pin.hash, pin.findings)
        return Verdict(item, f"{_first_reason(pin.findings)}; {_approve_hint(server, name)}", held)
    return Verdict(item, flagged=pin)


def _first_reason(findings: tuple[Finding, ...]) -> str:
    """Return the reason of the first finding. It contains none of the server's own text."""
    return findings[0].reason or findings[0].code


def _approve_hint(server: str, tool: str) -> str:
    return f"review it with: multi-mcp approve {server}/{tool}"
