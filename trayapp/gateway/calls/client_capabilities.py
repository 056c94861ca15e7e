"""Combine the capabilities of a connection's clients, and choose the protocol revision to try first."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple
from weakref import WeakValueDictionary, ref

from trayapp.gateway.client import ClientSession
from trayapp.gateway.exposure.listings import Listings
from trayapp.wire.capabilities import EVERYTHING, ClientKind, capabilities_of, unite_members, with_user
from trayapp.wire.revisions import HANDSHAKE_VERSIONS, MODERN_VERSIONS


class Purpose(NamedTuple):
    """The purpose of a connection. `server`: the key of its server.

    `newer`: True for the newer era, False for the older one, None for either. Unless `alone` or `requests` is set, all
    sessions of that era may share the connection.
    """

    server: str
    newer: bool | None = None
    holder: ref[ClientSession] | None = None  # the only session that it serves
    alone: bool = False  # serves one session at a time, or none at present
    single: bool = False  # `alone`, for sessions that are single requests
    kind: ClientKind | None = None  # serves no session: only reads the lists that clients of that kind get
    requests: bool = False  # shared by sessions that are single requests, from clients that can answer questions

    @property
    def session(self) -> ClientSession | None:
        """Return the only session that the connection serves, or None if there is none or it has ended."""
        return self.holder() if self.holder is not None else None


class ClientCapabilities:
    """The client capabilities to announce on each connection of one gateway. `sessions`: its current ones, live."""

    def __init__(
        self,
        sessions: Collection[ClientSession],
        listings: Listings,
        purpose: Callable[[str], Purpose],
        user_is_there: Callable[[], bool],
    ) -> None:
        self._sessions = sessions
        self._listings = listings
        self._purpose = purpose
        self._user_is_there = user_is_there
        self._wanted: WeakValueDictionary[str, ClientSession] = WeakValueDictionary()
        self._tried_older: dict[str, bool] = {}

    def wanted_by(self, session: ClientSession, key: str) -> None:
        """Record which session needs a connection that is about to be made."""
        self._wanted[key] = session

    def of_clients(self, key: str) -> dict[str, Any]:
        """Return the client capabilities to announce on a new connection.

        - A connection that no session needs, as when a server's lists are first read, announces everything.
        - A connection for one kind of client announces the capabilities of that kind.
        - A connection for one session announces the session's capabilities, or everything if the session has ended.
        - A connection for single requests announces those of the client whose request needs it now.
        - A shared connection announces those of all its clients, and of the user while the user can be asked. It leaves
          out those that the server is known to use: sessions that have them get their own connections.
        """
        purpose = self._purpose(key)
        if purpose.kind is not None:
            return capabilities_of(purpose.kind)
        if purpose.alone:
            return dict(purpose.session.capabilities) if purpose.session is not None else dict(EVERYTHING)
        wanted = self._wanted.get(key)
        if wanted is None:
            return dict(EVERYTHING)
        if purpose.requests:
            return dict(wanted.client.capabilities)
        known = [session.client for session in self._sessions if session.client.protocol and session.has_server(key)]
        asks = self._listings.traits(purpose.server).asks
        together = unite_members(client.capabilities for client in known)
        together = with_user(together) if self._user_is_there() else together
        return {name: able for name, able in together.items() if name not in asks}

    def revision_to_try(self, key: str) -> str:
        """Return the protocol revision to try first on a new connection, or "" for no preference.

        The era is that of the connection's purpose or of the session that needs the connection, or else the newer one.
        If the server is known not to support that era, the other one is tried.
        """
        purpose = self._purpose(key)
        traits = self._listings.traits(purpose.server)
        session = purpose.session if purpose.alone else self._wanted.get(key)
        newer = purpose.newer if purpose.newer is not None else session is None or session.client.modern
        older = traits.newer is False if newer else traits.older is not False
        self._tried_older[key] = older
        if older:
            return HANDSHAKE_VERSIONS[-1]
        known = self._listings.protocol_hint(purpose.server)
        return known if known in MODERN_VERSIONS else ""

    def tried_older(self, key: str) -> bool:
        """Return True if `revision_to_try` last returned a revision of the older era for that connection."""
        return self._tried_older.get(key, False)

    def made(self, key: str) -> None:
        """Forget which session needed a connection, once the connection was made or has failed."""
        self._wanted.pop(key, None)
