"""Keep the known lists of every server, from the cache or from the server, and decide which servers to ask for lists.

Changes to cache entries, switches in servers.yaml, approvals and names are written in a thread, one batch at a time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from trayapp.catalog.cache import CacheEntry, load_all, save, sweep, with_sound
from trayapp.catalog.filters import ToolsChange, differing, merge_tools, tools_change
from trayapp.catalog.resources import has_ui
from trayapp.catalog.variants import (
    Variant,
    best_variant,
    in_known_order,
    listed,
    names_of,
    nearest_variant,
    union_offer,
    with_eras,
    with_known,
    with_variant,
)
from trayapp.model.config import Config, ServerConfig, ToolSwitch, launch_hash
from trayapp.model.errors import MultiMcpError
from trayapp.model.offer import ITEM_KEYS, NO_TRAITS, Offer, ServerTraits
from trayapp.wire.capabilities import APPS, EVERYTHING, NO_KIND, ClientKind, kind_of, listed_by
from trayapp.wire.revisions import MODERN_VERSIONS

log = logging.getLogger(__name__)

# Writing a long servers.yaml takes time. After each write, the writer pauses for this many times its duration, so that
# the first answers of many servers are not delayed. It does not pause while a task waits for a write.
WRITING_REST = 4
ONE_WRITE_S = 10.0  # a write waits at most this long for further results of the same refresh

# server -> its switches, which are written to servers.yaml. Blocks. Raises MultiMcpError
WriteSwitches = Callable[[dict[str, dict[str, ToolSwitch]]], None]


class ListingWriter:
    """The writer of one gateway's lists and switches. `more`: writes approvals and names in the same batch. Blocks."""

    def __init__(self, folder: Path, switches: WriteSwitches, more: Callable[[], None]) -> None:
        self._folder = folder
        self._write_switches = switches
        self._more = more
        self._entries: dict[str, CacheEntry] = {}  # to be written, by server
        self._switches: dict[str, dict[str, ToolSwitch]] = {}  # to be written, by server
        self._wake = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()
        self._gathered = anyio.Event()  # set when everything for the next write has been added
        self._gathered.set()
        self._gathering = 0
        self._awaited = anyio.Event()  # set when a task waits for the write

    def write(self, entry: CacheEntry, switches: dict[str, ToolSwitch] | None = None) -> None:
        """Schedule a write of a cache entry, and of its server's `switches` to servers.yaml unless they are None."""
        self._entries[entry.server] = entry
        if switches is not None:
            self._switches[entry.server] = switches
        self.wake()

    def wake(self) -> None:
        """Schedule a write of everything that was added, and a call of `more`."""
        self._idle = anyio.Event() if self._idle.is_set() else self._idle
        self._wake.set()

    @contextmanager
    def one_write(self) -> Iterator[None]:
        """Combine everything that is added inside the block into one write, delayed by at most ONE_WRITE_S."""
        self._gathering += 1
        if self._gathered.is_set():  # otherwise, another block is still open
            self._gathered = anyio.Event()
        try:
            yield
        finally:
            self._gathering -= 1
            if not self._gathering:
                self._gathered.set()

    async def written(self) -> None:
        """Wait until everything that was added is on disk. A failed write is logged, not raised."""
        self._gathered.set()
        self._awaited.set()
        await self._idle.wait()

    async def keep_writing(self) -> None:
        """Write everything that is added, batch by batch. Runs until it is cancelled."""
        while True:
            await self._wake.wait()
            with anyio.move_on_after(ONE_WRITE_S):
                await self._gathered.wait()
            self._wake, self._awaited = anyio.Event(), anyio.Event()
            entries, self._entries = self._entries, {}
            switches, self._switches = self._switches, {}
            began = time.perf_counter()
            try:
                await anyio.to_thread.run_sync(self._write_all, entries, switches)
            finally:
                if not self._wake.is_set():  # if set, something was added during the write
                    self._idle.set()
            with anyio.move_on_after((time.perf_counter() - began) * WRITING_REST):
                await self._awaited.wait()

    def _write_all(self, entries: dict[str, CacheEntry], switches: dict[str, dict[str, ToolSwitch]]) -> None:
        if switches:
            with _logged("Cannot write the tools to servers.yaml"):
                self._write_switches(switches)
        for server, entry in entries.items():
            with _logged(f"Cannot cache the lists of {server}"):
                save(self._folder, with_sound(entry))
        with _logged("Cannot save approvals and names"):
            self._more()


@contextmanager
def _logged(failure: str) -> Iterator[None]:
    """Log the failure of one write. Exception boundary: the other writes continue."""
    try:
        yield
    except MultiMcpError as error:
        log.warning("%s: %s", failure, error)
    except Exception:
        log.exception("%s", failure)


FRESH_S = 7 * 86_400.0  # an older list is still served while the server's lists are read again
# A server that has just started is asked again if its lists are older than this: `npx -y` may have installed a newer
# version.
RECHECK_S = 3600.0

RETRY_S = 60.0  # replaces RECHECK_S if a server could not list everything. It is not 0, because a retry may hang again


class Listings:
    """The known lists of each server. It has many methods because the cache, approvals and sessions use it."""

    def __init__(self, folder: Path, writer: ListingWriter, time: Callable[[], float]) -> None:
        self._folder = folder
        self._config = Config()
        self._writer = writer
        self._time = time
        self._entries: dict[str, CacheEntry] = {}
        self._hashes: dict[str, tuple[ServerConfig, str]] = {}  # server -> its entry, and the entry's launch hash
        self._early: dict[str, tuple[str, ServerTraits]] = {}  # server -> launch hash, traits before its first list
        self._asked_for: dict[str, dict[str, ToolSwitch]] = {}  # server -> switches that servers.yaml may still lack
        self.changes: dict[str, ToolsChange] = {}  # server -> changes found by its last fetch

    def take_config(self, config: Config) -> None:
        """Apply a new configuration, and load the cached entries of its new servers. Blocks."""
        before, self._config = self._config.servers, config
        for name, asked in list(self._asked_for.items()):
            if name not in config.servers or config.servers[name].tools == asked:
                del self._asked_for[name]
        loaded = load_all(self._folder, [name for name in config.servers if name not in before])
        self._entries.update(loaded)
        for entry in loaded.values():
            if entry.sound is None:  # saved by another version
                self._writer.write(entry)

    def sound(self, name: str, offer: Offer) -> frozenset[int]:
        """Return the indexes of the offer's tools that clients can take unchanged. Return an empty set while the tools
        are unchecked, or if the offer is not the server's last one.
        """
        entry = self._entries.get(name)
        return entry.sound or frozenset() if entry is not None and entry.offer is offer else frozenset()

    def get(self, name: str) -> Offer | None:
        """Return the server's offer, or None if none is known for the current launch settings."""
        entry = self._find_entry(name)
        return entry.offer if entry else None

    def missing(self) -> list[str]:
        """Return the enabled servers whose tools are unknown. They should be asked immediately, in the background."""
        entries = [(s.name, self._find_entry(s.name)) for s in self._config.servers.values() if not s.disabled]
        return [name for name, entry in entries if entry is None or "tools" in entry.offer.unknown]

    def expired(self) -> list[str]:
        """Return the enabled servers whose cached lists are older than FRESH_S. They should be asked after the first
        list has been served.

        An expired `ttlMs` alone does not start a server, because many servers set it to 0. Such a server is asked at
        its next connection (`worth_asking`).
        """
        now = self._time()
        entries = [(s, self._find_entry(s.name)) for s in self._config.servers.values() if not s.disabled]
        return [s.name for s, entry in entries if entry and not 0 <= now - entry.saved_at < FRESH_S]

    def worth_asking(self, name: str) -> bool:
        """Return True if a server that has just connected should be asked for its lists."""
        entry = self._find_entry(name)
        if entry is None or "tools" in entry.offer.unknown:
            return True
        limit_s, ttl_ms = RETRY_S if entry.offer.failed else RECHECK_S, entry.offer.ttl_ms
        limit_ms = limit_s * 1000 if ttl_ms is None else min(limit_s * 1000, ttl_ms)
        return not 0 <= (self._time() - entry.saved_at) * 1000 < limit_ms

    def protocol_hint(self, name: str) -> str:
        """Return the protocol revision that the server last used, or "" for a new server."""
        entry = self._entries.get(name)
        return entry.offer.protocol if entry else ""

    def traits(self, name: str) -> ServerTraits:
        """Return the server's known traits under the current launch settings, or NO_TRAITS."""
        entry, server = self._find_entry(name), self._config.servers.get(name)
        if entry is not None:
            return entry.traits
        early = self._early.get(name)
        return early[1] if early and server and early[0] == self._launch_hash(server) else NO_TRAITS

    def note_traits(self, name: str, traits: ServerTraits) -> None:
        """Store the traits learned about the server. Ignore a server that is not in the configuration."""
        entry, server = self._find_entry(name), self._config.servers.get(name)
        if traits == self.traits(name) or server is None:
            return
        if entry is None:
            self._early[name] = self._launch_hash(server), traits
        else:
            self._entries[name] = entry._replace(traits=traits)
            self._writer.write(self._entries[name])

    def variants(self, name: str) -> tuple[Variant, ...]:
        """Return the variants of the server's lists, one for each kind of client that they were read for, or ()."""
        entry = self._find_entry(name)
        return entry.variants if entry is not None else ()

    def kinds(self, name: str) -> list[ClientKind]:
        """Return the kinds of clients that a server's lists were read for, or [] for a new server."""
        return [one.kind for one in self._variants_or_offer(name)]

    def older_names(self, name: str) -> dict[str, frozenset[str]]:
        """Return kind of item (tools, prompts, ...) -> names that are listed for clients of the older era."""
        variants = self._variants_or_offer(name)
        return {kind: listed(variants, kind, newer=False) for kind in ITEM_KEYS}

    def _variants_or_offer(self, name: str) -> tuple[Variant, ...]:
        """Return the server's variants. If it has none, return one that is made from its offer, for a client that
        supports everything. Return () if its offer or the offer's revision is unknown.
        """
        entry = self._find_entry(name)
        if entry is None or entry.variants or not entry.offer.protocol:
            return entry.variants if entry is not None else ()
        able = kind_of(EVERYTHING, newer=entry.offer.protocol in MODERN_VERSIONS)
        return with_variant((), _told_kind(able, entry.offer), names_of(entry.offer), entry.offer.server_info)

    def lacks_variant(self, name: str, kind: ClientKind) -> bool:
        """Return True if a server's lists depend on the client, and have not been read for that kind of client."""
        return _lacks_variant(self.variants(name), self.kind_at(name, kind))

    def variant(self, name: str, kind: ClientKind) -> Variant | None:
        """Return the best variant for a client of that kind, or None if all clients get the same lists."""
        variants = self.variants(name)
        return best_variant(variants, self.kind_at(name, kind)) if len(variants) > 1 else None

    def kind_at(self, name: str, kind: ClientKind) -> ClientKind:
        """Return the kind of client without the extensions that cannot affect that server's lists."""
        offer = self.get(name)
        return kind if offer is None or not kind.extensions else _told_kind(kind, offer)

    def _is_same_version(self, name: str, offer: Offer) -> bool:
        """Return True unless the server's name or version in the offer differs from what it announced before.

        Only offers of the same era are compared, because some servers have a different name in each era.
        """
        if (entry := self._find_entry(name)) is None:
            return True
        newer = offer.protocol in MODERN_VERSIONS
        known = [one.server_info for one in entry.variants if one.kind.newer == newer]
        known += [entry.offer.server_info] if (entry.offer.protocol in MODERN_VERSIONS) == newer else []
        return all(info in (None, offer.server_info) for info in known)

    def take(self, server: ServerConfig, offer: Offer, kind: ClientKind = NO_KIND, *, probed: bool = False) -> bool:
        """Take a new offer and write it in the background. Return True if the known offer or the variants changed.

        `kind`: the kind of client that the server made the lists for. `probed`: the lists were read only to find out
        what that kind of client gets.
        """
        known = self.get(server.name)
        kind = _told_kind(kind, *(one for one in (known, offer) if one is not None))
        before = (self._variants_or_offer(server.name), known)
        variants, traits = before[0], self.traits(server.name)
        if not self._is_same_version(server.name, offer):  # what is known of the old version may be outdated
            modern = offer.protocol in MODERN_VERSIONS
            variants, traits = (), ServerTraits(newer=True) if modern else ServerTraits(older=True)
        variants = tuple(one for one in variants if traits.speaks(newer=one.kind.newer) is not False)
        if not offer.failed:
            # A connection that announces fewer capabilities may get shorter lists, which do not apply to other kinds.
            near = None if probed or _lacks_variant(variants, kind) else nearest_variant(variants, kind)
            same = near is not None and near.kind.newer == kind.newer and near.kind.extensions == kind.extensions
            of_kind = near.kind if near is not None and same else kind
            variants = with_variant(variants, of_kind, names_of(offer), offer.server_info)
        offer = offer if known is None else in_known_order(known, with_known(known, offer))
        offer = with_eras(offer, known, before[0], variants, newer=kind.newer)
        offer = union_offer(offer, known, variants, probed=probed)
        launch = self._launch_hash(server)
        entry = CacheEntry(server.name, launch, self._time(), offer, traits=traits, variants=variants)
        self._entries[server.name] = entry
        found = [str(item["name"]) for item in offer.tools if isinstance(item.get("name"), str)]
        if "tools" in offer.failed:  # a tool that could not be listed is not gone
            found += [name for name, switch in (server.tools or {}).items() if not switch.stale and name not in found]
        # A tool that was known before is not new, although servers.yaml may lack it. The file may list only switched
        # tools, or its latest write has not been read yet.
        names = [str(item["name"]) for item in known.tools if item.get("name")] if known else []
        self.changes[server.name] = tools_change({**dict.fromkeys(names, ToolSwitch()), **(server.tools or {})}, found)
        merged = merge_tools(server.tools, found, server.new_tools == "enabled")
        if self._config.settings.write_tools == "switched":
            merged = differing(merged, server)
        differs = merged != server.tools and bool(merged or server.tools)
        switches = merged if differs or self._asked_for.get(server.name, merged) != merged else None
        if switches is not None:
            self._asked_for[server.name] = switches
        self._writer.write(entry, switches)
        return before != (variants, offer)

    def sweep(self) -> None:
        """Remove cache entries that will not be read again. Blocks."""
        sweep(self._folder, list(self._config.servers), self._time())

    def _find_entry(self, name: str) -> CacheEntry | None:
        server, entry = self._config.servers.get(name), self._entries.get(name)
        usable = server is not None and entry is not None and entry.hash == self._launch_hash(server)
        return entry if usable else None

    def _launch_hash(self, server: ServerConfig) -> str:
        """Return the server's launch hash, computed once for each entry."""
        known = self._hashes.get(server.name)
        if known is None or known[0] is not server:
            known = self._hashes[server.name] = server, launch_hash(server)
        return known[1]


def _lacks_variant(variants: tuple[Variant, ...], kind: ClientKind) -> bool:
    """Return True if the variants of that kind's era may differ, and none of them was read for that kind."""
    of_era = tuple(one for one in variants if one.kind.newer == kind.newer)
    return bool(of_era) and best_variant(of_era, kind) is not None and all(one.kind != kind for one in of_era)


def _told_kind(kind: ClientKind, *offers: Offer) -> ClientKind:
    """Return `kind` without the extensions that cannot affect the lists of a server with these offers.

    A server's lists may depend on the client's support for an extension that the server announces. If any of its tools
    has a user interface, they may also depend on the support for Apps.
    """
    known = {extension for one in offers for extension in listed_by(one.capabilities or {})}
    known |= {extension for one in offers for extension in listed_by(one.older_capabilities or {})}
    if any("_meta" in tool and has_ui(tool) for one in offers for tool in one.tools):
        known.add(APPS)
    return kind.told(known)
