"""Route requests of servers to clients (sampling, elicitation, roots), in both protocol eras.

An older server sends a request. A server of 2026-07-28 answers `input_required`. Clients are asked in the same two
ways. A request goes to the client whose call it belongs to. If that is not certain, no client is asked.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, ref

import anyio

from trayapp.backends.clock import first_of
from trayapp.backends.connection import Connection
from trayapp.backends.context import Live
from trayapp.gateway.asks import Asker, Asks
from trayapp.gateway.calls.client_capabilities import Purpose
from trayapp.gateway.calls.consent import AskingSession
from trayapp.gateway.calls.routed_call import IgnoredCall, RoutedCall, routed_calls
from trayapp.gateway.client import ClientSession
from trayapp.gateway.exposure.list_results import is_one_tool
from trayapp.gateway.services import Services
from trayapp.wire.capabilities import ELICITATION, QUESTIONS, ROOTS, can_answer
from trayapp.wire.frames import PendingCall
from trayapp.wire.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Call,
    Params,
    Reply,
    Request,
    RequestId,
    RpcError,
)
from trayapp.wire.revisions import INPUT_REQUIRED

log = logging.getLogger(__name__)

STATE_PREFIX = "multi-mcp:"  # prefix of our own request states, to distinguish them from a server's
PATIENCE_S = 600.0  # time for a client to return its answers: a person may take a while, and a client may be gone
STATE_ONLY_PAUSE_S = 0.1  # pause before repeating a call whose server asked for the repetition without a question
HELD_S = 50.0  # limit for holding a question whose session is uncertain: the SDKs' clients give up a call after 60 s
STUCK_S = 5.0  # limit after the newest question, if there are as many questions as calls: no call then ends by itself
UNSTUCK_S = 1.0  # time for a refused question's call to end, which may leave one session for the next question
STOPS_WITHIN_S = 30.0  # how long a cancelled call may still ask, unless the ping after its cancellation is answered

# Why a question is refused: part of the log line and of the server's error
_NONE = "no client has a call in progress on this server"
_OVER = "its call has ended"
_UNCERTAIN = "and the request does not name the call that it belongs to"
_SEVERAL = f"several sessions have calls in progress on this server, {_UNCERTAIN}"
_OFF = "the tool of its call was disabled"
_MOVED = "its call is being sent again on its session's own connection"
_GIVEN_UP = f"another session has just cancelled a call to this server, {_UNCERTAIN}"


class ServerRequests:
    """The requests of one gateway's servers to clients.

    The class is broad because the answer may come from a client, from the user, or in a later request of a client
    (2026-07-28). The call may also end before the answer comes.
    """

    def __init__(self, services: Services, purpose: Callable[[str], Purpose], asks: Asks) -> None:
        self._services = services
        self._purpose = purpose
        self._asks = asks  # asks of the user, in place of clients that cannot answer
        self._parked: dict[str, RoutedCall] = {}  # request state -> call whose client has yet to return answers
        self._questions: dict[RoutedCall, Questions] = {}  # the open questions to clients of 2026-07-28
        self._given_up: list[_CancelPing] = []  # for calls that sessions gave up, oldest first
        self._refused: set[tuple[str, str]] = set()  # (server, reason) pairs that are already in the log
        self._held_questions: WeakKeyDictionary[Connection, _HeldQuestions] = WeakKeyDictionary()

    # -- requests of servers -------------------------------------------------------------------------------------

    async def asked(
        self, connection: Connection, method: str, params: Params, about: Call | None = None
    ) -> dict[str, Any]:
        """Pass an older server's request on to its client, or to the user instead. Return the answer. Raises RpcError.

        `about`: the call that the request belongs to, if the transport names it. Otherwise all calls in progress on the
        connection must belong to one session. The gateway never guesses the client: the wrong user could answer.
        """
        owner = self._purpose(connection.key).session
        among = await self._held(connection, method) if about is None and owner is None else None
        calls, session = self._find_session(connection, method, about, owner, among)
        if calls and all(call.session.is_switched_off(connection.key, call.request) for call in calls):
            raise self._refusal(connection, method, _OFF)
        for call in calls:
            session = call.session
            if not call.is_under_way or not can_answer(session.client.capabilities, method, params):
                continue
            if not session.client.modern or method not in QUESTIONS:
                return await self.ask(session, method, params, call.request_id)
            try:
                return await self._questions_of(call).ask(method, params)
            except _CallEnded:
                continue
        if calls and not any(call.is_under_way for call in calls):
            raise self._refusal(connection, method, _OVER)
        client = session.client
        is_able = client.ready and not client.modern and can_answer(client.capabilities, method, params)
        if calls or not is_able:
            return await self._ask_user(connection, method, params, session, calls)
        return await self.ask(session, method, params)

    async def _ask_user(
        self, connection: Connection, method: str, params: Params, session: ClientSession, calls: list[RoutedCall]
    ) -> dict[str, Any]:
        """Ask the user instead of the client, and return the answer. Raises RpcError if there is none."""
        if not self._asks.can_answer(method):
            raise RpcError(METHOD_NOT_FOUND, f"The client of this call cannot answer {method}"[:200])
        asker = Asker(session.client.name, session.project, session)

        def is_wanted() -> bool:
            return not calls or any(call.is_under_way for call in calls)

        return await self._asks.ask_question(asker, self._plain_name(connection.key), params, is_wanted)

    def _plain_name(self, key: str) -> str:
        """Return a server's name for people, without the `@DIGEST` of a project's own server."""
        return self._services.shared_key(key).partition("@")[0]

    def _find_session(
        self,
        connection: Connection,
        method: str,
        about: Call | None,
        owner: ClientSession | None,
        among: set[ClientSession] | None,
    ) -> tuple[list[RoutedCall], ClientSession]:
        """Return the calls that a question may belong to, the best candidate first, and their session. Raises RpcError.

        `owner`: the session that the connection serves alone. `among`: the sessions to choose from, or None for any.
        """
        calls = routed_calls(connection)
        if about is not None:
            calls = [call for call in calls if call is about]
            if not calls:
                raise self._refusal(connection, method, _OVER)
            return calls, calls[0].session
        if owner is not None and not any(call.session is not owner for call in calls):
            return sorted(calls, key=_eligibility), owner
        if among is not None:
            calls = [call for call in calls if call.session in among]
        asking: dict[ClientSession | None, None] = dict.fromkeys(call.session for call in calls)
        if not calls:  # while a server starts for waiting requests, it may already ask
            asking = dict.fromkeys(s for s in self._services.sessions if connection.key in s.awaited_servers())
        if len(asking) > 1 or (connection.own_requests and asking):
            raise self._refusal(connection, method, _SEVERAL)
        session = next(iter(asking), None)
        self._forget_given_up()
        # Sessions that gave up calls on which the server may still be working. None represents ended sessions.
        given_up = {gave_up() for one in self._given_up if one.live is connection.live for gave_up in one.sessions}
        if session is not None and given_up - {session}:
            raise self._refusal(connection, method, _GIVEN_UP)
        if session is None:
            raise self._refusal(connection, method, _OVER if given_up else _NONE)
        return sorted(calls, key=_eligibility), session

    async def _held(self, connection: Connection, method: str) -> set[ClientSession] | None:
        """Hold a question while calls of several sessions are in progress.

        Return the sessions that the question may belong to, or None for any session. A call does not end while it waits
        for an answer, so a question belongs to the last session that is left. If all calls may be executed twice, the
        question is refused (RpcError), and the calls are sent again, each on its session's own connection.
        """
        asked: set[ClientSession] = {call.session for call in routed_calls(connection)}
        if len(asked) + bool(connection.own_requests) < 2:
            return None
        held = self._held_questions.setdefault(connection, _HeldQuestions())
        live, now = connection.live, self._services.clock.now
        since = now()
        async with held.turn(since):
            while connection.live is live:
                calls = routed_calls(connection)
                still = asked.intersection(call.session for call in calls)
                if len(still) + bool(connection.own_requests) < 2:
                    return still
                repeatable = [c for c in calls if not c.moved and c.session.may_repeat(connection.key, c.request)]
                if not connection.own_requests and len(repeatable) == len(calls):
                    for call in calls:
                        call.move()
                    raise self._refusal(connection, method, _MOVED)
                left = held.until(since, len(calls) + connection.own_requests) - now()
                if left <= 0:
                    held.note_refusal(now(), len(calls))
                    return None
                await first_of(connection.next_end().wait, held.more.wait, partial(self._services.clock.sleep, left))
        return None

    def give_up(self, connection: Connection, live: Live, session: ClientSession) -> None:
        """Record that a session gave up a call, for which an older server may still ask questions.

        A connection that serves one request at a time is closed, because a server that ignored the cancellation would
        ask the client of the next request.
        """
        if live.peer.modern:
            return
        if not session.lasting and self._purpose(connection.key).alone:
            if connection.live is live:
                connection.begin_close()
            return
        self._forget_given_up()
        of_live = [one for one in self._given_up if one.live is live]
        if not of_live or of_live[-1].asked:  # the answer to an earlier ping proves nothing about this cancellation
            of_live.append(_CancelPing(live, self._note_answer))
            self._given_up.append(of_live[-1])
        last = of_live[-1]
        last.sessions.append(ref(session))
        last.until = self._services.clock.now() + STOPS_WITHIN_S
        if len(of_live) == 1:
            last.ask()

    def _note_answer(self, given_up: _CancelPing) -> None:
        given_up.until = 0.0
        self._forget_given_up()
        for one in self._given_up:
            if one.live is given_up.live:
                one.ask()

    def _forget_given_up(self) -> None:
        now = self._services.clock.now()
        self._given_up = [one for one in self._given_up if one.until > now]

    def _refusal(self, connection: Connection, method: str, why: str) -> RpcError:
        """Return the error for a server's refused request. Log it, at debug level if the reason is not new."""
        server = connection.name
        first = (server, why) not in self._refused
        self._refused.add((server, why))
        level = logging.DEBUG if not first else logging.WARNING if why in (_SEVERAL, _GIVEN_UP) else logging.INFO
        log.log(level, "Refused %.100s from %s: %s", server, method, why)
        return RpcError(INVALID_REQUEST, f"Cannot pass {method[:100]} to a client: {why}")

    async def ask(
        self, session: ClientSession, method: str, params: Params, about: RequestId | None = None
    ) -> dict[str, Any]:
        """Send a request to a client and return its answer. Raises RpcError if the client refuses or goes away."""
        waiting = PendingCall()
        number = session.peer.relay(method, params, waiting, about)
        try:
            reply = await waiting.future
        finally:
            if not waiting.future.done() or waiting.future.cancelled():
                session.peer.cancel(number, "no longer wanted")
        return reply.result()

    async def answers(
        self, session: ClientSession, about: RequestId, question: dict[str, Any], key: str
    ) -> dict[str, Any]:
        """Ask the client, or the user, the questions of an `input_required` result (`question`).

        Return the params to add when the client's request (`about`) is sent again (MCP 2026-07-28, multi round-trip
        requests). Raises RpcError.
        """
        asked, state = question.get("inputRequests"), question.get("requestState")
        again: dict[str, Any] = {} if state is None else {"requestState": state}
        if not isinstance(asked, dict) or not asked:
            await asyncio.sleep(STATE_ONLY_PAUSE_S)
            return again
        # An older client gets all questions at the same time. The user gets those that the client cannot answer.
        tasks = [asyncio.ensure_future(self._ask_one(session, one, about, key)) for one in asked.values()]
        try:
            return {**again, "inputResponses": dict(zip(asked, await asyncio.gather(*tasks), strict=True))}
        finally:
            for task in tasks:
                task.cancel()

    def is_for_user(self, session: ClientSession, question: dict[str, Any]) -> bool:
        """Return True if the client can answer no part of the question, and the user can answer all of it."""
        asked = question.get("inputRequests")
        questions = list(asked.values()) if isinstance(asked, dict) else []
        return bool(questions) and all(self._only_user_can(session, one) for one in questions)

    def _only_user_can(self, session: ClientSession, question: Any) -> bool:
        method, params = _method_of(question)
        return self._asks.can_answer(method) and not can_answer(session.client.capabilities, method, params)

    async def _ask_one(
        self, session: ClientSession, question: Any, about: RequestId | None, key: str
    ) -> dict[str, Any]:
        method, params = _method_of(question)
        if self._only_user_can(session, question):
            asker = Asker(session.client.name, session.project, session)
            return await self._asks.ask_question(asker, self._plain_name(key), params, lambda: True)  # until cancelled
        if method not in QUESTIONS or not can_answer(session.client.capabilities, method, params):
            raise RpcError(INVALID_PARAMS, f"The client cannot answer {method or 'a question without a method'}"[:200])
        if method == ELICITATION and isinstance(params, dict) and params.get("mode") == "url":
            params = {"elicitationId": secrets.token_hex(8), **params}  # required by older revisions
        return await self.ask(session, method, params or None, about)

    # -- parked calls --------------------------------------------------------------------------------------------

    def park(self, call: RoutedCall) -> str:
        """Keep a call until its client comes back, PATIENCE_S at most. Return the state that the client must send."""
        state = STATE_PREFIX + secrets.token_urlsafe(24)
        self._parked[state] = call
        call.parked_at = self._services.clock.now()
        asyncio.get_running_loop().call_later(PATIENCE_S, self._unpark, state)
        return state

    def resume(self, session: AskingSession, request: Request) -> bool:
        """Continue the parked call that a request resumes. Return False if it resumes none.

        Raises RpcError if that call or its server is gone, or if the call belongs to another client or had other
        arguments.
        """
        params = request.params
        state = params.get("requestState") if isinstance(params, dict) else None
        if not isinstance(state, str) or not state.startswith(STATE_PREFIX):
            return False
        call = self._parked.get(state)
        if (
            call is None
            or call.session.client.name != session.client.name
            or not session.has_server(self._services.shared_key(call.connection.key))
            or _has_other_arguments(request, call.request)
        ):
            raise RpcError(INVALID_PARAMS, "Invalid or expired requestState", {"reason": "invalid_request_state"})
        del self._parked[state]
        self._questions_of(call).resume(session, request.id, params.get("inputResponses"))
        return True

    def drop(self, session: ClientSession, request_id: RequestId | None = None) -> None:
        """Abandon a session's parked calls: all after its end, or the call of a request that its client cancelled."""
        self._unpark_all(lambda call: call.session is session and request_id in (None, call.request_id))

    def abandon(self, call: RoutedCall) -> None:
        """Abandon a parked call whose client has long been away, because other calls wait for the connection."""
        self._unpark_all(lambda parked: parked is call)

    def _unpark_all(self, of: Callable[[RoutedCall], bool]) -> None:
        for state in [state for state, call in self._parked.items() if of(call)]:
            self._unpark(state)

    def _unpark(self, state: str) -> None:
        call = self._parked.pop(state, None)
        if call is not None:
            self._questions_of(call).give_up()

    def _questions_of(self, call: RoutedCall) -> Questions:
        return self._questions.setdefault(call, Questions(call, self.park, self._questions))


def _method_of(question: Any) -> tuple[str, Any]:
    """Return the method and params of one of a server's questions, or "" and None if they are not valid."""
    method = question.get("method") if isinstance(question, dict) else None
    return (method, question.get("params")) if isinstance(method, str) else ("", None)


def _has_other_arguments(request: Request, sent: Request) -> bool:
    """Return True if a request has arguments that differ from those of `sent`, built from the client's first request.

    A call through the one tool wraps its arguments in that tool's own, so they are not compared.
    """
    given = request.params.get("arguments") if request.params else None
    return bool(given) and not is_one_tool(request.params) and given != (sent.params or {}).get("arguments")


class Questions:
    """Questions of one call's server to a client of 2026-07-28, each sent as an answer to the client's own request.

    `park` keeps the call until its client comes back. `asking`: call -> its Questions, while any are open.
    """

    def __init__(
        self, call: RoutedCall, park: Callable[[RoutedCall], str], asking: dict[RoutedCall, Questions]
    ) -> None:
        self._call = call
        self._park = park
        self._asking = asking
        self._open: dict[str, tuple[str, Params, asyncio.Future[dict[str, Any]]]] = {}
        self._count = 0

    async def ask(self, method: str, params: Params) -> dict[str, Any]:
        """Ask the client and return its answer. Raises _CallEnded if the call ends or is given up."""
        self._count += 1
        key = f"question-{self._count}"
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._open[key] = (method, params, future)
        if not self._call.parked:
            self._send_questions()
        try:
            return await future
        finally:
            self._open.pop(key, None)
            if not self._open and not self._call.parked:
                self._asking.pop(self._call, None)

    def _send_questions(self) -> None:
        """Answer the client's request with all open questions and park the call."""
        session, request_id = self._call.session, self._call.request_id
        self._call.detach()
        asked = {
            key: {"method": method} if method == ROOTS and not params else {"method": method, "params": params or {}}
            for key, (method, params, _) in self._open.items()
        }
        result = {"resultType": INPUT_REQUIRED, "inputRequests": asked, "requestState": self._park(self._call)}
        session.peer.respond(request_id, Reply.of_result(result))

    def resume(self, session: AskingSession, request_id: RequestId, responses: Any) -> None:
        """Deliver the answers that the client returned. If the call continues, ask the unanswered questions again."""
        given = responses if isinstance(responses, dict) else {}
        for key, answer in given.items():
            if key in self._open and isinstance(answer, dict) and not (future := self._open.pop(key)[2]).done():
                future.set_result(answer)
        goes_on = self._call.attach(session, request_id)
        if goes_on and self._open:
            self._send_questions()
        elif not goes_on:
            self._end_open()  # the call has ended, so the open questions belong to another call of this session

    def give_up(self) -> None:
        """Abandon the call and end all its open questions with _CallEnded: the client will not answer."""
        self._end_open()
        self._open.clear()
        self._asking.pop(self._call, None)
        self._call.abandon("the client did not return an answer")

    def _end_open(self) -> None:
        for *_, future in self._open.values():
            if not future.done():
                future.set_exception(_CallEnded())


class _HeldQuestions:
    """The questions on one connection that may belong to several sessions.

    They are decided one at a time, since a refusal may end a call and so leave one session for the next question.
    """

    def __init__(self) -> None:
        self.more = anyio.Event()  # set and replaced when a question arrives
        self._turns = asyncio.Lock()
        self._count = 0
        self._newest = 0.0  # when the last question arrived
        self._next_at, self._calls = 0.0, 0  # after a refusal: earliest time of the next one, if no call has ended

    @asynccontextmanager
    async def turn(self, now: float) -> AsyncIterator[None]:
        """Wait until all earlier questions are decided, and hold back later ones inside the block."""
        self._newest, self._count = now, self._count + 1
        self.more.set()
        self.more = anyio.Event()
        try:
            async with self._turns:
                yield
        finally:
            self._count -= 1

    def until(self, since: float, calls: int) -> float:
        """Return the time until which to hold the question that arrived at `since`, with `calls` calls in progress.

        While there are more calls than questions, at least one call is not waiting for an answer and ends by itself.
        """
        if self._count < calls:
            return since + HELD_S
        return max(self._newest + STUCK_S, self._next_at if calls >= self._calls else 0.0)

    def note_refusal(self, now: float, calls: int) -> None:
        """Record that a question was refused while this many calls were in progress."""
        self._next_at, self._calls = now + UNSTUCK_S, calls


@dataclass(eq=False, slots=True)
class _CancelPing(IgnoredCall):
    """A ping after calls on one connection were cancelled. Its answer proves that the server read the cancellations."""

    live: Live
    note_answer: Callable[[_CancelPing], None]
    sessions: list[ref[ClientSession]] = field(default_factory=list)
    until: float = 0.0  # by the gateway's clock. After that, the server is not expected to ask about these calls
    asked: bool = False

    def ask(self) -> None:
        self.asked = True
        self.live.channel.relay("ping", None, self)

    def answered(self, reply: Reply) -> None:
        self.note_answer(self)


def _eligibility(call: RoutedCall) -> tuple[bool, int]:
    """Return the sort key of a call: oldest calls first, but parked ones last, since their clients may never return."""
    return call.parked, call.serial


class _CallEnded(Exception):
    """Raised when the call that a question belongs to has ended."""
