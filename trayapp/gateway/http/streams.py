"""Event streams (WHATWG, server-sent events), and the store from which broken streams are resumed (MCP, transports)."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import OrderedDict

import anyio

from trayapp.gateway.http.asgi import CONNECTION, HttpRequest, open_stream, until_gone
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import CONNECTION_CLOSED, Reply, RequestId, RpcError

log = logging.getLogger(__name__)

MOST_EVENTS = 2_000
MOST_BYTES = 8 * 1024 * 1024
LARGEST_KEPT = 256 * 1024  # bytes of a stored event. A larger answer is stored as an error, a larger message not at all
PING_S = 30.0  # short enough: no proxy is involved, and clients tolerate 60 s of silence or more
BEHIND_MOST = 64 * 1024 * 1024  # bytes that wait for a client that does not read, before it is disconnected
RETRY_MS = 1_000  # how long a client should wait before it reconnects to a broken stream
PING = b": ping\r\n\r\n"
TOO_LARGE = RpcError(
    CONNECTION_CLOSED, "The stream was interrupted during an answer that is too large to keep. Send the request again"
)


def event(frame: bytes, event_id: str = "") -> bytes:
    """Return one message as an event. Replace each CR between JSON tokens by a space: it would end the data line."""
    where = b"id: %b\r\n" % event_id.encode() if event_id else b""
    return b"event: message\r\n%bdata: %b\r\n\r\n" % (where, frame.replace(b"\r", b" ").rstrip(b"\n"))


class EventStore:
    """The most recent events of all streams. An event's id is `STREAM-NUMBER`."""

    def __init__(self, most: int = MOST_EVENTS, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._events: OrderedDict[int, tuple[str, int, bytes]] = OrderedDict()  # number -> owner, stream, event
        self._size = 0
        self._numbers = itertools.count(1)

    def number(self) -> int:
        """Return a new number for a stream or an event."""
        return next(self._numbers)

    def keep(self, owner: str, stream: int, number: int, event: bytes) -> None:
        """Add an event of a session's stream, and drop the oldest ones beyond the bounds."""
        self._events[number] = owner, stream, event
        self._size += len(event)
        while len(self._events) > self._most or self._size > self._most_bytes:
            self._size -= len(self._events.popitem(last=False)[1][2])

    def after(self, owner: str, stream: int, number: int) -> list[bytes]:
        """Return those stored events of a session's stream that have higher numbers than `number`."""
        kept, wanted = self._events.items(), (owner, stream)
        return [event for n, (whose, where, event) in kept if n > number and (whose, where) == wanted]

    def forget(self, owner: str) -> None:
        """Drop all events of a session."""
        for number in [number for number, (whose, _, _) in self._events.items() if whose == owner]:
            self._size -= len(self._events.pop(number)[2])


class EventStream:
    """Ordered messages to one client, carried by one HTTP response at a time.

    - The stream ends with the last of `expects` answers. If that is None, it ends when `end` is called.
    - With a store, the stream can be resumed: if a response breaks off, new events wait in the store for the next one.
    - If only one answer is expected and no event precedes it, it may be sent as JSON instead (`answered`).
    """

    def __init__(self, store: EventStore | None = None, owner: str = "", *, expects: int | None = 1) -> None:
        self._store, self._owner, self._expects = store, owner, expects
        self.number = store.number() if store is not None else 0
        self.ended = False
        self._reply: Reply | None = None  # the only answer, while it may still be sent as JSON
        self._events = expects != 1  # True if the answer will not be sent as JSON
        self._last = 0  # upper bound for the numbers of the events put into `_waiting` so far
        self._waiting: list[bytes] = []  # events for the response that carries, or will carry, the stream
        self._is_direct = store is None or expects is not None  # True if events go straight to `_waiting`
        self._size = 0
        self._news = asyncio.Event()
        self._carrier: anyio.CancelScope | None = None  # scope of the response that carries the stream
        self._lost = False  # True if the client of that response has stopped reading

    @property
    def is_carried(self) -> bool:
        """Return True if a response carries the stream at present."""
        return self._carrier is not None

    def put(self, frame: bytes) -> None:
        """Send a JSON-RPC message as an event, unless the stream has ended. Does not block."""
        if not self.ended:
            self._put(frame, None)

    def answer(self, request_id: RequestId | None, reply: Reply) -> None:
        """Send an answer, unless the stream has ended. Does not block."""
        if self.ended:
            return
        if not self._events:
            self._reply = reply
        else:
            self._put(reply.with_id(dumps(request_id)), request_id)
        if self._expects is not None:
            self._expects -= 1
            self.ended = self._expects <= 0
        self._news.set()

    def be_events(self) -> None:
        """Send the answer as an event instead of JSON from now on."""
        self._events = True
        self._news.set()

    def end(self) -> None:
        """End the stream after the events that have been put into it."""
        self.ended = True
        self._news.set()

    def _put(self, frame: bytes, answers: RequestId | None) -> None:
        self._events = True
        made, number = b"", 0
        if self._store is None:
            made = event(frame)
        else:
            number = self._store.number()
            event_id = f"{self.number}-{number}"
            kept = made = event(frame, event_id)
            if len(made) > LARGEST_KEPT and answers is not None:
                kept = event(Reply.of_error(TOO_LARGE).with_id(dumps(answers)), event_id)
            if len(kept) <= LARGEST_KEPT:
                self._store.keep(self._owner, self.number, number, kept)
        if self._is_direct:
            before = self._size  # not counting this event: one long answer must not disconnect the client
            self._waiting.append(made)
            self._size += len(made)
            self._last = number
            if before > BEHIND_MOST and self._carrier is not None and not self._lost:
                log.warning("Disconnected an HTTP client that does not read its answers")
                self._lost = True
                self._carrier.cancel()
        self._news.set()

    async def answered(self, within_s: float | None = None) -> Reply | None:
        """Wait for the only answer and return it, for the caller to send as JSON. Return None if another message comes
        first, or nothing within `within_s` (None: no limit).

        The limit is in real time, even in tests, because only the answer's form depends on it.
        """
        if not self._news.is_set():
            with anyio.move_on_after(within_s):
                await self._news.wait()
        if self._reply is None:
            self._events = True
        return self._reply

    def priming(self, *, resumed: bool) -> bytes:
        """Return the priming event, with an id to resume from and the delay before reconnecting.

        `resumed`: the stream is being resumed. The event's number is then between those of earlier and later events.
        """
        assert self._store is not None
        number = self._store.number() if resumed else self.number
        return b"id: %d-%d\r\nretry: %d\r\ndata: \r\n\r\n" % (self.number, number, RETRY_MS)

    async def carry(self, request: HttpRequest, first: bytes = b"", after: int | None = None) -> None:
        """Answer a request with events until the stream ends, the client disconnects, or another response takes over.

        `after`: the number of the last event that the client received. `first`: bytes to send before all events or,
        with `after`, between the stored events and the new ones.
        """
        with anyio.CancelScope() as mine:
            if self._carrier is not None:
                self._carrier.cancel()
            self._carrier = mine
            if self._store is not None and not (self._is_direct and after is None):
                self._waiting = self._store.after(self._owner, self.number, self._last if after is None else after)
                self._last = self._store.number()
            self._waiting.insert(0 if after is None else len(self._waiting), first)
            self._size = sum(map(len, self._waiting))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(until_gone, request.receive, mine)
                await self.pour(request, mine)
                tasks.cancel_scope.cancel()
        await self.finish(request)

    async def pour(self, request: HttpRequest, mine: anyio.CancelScope, ping_s: float = PING_S) -> None:
        """Send events until the stream ends or another response takes over. Call `finish` afterwards.

        `mine`: the scope to cancel if the client does not read, or another response takes over.
        """
        self._carrier, self._is_direct, self._lost = mine, True, False
        try:
            await open_stream(request.send, request.more)
            while chunk := await self._next(mine, ping_s):
                await request.send({"type": "http.response.body", "body": chunk, "more_body": True})
        finally:
            if self._carrier is mine:
                self._carrier, self._is_direct, self._waiting = None, self._store is None, []

    async def _next(self, mine: anyio.CancelScope, ping_s: float) -> bytes:
        """Return the next bytes to send, or a ping after `ping_s`.

        Return b"" if the stream has ended or another response has taken over.
        """
        if not any(self._waiting) and not self.ended:
            self._news.clear()
            with anyio.move_on_after(ping_s):
                await self._news.wait()
        if self._carrier is not mine:
            return b""
        waiting, self._waiting, self._size = self._waiting, [], 0
        return b"".join(waiting) or (b"" if self.ended else PING)

    async def finish(self, request: HttpRequest) -> None:
        """Complete the response after `pour`, or cut the connection if the client does not read."""
        if self._lost and (connection := request.scope.get("state", {}).get(CONNECTION)) is not None:
            connection.transport.abort()
        else:
            await request.send({"type": "http.response.body", "body": b""})
