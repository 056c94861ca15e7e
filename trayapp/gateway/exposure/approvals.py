"""Decide which tools are held back until the user approves them, and in which form they are served meanwhile.

An offer is judged once, by the pins of its server. `settings.approve_changes` decides on changes, `settings.suspicious`
on what is found at first sight. Never here: showing it, finding (inspection), what differs (catalog/changes).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from trayapp.catalog import pins
from trayapp.catalog.changes import difference, in_approved_form, still_takes, whole
from trayapp.catalog.pins import Pin, ServerPins, definition_hash
from trayapp.gateway.exposure.look_alikes import OtherTools, shadowed
from trayapp.inspection.finding import Finding, is_held
from trayapp.inspection.subjects import apart_of, findings_of, is_apart, tools_of
from trayapp.model.errors import StorageError
from trayapp.model.offer import Item, Offer
from trayapp.model.settings import Settings
from trayapp.model.status import Problem

log = logging.getLogger(__name__)

LOOK_AHEAD_FROM = 10  # subjects of an offer: fewer are looked over in a few milliseconds, more in a thread
TOLD_MOST = 5  # times that one tool's changes are logged: some change with every list


@dataclass(frozen=True, slots=True)
class Waiting:
    """One tool for the user to look at: the definition that an approval would be of, and why.

    `held`: it waits for the approval; else it is served, and only told of.
    """

    server: str
    tool: str
    hash: str
    reason: str
    changed: bool  # else it is new, and suspicious
    served: bool  # in its approved form, or `as_now`
    as_now: bool  # as the server lists it now, unapproved (`notify`, or not held)
    held: bool
    findings: tuple[Finding, ...]
    difference: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of one tool: `item` is served unless it is `withheld`, for that reason.

    `held`: None = it waits for nothing. `told`: it is served, and the user should look at it.
    """

    item: Item
    withheld: str | None = None
    held: Held | None = None
    told: Pin | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """Why a tool waits."""

    old: Item | None
    new: Item
    hash: str
    findings: tuple[Finding, ...]
    served: bool
    as_now: bool


class Approvals:
    """All judgements of one gateway. `others`: the names of what each server but the named one offers."""

    def __init__(
        self,
        folder: Path,
        settings: Callable[[], Settings],
        others: Callable[[str], Iterable[tuple[str, frozenset[str]]]],
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._others = others
        self._pins: dict[str, ServerPins] = {}
        self._verdicts: dict[str, dict[str, Verdict]] = {}
        self._told: dict[tuple[str, str], list[str]] = {}
        self._looked: dict[str, dict[str, tuple[Finding, ...]]] = {}  # by server and hash: found ahead, in a thread
        self._unsaved: dict[str, StorageError] = {}
        self.unsaved: Callable[[], None] = lambda: None  # pins are to be written

    # -- judging -------------------------------------------------------------------------------------------------

    def takes_long(self, offer: Offer) -> bool:
        """Whether `look_ahead` is worth a thread."""
        count = len(offer.tools) + len(offer.prompts) + len(offer.resources) + len(offer.templates)
        return count >= LOOK_AHEAD_FROM and self._settings().suspicious != "off"

    def look_ahead(self, server: str, offer: Offer) -> None:
        """Find now what `judge` would have to find on the gateway's own thread. Blocks, in a thread of its own."""
        known, found = self._of(server), dict[str, tuple[Finding, ...]]()
        for name, item in {**tools_of(offer), **apart_of(offer)}.items():
            pin, digest = known.tools.get(name), definition_hash(item)
            if pin is None or pin.hash != digest:
                found[f"{name} {digest}"] = findings_of(name, item)
        self._looked[server] = found

    def judge(self, server: str, offer: Offer) -> dict[str, Verdict]:
        """What becomes of each tool of an offer, and of what else it says (subjects)."""
        tools, apart = tools_of(offer), apart_of(offer)
        items, settings = {**tools, **apart}, self._settings()
        if settings.approve_changes == settings.suspicious == "off":
            verdicts = {name: Verdict(item) for name, item in items.items()}
        else:
            known = self._of(server)
            known.listed = frozenset(tools)
            others = cache(lambda: OtherTools(self._others(server)))  # only looked at for what is new
            verdicts = {name: self._verdict(known, name, item, settings, others) for name, item in items.items()}
            known.known = True
            known.forget_apart(name for name in known.tools if is_apart(name) and name not in apart)
            if known.dirty:
                self.unsaved()
        self._looked.pop(server, None)
        self._verdicts[server] = verdicts
        self._tell(server, verdicts)
        return verdicts

    def _of(self, server: str) -> ServerPins:
        known = self._pins.get(server)
        return known if known is not None else self._pins.setdefault(server, pins.load(self._folder, server))

    def _verdict(
        self, known: ServerPins, name: str, item: Item, settings: Settings, others: Callable[[], OtherTools]
    ) -> Verdict:
        pin, digest, mode = known.tools.get(name), definition_hash(item), settings.approve_changes
        if pin is not None and not pin.beside:
            pin = self._renewed(known, name, item, pin, digest)
        if pin is not None and pin.hash == digest:
            return _pinned(known.server, name, item, pin, settings)
        # What is no tool may hold what changes from day to day.
        if pin is None or not pin.approved or is_apart(name) or mode == "off":
            return self._first_sight(known, name, item, digest, settings, others)
        takes = still_takes(pin.definition, item)
        served = takes or mode == "notify"
        findings = self._findings(known.server, name, item, digest)
        held = Held(pin.definition, item, digest, findings, served, as_now=mode == "notify")
        if mode == "notify":
            return Verdict(item, None, held)
        if takes:
            return Verdict(in_approved_form(pin.definition, item), None, held)
        return Verdict(item, f"its definition changed; {_remedy(known.server, name)}", held)

    def _renewed(self, known: ServerPins, name: str, item: Item, pin: Pin, digest: str) -> Pin:
        """Return the pin of an earlier version, in which the members beside PINNED did not count, as one of this; they
        are trusted at first sight. As it was where the tool is another one now, or those look suspicious."""
        if pin.hash != definition_hash(item, beside=False):
            return pin
        if pin.approved and pin.hash != digest and is_held(self._findings(known.server, name, item, digest)):
            return pin
        text = pins.pinned(item) if pin.text != "{}" else pin.text
        renewed = replace(pin, hash=digest, text=text, beside=True)
        known.pin(name, renewed)
        return renewed

    def _first_sight(
        self,
        known: ServerPins,
        name: str,
        item: Item,
        digest: str,
        settings: Settings,
        others: Callable[[], OtherTools],
    ) -> Verdict:
        findings = self._findings(known.server, name, item, digest)
        if not is_apart(name) and (found := _shadowed(known, name, others())) is not None:
            findings = (found, *findings)
        kept = pins.pinned(item) if findings or not is_apart(name) else "{}"  # nothing is ever compared with those
        pin = Pin(digest, kept, not is_held(findings), findings)
        known.pin(name, pin)
        return _pinned(known.server, name, item, pin, settings)

    def _findings(self, server: str, name: str, item: Item, digest: str) -> tuple[Finding, ...]:
        looked = self._looked.get(server, {}).get(f"{name} {digest}")
        return findings_of(name, item) if looked is None else looked

    # -- what waits ----------------------------------------------------------------------------------------------

    def waiting(self, server: str | None = None) -> list[Waiting]:
        """Return all that the user should look at, of one server or of all: first what is held back."""
        verdicts = [
            (of, name, verdict)
            for of, verdicts in self._verdicts.items()
            if server in (None, of)
            for name, verdict in verdicts.items()
        ]
        held = [_waiting(of, name, verdict.held) for of, name, verdict in verdicts if verdict.held is not None]
        return held + [_told(of, name, verdict.item, verdict.told) for of, name, verdict in verdicts if verdict.told]

    def told(self, server: str) -> tuple[str, ...]:
        """Return the tools of a server that are served although they read like orders."""
        return tuple(name for name, verdict in self._verdicts.get(server, {}).items() if verdict.told is not None)

    def names(self, server: str) -> tuple[str, ...]:
        """The tools of a server that wait."""
        return tuple(name for name, verdict in self._verdicts.get(server, {}).items() if verdict.held is not None)

    def held(self, server: str) -> dict[str, tuple[Finding, ...]]:
        """The tools of a server that wait, with what was found in each."""
        verdicts = self._verdicts.get(server, {})
        return {name: verdict.held.findings for name, verdict in verdicts.items() if verdict.held is not None}

    def approve(self, server: str, tool: str, digest: str) -> bool:
        """Approve that very definition; return False when the tool does not wait with it (any more)."""
        verdict = self._verdicts.get(server, {}).get(tool)
        if verdict is None or digest not in {seen.hash for seen in (verdict.held, verdict.told) if seen is not None}:
            return False
        self._of(server).pin(tool, Pin(digest, pins.pinned(verdict.held.new if verdict.held else verdict.item)))
        log.info("Approved: %s/%s", server, tool)
        self.unsaved()
        return True

    def keep(self, servers: frozenset[str]) -> None:
        """Forget the judgements of all others; their pins stay on disk."""
        self._verdicts = {name: verdicts for name, verdicts in self._verdicts.items() if name in servers}
        self._told = {key: hashes for key, hashes in self._told.items() if key[0] in servers}

    def unsaved_of(self, servers: Set[str]) -> list[str]:
        """Why what was approved of these servers is not on disk."""
        return [error.title for server, error in self._unsaved.items() if server in servers]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What could not be read or written of approvals, each with its server."""
        lost = [(known.server, known.lost) for known in list(self._pins.values()) if known.lost is not None]
        return tuple(
            Problem(str(self._folder), 0, error.title, error.hint, server=server, fatal=False)
            for server, error in (*lost, *list(self._unsaved.items()))
        )

    def save(self) -> None:
        """Write the pins that changed. Blocks; what cannot be written is tried again with the next change."""
        for known in list(self._pins.values()):
            if known.dirty:
                known.dirty = False
                try:
                    pins.save(self._folder, known.server, dict(known.tools))
                except StorageError as error:
                    known.dirty = True
                    self._unsaved[known.server] = error
                    log.warning("%s", error)
                else:
                    self._unsaved.pop(known.server, None)

    def _tell(self, server: str, verdicts: dict[str, Verdict]) -> None:
        """Say each thing once in the log."""
        for name, verdict in verdicts.items():
            held, told = verdict.held, self._told.get((server, name), [])
            if held is None or held.hash in told or len(told) >= TOLD_MOST:
                continue
            self._told[(server, name)] = [*told, held.hash]
            what = "changed" if held.old is not None else "is suspicious"
            codes = ", ".join(found.code for found in held.findings) or "no findings"
            log.warning("%s/%s %s (%s) and waits for an approval", server, name, what, codes)


def _shadowed(known: ServerPins, name: str, others: OtherTools) -> Finding | None:
    return shadowed(name, known.listed - {name}, others, late=known.known)


def _waiting(server: str, name: str, held: Held) -> Waiting:
    changed = held.old is not None
    reason = _why(held.findings)
    if changed:
        reason = "its definition changed" + (f"; {reason}" if held.findings else "")
    lines = difference(held.old, held.new) if held.old is not None else whole(held.new)
    return Waiting(
        server, name, held.hash, reason, changed, held.served, held.as_now, True, held.findings, tuple(lines)
    )


def _told(server: str, name: str, item: Item, pin: Pin) -> Waiting:
    return Waiting(
        server, name, pin.hash, _why(pin.findings), False, True, True, False, pin.findings, tuple(whole(item))
    )


def _pinned(server: str, name: str, item: Item, pin: Pin, settings: Settings) -> Verdict:
    """Return what becomes of a definition that is as it was pinned."""
    if not pin.findings or settings.suspicious == "off":
        return Verdict(item)
    if is_held(pin.findings) or settings.suspicious == "hold":
        held = Held(None, item, pin.hash, pin.findings, served=False, as_now=False)
        return Verdict(item, f"{_why(pin.findings)}; {_remedy(server, name)}", held)
    return Verdict(item, told=pin)


def _why(findings: tuple[Finding, ...]) -> str:
    """Return the first finding in words; what a server wrote is for people, who ask for it."""
    return findings[0].reason or findings[0].code if findings else "it was found suspicious"


def _remedy(server: str, tool: str) -> str:
    return f"look at it with: multi-mcp approve {server}/{tool}"
