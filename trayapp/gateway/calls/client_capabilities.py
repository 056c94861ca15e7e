"""The clients that one server has, taken together: what they can do for it, and which revision it is met with.

Never here: what a capability means (wire/capabilities), the handshake (backends), asking clients (server_requests).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from trayapp.backends.connection import Connection
from trayapp.gateway.client import ClientSession
from trayapp.gateway.exposure.listings import Listings
from trayapp.wire.capabilities import lacks, united
from trayapp.wire.revisions import HANDSHAKE_VERSIONS, MODERN_VERSIONS


class ClientCapabilities:
    """The clients of all servers of one gateway. `sessions`: those that there are, as they come and go."""

    def __init__(self, sessions: Collection[ClientSession], listings: Listings) -> None:
        self._sessions = sessions
        self._listings = listings

    def of_clients(self, key: str) -> dict[str, Any]:
        """Return what the sessions of that server can do together."""
        return united(session.client.capabilities for session in self._sessions if session.has_server(key))

    def revision_to_try(self, key: str) -> str:
        """Return the revision to begin with, "" for none.

        A server of both eras is used by older clients the older way, in which it can ask them anything at any time; the
        newer one is for when all its clients speak it.
        """
        if not self._all_modern(key):
            return HANDSHAKE_VERSIONS[-1]
        known = self._listings.protocol_hint(key)
        return known if known in MODERN_VERSIONS else ""

    def _all_modern(self, key: str) -> bool:
        clients = [session.client for session in self._sessions if session.client.protocol and session.has_server(key)]
        return {client.modern for client in clients} == {True}

    def outgrew(self, connection: Connection) -> bool:
        """Return True if an older server was connected before a client came that can do more, and is unused since.

        One that has worked for somebody keeps its connection: it may hold what that client made there.
        """
        live = connection.live
        if live is None or live.peer.modern or connection.in_flight or connection.used_since_connected:
            return False
        return lacks(live.told, self.of_clients(connection.name))
