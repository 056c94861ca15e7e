"""What calls and servers' requests need of a client's session, and the way to its client.

Never here: sessions themselves, how messages travel.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from trayapp.backends.context import Live
from trayapp.wire.messages import INVALID_PARAMS, Call, Params, Reply, Request, RequestId, RpcError

OnRequest = Callable[[Request], None]  # answered sooner or later with ClientPeer.respond
OnNotification = Callable[[str, Params], None]


class ClientPeer(Protocol):
    """The way to one client. `about`: the client's own request that a message belongs to, None = to none.

    On a stream of frames everything shares one way; over HTTP each request has its own (MCP transports).
    """

    async def run(self, on_request: OnRequest, on_notification: OnNotification) -> None:
        """Hand over all that comes, without blocking, until the client is gone."""

    def respond(self, request_id: RequestId, reply: Reply) -> None:
        """Answer a request of the client's; dropped when it is gone."""

    def send_notification(self, method: str, params: Params, about: RequestId | None = None) -> None:
        """Send the client a notification; dropped when it is gone."""

    def relay(self, method: str, params: Params, call: Call, about: RequestId | None = None) -> int:
        """Ask the client something; its answer goes to `call`. Returns an id for `cancel`."""

    def cancel(self, request_id: int, reason: str) -> None:
        """Give up what was asked with `relay`."""


@dataclass(slots=True)
class Client:
    """What a client has said of itself so far."""

    name: str = "unknown"
    protocol: str = ""
    modern: bool = False  # speaks 2026-07-28: each request carries its own envelope
    capabilities: dict[str, Any] = field(default_factory=dict)  # what it can do for servers
    log_level: str | None = None
    ready: bool = False  # has sent notifications/initialized


class Questioner(Protocol):
    """Who brings servers' questions to clients, for a call whose server asks by its answer."""

    async def answers(self, session: ClientSession, about: RequestId, question: dict[str, Any]) -> dict[str, Any]:
        """Return the members by which a retried request carries on. Raises RpcError."""

    def give_up(self, live: Live, session: ClientSession) -> None:
        """Note that a session's call was given up before its server answered it."""


class ClientSession(Protocol):
    """One client's session, as its calls and its servers' requests see it."""

    @property
    def peer(self) -> ClientPeer:
        """Return the way to its client."""

    @property
    def client(self) -> Client:
        """Return what its client said of itself."""

    @property
    def open_calls(self) -> dict[RequestId, Any]:
        """Return the calls that its client waits for, by the ids of its requests."""

    @property
    def questioner(self) -> Questioner:
        """Return who brings servers' questions to clients."""

    def notify(self, method: str, params: Params = None, about: RequestId | None = None) -> None:
        """Send the client a notification, once it said that it is ready."""

    def wants_log(self, level: Any) -> bool:
        """Return True if a log message of that level is to be passed on."""

    def has_server(self, key: str) -> bool:
        """Return True if it may use the server that runs under that key."""

    def awaited_servers(self) -> set[str]:
        """Return the keys of the servers that are being started for its requests."""

    def start(self, request_id: RequestId, work: Callable[[], Awaitable[None]]) -> None:
        """Begin work that waits, as a task that the client cancels with that request."""


def text_of(params: dict[str, Any], member: str, where: str) -> str:
    """Return `params[member]`, which must be text. Raises RpcError."""
    value = params.get(member)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"{where} needs {member}")
    return value
