"""The context that all connections share, and the record of a connected server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trayapp.backends.clock import Clock
from trayapp.backends.confinements import Confinements
from trayapp.backends.handshake import Peer
from trayapp.backends.launch import HttpLaunch, Keyring, no_locks
from trayapp.backends.transport import Open, Transport
from trayapp.model.offer import Offer
from trayapp.model.settings import Settings
from trayapp.wire.messages import Channel

if TYPE_CHECKING:
    from trayapp.packages.locks import Locks


async def _no_inspection(name: str, offer: Offer) -> None:
    """Skip the inspection of an offer (default)."""


async def _no_sign_in(launch: HttpLaunch) -> None:
    """Read no sign-in (default)."""


async def _no_wait() -> None:
    """Return at once: assume that there is a network route (default)."""


@dataclass(frozen=True, slots=True)
class BackendContext:
    """The settings and callbacks that all connections share.

    It is broad because connections see the gateway through nothing else.
    """

    clock: Clock
    settings: Callable[[], Settings]
    environ: Mapping[str, str]
    keyring: Keyring
    open: Open
    stderr: Callable[[str], Callable[[bytes], None]]  # key of a connection -> where its stderr goes
    hint: Callable[[str], str]  # key -> protocol revision of the last connection, "" if none
    wants_offer: Callable[[str], bool]  # key -> True if its lists should be read once connected
    capabilities: Callable[[str], Mapping[str, Any]] = lambda key: {}  # key -> its clients' capabilities
    subscribed: Callable[[str], Set[str]] = lambda key: frozenset()  # key -> URIs of subscribed resources
    input_schema: Callable[[str, str], Any] = lambda key, tool: None  # key, tool -> input schema as sent by the server
    route: Callable[[], Awaitable[None]] = _no_wait  # returns once there is a network route, or after a timeout
    sign_in: Callable[[HttpLaunch], Awaitable[None]] = _no_sign_in  # returns once the user's sign-in was read
    confinements: Confinements = field(default_factory=Confinements)
    locks: Callable[[], Locks | None] = no_locks  # built for the first server that is started
    inspect_offer: Callable[[str, Offer], Awaitable[None]] = _no_inspection  # key, offer; before observers get it


@dataclass(frozen=True, slots=True)
class Live:
    """A connected server."""

    transport: Transport
    peer: Peer
    sent_capabilities: Mapping[str, Any]  # the client capabilities sent in the handshake

    @property
    def channel(self) -> Channel:
        """Return the channel that carries requests."""
        return self.transport.channel
