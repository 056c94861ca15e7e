"""Questions of servers to clients (sampling, elicitation, roots), across both protocol eras.

An older server asks by a request, a 2026-07-28 one by an answer `input_required`; the same two ways lead to clients.
Which client is asked: the one whose call is under way on that connection. Never here: what the questions mean.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from trayapp.backends.connection import Connection
from trayapp.gateway.capabilities import ELICITATION, QUESTIONS, ROOTS, can_answer
from trayapp.gateway.eras import INPUT_REQUIRED
from trayapp.wire.frames import Awaited
from trayapp.wire.messages import INVALID_PARAMS, METHOD_NOT_FOUND, Params, Reply, RequestId, RpcError

if TYPE_CHECKING:
    from trayapp.gateway.calls import RoutedCall
    from trayapp.gateway.core import Gateway
    from trayapp.gateway.frontend import Session

log = logging.getLogger(__name__)

STATE_PREFIX = "multi-mcp:"  # of the request states that are ours, not a server's
PATIENCE_S = 600.0  # a person may take a while to answer; a client that went away never does
MAX_ROUNDS = 10  # of questions in one call, as the SDKs have it
STATE_ONLY_PAUSE_S = 0.1  # a server that wants to be asked again, and has no question, gets this long


class Bridge:
    """All questions under way."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._parked: dict[str, RoutedCall] = {}  # by request state: calls whose client was asked by an answer

    # -- a server asks -------------------------------------------------------------------------------------------

    async def asked(self, connection: Connection, method: str, params: Params) -> dict[str, Any]:
        """A request of an older server's; the client's answer. Raises RpcError."""
        while True:
            try:
                return await self._asked(connection, method, params)
            except _AskElsewhere:
                continue

    async def _asked(self, connection: Connection, method: str, params: Params) -> dict[str, Any]:
        able = [call for call in self._under_way(connection) if can_answer(call.session.capabilities, method, params)]
        if able:
            call = able[0]
            if len({one.session for one in able}) > 1:
                log.info("%s asks %s during calls of several clients: %s is asked, whose call is the oldest",
                         connection.name, method, call.session.client)  # fmt: skip
            if call.session.modern and method in QUESTIONS:
                return await call.questions.ask(method, params)
            return await self.ask(call.session, method, params, call.request_id)
        return await self.ask(self._without_call(connection, method, params), method, params)

    def _under_way(self, connection: Connection) -> list[RoutedCall]:
        """Calls on that connection, the oldest first; those that wait for their client to come back are the last
        resort: it may never do."""
        attached = (call for session in self._gateway.sessions for call in session.open_calls.values())
        calls = {*attached, *self._parked.values()}
        return sorted(
            (call for call in calls if call.connection is connection), key=lambda call: (call.parked, call.serial)
        )

    def _without_call(self, connection: Connection, method: str, params: Params) -> Session:
        """Whom to ask when no call is under way: while a server starts, whoever waits for it; else the newest client.

        Not one that is asked by answers: it has no request open that could be answered.
        """
        sessions = [
            session
            for session in self._gateway.sessions
            if not session.modern and session.ready and can_answer(session.capabilities, method, params)
            if session.may_be_asked_by(connection.name)
        ]
        waiting = [session for session in sessions if connection.name in session.awaited_servers()]
        if not sessions:
            raise RpcError(METHOD_NOT_FOUND, f"No client is connected that can answer {method}"[:200])
        return waiting[0] if waiting else sessions[-1]

    async def ask(
        self, session: Session, method: str, params: Params, about: RequestId | None = None
    ) -> dict[str, Any]:
        """Ask a client by a request. Raises RpcError: its refusal, or that it went away."""
        waiting = Awaited()
        number = session.peer.relay(method, params, waiting, about)
        try:
            reply = await waiting.future
        finally:
            if not waiting.future.done() or waiting.future.cancelled():
                session.peer.cancel(number, "no longer wanted")
        return reply.result()

    async def answers(self, session: Session, about: RequestId, question: dict[str, Any]) -> dict[str, Any]:
        """The members by which a retried request carries on (MCP 2026-07-28, multi round-trip requests).

        `question`: the `input_required` result. Raises RpcError.
        """
        asked, state = question.get("inputRequests"), question.get("requestState")
        again: dict[str, Any] = {} if state is None else {"requestState": state}
        if isinstance(asked, dict) and asked:
            again["inputResponses"] = await self._ask_all(session, asked, about)
        else:
            await asyncio.sleep(STATE_ONLY_PAUSE_S)
        return again

    async def _ask_all(
        self, session: Session, questions: dict[str, Any], about: RequestId | None
    ) -> dict[str, dict[str, Any]]:
        """Ask an older client all of them at the same time."""
        asking = {key: self._old_question(session, question, about) for key, question in questions.items()}
        tasks = [asyncio.ensure_future(one) for one in asking.values()]
        try:
            return dict(zip(asking, await asyncio.gather(*tasks), strict=True))
        finally:
            for task in tasks:
                task.cancel()

    def _old_question(self, session: Session, question: Any, about: RequestId | None) -> Awaitable[dict[str, Any]]:
        method = question.get("method") if isinstance(question, dict) else None
        params = question.get("params") if isinstance(question, dict) else None
        if method not in QUESTIONS or not can_answer(session.capabilities, method, params):
            return _refused(RpcError(INVALID_PARAMS, f"The client cannot answer {method}"[:200]))
        if method == ELICITATION and isinstance(params, dict) and params.get("mode") == "url":
            params = {"elicitationId": secrets.token_hex(8), **params}  # older revisions give each an id
        return self.ask(session, method, params or None, about)

    # -- calls that wait for their client's answer to a question -------------------------------------------------

    def park(self, call: RoutedCall) -> str:
        """Keep a call until its client comes back; the request state to come back with."""
        state = STATE_PREFIX + secrets.token_urlsafe(24)
        self._parked[state] = call
        asyncio.get_running_loop().call_later(PATIENCE_S, self._give_up, state)
        return state

    def resume(self, session: Session, request_id: RequestId, params: Any) -> bool:
        """Whether a request carries on a parked call; if so it does. Raises RpcError for one that is gone."""
        state = params.get("requestState") if isinstance(params, dict) else None
        if not isinstance(state, str) or not state.startswith(STATE_PREFIX):
            return False
        call = self._parked.pop(state, None)
        if call is None:
            raise RpcError(INVALID_PARAMS, "Invalid or expired requestState", {"reason": "invalid_request_state"})
        call.questions.resume(session, request_id, params.get("inputResponses"))
        return True

    def drop(self, session: Session) -> None:
        """A client that came by one lasting connection is gone: nobody will carry on its calls."""
        for state in [state for state, call in self._parked.items() if call.session is session]:
            self._give_up(state)

    def _give_up(self, state: str) -> None:
        call = self._parked.pop(state, None)
        if call is not None:
            call.questions.give_up()


class Questions:
    """What the server of one call asks a client of 2026-07-28, who gets it as the answer to its own request."""

    def __init__(self, call: RoutedCall, bridge: Bridge) -> None:
        self._call = call
        self._bridge = bridge
        self._open: dict[str, tuple[str, Params, asyncio.Future[dict[str, Any]]]] = {}
        self._count = 0

    async def ask(self, method: str, params: Params) -> dict[str, Any]:
        """The client's answer. Raises RpcError."""
        self._count += 1
        key = f"question-{self._count}"
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._open[key] = (method, params, future)
        if not self._call.parked:
            self._hand_out()
        try:
            return await future
        finally:
            self._open.pop(key, None)

    def _hand_out(self) -> None:
        """Answer the client's request with all that is open; the call waits."""
        session, request_id = self._call.session, self._call.request_id
        self._call.detach()
        asked = {key: _input_request(method, params) for key, (method, params, _) in self._open.items()}
        result = {
            "resultType": INPUT_REQUIRED,
            "inputRequests": asked,
            "requestState": self._bridge.park(self._call),
        }
        session.peer.respond(request_id, Reply.of_result(result))

    def resume(self, session: Session, request_id: RequestId, responses: Any) -> None:
        """The client is back, with answers; what it left out is asked again."""
        given = responses if isinstance(responses, dict) else {}
        for key, answer in given.items():
            if key in self._open and isinstance(answer, dict):
                self._settle(self._open.pop(key)[2], answer)
        goes_on = self._call.attach(session, request_id)
        if goes_on and self._open:
            self._hand_out()
        elif not goes_on:
            # The call is over, what came in with it meanwhile was another call's question: servers do not say whose.
            for *_, future in self._open.values():
                if not future.done():
                    future.set_exception(_AskElsewhere())

    def give_up(self) -> None:
        """Nobody will answer any more."""
        for *_, future in self._open.values():
            if not future.done():
                future.set_exception(RpcError(INVALID_PARAMS, "The client did not answer"))
        self._open.clear()
        self._call.abandon("the client did not come back with an answer")

    @staticmethod
    def _settle(future: asyncio.Future[dict[str, Any]], answer: dict[str, Any]) -> None:
        if not future.done():
            future.set_result(answer)


def _input_request(method: str, params: Params) -> dict[str, Any]:
    """A question as 2026-07-28 writes it."""
    return {"method": method} if method == ROOTS and not params else {"method": method, "params": dict(params or {})}


class _AskElsewhere(Exception):
    """The call that a question was to be asked with is over."""


async def _refused(error: RpcError) -> dict[str, Any]:
    raise error
