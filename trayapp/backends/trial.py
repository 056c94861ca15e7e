"""A single start of a server, beside the connection that clients use, to read what it offers."""

from __future__ import annotations

from typing import Any

from trayapp.backends.connecting import connected
from trayapp.backends.context import BackendContext
from trayapp.backends.listing import fetch_offer
from trayapp.model.offer import Offer
from trayapp.model.servers import ServerConfig
from trayapp.wire.messages import METHOD_NOT_FOUND, Call, Params, RpcError


class _IgnoredInbound:
    """An Inbound that ignores notifications and refuses requests."""

    async def on_request(self, method: str, params: Params, about: Call | None = None) -> dict[str, Any]:
        raise RpcError(METHOD_NOT_FOUND, "No user is there to answer")

    def on_notification(self, method: str, params: Params, about: Call | None = None) -> None:
        """Ignore the notification."""

    def input_schema(self, tool: str) -> Any:
        """Return None: a trial calls no tools."""


async def run_once(server: ServerConfig, context: BackendContext) -> Offer:
    """Start a server, return what it offers, and end it. Raises MultiMcpError."""
    async with connected(server.name, server, context, _IgnoredInbound()) as live:
        return await fetch_offer(live.channel, live.peer, {}, _ignore)


async def _ignore(offer: Offer) -> None:
    """Ignore partial lists."""
