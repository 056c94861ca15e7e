"""Sessions of clients over HTTP, each in a task of its own. Never here: how their messages come."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio.abc

from trayapp.gateway.client import ClientPeer
from trayapp.gateway.sessions.session import Session

if TYPE_CHECKING:
    from trayapp.gateway.gateway import Gateway

log = logging.getLogger(__name__)


class Arrivals:
    """Of one port, while `tasks` run."""

    def __init__(self, gateway: Gateway, tasks: anyio.abc.TaskGroup) -> None:
        self.gateway = gateway
        self._tasks = tasks

    def begin(self, peer: ClientPeer, options: dict[str, Any], *, lasting: bool = True) -> None:
        """A session for who comes by `peer`, with the options of its URL (see Session)."""
        self._tasks.start_soon(self._serve, self.gateway.new_session(peer, options, "http", lasting=lasting))

    async def _serve(self, session: Session) -> None:
        """The boundary at which one session's failure stops."""
        try:
            await self.gateway.serve(session)
        except Exception:
            log.exception("A session failed in a way that we do not know")
