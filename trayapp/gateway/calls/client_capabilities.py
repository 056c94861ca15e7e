"""Combine the clients of one server: what they can do for it, and which protocol revision to try first."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from trayapp.backends.connection import Connection
from trayapp.gateway.client import ClientSession
from trayapp.gateway.exposure.listings import Listings
from trayapp.wire.capabilities import EVERYTHING, lacks, united
from trayapp.wire.revisions import HANDSHAKE_VERSIONS, MODERN_VERSIONS


class ClientCapabilities:
    """Clients of every server of one gateway. `sessions`: the current ones, as they come and go."""

    def __init__(self, sessions: Collection[ClientSession], listings: Listings) -> None:
        self._sessions = sessions
        self._listings = listings

    def of_clients(self, key: str) -> dict[str, Any]:
        """Return what that server's sessions can do together; with no session, all that can be passed on.

        A server is often asked for its lists before its first client comes, and may list less for a weaker one.
        """
        known = [session.client for session in self._clients_of(key)]
        return united(client.capabilities for client in known) if known else dict(EVERYTHING)

    def revision_to_try(self, key: str) -> str:
        """Return the protocol revision to try first, "" for none.

        The newer era is tried first, also by a first contact without a client. A server of both eras gets the older
        revision while it has older clients: in that era it can ask them anything at any time.
        """
        known = self._listings.protocol_hint(key)
        eras = {session.client.modern for session in self._clients_of(key)}
        if False in eras or (not eras and known in HANDSHAKE_VERSIONS):
            return HANDSHAKE_VERSIONS[-1]
        return known if known in MODERN_VERSIONS else ""

    def _clients_of(self, key: str) -> list[ClientSession]:
        """Return the sessions that may use that server and whose era is known."""
        return [session for session in self._sessions if session.client.protocol and session.has_server(key)]

    def outgrew(self, connection: Connection) -> bool:
        """Return True if a client can do more than an older server was told, and nobody has used that server since.

        A server that was used keeps its connection: it may hold state of the client that used it.
        """
        live = connection.live
        if live is None or live.peer.modern or connection.in_flight or connection.used_since_connected:
            return False
        return lacks(live.told, self.of_clients(connection.name))
