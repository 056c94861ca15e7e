"""What the parts of one gateway share: given to each of them, so that nobody is handed the whole gateway.

Never here: doing anything with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol

from trayapp.backends.clock import Clock
from trayapp.backends.pool import Pool
from trayapp.catalog.given_names import GivenNames
from trayapp.gateway.changes import Changes
from trayapp.gateway.client import ClientSession
from trayapp.gateway.exposure.approvals import Approvals
from trayapp.gateway.exposure.listing_writer import ListingWriter
from trayapp.gateway.exposure.listings import Listings
from trayapp.gateway.exposure.tools import ServedTools
from trayapp.model.settings import Settings
from trayapp.model.status import GatewayState


class Spawn(Protocol):
    """Starts something that ends by itself; its failure is logged."""

    def __call__(self, work: Callable[..., Awaitable[Any]], *args: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Services:
    """`state`, `settings`: of the gateway and of the user's own configuration, as they are now.

    `sessions`: those that there are, in the order in which they came. `shared_key`: of the server that a session has
    for itself, the key under which all share it; of others their own.
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
    changes: Changes
    sessions: Collection[ClientSession]
    shared_key: Callable[[str], str]
    spawn: Spawn
