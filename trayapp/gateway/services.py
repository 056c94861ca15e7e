"""The services that the parts of a gateway share, so that no part needs the whole gateway."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

import anyio

from trayapp.backends.clock import Clock
from trayapp.backends.confinements import Confinements
from trayapp.backends.pool import Pool
from trayapp.catalog.given_names import GivenNames
from trayapp.gateway.client import ClientSession
from trayapp.gateway.exposure.approvals import Approvals
from trayapp.gateway.exposure.listings import Listings, ListingWriter
from trayapp.gateway.exposure.served_tools import ServedTools
from trayapp.gateway.tasks import Spawn
from trayapp.history.recorder import Recorder
from trayapp.model.config import Settings

if TYPE_CHECKING:
    from trayapp.model.status import GatewayState


# backends/maintenance has already combined the list changes that a server announces within REFETCH_DELAY_S.
BROADCAST_DELAY_S = 0.02  # changes within this time are broadcast together: one list_changed, one snapshot
BROADCAST_REST = 10  # pause in multiples of a broadcast's duration, so that broadcasts take under a tenth of the time

Listener = Callable[[], None]


class ChangeFeed:
    """The feed of one gateway's changes. Runs on the gateway's event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.revision = 0  # counts the changes that are visible from outside
        self._next = anyio.Event()
        self._news = anyio.Event()
        self._listeners: list[Listener] = []

    def changed(self) -> None:
        """Record a visible change. Listeners are called soon, and only once for several changes in a short time."""
        self.revision += 1
        self._next.set()
        self._next = anyio.Event()
        self._news.set()

    async def next(self) -> None:
        """Wait for the next change."""
        await self._next.wait()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after changes, in the order of registration. Return a function that removes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def broadcast(self) -> None:
        """Call the listeners after changes. Runs until it is cancelled."""
        cost_s = 0.0
        while True:
            await self._news.wait()
            await self._clock.sleep(max(BROADCAST_DELAY_S, cost_s * BROADCAST_REST))
            self._news = anyio.Event()
            began = self._clock.now()
            for listener in list(self._listeners):
                listener()
            cost_s = self._clock.now() - began


class Services(NamedTuple):
    """The services of one gateway. `sessions`: the current sessions, in the order in which they began.

    `shared_key`: returns the key of the server that a further connection belongs to, and any other key unchanged.
    """

    clock: Clock
    state: Callable[[], GatewayState]
    settings: Callable[[], Settings]
    pool: Pool
    listings: Listings
    writer: ListingWriter
    approvals: Approvals
    served_tools: ServedTools
    given_names: GivenNames
    changes: ChangeFeed
    confinements: Confinements
    history: Recorder
    sessions: Collection[ClientSession]
    shared_key: Callable[[str], str]
    spawn: Spawn
