"""Combine the clients of one server: what they can do for it, and which protocol revision to try first."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from trayapp.backends.connection import Connection
from trayapp.gateway.client import ClientSession
from trayapp.gateway.exposure.listings import Listings
from trayapp.wire.capabilities import lacks, united
from trayapp.wire.revisions import HANDSHAKE_VERSIONS, MODERN_VERSIONS


class ClientCapabilities:
    """Clients of every server of one gateway. `sessions`: the current ones, as they come and go."""

    def __init__(self, sessions: Collection[ClientSession], listings: Listings) -> None:
        self._sessions = sessions
        self._listings = listings

    def of_clients(self, key: str) -> dict[str, Any]:
        """Return what that server's sessions can do together."""
        return united(session.client.capabilities for session in self._sessions if session.has_server(key))

    def revision_to_try(self, key: str) -> str:
        """Return the protocol revision to try first, "" for none.

        A server of both eras gets the older revision while it has older clients: in that era it can ask them anything
        at any time. It gets the newer one once all of its clients speak it.
        """
        if not self._all_modern(key):
            return HANDSHAKE_VERSIONS[-1]
        known = self._listings.protocol_hint(key)
        return known if known in MODERN_VERSIONS else ""

    def _all_modern(self, key: str) -> bool:
        clients = [session.client for session in self._sessions if session.client.protocol and session.has_server(key)]
        return {client.modern for client in clients} == {True}

    def outgrew(self, connection: Connection) -> bool:
        """Return True if a client can do more than an older server was told, and nobody has used that server since.

        A server that was used keeps its connection: it may hold state of the client that used it.
        """
        live = connection.live
        if live is None or live.peer.modern or connection.in_flight or connection.used_since_connected:
            return False
        return lacks(live.told, self.of_clients(connection.name))
