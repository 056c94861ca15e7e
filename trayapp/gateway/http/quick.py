"""Requests of older clients over HTTP that are answered at once: in one JSON body, without an event stream.

Either is the server's choice (MCP transports, Streamable HTTP). An event stream of the SDK's takes seven tasks, three
writes and a parse of the answer; measured a call: 1.2 ms of processor time against 0.4, of 1 MB 15 against 2. What
takes longer, or has something to tell or to ask before its answer, goes on by the SDK, whose streams can be resumed.
Never here: sessions' behaviour, clients of 2026-07-28.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import anyio.to_thread
import orjson

from trayapp.backends.clock import Clock
from trayapp.gateway.http.asgi import JSON, STREAM, Asgi, Headers, replayed, respond, whole
from trayapp.gateway.http.peers import BEGUN, HttpPeer
from trayapp.gateway.http.presence import SESSION_HEADER
from trayapp.gateway.sessions.lists import LISTS
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import RequestId
from trayapp.wire.revisions import HANDSHAKE_VERSIONS

AT_ONCE_S = 0.1
LISTED_S = 1.0  # a list has nothing to tell before; the first ones wait for servers that are being asked
LARGEST = 1 << 20  # bytes of a request's body; a larger one is the SDK's to judge
SEEN_S = 60.0  # the SDK ends a session of which it sees nothing for 30 minutes
VERSION_HEADER = "mcp-protocol-version"
VERSIONS = (None, *HANDSHAKE_VERSIONS)  # any other one, known or not, the SDK takes for a client of 2026-07-28
SHORT = 1_000  # bytes of a list's request; one holds a cursor at most


class Quick:
    """`peer_of`: the session that an id belongs to, None where there is none."""

    def __init__(
        self, peer_of: Callable[[str | None], HttpPeer | None], clock: Clock, at_once_s: float = AT_ONCE_S
    ) -> None:
        self._peer_of = peer_of
        self._clock = clock
        self._at_once_s = at_once_s
        self._parser: Callable[[bytes], Any] | None = None  # the SDK's; the first call loads it, no list waits for it
        self._ended: WeakSet[HttpPeer] = WeakSet()  # by their clients
        self._seen: WeakKeyDictionary[HttpPeer, float] = WeakKeyDictionary()  # when the SDK had a request of it

    def around(self, app: Asgi) -> Asgi:
        """The application, asked only for what is not answered at once."""

        async def answered(scope: Any, receive: Any, send: Any) -> None:
            peer = self._peer(scope)
            if peer is None:
                await app(scope, receive, send)
                return
            body = await whole(receive)
            if body is None:
                return
            request = list_in(body) or request_in(body, await self._sdks_parser())
            begun = peer.begin(*request) if request is not None else None
            if request is None or begun is None:
                await app(scope, replayed(body, receive), send)
                return
            with begun.held():
                if (reply := await begun.soon(LISTED_S if request[1] in LISTS else self._at_once_s)) is not None:
                    await respond(send, reply.with_id(dumps(request[0])))
                else:
                    await app({**scope, BEGUN: begun}, replayed(body, receive), send)

        return answered

    async def _sdks_parser(self) -> Callable[[bytes], Any]:
        if self._parser is None:
            self._parser = await anyio.to_thread.run_sync(sdks_parser)
        return self._parser

    def _peer(self, scope: Any) -> HttpPeer | None:
        headers = Headers(scope)
        peer = self._peer_of(headers.get(SESSION_HEADER))
        if peer is not None and scope["method"] == "DELETE":
            self._ended.add(peer)
        if peer is None or peer in self._ended or scope["method"] != "POST" or not takes_both(headers):
            return None
        now = self._clock.now()
        if now - self._seen.setdefault(peer, now) < SEEN_S:
            return peer
        self._seen[peer] = now
        return None


def takes_both(headers: Headers) -> bool:
    """Whether the SDK would take it, too: what it would refuse, it shall refuse."""
    length = headers.get("content-length") or ""
    return (
        headers.accepts(JSON, STREAM)
        and headers.content == JSON
        and headers.get(VERSION_HEADER) in VERSIONS
        and headers.get("transfer-encoding") is None  # by which a body may be longer
        and length.isdigit()
        and int(length) <= LARGEST
    )


def sdks_parser() -> Callable[[bytes], Any]:
    """Blocks while it is loaded, some 20 ms."""
    from pydantic_core import from_json

    return from_json


def list_in(body: bytes) -> tuple[RequestId, str, dict[str, Any] | None] | None:
    """The request of a list, which parsers cannot read in two ways: it has no values but a cursor."""
    if len(body) > SHORT:
        return None
    request = request_in(body, orjson.loads)
    return request if request is not None and request[1] in LISTS else None


def request_in(body: bytes, parse: Callable[[bytes], Any]) -> tuple[RequestId, str, dict[str, Any] | None] | None:
    """The request, if that is what it is, and no handshake.

    With the SDK's parser: what it refuses (lone surrogates, 200 levels) must not be begun, and then be refused.
    """
    try:
        message = parse(body)
    except ValueError:
        return None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return None
    request_id, method, params = message.get("id"), message.get("method"), message.get("params")
    if isinstance(request_id, bool) or not isinstance(request_id, int | str):
        return None
    if not isinstance(method, str) or method == "initialize":
        return None
    if params is not None and not isinstance(params, dict):
        return None
    return request_id, method, params
