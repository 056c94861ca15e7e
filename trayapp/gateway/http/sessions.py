"""The HTTP sessions by id, and the rules for their end (MCP 2025-11-25, transports, session management).

- A broken stream does not cancel its request, because the client may resume the stream. On one machine, such a client
  has either ended or soon reconnects. So once a session has had no open HTTP request for GONE_S, its calls are
  cancelled. If its standing stream had been open, the gateway's session ends, too.
- A client without a standing stream may be idle. The id of an idle session is kept for IDLE_S, or for less if too many
  are idle. A client that returns in time continues under the same id, if necessary with a new session of the gateway.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol
from uuid import uuid4

import anyio
import anyio.abc

from trayapp.backends.clock import Clock
from trayapp.gateway.client import ClientPeer
from trayapp.gateway.http.asgi import HttpRequest
from trayapp.gateway.http.peer import HttpPeer
from trayapp.gateway.http.streams import EventStore, EventStream
from trayapp.gateway.tasks import fenced

GONE_S = 3.0  # time without an open request. The SDKs' clients reconnect after 1 s, and again 1.5 s later
IDLE_S = 1_800.0  # time without an open request, as in the SDK's server. A later client must initialize again
# The most sessions without an open request. Each takes some 30 KB. Only scripts that begin a session on every run reach
# this limit, because real clients keep a stream open or end their session.
IDLE_MOST = 500


class ServeClient(Protocol):
    """A function that begins a session of the gateway."""

    def __call__(self, peer: ClientPeer, options: dict[str, Any], *, lasting: bool = True) -> None:
        """Serve a client in a task. `options`: from its URL. `lasting`: False if the session is a single request."""


class HttpSession:
    """A session of the HTTP transport. The gateway's session behind `peer` may end sooner if the client is away."""

    def __init__(self, store: EventStore) -> None:
        self.id = uuid4().hex
        self.store = store
        self.standing = self.stream(expects=None)  # carries messages that are not about a request
        self.peer = HttpPeer(self.standing)
        self.introduction: dict[str, Any] = {}  # the params of its handshake
        self.protocol = ""
        self.requests = 0  # open HTTP requests
        self.has_listened = False  # True if the standing stream was opened after `requests` was last 0
        self.waking = anyio.Lock()

    def stream(self, *, expects: int | None = 1) -> EventStream:
        """Return a new resumable stream to the client."""
        return EventStream(self.store, self.id, expects=expects)


class HttpSessions:
    """The sessions of one port."""

    def __init__(
        self,
        serve: ServeClient,
        clock: Clock,
        tasks: anyio.abc.TaskGroup,
        store: EventStore,
        idle_most: int = IDLE_MOST,
    ) -> None:
        self._serve = serve
        self._clock = clock
        self._tasks = tasks
        self._store = store
        self._idle_most = idle_most
        self._sessions: dict[str, HttpSession] = {}
        # session -> time since which it is idle. If there are too many, the first one is ended
        self._idle: OrderedDict[HttpSession, float] = OrderedDict()
        self._some_idle = anyio.Event()

    def find(self, session_id: str | None) -> HttpSession | None:
        return self._sessions.get(session_id) if session_id is not None else None

    def begin(self, options: dict[str, Any]) -> HttpSession:
        """Begin a session and return it. Call `add` after its handshake, so that `find` returns it."""
        session = HttpSession(self._store)
        self._serve(session.peer, options)
        return session

    def add(self, session: HttpSession, introduction: dict[str, Any], protocol: str) -> None:
        """Make a session available to `find`, after its handshake.

        `introduction`: the handshake's params. `protocol`: the agreed revision.
        """
        session.introduction, session.protocol = introduction, protocol
        self._sessions[session.id] = session
        self._rest(session)

    def end(self, session: HttpSession) -> None:
        """End a session and forget it."""
        self._sessions.pop(session.id, None)
        self._idle.pop(session, None)
        session.peer.close()
        session.standing.end()
        self._store.forget(session.id)

    async def peer(self, session: HttpSession, request: HttpRequest) -> HttpPeer:
        """Return the session's peer. If it was closed while the client was away, first replace it by a new one, and
        repeat the handshake.
        """
        if session.peer.is_closed:
            async with session.waking:
                if session.peer.is_closed:
                    peer = HttpPeer(session.standing)
                    self._serve(peer, request.options)
                    await peer.introduce(session.introduction)
                    session.peer = peer
                    if session.id not in self._sessions:
                        peer.close()
        return session.peer

    @contextmanager
    def request(self, session: HttpSession) -> Iterator[None]:
        """Count an HTTP request as open inside the block. After the last one, the session is idle, and its calls may be
        cancelled.
        """
        session.requests += 1
        self._idle.pop(session, None)
        try:
            yield
        finally:
            session.requests -= 1
            if not session.requests and session.id in self._sessions:
                listened, session.has_listened = session.has_listened, False
                if not session.peer.is_closed and (listened or session.peer.awaited):
                    self._tasks.start_soon(fenced, self._give_up, session, session.peer, listened)
                self._rest(session)

    async def _give_up(self, session: HttpSession, peer: HttpPeer, whole: bool) -> None:
        """Cancel the open calls if the client does not reconnect within GONE_S. `whole`: also end `peer`'s session."""
        calls = peer.awaited
        await self._clock.sleep(GONE_S)
        if session.requests:
            return
        peer.give_up(calls)
        if whole:
            peer.close()
            if session in self._idle:
                self._idle.move_to_end(session, last=False)  # so it ends before any session whose client may return

    def _rest(self, session: HttpSession) -> None:
        """Mark a session as idle. If too many are idle, end one whose client is gone, or else the longest idle one."""
        self._idle[session] = self._clock.now()
        self._some_idle.set()
        if len(self._idle) > self._idle_most:
            self.end(next(iter(self._idle)))

    async def end_idle(self) -> None:
        """End each session once it has been idle for IDLE_S. Runs while the port is open."""
        while True:
            if not self._idle:
                self._some_idle = anyio.Event()
                await self._some_idle.wait()
            left = min(self._idle.values()) + IDLE_S - self._clock.now()
            if left > 0:
                await self._clock.sleep(left)
            for session in [one for one, since in self._idle.items() if since + IDLE_S <= self._clock.now()]:
                self.end(session)
