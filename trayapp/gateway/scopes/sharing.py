"""Decide which connection of a server a session uses, and with which sessions it shares that connection.

A connection is for a server, an era of the protocol, a set of client capabilities, and one or several sessions. All
sessions share one connection to a server unless one of these rules requires further ones:

- Era: the first session takes the server's first connection. A session of the other era gets `NAME#older` or
  `NAME#newer`. If the server supports only one era, sessions of the other one are bridged.
- Questions: in the newer era, a question is sent as the answer to its call. In the older era, a question does not name
  its call (over HTTP, its stream sometimes does). So if a server has asked (`traits.asks`, kept in the catalog's
  cache), each session that can answer has its own connection to it, `NAME#N`. This connection announces exactly what
  the client can do. Sessions that cannot answer share a connection that announces no support for such questions.
- Legacy SSE: a further connection needs no process. So each session that can answer questions has its own connection
  from its first call on, whether or not the server has asked.
- Single requests: if the tool that it calls has asked, a session that is a single request has its own connection,
  `NAME#call-N`, until its answer. Otherwise it uses the server's first connection, or `NAME#requests` if the first one
  announces less than the client can do. There it finds the state that its client's earlier requests have left. A client
  that is killed during a question keeps its `NAME#call-N`. If the limit is reached, a call that needs a connection gets
  that of the call that has waited longest for its client, if this was at least `PARKED_S`. The latter is abandoned.
- New tools: a server that has not asked may still do so. Calls of a tool that has never answered run for one session at
  a time. A session that has not used the server yet waits `PROVE_S` for another session's call. Then it gets and keeps
  its own connection, because its calls leave state there. All other sessions wait until the call in progress has asked,
  has ended, or is `WORKS_S` old. In a separate process, they would lack the state of their earlier calls, such as an
  open page or a changed folder.
- Quiet tools: a tool counts as quiet once it has answered without asking. Its calls start `QUIET_S` after another
  session's calls in progress, or once these have ended. After `TRUSTED` answers without a question, all sessions may
  call it at the same time. Only answers of calls that could overlap are counted. A call waits at most
  `QUIET_S` in total, however many sessions wait. While the tool has answered fewer than `KNOWN` times, the limit is
  `WORKS_S`, because the tool is then more likely to ask. A call that takes longer than its tool has ever taken may be
  about to ask, and delays other sessions' calls until it is `WORKS_S` old. So it is nearly always certain to which
  session a server's first question belongs. The exception is a tool that, during calls of other sessions, works for
  longer than `WORKS_S` before it asks, or first asks after `TRUSTED` answers. Its question is held
  (calls/server_requests). To exclude this case, too, tools that can ask would have to run for one session at a time, or
  each session would need a process. One session at a time would give five busy clients half as many calls a second.
- Capabilities: a new connection announces all that any of its sessions can do. A session whose client can do more
  gets its own connection, or the shared one is made again if it has not been used. A session also gets its own
  connection if the shared one lacks items that the server lists for its client, such as a substitute for clients
  without Apps.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import anyio

from trayapp.backends.connection import Connection
from trayapp.gateway.calls.client_capabilities import ClientCapabilities
from trayapp.gateway.calls.routed_call import RoutedCall, routed_calls
from trayapp.gateway.client import ClientSession
from trayapp.gateway.scopes.connection_keys import ConnectionKeys, era_key
from trayapp.gateway.services import Services
from trayapp.model.lifecycle import State
from trayapp.wire.capabilities import QUESTIONS, kind_of, lacks_capabilities, questions_of
from trayapp.wire.messages import Request

log = logging.getLogger(__name__)

PROVE_S = 1.0  # a new session waits this long before it gets a separate process. Most tools answer or ask by then
WORKS_S = 5.0  # age up to which a call delays other sessions' calls. Few calls ask for the first time after that
QUIET_S = 0.25  # replaces WORKS_S for quiet tools. Calls of two sessions are rarely that close
KNOWN = 20  # answers without a question, after which QUIET_S also limits the total wait of a call
# After this time, a killed client's connection goes to a waiting call. The SDKs' clients give up after 60 s.
PARKED_S = 45.0
TRUSTED = 1000  # answers without a question, after which the chance of a question is about 1 in 1,000
Topic = tuple[str, Any]  # what a request is about: its method, and the name or URI


@dataclass(eq=False, slots=True)
class QuietTopic:
    """The number of answers on one topic that came without a question, and the longest time that one of them took."""

    answers: int
    longest_s: float = 0.0

    def note(self, seconds: float) -> None:
        """Count an answer without a question, which took `seconds`."""
        self.answers += 1
        self.longest_s = max(self.longest_s, seconds)


ALWAYS_QUIET = QuietTopic(TRUSTED)  # for servers of 2026-07-28, whose questions name their call


class Wait(NamedTuple):
    """How long a request waits for calls in progress: `left_s` seconds from now, but no more than `most_s` in total.

    `proves`: True if neither its topic nor that of a call in progress has been answered without a question so far. The
    request may then use another connection instead.
    """

    left_s: float
    most_s: float
    proves: bool = False


class Sharing:
    """The rules by which one gateway's sessions share connections.

    `changed` is set, and replaced by a new event, when a waiting request may continue.
    """

    def __init__(self, services: Services, keys: ConnectionKeys, capabilities: ClientCapabilities) -> None:
        self._services = services
        self._keys = keys
        self.capabilities = capabilities
        self._quiet: dict[str, dict[Topic, QuietTopic]] = {}  # by server
        self._asking: dict[str, set[Topic]] = {}  # by server: topics whose calls may have asked
        self._failed: set[tuple[str, bool]] = set()  # (server, newer) of bridged eras
        self._sse: set[str] = set()  # servers that use legacy SSE
        self.changed = anyio.Event()

    # -- which connection ----------------------------------------------------------------------------------------

    def key_for(
        self, session: ClientSession, first: Connection, topic: Topic | None = None, *, alone: bool = False
    ) -> str | None:
        """Return the key of the connection for a session's requests, or None while no connection is free.

        `first`: the server's first connection. `topic`: what a single request is about. `alone`: True to share the
        connection with no other session.
        """
        name = first.key
        if first.server.scope == "session":
            return self._keys.own(session, name) if session.lasting else name
        newer = session.client.modern
        key = self._key_of_era(first, newer=newer)
        connection = self._services.pool.get(key) or first
        if self._binds_questions(connection, newer=newer):
            return key
        is_sse = first.server.type == "sse" or name in self._sse
        if (
            alone
            or name in session.apart
            or (is_sse and session.lasting and questions_of(session.capabilities))  # costs no process
            or self._needs_own(session, connection.live, name, topic)
            or self._lists_too_little(session, connection)
        ):
            return self._alone(session, first)
        if not _lacks(connection, session) or not (connection.in_flight or connection.used_since_connected):
            return key
        if session.lasting:
            return self._alone(session, first)
        key = self._keys.of_requests(name)
        return self._alone(session, first) if _lacks(self._services.pool.get(key), session) else key

    def _lists_too_little(self, session: ClientSession, connection: Connection) -> bool:
        """Return True if the lists on that connection lack items that the server lists for the session's client."""
        listings, name = self._services.listings, self._keys.shared_key(connection.key)
        if connection.live is None or len(listings.variants(name)) < 2:
            return False
        own = listings.variant(name, kind_of(session.client.capabilities, newer=session.client.modern))
        there = listings.variant(name, kind_of(connection.live.sent_capabilities, newer=False))
        return own is not None and there is not None and any(own.names[each] - there.names[each] for each in own.names)

    def _key_of_era(self, first: Connection, *, newer: bool) -> str:
        """Return the key of the connection for an era.

        It is the server's first connection, unless that is of the other era and the server may support both, or a
        connection for this era is already in use.
        """
        name, live = first.key, first.live
        if live is not None and live.peer.modern == newer:
            return name
        if self._services.listings.traits(name).speaks(newer=newer) is False or (name, newer) in self._failed:
            return name
        known = self._services.pool.get(era_key(name, newer=newer))
        in_use = known is not None and known.state in (State.CONNECTING, State.CONNECTED)
        return self._keys.of_era(name, newer=newer) if in_use or live is not None else name

    def _binds_questions(self, connection: Connection, *, newer: bool) -> bool:
        """Return True if that connection is, or will be, of the newer era, in which a question names its call."""
        if connection.live is not None:
            return connection.live.peer.modern
        traits = self._services.listings.traits(self._keys.shared_key(connection.key))
        return traits.newer is True and (newer or traits.older is False)

    def _needs_own(self, session: ClientSession, live: Any, name: str, topic: Topic | None) -> bool:
        """Return True if the server's questions require a separate connection for the session.

        They do if the session can answer them, the connection announced support for them, or no capability covers them.
        A single request needs a separate connection only if calls on its topic may have asked.
        """
        asks = self._services.listings.traits(name).asks
        if not asks:
            return False
        if not session.lasting and topic not in self._asking.get(name, ()):
            return False
        able = questions_of(session.capabilities)
        beyond = asks - set(QUESTIONS.values())  # a method without a capability may be for any client
        return bool(beyond or asks & able or (live is not None and asks & questions_of(live.sent_capabilities)))

    def _alone(self, session: ClientSession, first: Connection) -> str | None:
        if session.lasting:
            session.apart.add(first.key)
            return self._keys.own(session, first.key)
        return self._keys.of_call(session, first.key, self._state_of, remote=first.server.url is not None)

    def make_room(self, first: Connection) -> None:
        """Abandon the call that has waited longest for its client, if it has waited PARKED_S and holds a needed
        connection.
        """
        pool, remote = self._services.pool, first.server.url is not None
        keys = self._keys.parked(first.key, self._state_of, remote=remote)
        connections = [connection for key in keys if (connection := pool.get(key)) is not None]
        calls = [call for one in connections for call in routed_calls(one) if call.parked]
        oldest = min(calls, key=lambda call: call.parked_at, default=None)
        if oldest is not None and self._services.clock.now() - oldest.parked_at >= PARKED_S:
            oldest.session.questioner.abandon(oldest)

    def _state_of(self, key: str) -> str:
        connection = self._services.pool.get(key)
        calls = list(connection.open_calls) if connection is not None else []
        if not calls:
            return "free" if connection is None or not connection.in_flight else "busy"
        return "parked" if all(isinstance(call, RoutedCall) and call.parked for call in calls) else "busy"

    # -- who may join --------------------------------------------------------------------------------------------

    def wait(self, session: ClientSession, connection: Connection, topic: Topic | None) -> Wait | None:
        """Return how long a request must wait for calls in progress on that connection.

        Return None if it can be sent now, because it will still be certain to which session any question belongs.
        """
        live = connection.live
        if topic is None or not connection.open_calls or live is None or live.peer.modern:
            return None
        quiet = self._quiet.get(self._keys.shared_key(connection.key), {})
        own = quiet.get(topic)
        if (own is not None and own.answers >= TRUSTED) or self._keys.purpose(connection.key).alone:
            return None
        now = self._services.clock.now()
        others: set[ClientSession] = set()  # the sessions to which a question may belong
        left_s = most_s = 0.0
        proven = True  # True if the tools of all these sessions' calls have answered without a question
        for call in routed_calls(connection):
            if call.session is session:
                if own is not None:
                    return None
                continue
            known = quiet.get(topic_of(call.request))
            if known is None or known.answers < TRUSTED:
                others.add(call.session)
                proven = proven and known is not None
                age_s = now - call.sent_at
                may_ask = known is None or (age_s >= QUIET_S and age_s > known.longest_s)
                left_s = max(left_s, (WORKS_S if may_ask else QUIET_S) - age_s)
                is_known = known is not None and own is not None and min(known.answers, own.answers) >= KNOWN
                most_s = max(most_s, QUIET_S if is_known and not may_ask else WORKS_S)
        told = questions_of(live.sent_capabilities)
        if not others or not any(told & questions_of(one.client.capabilities) for one in (session, *others)):
            return None
        proves = own is None and not proven
        return Wait(left_s, most_s, proves) if left_s > 0 or proves else None

    def quiet_topic(self, session: ClientSession, connection: Connection, topic: Topic) -> QuietTopic | None:
        """Return the record of a topic's answers, or None if there is none. Also return None if the connection is not
        live or not shared.
        """
        live, name = connection.live, self._keys.shared_key(connection.key)
        if live is None or name in session.apart or self._keys.purpose(connection.key).alone:
            return None
        return ALWAYS_QUIET if live.peer.modern else self._quiet.get(name, {}).get(topic)

    # -- what is learned -----------------------------------------------------------------------------------------

    def note_connected(self, connection: Connection) -> None:
        """Record which eras a newly connected server supports, and whether it uses legacy SSE."""
        live, name = connection.live, self._keys.shared_key(connection.key)
        if live is None:
            return
        (self._sse.add if live.transport.kind == "sse" else self._sse.discard)(name)
        traits = self._services.listings.traits(name)
        tried_older = self.capabilities.tried_older(connection.key)
        if live.peer.modern:
            known = traits._replace(newer=True, older=False if tried_older else traits.older)
        else:
            known = traits._replace(older=True, newer=traits.newer if tried_older else False)
        self._services.listings.note_traits(name, known)

    def note_question(self, connection: Connection, method: str) -> bool:
        """Record that a server asks questions with that method. Return True if it has not used the method before."""
        name = self._keys.shared_key(connection.key)
        topics = {topic_of(call.request) for call in routed_calls(connection)}
        self._asking.setdefault(name, set()).update(topics - self._quiet.get(name, {}).keys() or topics)
        traits = self._services.listings.traits(name)
        asked = QUESTIONS.get(method, method)
        if asked in traits.asks:
            return False
        self._services.listings.note_traits(name, traits._replace(asks=traits.asks | {asked}))
        self._quiet.pop(name, None)
        self.tell()
        return True

    def note_answer(self, connection: Connection, request: Request, seconds: float) -> None:
        """Record that a server answered without asking.

        A topic's first answer counts only if the server has never asked.
        """
        name, topic = self._keys.shared_key(connection.key), topic_of(request)
        known = self._quiet.get(name, {}).get(topic)
        if known is not None:
            known.note(seconds)
        elif not self._services.listings.traits(name).asks:
            self._quiet.setdefault(name, {})[topic] = QuietTopic(1, seconds)
            self.tell()

    def note_failure(self, key: str) -> bool:
        """Record that a connection could not be made. Return True if it was for one era, which is now bridged."""
        purpose = self._keys.purpose(key)
        if purpose.newer is None:
            return False
        self._failed.add((purpose.server, purpose.newer))
        return True

    def forget(self, servers: Mapping[str, Any]) -> None:
        """Forget what was learned about servers that are not among `servers`."""
        self._quiet = {name: quiet for name, quiet in self._quiet.items() if name in servers}
        self._asking = {name: asking for name, asking in self._asking.items() if name in servers}
        self._sse &= servers.keys()
        self._failed = {failed for failed in self._failed if failed[0] in servers}

    def tell(self) -> None:
        """Wake all requests that wait for a connection."""
        self.changed.set()
        self.changed = anyio.Event()


def topic_of(request: Request) -> Topic:
    """Return the topic of a request that has its server's own names: its method, and the name or URI."""
    params = request.params or {}
    return request.method, params.get("name") or params.get("uri")


def _lacks(connection: Connection | None, session: ClientSession) -> bool:
    """Return True if the connection is live and did not announce all questions that the session's client supports."""
    if connection is None or connection.live is None:
        return False
    announced, able = (
        {name: value for name, value in capabilities.items() if name in QUESTIONS.values()}
        for capabilities in (connection.live.sent_capabilities, session.client.capabilities)
    )
    return lacks_capabilities(announced, able)
