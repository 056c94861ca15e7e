"""The clients that one server has, taken together: what they can do for it, and by which era it is met.

Never here: what a capability means (capabilities), the handshake (backends), asking clients (bridge).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from trayapp.backends.connection import Connection
from trayapp.backends.handshake import HANDSHAKE_VERSIONS, MODERN_VERSIONS
from trayapp.gateway.capabilities import lacks, united
from trayapp.gateway.offers import Offers

if TYPE_CHECKING:
    from trayapp.gateway.frontend import Session


class Clientele:
    """Of all servers of one gateway. `sessions`: those that there are, as they come and go."""

    def __init__(self, sessions: Collection[Session], offers: Offers) -> None:
        self._sessions = sessions
        self._offers = offers

    def capabilities(self, key: str) -> dict[str, Any]:
        """What the sessions of that server can do together."""
        return united(session.capabilities for session in self._sessions if session.has_server(key))

    def hint(self, key: str) -> str:
        """With which revision to begin. A server of both eras is used by older clients the older way, in which it can
        ask them anything at any time; the newer one is for when all its clients speak it.
        """
        if not self._all_modern(key):
            return HANDSHAKE_VERSIONS[-1]
        known = self._offers.protocol_hint(key)
        return known if known in MODERN_VERSIONS else ""

    def _all_modern(self, key: str) -> bool:
        eras = {session.modern for session in self._sessions if session.protocol and session.has_server(key)}
        return eras == {True}

    def outgrew(self, connection: Connection) -> bool:
        """Whether an older server was connected before a client came that can do more for it, and unused since.

        One that has worked for somebody keeps its connection: it may hold what that client made there.
        """
        live = connection.live
        if live is None or live.peer.modern or connection.in_flight or connection.used_since_connected:
            return False
        return lacks(live.told, self.capabilities(connection.name))
