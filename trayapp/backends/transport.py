"""What a connection needs of the way to its server, whatever carries it: the shape of a Transport.

Never here: how one is opened (open_transport), which server, when, how often; the handshake.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio

from trayapp.backends.http.refusal import HttpRefusal
from trayapp.backends.launch import Launch
from trayapp.model.errors import MultiMcpError
from trayapp.wire.messages import Call, Channel, Params, RpcError


class Inbound(Protocol):
    """Where messages that a server sends by itself go. A channel's answers to our requests are not among them.

    `about`: the relayed request on whose own stream the message came (Streamable HTTP); None: the transport does not
    say.
    """

    async def on_request(self, method: str, params: Params, about: Call | None = None) -> dict[str, Any]:
        """Answer a request of the server. Raises RpcError."""

    def on_notification(self, method: str, params: Params, about: Call | None = None) -> None:
        """Take a notification, without blocking."""

    def input_schema(self, tool: str) -> Any:
        """What the server said that a tool takes, None when not known: HTTP repeats some arguments in headers."""


@dataclass(frozen=True, slots=True)
class Transport:
    """An open way to a server. `gone` is set once it can carry nothing more; `obituary` then says why."""

    kind: str
    channel: Channel
    gone: anyio.Event
    obituary: Callable[[], Awaitable[str]]
    pid: int | None = None
    exit_code: Callable[[], int | None] = lambda: None
    refusal: HttpRefusal = field(default_factory=HttpRefusal)
    has_printed: Callable[[], bool] = lambda: False  # besides frames, so that its log holds something


Open = Callable[[Launch, Inbound, Callable[[bytes], None]], AbstractAsyncContextManager[Transport]]


def first_cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The exception in a task group's bundle that says most: one of ours before any other."""
    leaves: list[BaseException] = []
    waiting: list[BaseException] = [group]
    while waiting:
        error = waiting.pop(0)
        if isinstance(error, BaseExceptionGroup):
            waiting.extend(error.exceptions)
        else:
            leaves.append(error)
    ours = [leaf for leaf in leaves if isinstance(leaf, MultiMcpError | RpcError)]
    return ours[0] if ours else leaves[0]
