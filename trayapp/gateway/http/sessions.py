"""The sessions of clients over HTTP, by their ids, and when they end (MCP 2025-11-25, transports, session management).

A stream that breaks off is no cancel, since its client may come again for the rest. On this machine nothing breaks off
by itself: a client comes again soon, or its process has ended. A client without the stream for what belongs to no
request may just have nothing to say: its session stays for half an hour, but of very many idle ones the oldest ends.
Never here: HTTP, clients of 2026-07-28, whose requests stand alone.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol
from uuid import uuid4

import anyio
import anyio.abc

from trayapp.backends.clock import Clock
from trayapp.gateway.boundary import fenced
from trayapp.gateway.http.asgi import HttpRequest
from trayapp.gateway.http.peer import HttpPeer
from trayapp.gateway.http.streams import EventStore, EventStream
from trayapp.gateway.peer import ClientPeer

log = logging.getLogger(__name__)

GONE_S = 3.0  # without an open request; the SDKs' clients come again after 1 s, and 1.5 s after that
IDLE_S = 1_800.0  # without an open request, as the SDK's server has it; a client that comes again begins a new session
# Sessions without an open request; one takes some 30 KB. Real clients have a stream open or say goodbye: so many come
# of scripts that begin one each time.
IDLE_MOST = 500


class Serve(Protocol):
    """Begin the gateway's session of a client."""

    def __call__(self, peer: ClientPeer, options: dict[str, Any], *, lasting: bool = True) -> None:
        """`options`: those of its URL. `lasting`: it is more than one request."""


class HttpSession:
    """A client. The gateway's session of it is `peer`'s, which ends earlier if the client is away."""

    def __init__(self, store: EventStore) -> None:
        self.id = uuid4().hex
        self._store = store
        self.standing = self.stream(expects=None)  # for what belongs to no request
        self.peer = HttpPeer(self.standing)
        self.introduction: dict[str, Any] = {}  # the params of its handshake
        self.protocol = ""
        self.requests = 0  # of HTTP that are open
        self.has_listened = False  # to the stream for what belongs to no request, since a request was open last
        self.waking = anyio.Lock()

    def stream(self, *, expects: int | None = 1) -> EventStream:
        """Return a new stream to the client, which can be resumed."""
        return EventStream(self._store, self.id, expects=expects)

    def kept(self, stream: int, number: int) -> list[bytes]:
        """Return what was sent on that stream after that event, while it is kept."""
        return self._store.after(self.id, stream, number)


class HttpSessions:
    """All sessions of one port."""

    def __init__(
        self, serve: Serve, clock: Clock, tasks: anyio.abc.TaskGroup, store: EventStore, idle_most: int = IDLE_MOST
    ) -> None:
        self._serve = serve
        self._clock = clock
        self._tasks = tasks
        self._store = store
        self._idle_most = idle_most
        self._sessions: dict[str, HttpSession] = {}
        self._idle: OrderedDict[HttpSession, float] = OrderedDict()  # since when; the first is the next to end
        self._some_idle = anyio.Event()
        self._is_crowded = False

    def find(self, session_id: str | None) -> HttpSession | None:
        """Return the session with that id."""
        return self._sessions.get(session_id) if session_id is not None else None

    def begin(self, options: dict[str, Any]) -> HttpSession:
        """Begin the session of a client that has yet to shake hands; then `add` it."""
        session = HttpSession(self._store)
        self._serve(session.peer, options)
        return session

    def add(self, session: HttpSession, introduction: dict[str, Any], protocol: str) -> None:
        """Know a client that shook hands with these params, and the revision that was agreed."""
        session.introduction, session.protocol = introduction, protocol
        self._sessions[session.id] = session
        self._rest(session)

    def end(self, session: HttpSession) -> None:
        """Forget a session: its client said goodbye, or will not come again."""
        self._sessions.pop(session.id, None)
        self._idle.pop(session, None)
        session.peer.close()
        session.standing.end()
        self._store.forget(session.id)

    async def peer(self, session: HttpSession, request: HttpRequest) -> HttpPeer:
        """Return where the session's messages go. A client that was away too long is introduced again."""
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
        """Count an open HTTP request of the session."""
        session.requests += 1
        self._idle.pop(session, None)
        try:
            yield
        finally:
            session.requests -= 1
            if not session.requests and session.id in self._sessions:
                self._all_ended(session)

    def _all_ended(self, session: HttpSession) -> None:
        listened, session.has_listened = session.has_listened, False
        if not session.peer.is_closed and (listened or session.peer.awaited):
            self._tasks.start_soon(fenced, self._give_up, session, session.peer, listened)
        self._rest(session)

    async def _give_up(self, session: HttpSession, peer: HttpPeer, whole: bool) -> None:
        """Cancel the calls that wait now and then, or end all; nothing when the client is there again."""
        calls = peer.awaited
        await self._clock.sleep(GONE_S)
        if session.requests:
            return
        peer.give_up(calls)
        if whole:
            peer.close()
            if session in self._idle:
                self._idle.move_to_end(session, last=False)  # before any whose client is there

    def _rest(self, session: HttpSession) -> None:
        """Note that nobody asks anything in that session now."""
        self._idle[session] = self._clock.now()
        self._some_idle.set()
        if len(self._idle) > self._idle_most:
            oldest = next(iter(self._idle))
            if not self._is_crowded and not oldest.peer.is_closed:
                self._is_crowded = True
                log.warning(
                    "More than %d sessions over HTTP are idle: from now on the oldest of them end", self._idle_most
                )
            self.end(oldest)

    async def end_idle(self) -> None:
        """End each session of which nothing is heard for long, while the port is open."""
        while True:
            if not self._idle:
                self._some_idle = anyio.Event()
                await self._some_idle.wait()
            left = min(self._idle.values()) + IDLE_S - self._clock.now()
            if left > 0:
                await self._clock.sleep(left)
            for session in [one for one, since in self._idle.items() if since + IDLE_S <= self._clock.now()]:
                self.end(session)
