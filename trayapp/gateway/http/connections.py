"""One TCP connection to the HTTP port: it identifies itself in time, and as this user's, or it ends.

Never here: what a request must carry, routes.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from trayapp.wire.loopback import comes_from_another_user
from trayapp.wire.pending_connections import PendingConnections

CONNECTION = "multi_mcp.connection"  # in the state of an ASGI scope


class HttpConnection(H11Protocol):
    """Uvicorn's, among the pending ones until a request of its was let in."""

    def __init__(self, pending: PendingConnections, *, app_state: dict[str, Any], **more: Any) -> None:
        super().__init__(app_state={**app_state, CONNECTION: self}, **more)
        self._pending = pending
        self._is_ours: bool | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio.Protocol."""
        super().connection_made(transport)
        self._pending.add(self, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._pending.discard(self)
        super().connection_lost(exc)

    def let_in(self) -> bool:
        """Note that a request brought what it must; False if the connection is another user's all the same."""
        if self._is_ours is None:
            here, there = self.server, self.client
            known = here is not None and here[1] is not None and there is not None
            self._is_ours = not (known and comes_from_another_user((here[0], here[1]), there))  # type: ignore[index, arg-type]
            if self._is_ours:
                self._pending.discard(self)
        return self._is_ours
