"""What one kind of session sees: the user's servers, or those with a trusted project's laid over them.

A project's own servers run beside the user's, under a key that no list shows.
Never here: files, trust, processes, a session's own options (window).
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import anyio

from trayapp.backends.connection import Connection
from trayapp.catalog.names import Given
from trayapp.gateway.expose import Exposure
from trayapp.gateway.finder import Finder
from trayapp.gateway.known import Known
from trayapp.gateway.options import SessionOptions
from trayapp.gateway.prepared import PreparedOffer
from trayapp.gateway.router import Router
from trayapp.gateway.window import Window
from trayapp.model.lifecycle import State
from trayapp.model.offer import Offer
from trayapp.model.plan import Config
from trayapp.model.servers import ServerConfig
from trayapp.model.settings import PrefixMode

if TYPE_CHECKING:
    from trayapp.gateway.core import Gateway

# On the very first run nothing is known. Many clients list once and ignore list_changed: lists wait this long after
# the start for servers that are being discovered, no longer, whatever hangs.
FIRST_LIST_GRACE_S = 0.5  # with the start before it, and HTTP to load, within a second
# No list is to be had from a server in one of these.
HOPELESS = frozenset({State.FAILED, State.NEEDS_AUTH, State.KEYRING_LOCKED})
KEY_HEX = 8  # of a digest of the project's folder: two projects' servers of one name are two servers


class View:
    """One configuration under its plain names. `folder`: the project's, None for what all other sessions see."""

    def __init__(self, gateway: Gateway, folder: Path | None = None) -> None:
        self.folder = folder
        self.config = Config()
        self._list_at_latest = 0.0  # by the clock: until then a list may wait for servers that are being asked
        self._gateway = gateway
        self._keys: dict[str, str] = {}
        self._known: Known | None = None
        self._noted: Known | None = None  # whose names are kept
        self.finder = Finder()
        self._windows: WeakValueDictionary[SessionOptions, Window] = WeakValueDictionary()  # as long as sessions last
        self.whole = self.window(SessionOptions())  # what a session sees that asked for nothing

    def take(self, config: Config, own: frozenset[str] = frozenset()) -> None:
        """See `config` from now on; servers in `own` are not the user's but run for this view alone."""
        digest = hashlib.blake2b(str(self.folder).encode("utf-8", "surrogatepass")).hexdigest()[:KEY_HEX]
        self._keys = {name: f"{name}@{digest}" for name in own}
        self.config = config
        self.forget()

    def key(self, name: str) -> str:
        """Under what name a server of this view runs."""
        return self._keys.get(name, name)

    def owns(self, key: str) -> bool:
        """Whether what runs under that key runs for this view alone."""
        return key in self._keys.values()

    def own_servers(self) -> dict[str, ServerConfig]:
        """The servers that run for this view alone, by key, named so."""
        return {key: replace(self.config.servers[name], name=key) for name, key in self._keys.items()}

    def name_of(self, key: str) -> str | None:
        """The plain name of a server that runs; None when this view does not have it."""
        name = next((name for name, own in self._keys.items() if own == key), key)
        return name if name in self.config.servers and self.key(name) == key else None

    # -- the catalog ---------------------------------------------------------------------------------------------

    @property
    def known(self) -> Known:
        """All that is known now."""
        if self._known is None:
            self._known = Known(self.config, self.offer, self._prepared, self._given)
        return self._known

    def _given(self, mode: PrefixMode) -> Given:
        return self._gateway.given_names.of(mode, self._plain)

    @property
    def _plain(self) -> dict[str, str]:
        """The names of its servers by their keys."""
        return {self.key(name): name for name in self.config.servers}

    def note_names(self) -> bool:
        """Keep the names that clients see; True if any of them is new."""
        known = self.known
        if known is self._noted:
            return False
        self._noted = known
        return self._gateway.given_names.note(known.names, known.held, self._plain)

    def _prepared(self, name: str, offer: Offer) -> PreparedOffer:
        return self._gateway.prepared.of(self.key(name), offer)

    def forget(self) -> None:
        """Something that the catalog was made from is another now."""
        self._known = None

    def window(self, options: SessionOptions) -> Window:
        """What sessions with these options see; the same one for all of them."""
        found = self._windows.get(options)
        if found is None:
            found = self._windows[options] = Window(self, options)
        return found

    @property
    def exposure(self) -> Exposure:
        """What a session sees that asked for nothing."""
        return self.whole.exposure

    @property
    def router(self) -> Router:
        """By that exposure."""
        return self.whole.router

    def offer(self, name: str) -> Offer | None:
        """What a server offers, as far as it is known."""
        return self._gateway.offers.get(self.key(name))

    def missing(self) -> list[str]:
        """Enabled servers whose tools are not known."""
        unknown = set(self._gateway.offers.missing())
        return [name for name in self.config.servers if self.key(name) in unknown]

    def find(self, name: str) -> Connection:
        """The connection of a server. Raises ServerNotFoundError."""
        return self._gateway.pool.find(self.key(name))

    def get(self, name: str) -> Connection | None:
        """As `find`, None when there is none."""
        return self._gateway.pool.get(self.key(name))

    # -- first lists ---------------------------------------------------------------------------------------------

    def await_first_lists(self) -> None:
        """From now on lists wait for servers that are being asked, `FIRST_LIST_GRACE_S` at most."""
        self._list_at_latest = self._gateway.clock.now() + FIRST_LIST_GRACE_S

    @property
    def lists_may_grow(self) -> bool:
        """Whether a list is worth waiting for: servers of which nothing is known are being asked, since a moment."""
        return self._gateway.clock.now() < self._list_at_latest and bool(self.being_asked())

    def being_asked(self, *, own: bool = False) -> list[str]:
        """Servers of which nothing is known that are being asked now, and may answer yet; `own`: of this view alone."""
        discovering = self._gateway.pool.discovering
        if not discovering:
            return []
        names = [name for name in self.missing() if name in self._keys or not own]
        asked = {name: self.get(name) for name in names if self.key(name) in discovering}
        return [name for name, found in asked.items() if found is not None and found.state not in HOPELESS]

    async def first_lists(self) -> None:
        """Wait until `lists_may_grow` is false."""
        await self.answers(self._list_at_latest - self._gateway.clock.now())

    async def answers(self, at_most_s: float, *, own: bool = False) -> None:
        """Wait until none is `being_asked` any more."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._wake_after, max(0.0, at_most_s), tasks.cancel_scope)
            while self.being_asked(own=own):
                await self._gateway.telling.something()
            tasks.cancel_scope.cancel()

    async def _wake_after(self, seconds: float, scope: anyio.CancelScope) -> None:
        await self._gateway.clock.sleep(seconds)
        scope.cancel()
