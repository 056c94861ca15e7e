"""Get the user's consent to one call. Until the user has answered, send progress to the call's client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Protocol

from trayapp.backends.connection import Connection
from trayapp.gateway.asks import BEAT_S, Asker, Asks, Ending, NotAllowedError, Subject, refusal, shown_arguments
from trayapp.gateway.client import ClientSession
from trayapp.wire.messages import Request, RequestId, progress_token

# Servers count their own progress from 0 or 1. Ours stays far below 1, since progress must increase (MCP progress).
PROGRESS_STEP = 1e-6

GATED = frozenset(("tools/call", "resources/read"))  # methods of the requests that may need the user's consent


class AskingSession(ClientSession, Protocol):
    """A client session whose calls may need the user's consent."""

    @property
    def asks(self) -> Asks:
        """Return the asks of the gateway."""

    def subject_of(self, connection: Connection, request: Request, *, listed: bool) -> Subject | None:
        """Return the subject of the consent to a request, or None if it needs none. `listed`: as for asks_first."""


Answered = Callable[[NotAllowedError | None], None]  # gets the error for the client, or None if the user consented


class CallConsent:
    """An ask about one call of a client session. `answered` is called once, unless the ask is withdrawn.

    Raises NotAllowedError if nobody can be asked, or too many asks are open.
    """

    def __init__(
        self, session: AskingSession, request_id: RequestId, request: Request, subject: Subject, answered: Answered
    ) -> None:
        self._session = session
        self._request_id = request_id
        self._subject = subject
        self._answered = answered
        self._token = progress_token(request.params)
        self._beats = 0
        self._beat: asyncio.TimerHandle | None = None
        asker = Asker(session.client.name, session.project, session if session.lasting else None)
        arguments = shown_arguments(call_arguments(request))
        self._ask = session.asks.open_call(asker, subject, arguments, self._end)
        if self._token is not None:
            self._send_progress()

    def withdraw(self, why: str) -> None:
        """Withdraw the ask because its call has ended."""
        self._stop()
        self._session.asks.withdraw(self._ask, why)

    def _end(self, ending: Ending, content: dict[str, Any] | None) -> None:
        self._stop()
        self._answered(refusal(self._ask, self._subject, ending))

    def _send_progress(self) -> None:
        """Send progress to the client now and every BEAT_S, since some clients give up if they receive nothing."""
        self._beats += 1
        message = f"Waiting for the user's approval: {self._subject.server}/{self._subject.tool}"
        params = {"progressToken": self._token, "progress": self._beats * PROGRESS_STEP, "message": message}
        self._session.peer.send_notification("notifications/progress", params, self._request_id)
        self._beat = asyncio.get_running_loop().call_later(BEAT_S, self._send_progress)

    def _stop(self) -> None:
        if self._beat is not None:
            self._beat.cancel()


class CommandConsent:
    """The consent to a call of the command line or the panel. `note` is called with a line for the waiting user."""

    def __init__(self, asks: Asks, request: Request, project: str | None, note: Callable[[str], None]) -> None:
        self._asks = asks
        self._arguments = shown_arguments(call_arguments(request))
        self._project = project
        self._note = note

    def is_allowed(self, subject: Subject, allowed: Any, *, here: bool) -> bool:
        """Return True if the call may be sent. `allowed`: the hash of the definition that was just allowed.

        `here`: the caller asks the user itself, so the user is present. Raises NotAllowedError if the tool was removed.
        """
        if not subject.callable:
            raise NotAllowedError(subject, "ask_gone")
        granted = self._asks.is_granted(None, subject) if here else self._asks.allows(None, subject)
        return granted or subject.hash == allowed

    def row(self, subject: Subject) -> dict[str, Any]:
        """Return the ask as JSON, for a caller that asks the user itself."""
        return {
            "server": subject.server,
            "tool": subject.tool,
            "class": subject.tool_class,
            "basis": subject.basis,
            "hash": subject.hash,
            "arguments": list(map(asdict, self._arguments)),
        }

    async def wait_for(self, subject: Subject) -> str:
        """Ask the user, and return the hash of the definition that was allowed.

        Raises NotAllowedError if the user refuses, does not answer in time or cannot be asked.
        """
        ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        asker = Asker("multi-mcp call", self._project)
        ask = self._asks.open_call(asker, subject, self._arguments, lambda ending, _content: ended.set_result(ending))
        self._note(f"Waiting for your answer ({ask.id}): {subject.server}/{subject.tool}")
        try:
            ending = await ended
        finally:
            self._asks.withdraw(ask, "its command ended")
        if (error := refusal(ask, subject, ending)) is not None:
            raise error
        return subject.hash


def call_arguments(request: Request) -> Any:
    """Return the part of a request that the user is shown: a tool's arguments, or the URI of a resource."""
    params = request.params or {}
    return params.get("arguments") if request.method == "tools/call" else {"uri": params.get("uri")}
