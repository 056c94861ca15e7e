"""Define the services that parts of a gateway share, so that none of them needs the whole gateway."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import anyio

from trayapp.backends.clock import Clock
from trayapp.backends.confinements import Confinements
from trayapp.backends.pool import Pool
from trayapp.catalog.given_names import GivenNames
from trayapp.gateway.change_feed import ChangeFeed
from trayapp.gateway.client import ClientSession
from trayapp.gateway.exposure.approvals import Approvals
from trayapp.gateway.exposure.listings import Listings, ListingWriter
from trayapp.gateway.exposure.served_tools import ServedTools
from trayapp.history.recorder import Recorder
from trayapp.model.config import Settings

if TYPE_CHECKING:
    from trayapp.model.status import GatewayState


class Spawn(Protocol):
    """A function that starts a task. The task ends by itself, and its failure is logged."""

    def __call__(self, work: Callable[..., Awaitable[Any]], *args: Any) -> None: ...


async def first_of(*waits: Callable[[], Awaitable[object]]) -> None:
    """Wait until one of `waits` ends, and cancel the others."""

    async def wait_for(one: Callable[[], Awaitable[object]]) -> None:
        await one()
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for one in waits:
            tasks.start_soon(wait_for, one)


class Services(NamedTuple):
    """Services of one gateway. `state`, `settings`: return the gateway's current state and the user's settings.

    `sessions`: the current sessions, in the order in which they began. `shared_key`: returns the server's key for the
    key of a further connection, and any other key unchanged.
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
