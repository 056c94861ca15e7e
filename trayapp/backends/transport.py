"""The interface between a connection and its transport.

Transports are opened in `connect`.
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
    """Receives requests and notifications from a server. Answers to our requests go through the channel.

    `about` is the relayed request on whose own stream the message came (Streamable HTTP). It is None if the transport
    does not know it.
    """

    async def on_request(self, method: str, params: Params, about: Call | None = None) -> dict[str, Any]:
        """Answer a request from the server. Raises RpcError."""

    def on_notification(self, method: str, params: Params, about: Call | None = None) -> None:
        """Handle a notification without blocking."""

    def input_schema(self, tool: str) -> Any:
        """Return a tool's input schema, or None if unknown. HTTP needs it: some arguments are repeated in headers."""


@dataclass(frozen=True, slots=True)
class Transport:
    """An open transport to a server. `gone` is set when it can carry nothing more; `end_reason` then returns why."""

    kind: str
    channel: Channel
    gone: anyio.Event
    end_reason: Callable[[], Awaitable[str]]
    pid: int | None = None
    exit_code: Callable[[], int | None] = lambda: None
    refusal: HttpRefusal = field(default_factory=HttpRefusal)
    has_printed: Callable[[], bool] = lambda: False  # True if it printed anything but frames


Open = Callable[[Launch, Inbound, Callable[[bytes], None]], AbstractAsyncContextManager[Transport]]


def first_cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the most telling exception of a group: the first of our own classes, else the first of all."""
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
