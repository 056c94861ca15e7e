"""Which older clients over HTTP are still there: of one that is not, calls and session end.

A stream that breaks off is no cancel, since its client may come again for the rest (MCP 2025-11-25, transports). On
this machine nothing breaks off by itself: a client comes again soon, or its process has ended. One without the stream
for what belongs to no request may just have nothing to say: its session stays, but of very many the one that was idle
for longest ends, and its client, should it come back, begins anew (404: MCP transports, session management).
Never here: clients of 2026-07-28, whose requests end with their streams.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

import anyio.abc

from trayapp.backends.clock import Clock
from trayapp.gateway.http.asgi import Asgi, Headers, replayed
from trayapp.gateway.http.peers import HttpPeer
from trayapp.gateway.process.tasks import fenced

log = logging.getLogger(__name__)

GONE_S = 3.0  # without an open request; the SDKs' clients come again after 1 s, and 1.5 s after that
SESSION_HEADER = "mcp-session-id"
# Sessions without an open request; one takes some 30 KB, and 90 once the SDK has it. Real clients have a stream open
# or say goodbye: so many come of scripts that begin one each time.
IDLE_MOST = 500


class Presence:
    """Of all sessions of one port, by the ids that their requests carry."""

    def __init__(self, clock: Clock, tasks: anyio.abc.TaskGroup, idle_most: int = IDLE_MOST) -> None:
        self._clock = clock
        self._tasks = tasks
        self._idle_most = idle_most
        self._idle: OrderedDict[str, None] = OrderedDict()  # the longest first; some may have ended meanwhile
        self._crowded = False
        self._app: Asgi | None = None
        self._open: Counter[str] = Counter()  # HTTP requests
        self._peers: WeakValueDictionary[str, HttpPeer] = WeakValueDictionary()
        self._stood: set[str] = set()  # the sessions that have, or had, the stream for what belongs to no request

    def note(self, session_id: str | None, peer: HttpPeer) -> None:
        """That session's messages go there."""
        if session_id is not None:
            self._peers[session_id] = peer
            if session_id not in self._open:
                self._rests(session_id)

    def peer_of(self, session_id: str | None) -> HttpPeer | None:
        """Where that session's messages go; None where nothing is known of it."""
        return self._peers.get(session_id) if session_id is not None else None

    def around(self, app: Asgi) -> Asgi:
        """The application, watched."""
        self._app = app

        async def watched(scope: Any, receive: Any, send: Any) -> None:
            session_id = Headers(scope).get(SESSION_HEADER)

            async def seen(message: Any) -> None:
                if message.get("status") == 200 and session_id is not None:
                    if scope["method"] == "GET":
                        self._stood.add(session_id)
                    elif scope["method"] == "DELETE":
                        self._peers.pop(session_id, None)
                await send(message)

            with self._request_of(session_id):
                await app(scope, receive, seen)

        return watched

    @contextmanager
    def _request_of(self, session_id: str | None) -> Iterator[None]:
        if session_id is None:
            yield
            return
        self._open[session_id] += 1
        self._idle.pop(session_id, None)
        try:
            yield
        finally:
            self._open[session_id] -= 1
            if not self._open[session_id]:
                del self._open[session_id]
                self._all_ended(session_id)

    def _all_ended(self, session_id: str) -> None:
        peer, stood = self._peers.get(session_id), session_id in self._stood
        self._stood.discard(session_id)
        if peer is not None:
            self._rests(session_id)
        if peer is not None and (stood or peer.awaited):
            self._tasks.start_soon(self._give_up, session_id, peer, stood)

    async def _give_up(self, session_id: str, peer: HttpPeer, whole: bool) -> None:
        """The calls that wait now and then, and the whole session; nothing when somebody is there again."""
        calls = peer.awaited
        await self._clock.sleep(GONE_S)
        if session_id in self._open:
            return
        peer.give_up(calls)
        if whole:
            peer.close()
            if session_id in self._idle:
                self._idle.move_to_end(session_id, last=False)  # before any whose client is there

    def _rests(self, session_id: str) -> None:
        """Nobody asks anything in that session now."""
        self._idle[session_id] = None
        if len(self._idle) > self._idle_most:
            self._tasks.start_soon(fenced, self._end, self._idle.popitem(last=False)[0])

    async def _end(self, session_id: str) -> None:
        """Take leave as its client should have: so it ends wherever something of it is."""
        if session_id in self._open:
            return  # its client was quicker; it rests again after that
        peer = self._peers.pop(session_id, None)
        if not self._crowded and peer is not None and not peer.closed:
            self._crowded = True
            log.warning("More than %d sessions over HTTP are idle: from now on the oldest of them end", self._idle_most)
        assert self._app is not None
        headers = [(SESSION_HEADER.encode(), session_id.encode())]
        scope = {"type": "http", "method": "DELETE", "path": "/mcp", "query_string": b"", "headers": headers}
        await self._app(scope, replayed(b"", anyio.sleep_forever), _unheard)


async def _unheard(event: Any) -> None:
    """An answer to nobody."""
