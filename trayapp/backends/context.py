"""What connections share: their context, the interface to a transport, and the record of a connected server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Set
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import anyio

from trayapp.backends.clock import Clock
from trayapp.backends.confinements import Confinements
from trayapp.backends.handshake import Peer
from trayapp.backends.http.refusal import HttpRefusal
from trayapp.backends.launch import HttpLaunch, Keyring, Launch
from trayapp.model.config import Settings
from trayapp.model.errors import MultiMcpError
from trayapp.model.offer import Offer
from trayapp.wire.messages import Call, Channel, Params, RpcError

if TYPE_CHECKING:
    from trayapp.packages.locks import Locks


class Inbound(Protocol):
    """Receives requests and notifications from a server. Answers to our requests go through the channel.

    `about` is the relayed request on whose own stream the message arrived (Streamable HTTP), or None if the transport
    cannot identify the request.
    """

    async def on_request(self, method: str, params: Params, about: Call | None = None) -> dict[str, Any]:
        """Return the result of a request from the server. Raises RpcError."""

    def on_notification(self, method: str, params: Params, about: Call | None = None) -> None:
        """Handle a notification from the server without blocking."""

    def input_schema(self, tool: str) -> Any:
        """Return a tool's input schema, or None if unknown. HTTP needs it: some arguments are repeated in headers."""


@dataclass(frozen=True, slots=True)
class Transport:
    """An open transport to a server. `gone` is set when it can carry no more frames; `end_reason` then returns why."""

    kind: str
    channel: Channel
    gone: anyio.Event
    end_reason: Callable[[], Awaitable[str]]
    pid: int | None = None
    refusal: HttpRefusal = field(default_factory=HttpRefusal)
    has_printed: Callable[[], bool] = lambda: False  # True if the server printed anything but frames


Open = Callable[[Launch, Inbound, Callable[[bytes], None]], AbstractAsyncContextManager[Transport]]


def first_cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the most informative exception of a group: the first of our own classes, or else the very first one."""
    found: BaseException = group.subgroup((MultiMcpError, RpcError)) or group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


async def skip(*facts: object) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class BackendContext:
    """The settings and callbacks that all connections share.

    It is broad because connections reach the gateway only through it.
    """

    clock: Clock
    settings: Callable[[], Settings]
    environ: Mapping[str, str]
    keyring: Keyring
    open: Open
    stderr: Callable[[str], Callable[[bytes], None]]  # connection key -> receiver of its stderr
    hint: Callable[[str], str]  # key -> protocol revision of the last connection, "" if none
    wants_offer: Callable[[str], bool]  # key -> True if its lists should be read once connected
    capabilities: Callable[[str], Mapping[str, Any]] = lambda key: {}  # key -> its clients' capabilities
    subscribed: Callable[[str], Set[str]] = lambda key: frozenset()  # key -> URIs of subscribed resources
    input_schema: Callable[[str, str], Any] = lambda key, tool: None  # key, tool -> input schema as sent by the server
    route: Callable[[], Awaitable[None]] = skip  # returns once there is a network route, or after a timeout
    sign_in: Callable[[HttpLaunch], Awaitable[None]] = skip  # returns once the user's sign-in has been read
    confinements: Confinements = field(default_factory=Confinements)
    locks: Callable[[], Locks | None] = lambda: None  # built when the first server is started
    inspect_offer: Callable[[str, Offer], Awaitable[None]] = skip  # key, offer; called before observers get the offer


class Live(NamedTuple):
    """A connected server."""

    transport: Transport
    peer: Peer
    sent_capabilities: Mapping[str, Any]  # the client capabilities sent in the handshake

    @property
    def channel(self) -> Channel:
        return self.transport.channel
