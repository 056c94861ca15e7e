"""What all connections share, and what a connected server is.

Never here: doing anything with them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from trayapp.backends.clock import Clock
from trayapp.backends.confinements import Confinements
from trayapp.backends.handshake import Peer
from trayapp.backends.launch import HttpLaunch, Keyring
from trayapp.backends.transport import Open, Transport
from trayapp.model.offer import Offer
from trayapp.model.settings import Settings
from trayapp.wire.messages import Channel


def _nothing(name: str) -> Mapping[str, Any]:
    """Where nobody says what clients can do, they can do nothing."""
    return {}


def _no_uris(name: str) -> Set[str]:
    """Where nobody says so, nobody wants updates."""
    return frozenset()


def _no_schema(name: str, tool: str) -> None:
    """Where nobody knows what tools take."""


async def _not_looked_over(name: str, offer: Offer) -> None:
    """Where nobody looks offers over."""


async def _no_sign_in(launch: HttpLaunch) -> None:
    """Where nobody signs in, nothing is kept."""


async def _no_wait() -> None:
    """Where nobody says what a route is, there is one."""


@dataclass(frozen=True, slots=True)
class BackendContext:
    """What all connections share."""

    clock: Clock
    settings: Callable[[], Settings]
    environ: Mapping[str, str]
    keyring: Keyring
    open: Open
    stderr: Callable[[str], Callable[[bytes], None]]  # key of a connection -> where its stderr goes
    hint: Callable[[str], str]  # key -> protocol revision of last time, "" when never met
    wants_offer: Callable[[str], bool]  # key -> whether its lists should be read once it is connected
    capabilities: Callable[[str], Mapping[str, Any]] = _nothing  # key -> what its clients can do for it
    subscribed: Callable[[str], Set[str]] = _no_uris  # key -> the resources whose updates somebody wants
    input_schema: Callable[[str, str], Any] = _no_schema  # key, tool -> its input schema as the server sent it
    route: Callable[[], Awaitable[None]] = _no_wait  # returns once there is a way into the network, or after a while
    sign_in: Callable[[HttpLaunch], Awaitable[None]] = _no_sign_in  # has read what the user keeps for that address
    confinements: Confinements = field(default_factory=Confinements)
    look_over: Callable[[str, Offer], Awaitable[None]] = _not_looked_over  # key, what it offers, before others hear


@dataclass(frozen=True, slots=True)
class Live:
    """A connected server."""

    transport: Transport
    peer: Peer
    told: Mapping[str, Any]  # the client capabilities that the handshake named

    @property
    def channel(self) -> Channel:
        """Where requests go."""
        return self.transport.channel
