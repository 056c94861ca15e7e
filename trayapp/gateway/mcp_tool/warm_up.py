"""Connect idle servers in the background when a call is likely, since a model has just read about their tools."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from trayapp.backends.connection import Connection
from trayapp.model.errors import ServerError
from trayapp.model.lifecycle import State

log = logging.getLogger(__name__)

AT_ONCE = 4  # a search must not start a whole catalog; other servers start with their first call


class WarmUp:
    """Background connections, shared by all sessions. A server that nobody calls is closed like any idle one."""

    def __init__(self, spawn: Callable[[Callable[[Connection], Awaitable[None]], Connection], object]) -> None:
        self._spawn = spawn
        self._under_way: set[Connection] = set()

    def warm(self, connection: Connection) -> None:
        """Connect an idle server soon. A failed one waits for its next call and its backoff."""
        if connection.state is State.IDLE and connection not in self._under_way and len(self._under_way) < AT_ONCE:
            self._under_way.add(connection)
            self._spawn(self._connect, connection)

    async def _connect(self, connection: Connection) -> None:
        try:
            await connection.ensure()
        except ServerError as error:
            log.info("Cannot connect in the background: %s", error)
        finally:
            self._under_way.discard(connection)
