"""Decide which tools are held back until the user approves them, and in which form they are served meanwhile.

An offer is judged once, by the pins of its server. `settings.approve_changes` decides on changes, `settings.suspicious`
on what is found at first sight. Never here: showing it, finding (inspection), what differs (catalog/changes).
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from trayapp.catalog import pins
from trayapp.catalog.changes import difference, in_approved_form, still_takes, whole
from trayapp.catalog.lookup import fold
from trayapp.catalog.names import call_spelling, clean, server_prefix
from trayapp.catalog.pins import Pin, ServerPins, definition_hash
from trayapp.gateway.subjects import apart_of, findings_of, is_apart, tools_of
from trayapp.inspection.finding import Finding, finding, is_held
from trayapp.inspection.hidden import bared, folded
from trayapp.model.errors import StorageError
from trayapp.model.offer import Item, Offer
from trayapp.model.settings import PREFIX_MODES, Settings
from trayapp.model.status import Problem

log = logging.getLogger(__name__)

LOOK_AHEAD_FROM = 10  # subjects of an offer: fewer are looked over in a few milliseconds, more in a thread
TOLD_MOST = 5  # times that one tool's changes are logged: some change with every list
SIBLING_TOOLS = 3  # names that two servers of one program have in common, and at least half of all


class Elsewhere:
    """The tools of other servers by how their names look. `others`: each server with the names of all its tools."""

    def __init__(self, others: Iterable[tuple[str, frozenset[str]]]) -> None:
        self._tools: dict[str, list[Alike]] = {}
        self._starts: dict[str, set[str]] = {}  # by how it looks: the servers before whose tools' names it stands
        self._called: dict[str, str] = {}  # the server whose tools' names begin so in calls
        for server, tools in others:
            called, starts = _starts(server)
            self._called[called] = server
            for start in starts:
                self._starts.setdefault(start, set()).add(server)
            for tool in tools:
                self._tools.setdefault(_shape(tool), []).append(Alike(server, tools, tool))

    def alike(self, name: str) -> list[Alike]:
        """Return the tools whose own names look like `name`."""
        return self._tools.get(_shape(name), [])

    def read_as(self, name: str) -> Iterator[Alike]:
        """Yield the tools that `name` reads as behind their servers' names, in any prefix mode."""
        letters = _letters(name)
        for end in range(1, len(letters)):
            servers = self._starts.get(_squeezed(letters[:end]))
            for found in self._tools.get(_squeezed(letters[end:]), ()) if servers else ():
                if found.server in (servers or ()):
                    yield found

    def addressed(self, name: str) -> str | None:
        """Return the server that `name` calls by `mcp__SERVER__`, whatever tools it has."""
        loose = fold(name).casefold()
        return next((server for start, server in self._called.items() if loose.startswith(start)), None)


class Alike(NamedTuple):
    """A tool of another server, with the names of all the tools of that."""

    server: str
    tools: frozenset[str]
    tool: str


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
            elsewhere = cache(partial(self._elsewhere, server))  # only looked at for what is new
            verdicts = {name: self._verdict(known, name, item, settings, elsewhere) for name, item in items.items()}
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
        self, known: ServerPins, name: str, item: Item, settings: Settings, elsewhere: Callable[[], Elsewhere]
    ) -> Verdict:
        pin, digest, mode = known.tools.get(name), definition_hash(item), settings.approve_changes
        if pin is not None and not pin.beside:
            pin = self._renewed(known, name, item, pin, digest)
        if pin is not None and pin.hash == digest:
            return _pinned(known.server, name, item, pin, settings)
        # What is no tool may hold what changes from day to day.
        if pin is None or not pin.approved or is_apart(name) or mode == "off":
            return self._first_sight(known, name, item, digest, settings, elsewhere)
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
        elsewhere: Callable[[], Elsewhere],
    ) -> Verdict:
        findings = self._findings(known.server, name, item, digest)
        if not is_apart(name) and (shadowed := self._shadowed(known, name, elsewhere())) is not None:
            findings = (shadowed, *findings)
        kept = pins.pinned(item) if findings or not is_apart(name) else "{}"  # nothing is ever compared with those
        pin = Pin(digest, kept, not is_held(findings), findings)
        known.pin(name, pin)
        return _pinned(known.server, name, item, pin, settings)

    def _findings(self, server: str, name: str, item: Item, digest: str) -> tuple[Finding, ...]:
        looked = self._looked.get(server, {}).get(f"{name} {digest}")
        return findings_of(name, item) if looked is None else looked

    def _shadowed(self, known: ServerPins, name: str, elsewhere: Elsewhere) -> Finding | None:
        """A tool with letters that pass for those of another server's, or one that turns up later under such a name: a
        call may be meant for that one. Servers that have most of their tools in common are two of the same program."""
        own = known.listed - {name}
        if (addressed := elsewhere.addressed(name)) is not None:
            return finding("name.shadows", "high", "name", f"Its name calls it a tool of {addressed}", name)
        for other, tools, alike in elsewhere.alike(name):
            if _are_siblings(own, tools):
                continue
            if _comparable(alike) != _comparable(name):
                if clean(name) == name and clean(alike) != alike:
                    continue  # the odd one is the imitation, whichever was known first
                return finding("name.look-alike", "high", "name", f"Its name passes for {other}'s {alike}", name)
            if known.known:
                return finding(
                    "name.shadows", "high", "name", f"It turned up later with the name of {other}'s {alike}", name
                )
        for other, tools, alike in elsewhere.read_as(name):
            if not _are_siblings(own, tools):
                return finding("name.shadows", "high", "name", f"Its name reads as {other}'s {alike}", name)
        return None

    def _elsewhere(self, server: str) -> Elsewhere:
        return Elsewhere(self._others(server))

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


def _are_siblings(own: frozenset[str], others: frozenset[str]) -> bool:
    """True of the tools of two servers of one program."""
    common = len(own & others)
    return common >= SIBLING_TOOLS and common * 2 >= len(own)


_BETWEEN = re.compile(r"[-_./: ]")  # signs between the words of a name


def _comparable(name: str) -> str:
    """Return the same for names that people and models take for the same."""
    return _BETWEEN.sub("", name.casefold())


_ALIKE_IN_ASCII = str.maketrans("01i5", "olls")


def _letters(name: str) -> str:
    """Return what people see of a name, as letters of ASCII where it looks like them: no marks, nothing invisible."""
    if not name.isascii():
        plain = unicodedata.normalize("NFKD", bared(name))
        name = folded("".join(letter for letter in plain if unicodedata.category(letter)[0] not in "MC"))
    return _comparable(name).translate(_ALIKE_IN_ASCII)


def _squeezed(letters: str) -> str:
    return letters.replace("rn", "m").replace("vv", "w")


@lru_cache(maxsize=1024)
def _starts(server: str) -> tuple[str, frozenset[str]]:
    """Return how `mcp__SERVER__` is compared, and how what stands before its tools' names looks in each mode."""
    prefixes = (server_prefix(server, mode) for mode in PREFIX_MODES)
    return fold(call_spelling(server, "")).casefold(), frozenset(map(_shape, filter(None, prefixes)))


@lru_cache(maxsize=8192)  # of as many tools as anybody has; each is compared with those of all other servers
def _shape(name: str) -> str:
    """Return the same for names that look the same in the letters of many a screen."""
    return _squeezed(_letters(name))
