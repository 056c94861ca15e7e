"""What servers tell by themselves, brought to the sessions it concerns; and how much log each server is asked for.

Never here: answers, questions, what changes in the catalog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trayapp.backends.connection import Connection
from trayapp.backends.context import Live
from trayapp.gateway.calls import RoutedCall, Unheard
from trayapp.gateway.frontend import Session
from trayapp.gateway.introductions import LEVELS, at_least
from trayapp.gateway.subscriptions import UPDATED
from trayapp.wire.messages import CANCELLED, PROGRESS, Call, Params

if TYPE_CHECKING:
    from trayapp.gateway.core import Gateway

LOG = "notifications/message"
# About one request, which ends at the connection: what comes too late for it means nothing to any session, whose own
# tokens and ids may be the same numbers.
OF_ONE_REQUEST = frozenset({PROGRESS, CANCELLED})


class News:
    """From servers to sessions."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._asked: dict[str, tuple[Live, int]] = {}  # by server: which connection was asked for which level

    def notified(self, connection: Connection, method: str, params: Params, about: Call | None = None) -> None:
        """Pass a notification to the session of the call `about`, where the transport tells it.

        Else to the sessions whose calls are under way there; when there is none, to all that have the server.
        """
        if method in OF_ONE_REQUEST:
            return
        if method == UPDATED:
            self._gateway.subscriptions.updated(connection, params)
            return
        busy = self._busy(connection)
        if isinstance(about, RoutedCall):
            if not about.is_under_way or about.parked:
                return
            busy = {about.session: about}
        if method == LOG:
            self._log(connection, params, busy)
            return
        if busy:
            for session, call in busy.items():
                session.notify(method, params, call.request_id)
            return
        for session in self._gateway.sessions:
            if session.has_server(connection.name):
                session.notify(method, params)

    def _log(self, connection: Connection, params: Params, busy: dict[Session, RoutedCall]) -> None:
        level = (params or {}).get("level")
        if busy:
            for session, call in busy.items():
                if wants(session, call, level):
                    session.notify(LOG, params, call.request_id)
            return
        for session in self._gateway.sessions:
            if not session.modern and session.has_server(connection.name) and session.wants_log(level):
                session.notify(LOG, params)  # a client of 2026-07-28 hears logs with its own requests only

    def _busy(self, connection: Connection) -> dict[Session, RoutedCall]:
        """The sessions with calls under way there, each with its newest call."""
        return {
            session: call
            for session in self._gateway.sessions
            for call in session.open_calls.values()
            if call.connection is connection
        }

    # -- levels --------------------------------------------------------------------------------------------------

    def set_levels(self) -> None:
        """Tell every connected server the lowest level that a session asked for."""
        for connection in self._gateway.pool:
            self.set_level(connection)

    def set_level(self, connection: Connection, wanted: str | None = None) -> None:
        """Tell an older server the lowest level that sessions, or a request under way, asked for; newer ones hear it
        with each request."""
        live = connection.live
        levels = {LEVELS.index(level) for level in self._levels(connection, wanted) if level in LEVELS}
        if not levels or live is None or live.peer.modern or "logging" not in live.peer.capabilities:
            return
        lowest = min(levels)
        if self._asked.get(connection.name) != (live, lowest):
            self._asked[connection.name] = (live, lowest)
            live.channel.relay("logging/setLevel", {"level": LEVELS[lowest]}, Unheard())

    def _levels(self, connection: Connection, wanted: str | None) -> set[str]:
        of_calls = {call.log_level for call in self._busy(connection).values()}
        of_sessions = {s.log_level for s in self._gateway.sessions if s.log_level and s.has_server(connection.name)}
        return {level for level in (wanted, *of_calls, *of_sessions) if isinstance(level, str)}


def wants(session: Session, call: RoutedCall, level: Any) -> bool:
    """Whether a log message belongs to a call's client, which chooses a level once (older) or with each request."""
    if session.modern:
        return call.log_level is not None and at_least(level, call.log_level)
    return session.wants_log(level)
