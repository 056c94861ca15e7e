"""Define a client's session as the rest of the gateway sees it, and the channel to its client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from trayapp.backends.connection import Connection
from trayapp.backends.context import Live
from trayapp.history.recorder import Recorder
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.framing import Pieces
from trayapp.wire.messages import INVALID_PARAMS, Call, Params, Reply, Request, RequestId, RpcError

OnRequest = Callable[[Request], None]  # the answer follows through ClientPeer.respond
OnNotification = Callable[[str, Params], None]


class ClientPeer(Protocol):
    """A channel to one client. `about`: the id of the client's request that a message belongs to, or None.

    The shim carries all messages on one stream. Over HTTP, each request has its own response (MCP, transports).
    """

    async def run(self, on_request: OnRequest, on_notification: OnNotification) -> None:
        """Pass requests and notifications to the callbacks, which do not block, until the client is gone."""

    def respond(self, request_id: RequestId, reply: Reply) -> None:
        """Answer a request of the client. If the client is gone, drop the answer."""

    def send_notification(self, method: str, params: Params, about: RequestId | None = None) -> None:
        """Send the client a notification. If the client is gone, drop the notification."""

    def relay(self, method: str, params: Params, call: Call, about: RequestId | None = None) -> int:
        """Send the client a request. `call` gets the answer. Return an id for `cancel`."""

    def cancel(self, request_id: int, reason: str) -> None:
        """Cancel a request that `relay` sent."""


class FramePeer:
    """A channel of newline-delimited frames to one client. The transport feeds received frames to `dispatcher`."""

    def __init__(self, sink: Callable[[bytes], None], pour: Callable[[Pieces], None] | None = None) -> None:
        self.dispatcher = FrameDispatcher(sink, pour=pour)
        self.respond = self.dispatcher.respond
        self.cancel = self.dispatcher.cancel

    async def run(self, on_request: OnRequest, on_notification: OnNotification) -> None:
        async def refuse(method: str, params: Params) -> dict[str, Any]:
            raise AssertionError("the intercept takes every request")

        self.dispatcher.request_intercept = on_request
        await self.dispatcher.run(refuse, on_notification)

    def send_notification(self, method: str, params: Params, about: RequestId | None = None) -> None:
        self.dispatcher.send_notification(method, params)

    def relay(self, method: str, params: Params, call: Call, about: RequestId | None = None) -> int:
        return self.dispatcher.relay(method, params, call)


@dataclass(slots=True)
class ClientInfo:
    """The name, era and capabilities of a client, as known so far."""

    name: str = "unknown"
    protocol: str = ""
    modern: bool = False  # uses 2026-07-28: every request has an envelope
    capabilities: dict[str, Any] = field(default_factory=dict)  # as the client declared them
    log_level: str | None = None
    ready: bool = False  # may get notifications: it is modern, or has sent notifications/initialized


class Questioner(Protocol):
    """The part of ServerRequests that calls use when their servers ask questions, and when their clients give up."""

    async def answers(
        self, session: ClientSession, about: RequestId, question: dict[str, Any], key: str
    ) -> dict[str, Any]:
        """Get the answers to a question. Return the params to add when the request is sent again. Raises RpcError."""

    def is_for_user(self, session: ClientSession, question: dict[str, Any]) -> bool:
        """Return True if the client can answer no part of the question, and the user can answer all of it."""

    def give_up(self, connection: Connection, live: Live, session: ClientSession) -> None:
        """Record that a session gave up a call before the server answered it."""

    def abandon(self, call: Any) -> None:
        """End a call that waits for its client to come back."""


class ClientSession(Protocol):
    """A client session, as the rest of the gateway sees it."""

    peer: ClientPeer
    client: ClientInfo
    lasting: bool  # False: the session is a single request
    history: Recorder  # records the session's calls when they end
    open_calls: dict[RequestId, Any]  # in progress: id of the client's request -> call
    called_servers: set[str]  # keys of the servers that its requests have gone to
    apart: set[str]  # keys of servers to which the session has its own connection

    @property
    def cwd(self) -> Any:
        """Return the client's folder, or None if unknown. The value is unchecked and may have any type."""

    @property
    def project(self) -> str | None:
        """Return the folder of the session's project, or else `cwd`, or None if both are unknown."""

    @property
    def capabilities(self) -> dict[str, Any]:
        """Return the client's capabilities and, for an older client, those of a user who can answer in its place."""

    @property
    def questioner(self) -> Questioner:
        """Return the object that passes servers' questions on to clients."""

    def notify(self, method: str, params: Params = None, about: RequestId | None = None) -> None:
        """Send the client a notification. Drop it if the handshake is not complete (MCP, lifecycle)."""

    def has_server(self, key: str) -> bool:
        """Return True if the session may use the server with that key."""

    def server_key(self, name: str) -> str:
        """Return the key of the connection through which the session reaches a server."""

    def uses_another(self, connection: Connection) -> bool:
        """Return True if the session's requests go over another connection to the server, and that connection is up."""

    def is_switched_off(self, key: str, request: Request) -> bool:
        """Return True if the user, or the session's filter, has switched off the tool that a request calls."""

    def may_repeat(self, key: str, request: Request) -> bool:
        """Return True if a request may be executed twice: it calls no tool, or one declared read-only or idempotent."""

    async def connected_again(self, request_id: RequestId, request: Request, connection: Connection) -> Connection:
        """Connect, and return the connection on which to repeat a request sent on `connection`. Raises ServerError."""

    def repeat_list(self, kind: str) -> None:
        """Send list_changed for that list, unless a change of it is about to be reported anyway."""

    def awaited_servers(self) -> set[str]:
        """Return the keys of the servers that are starting for the session's requests."""

    def start(self, request_id: RequestId, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` as a task, which is cancelled if the client cancels that request.

        An error of `work` is the request's answer.
        """


def text_of(params: dict[str, Any], member: str, where: str = "the request") -> str:
    """Return `params[member]`. Raises RpcError if it is not text. `where`: names the params in the error."""
    value = params.get(member)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"{where} needs {member}")
    return value
