"""What is known of every server's lists: from the cache at start, from the server once it was asked.

Decides which server must be asked. Never here: asking (backends), writing (listing_writer), what clients see.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trayapp.catalog.cache import FRESH_MS, CacheEntry, freshness, load_all, sound_places, sweep
from trayapp.catalog.merge import ToolsChange, differing, in_known_order, merge_tools, tools_change, with_known
from trayapp.gateway.exposure.listing_writer import Job, ListingWriter
from trayapp.model.offer import Offer
from trayapp.model.plan import Config
from trayapp.model.servers import ServerConfig, ToolSwitch, launch_hash

# A server that is started anyway is asked again when its lists are older: `npx -y` may have brought a newer one.
RECHECK_S = 3600.0
RETRY_S = 60.0  # the same for a server that could not list everything: it may hang over that again, for as long


class Listings:
    """Listings by server name. `config` gives the configuration that holds now."""

    def __init__(
        self, folder: Path, config: Callable[[], Config], writer: ListingWriter, time: Callable[[], float]
    ) -> None:
        self._folder = folder
        self._config = config
        self._writer = writer
        self._time = time
        self._entries: dict[str, CacheEntry] = {}
        self._hashes: dict[str, tuple[ServerConfig, str]] = {}  # of the servers as they were last asked about
        self._looked: dict[str, tuple[Offer, frozenset[int]]] = {}  # sound places, found ahead in a thread
        self.changes: dict[str, ToolsChange] = {}  # of each server's last fetch

    def load(self, names: list[str]) -> None:
        """Take the cached entries of these servers. Blocks."""
        loaded = load_all(self._folder, names)
        self._entries.update(loaded)
        unmarked = [entry for entry in loaded.values() if entry.sound is None]  # another version wrote them
        if unmarked:
            self._writer.write([Job(entry, None) for entry in unmarked])

    def sound(self, name: str, offer: Offer) -> frozenset[int]:
        """The places of those tools of an offer of that server that were found sound before."""
        entry = self._entries.get(name)
        return entry.sound or frozenset() if entry is not None and entry.offer is offer else frozenset()

    def look_ahead(self, name: str, offer: Offer) -> None:
        """Find now what the first list with an offer that comes would have to. Blocks, in a thread of its own."""
        self._looked[name] = offer, sound_places(offer)

    def get(self, name: str) -> Offer | None:
        """What the server offers; None when it is not known for its present launch settings."""
        entry = self._usable(name)
        return entry.offer if entry else None

    def missing(self) -> list[str]:
        """Enabled servers whose tools are not known: to be asked in the background at once."""
        return [s.name for s in self._config().servers.values() if not s.disabled and not self._knows_tools(s.name)]

    def _knows_tools(self, name: str) -> bool:
        entry = self._usable(name)
        return entry is not None and "tools" not in entry.offer.unknown

    def expired(self) -> list[str]:
        """Enabled servers whose cache is past its seven days: to be asked once a list was served.

        A `ttlMs` that has run out is no reason to start a server that nobody uses: it is asked when it is connected
        next (`worth_asking`), and "no process before a list is served" holds for servers that give 0, as many do.
        """
        now = self._time()
        entries = [(s, self._usable(s.name)) for s in self._config().servers.values() if not s.disabled]
        return [s.name for s, entry in entries if entry and not 0 <= (now - entry.saved_at) * 1000 < FRESH_MS]

    def worth_asking(self, name: str) -> bool:
        """Whether a server that has just been connected should be asked for its lists."""
        entry = self._usable(name)
        if entry is None or "tools" in entry.offer.unknown:
            return True
        limit_s = RETRY_S if entry.offer.failed else RECHECK_S
        is_young = 0 <= self._time() - entry.saved_at < limit_s
        return not is_young or self._age_class(self._config().servers[name]) != "fresh"

    def protocol_hint(self, name: str) -> str:
        """The protocol revision that the server spoke last time, "" when never met."""
        entry = self._entries.get(name)
        return entry.offer.protocol if entry else ""

    def take(self, server: ServerConfig, offer: Offer) -> bool:
        """An offer that was read just now; True when it differs from what was known. Written in the background."""
        known = self.get(server.name)
        looked, sound = self._looked.pop(server.name, (None, None))
        offer = offer if known is None else in_known_order(known, with_known(known, offer))
        entry = CacheEntry(server.name, self._hash(server), self._time(), offer, sound if looked is offer else None)
        self._entries[server.name] = entry
        found = [str(item["name"]) for item in offer.tools if isinstance(item.get("name"), str)]
        if "tools" in offer.failed:  # what was not listed is not gone
            found += [name for name, switch in (server.tools or {}).items() if not switch.stale and name not in found]
        switched_only = self._config().settings.write_tools == "switched"
        names = [str(item["name"]) for item in known.tools if item.get("name")] if known and switched_only else []
        self.changes[server.name] = tools_change({**dict.fromkeys(names, ToolSwitch()), **(server.tools or {})}, found)
        merged = merge_tools(server.tools, found, server.new_tools == "enabled")
        merged = differing(merged, server) if switched_only else merged
        self._writer.write([Job(entry, merged if merged != server.tools and (merged or server.tools) else None)])
        return known != offer

    def sweep(self) -> None:
        """Clear away what nobody will read. Blocks."""
        sweep(self._folder, list(self._config().servers), self._time())

    def _usable(self, name: str) -> CacheEntry | None:
        server = self._config().servers.get(name)
        entry = self._entries.get(name)
        if server is None or entry is None:
            return None
        return entry if entry.hash == self._hash(server) else None

    def _hash(self, server: ServerConfig) -> str:
        """Its launch hash, computed once for as long as its entry is the same."""
        known = self._hashes.get(server.name)
        if known is None or known[0] is not server:
            known = self._hashes[server.name] = server, launch_hash(server)
        return known[1]

    def _age_class(self, server: ServerConfig) -> str:
        entry = self._entries.get(server.name)
        return freshness(entry, self._hash(server), self._time()) if entry else "invalid"
