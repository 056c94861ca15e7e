"""Pass servers' notifications about tasks and events on to their sessions, with the names and ids that clients use."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

import anyio

from trayapp.backends.connection import Connection
from trayapp.backends.context import Live
from trayapp.gateway.calls.consent import AskingSession
from trayapp.gateway.calls.routed_call import RoutedCall
from trayapp.gateway.extensions.results import ServerResult, TaskHandles, is_of
from trayapp.gateway.extensions.routing import named_event
from trayapp.gateway.scopes.session_view import SessionView
from trayapp.gateway.scopes.sharing import Topic
from trayapp.wire.messages import Call, Channel, Params, Reply, Request, RequestId
from trayapp.wire.revisions import SUBSCRIPTION_ID

TASK_TOLD = "notifications/tasks"  # SEP-2663: about a task that a subscriptions/listen names
OLDER_TASK_TOLD = "notifications/tasks/status"  # MCP 2025-11-25
EVENTS_TOLD = "notifications/events/"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class ExtensionSession(AskingSession, Protocol):
    """The part of a client session that extensions and the one tool use."""

    seen: SessionView
    task_handles: TaskHandles

    def present(self, server: str) -> Connection:
        """Return the connection that a call would use, without connecting it. Raises ServerNotFoundError."""

    async def connected(self, request_id: RequestId, server: str, topic: Topic | None = None) -> Connection:
        """Connect the server of a request if needed, and return the connection for the request. Raises ServerError."""

    def send_cacheable(self, request_id: RequestId, result: bytes) -> None:
        """Send a nonempty result that a client of 2026-07-28 may cache."""


class TaskListening:
    """The request that passes a client's subscriptions/listen on to one server, for that server's tasks.

    Implements wire.messages.Call.
    """

    def __init__(self, session: AskingSession, request_id: RequestId, result: ServerResult) -> None:
        self.session = session
        self._request_id = request_id
        self._result = result
        self.settled = anyio.Event()  # set when the server acknowledges the request or ends it
        self.error: Any = None

    def answered(self, reply: Reply) -> None:
        """Record the end of the request. Do not answer the client, whose request may concern other servers, too."""
        self.error = reply.message.get("error")
        self.settled.set()

    def progress(self, params: dict[str, Any]) -> None:
        """Ignore progress notifications."""

    def tell(self, params: dict[str, Any]) -> None:
        """Pass the server's report on a task to the client."""
        meta = {**(params.get("_meta") or {}), SUBSCRIPTION_ID: self._request_id}
        self.session.notify(TASK_TOLD, {**self._result.changed(params), "_meta": meta}, self._request_id)


class StreamingCall(RoutedCall):
    """A request for the events with one name, open until the client or the server ends it (SEP-3415, events/stream)."""

    __slots__ = ("exposed", "own")

    def __init__(self, session: AskingSession, request: Request, connection: Connection, exposed: str) -> None:
        super().__init__(session, request.id, request, connection)
        self.own = str((request.params or {}).get("name"))
        self.exposed = exposed  # the name that the client uses


class Streams:
    """Streams of all sessions of one gateway."""

    def __init__(self, sessions: Collection[ExtensionSession]) -> None:
        self._sessions = sessions
        self._listening: dict[tuple[Channel, int], TaskListening] = {}

    def add(self, live: Live, number: int, listening: TaskListening) -> None:
        """Record the number of the request that asks a server to report on tasks."""
        self._listening[live.channel, number] = listening

    def drop(self, live: Live, number: int) -> None:
        """Cancel the request that `add` recorded, unless it was already dropped."""
        if self._listening.pop((live.channel, number), None) is not None:
            live.channel.cancel(number, "the client no longer listens")

    def take(self, connection: Connection, method: str, params: Params, about: Call | None) -> bool:
        """Pass on a notification about a task or an event. Return False for any other notification."""
        known: dict[str, Any] = dict(params or {})
        if method in (TASK_TOLD, ACKNOWLEDGED):
            number, live = _subscription(known), connection.live
            listening = about if isinstance(about, TaskListening) else None
            if listening is None and live is not None and isinstance(number, int):
                listening = self._listening.get((live.channel, number))
            if listening is not None and method == ACKNOWLEDGED:
                listening.settled.set()
            elif listening is not None and listening.session.has_server(connection.key):
                listening.tell(known)
        elif method == OLDER_TASK_TOLD:
            self._tell_status(connection, known)
        elif method.startswith(EVENTS_TOLD):
            # Notify only the client whose events/stream request the event belongs to.
            number = _subscription(known)
            streams = [call for call in connection.open_calls if isinstance(call, StreamingCall)]
            stream = next((one for one in streams if one is about or (about is None and one.number == number)), None)
            if stream is not None and stream.session.has_server(connection.key):
                meta = {**(known.get("_meta") or {}), SUBSCRIPTION_ID: stream.request_id}
                told = named_event(known, stream.own, stream.exposed)
                stream.session.notify(method, {**told, "_meta": meta}, stream.request_id)
        else:
            return False
        return True

    def _tell_status(self, connection: Connection, params: dict[str, Any]) -> None:
        """Pass a report on a task's status to the sessions that have the task, and to no others."""
        if not isinstance(params.get("taskId"), str):
            return
        for session in self._sessions:
            if session.has_server(connection.key):
                for name in session.seen.exposure.servers:
                    handle = session.task_handles.find(name, connection, params)
                    if handle is not None and is_of(handle, name):
                        session.notify(OLDER_TASK_TOLD, {**params, "taskId": handle})


def _subscription(params: dict[str, Any]) -> Any:
    meta = params.get("_meta")
    return meta.get(SUBSCRIPTION_ID) if isinstance(meta, dict) else None
