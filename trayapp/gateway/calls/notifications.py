"""Pass servers' notifications on to sessions and clients' notifications on to servers. Set servers' log levels."""

from __future__ import annotations

from typing import Any

from trayapp.backends.connection import Connection
from trayapp.backends.context import Live
from trayapp.gateway.calls.routed_call import IgnoredCall, RoutedCall, routed_calls
from trayapp.gateway.client import ClientSession
from trayapp.gateway.services import Services
from trayapp.wire.messages import CANCELLED, PROGRESS, Call, Params
from trayapp.wire.revisions import has_envelope

LOG = "notifications/message"
LEVELS = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)  # RFC 5424, as in MCP logging
# Notifications about one request. The connection handles them. One that comes too late reaches no session: a session
# may use the same token or id for a request of its own.
OF_ONE_REQUEST = frozenset({PROGRESS, CANCELLED})
OLDER_ONLY = frozenset({"notifications/roots/list_changed"})  # MCP up to 2025-11-25


class Notifications:
    """Notifications from servers to sessions, and from clients to servers."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._asked: dict[str, tuple[Live, int]] = {}  # server -> connection whose level was set, index of the level

    def pass_on(self, connection: Connection, method: str, params: Params, about: Call | None = None) -> None:
        """Pass a server's notification on to sessions.

        If the transport names the notification's call (`about`), the session of that call gets the notification.
        Otherwise, the sessions with calls in progress on the connection get it or, if there are none, those that have
        called the server. It is dropped:

        - if its method is in OF_ONE_REQUEST, or if it is about a call that is over or parked
        - for a session that may no longer use the server, or the tool of its call
        - for a session that did not request log messages of its level
        - for a session without calls in progress, if it uses another connection to the same URL: the server may repeat
          the notification there
        - if it is a log message while calls of several sessions are in progress: it may quote one of the calls
        """
        if method in OF_ONE_REQUEST:
            return
        busy = _busy(connection)
        if isinstance(about, RoutedCall):
            if not about.is_under_way or about.parked:
                return
            busy = {about.session: about}
        if method == LOG and len(busy) > 1:
            return
        key = connection.key
        level = (params or {}).get("level")
        for session, call in busy.items():
            is_allowed = session.has_server(key) and not session.is_switched_off(key, call.request)
            if is_allowed and (method != LOG or _wants(session, call, level)):
                session.notify(method, params, call.request_id)
        if busy:
            return
        at_address = connection.server.url is not None  # the server may repeat a notification on all its connections
        for session in [s for s in self._services.sessions if key in s.called_servers and s.has_server(key)]:
            if at_address and session.uses_another(connection):
                continue
            # A client of 2026-07-28 gets log messages only with its own requests.
            if method != LOG or (not session.client.modern and _at_least(level, session.client.log_level)):
                session.notify(method, params)

    def lists_read(self, connection: Connection) -> None:
        """Pass on a server's list_changed notifications after its lists were read again, even if no list changed.

        The notifications go to sessions of newer clients, which subscribe to them, and to sessions that had a call in
        progress when the notifications arrived.
        """
        announced, connection.announced = connection.announced, {}
        for method, calls in announced.items():
            calling = {call.session for call in calls if isinstance(call, RoutedCall)}
            for session in list(self._services.sessions):
                if (session.client.modern or session in calling) and session.has_server(connection.key):
                    session.repeat_list(method.split("/")[1])

    def tell_servers(self, session: ClientSession, method: str, params: Params) -> None:
        """Pass a client's notification to its session's connected servers whose era has that notification."""
        for connection in self._services.pool:
            live = connection.live
            if live is None or not session.has_server(connection.key) or (live.peer.modern and method in OLDER_ONLY):
                continue
            told = live.peer.stamped(params, session.client.capabilities) if has_envelope(params) else params
            live.channel.send_notification(method, told)

    def set_level(self, connection: Connection, wanted: str | None = None) -> None:
        """Set an older server's log level to the lowest one that any session or request needs.

        The requests are those in progress and the next one, which needs the level `wanted`. Newer servers get the level
        with each request.
        """
        live = connection.live
        of_calls = {call.log_level for call in _busy(connection).values()}
        sessions = [session for session in self._services.sessions if session.client.log_level]
        of_sessions = {session.client.log_level for session in sessions if session.has_server(connection.key)}
        named = (level for level in (wanted, *of_calls, *of_sessions) if isinstance(level, str))
        levels = {LEVELS.index(level) for level in named if level in LEVELS}
        if not levels or live is None or live.peer.modern or "logging" not in live.peer.capabilities:
            return
        lowest = min(levels)
        if self._asked.get(connection.key) != (live, lowest):
            self._asked[connection.key] = (live, lowest)
            live.channel.relay("logging/setLevel", {"level": LEVELS[lowest]}, IgnoredCall())


def _busy(connection: Connection) -> dict[ClientSession, RoutedCall]:
    """Return the sessions with calls in progress on a connection, each with its newest call. Ignore parked calls."""
    return {call.session: call for call in routed_calls(connection) if not call.parked}


def _wants(session: ClientSession, call: RoutedCall, level: Any) -> bool:
    """Return True if the client requested messages of that level: newer clients in each request, older ones once."""
    if session.client.modern:
        return call.log_level is not None and _at_least(level, call.log_level)
    return _at_least(level, session.client.log_level)


def _at_least(level: Any, wanted: str | None) -> bool:
    """Return True if `level` is at least `wanted`, or if one of them is not in LEVELS."""
    if wanted not in LEVELS or level not in LEVELS:
        return True
    return LEVELS.index(level) >= LEVELS.index(wanted)
