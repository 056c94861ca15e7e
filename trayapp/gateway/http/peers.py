"""Clients over HTTP as ClientPeers: each request has a way of its own, and between requests there may be another.

Never here: the SDK, whose channels look here like any other; routes, sessions' behaviour.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import anyio
import anyio.abc

from trayapp.gateway.client import OnNotification, OnRequest
from trayapp.wire.messages import (
    CANCELLED,
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Call,
    Params,
    Reply,
    Request,
    RequestId,
    RpcError,
)

log = logging.getLogger(__name__)

REQUEST_CANCELLED = -32800  # as the SDK answers a request of an older client's that is no longer wanted
AGAIN = "introduced again"  # the id of a handshake that no client waits for
BEGUN = "multi_mcp.begun"  # in the ASGI scope of a request: the Exchange
MANY = 10_000  # messages that wait for one client that does not read; more are dropped


class Outbound(Protocol):
    """A way to a client."""

    async def notify(self, method: str, params: Params) -> None:
        """Tell it something."""

    async def send_raw_request(self, method: str, params: Params) -> dict[str, Any]:
        """Ask it something. Raises RpcError."""


class Exchange:
    """One request of a client's until its answer: what is to be told with it, in its order.

    `early`: it has no way to the client yet, but `attach` will give it one unless its answer comes first. `end` is then
    called once, with whether it was answered.
    """

    def __init__(self, channel: Outbound | None, end: Callable[[bool], None] | None = None) -> None:
        self.channel = channel
        self.early = end is not None
        self._end = end
        self._answered = False
        self._attached = anyio.Event()
        self._first: tuple[str, Params] | None = None  # that `answer_first` found instead of an answer
        self._send, self._receive = anyio.create_memory_object_stream[Reply | tuple[str, Params] | None](MANY)

    def attach(self, channel: Outbound) -> None:
        """What is told and asked can go out from now on."""
        self.channel, self.early = channel, False
        self._attached.set()

    async def attached(self) -> None:
        """Wait for the channel."""
        if self.early:
            await self._attached.wait()

    async def way(self) -> Outbound | None:
        """The channel, once it is there."""
        if self.early:
            self.put(None)
        await self.attached()
        return self.channel

    @contextmanager
    def kept(self) -> Iterator[None]:
        """What waits in it is dropped at the end of the block."""
        with self._send, self._receive:
            yield

    @contextmanager
    def held(self) -> Iterator[None]:
        """An early one ends with the block, unless it was attached in it."""
        try:
            yield
        finally:
            if self.early and self._end is not None:
                self._end(self._answered)
                with self.kept():
                    pass

    async def soon(self, seconds: float) -> Reply | None:
        """The answer, if it comes within so many seconds, and nothing else before it.

        By the real clock: nothing is decided by it but how the answer is written.
        """
        item: Reply | tuple[str, Params] | None = None
        with anyio.move_on_after(seconds):
            item = await self._receive.receive()
        if isinstance(item, Reply):
            self._answered = True
            return item
        self._first = item
        return None

    async def reply(self) -> Reply:
        """The answer, however long it takes. What is told before it has no way to the client."""
        while not isinstance(item := await self._receive.receive(), Reply):
            continue
        self._answered = True
        return item

    def put(self, item: Reply | tuple[str, Params] | None) -> None:
        """An answer, or a notification before it; None: there is something to ask."""
        try:
            self._send.send_nowait(item)
        except (anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            log.debug("A client does not read; a message to it is dropped")

    async def until_answered(self) -> Reply:
        """Pass on what is told meanwhile, and return the answer."""
        with self.kept():
            await self._tell(self._first)
            async for item in self._receive:
                if isinstance(item, Reply):
                    return item
                await self._tell(item)
        raise RpcError(CONNECTION_CLOSED, "The gateway is stopping")

    async def _tell(self, item: tuple[str, Params] | None) -> None:
        if item is not None and self.channel is not None:
            await self.channel.notify(*item)


class HttpPeer:
    """See gateway.peer.ClientPeer. `standing`: the way for what belongs to no request, where there is one.

    `later`: there is none yet, `stand` will give it; what is told until then waits for that.
    """

    def __init__(self, standing: Outbound | None, *, later: bool = False) -> None:
        self._open: dict[RequestId, Exchange] = {}
        self._numbers = itertools.count(1)
        self._asked: dict[int, anyio.CancelScope] = {}
        self._own = Exchange(standing, (lambda answered: None) if later else None)
        self._gone = anyio.Event()
        self._ready = anyio.Event()
        self._tasks: anyio.abc.TaskGroup | None = None
        self._on_request: OnRequest | None = None
        self._on_notification: OnNotification | None = None

    async def run(self, on_request: OnRequest, on_notification: OnNotification) -> None:
        """See ClientPeer."""
        self._on_request, self._on_notification = on_request, on_notification
        with self._own.kept():
            async with anyio.create_task_group() as self._tasks:
                self._tasks.start_soon(self._tell_own)
                self._ready.set()
                await self._gone.wait()
                self._tasks.cancel_scope.cancel()

    async def _tell_own(self) -> None:
        await self._own.attached()
        await self._own.until_answered()

    def stand(self, standing: Outbound) -> None:
        """The way for what belongs to no request is there, or is another one."""
        self._own.attach(standing)

    async def ready(self) -> None:
        """Wait until the session is there."""
        await self._ready.wait()

    def close(self) -> None:
        """The client is gone."""
        self._gone.set()

    @property
    def closed(self) -> bool:
        """Whether it is."""
        return self._gone.is_set()

    async def introduce(self, params: dict[str, Any]) -> None:
        """Shake hands for a client that did so before, when it was another session."""
        await self._ready.wait()
        assert self._on_request is not None
        self._open[AGAIN] = exchange = Exchange(None)
        try:
            self._on_request(Request(AGAIN, "initialize", params))
            await exchange.until_answered()
        finally:
            del self._open[AGAIN]
        self.notification("notifications/initialized", None)

    # -- from the client -----------------------------------------------------------------------------------------

    async def request(
        self,
        request_id: RequestId,
        method: str,
        params: Mapping[str, Any] | None,
        channel: Outbound,
        begun: Exchange | None = None,
    ) -> dict[str, Any]:
        """One request and its result, or the rest of one that `begin` began. Raises RpcError.

        `channel`: the way that belongs to it. Being cancelled cancels it for the session, too.
        """
        await self._ready.wait()
        assert self._on_request is not None
        exchange = self._open.get(request_id)
        if begun is not None and exchange is not begun:
            raise RpcError(REQUEST_CANCELLED, "Request cancelled")  # its client is gone
        if begun is None and exchange is not None:
            raise _twice(request_id)
        try:
            if begun is not None:
                begun.attach(channel)
            else:
                self._open[request_id] = begun = Exchange(channel)
                self._on_request(Request(request_id, method, _plain(params)))
            return (await begun.until_answered()).result()
        except RpcError:
            raise
        except BaseException:
            self.notification(CANCELLED, {"requestId": request_id, "reason": "the client went away"})
            raise
        finally:
            self._open.pop(request_id, None)

    def begin(self, request_id: RequestId, method: str, params: dict[str, Any] | None) -> Exchange | None:
        """A request before the SDK has it, which `request` goes on with if that has to; None if it has to begin it.

        A second one of an id is refused here: in the SDK it would take the stream of the first one.
        """
        if self._on_request is None or self.closed:
            return None
        if request_id in self._open:
            refused = Exchange(None, lambda answered: None)
            refused.put(Reply.of_error(_twice(request_id)))
            return refused

        def end(answered: bool) -> None:
            del self._open[request_id]
            if not answered:
                self.notification(CANCELLED, {"requestId": request_id, "reason": "the client went away"})

        self._open[request_id] = exchange = Exchange(None, end)
        try:
            self._on_request(Request(request_id, method, params))
        except Exception:  # the boundary at which one request's failure stops; the SDK's own is not around this one
            log.exception("A request failed in a way that we do not know")
            exchange.put(Reply.of_error(RpcError(INTERNAL_ERROR, "The request could not be answered")))
        return exchange

    @property
    def awaited(self) -> frozenset[RequestId]:
        """The requests that wait for an answer."""
        return frozenset(self._open)

    def give_up(self, requests: frozenset[RequestId]) -> None:
        """Those of these requests that still wait: nobody is there who could be answered."""
        for request_id in requests & self.awaited:
            self.notification(CANCELLED, {"requestId": request_id, "reason": "the client went away"})
            self._open[request_id].put(Reply.of_error(RpcError(CONNECTION_CLOSED, "The client went away")))

    def notification(self, method: str, params: Mapping[str, Any] | None) -> None:
        """What the client tells."""
        if self._on_notification is not None:
            self._on_notification(method, _plain(params))
        if method == CANCELLED:
            self._end_early((params or {}).get("requestId"))

    def _end_early(self, request_id: Any) -> None:
        """A cancelled request is answered as the SDK answers it, where that knows nothing of it yet."""
        exchange = self._open.get(request_id) if isinstance(request_id, int | str) else None
        if exchange is not None and exchange.early:
            exchange.put(None)  # by its stream: the SDK's own client breaks over a JSON body for which it does not wait
            exchange.put(Reply.of_error(RpcError(REQUEST_CANCELLED, "Request cancelled")))

    # -- to the client (ClientPeer) ------------------------------------------------------------------------------

    def respond(self, request_id: RequestId, reply: Reply) -> None:
        """See ClientPeer."""
        exchange = self._open.get(request_id)
        if exchange is not None:
            exchange.put(reply)

    def send_notification(self, method: str, params: Params, about: RequestId | None = None) -> None:
        """See ClientPeer."""
        exchange = self._open.get(about) if about is not None else None
        (exchange or self._own).put((method, params))

    def relay(self, method: str, params: Params, call: Call, about: RequestId | None = None) -> int:
        """See ClientPeer."""
        number = next(self._numbers)
        exchange = self._open.get(about) if about is not None else None
        exchange = exchange or self._own
        if self._tasks is None or (exchange.channel is None and not exchange.early):
            call.answered(Reply.of_error(RpcError(CONNECTION_CLOSED, "The client cannot be asked")))
        else:
            self._asked[number] = scope = anyio.CancelScope()
            self._tasks.start_soon(self._ask, number, scope, exchange, method, params, call)
        return number

    def cancel(self, request_id: int, reason: str) -> None:
        """See ClientPeer."""
        scope = self._asked.pop(request_id, None)
        if scope is not None:
            scope.cancel()

    async def _ask(
        self, number: int, scope: anyio.CancelScope, exchange: Exchange, method: str, params: Params, call: Call
    ) -> None:
        """One question: the boundary at which its failure stops."""
        reply = Reply.of_error(RpcError(CONNECTION_CLOSED, "The client went away"))
        with scope:
            try:
                channel = await exchange.way()
                assert channel is not None
                reply = Reply.of_result(await channel.send_raw_request(method, params))
            except RpcError as error:
                reply = Reply.of_error(error)
            except Exception:
                log.exception("A question to a client failed in a way that we do not know")
                reply = Reply.of_error(RpcError(INTERNAL_ERROR, "The question could not be asked"))
        if self._asked.pop(number, None) is not None:
            call.answered(reply)


def _twice(request_id: RequestId) -> RpcError:
    return RpcError(INVALID_REQUEST, f"A request with the id {request_id!r} is already under way")


def _plain(params: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return params if params is None or isinstance(params, dict) else dict(params)
