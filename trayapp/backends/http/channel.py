"""Channel over HTTP: each outgoing message is a POST; messages in responses and event streams come in as frames.

The exchange of each transport is in `streamable` and `sse`; refusals are handled in `transport`.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
import httpx2

from trayapp.backends.context import Inbound
from trayapp.backends.http.refusal import HttpRefusal
from trayapp.backends.launch import HttpLaunch
from trayapp.wire.frames import FrameDispatcher, PendingCall
from trayapp.wire.jsonio import JsonError, dumps, loads
from trayapp.wire.messages import CANCELLED, CONNECTION_CLOSED, Call, Params, Reply, RpcError, own_id
from trayapp.wire.revisions import MODERN_VERSIONS

log = logging.getLogger(__name__)

DRAIN_S = 1.0  # how long the other requests of a lost session may take to get their 404
REDIRECTS = 3  # within the same origin, as `/mcp` to `/mcp/`
EVENTS = {"accept": "text/event-stream", "cache-control": "no-store"}  # the headers of a GET for an event stream
# The relayed request whose answer this task reads. It shows which request a server's message belongs to.
SENT_FOR: ContextVar[Call | None] = ContextVar("sent_for", default=None)


@dataclass(slots=True)
class _PostChannel:
    """A request in flight. `modern`: in its revision, closing the response is the only way to cancel it."""

    modern: bool
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class HttpChannel(FrameDispatcher, ABC):
    """Messages to and from one server. They are sent in order; a request does not wait for another's answer."""

    def __init__(
        self, launch: HttpLaunch, client: httpx2.AsyncClient, refusal: HttpRefusal, tasks: anyio.abc.TaskGroup
    ) -> None:
        super().__init__(self._enqueue, peer=launch.server)
        self.server = launch.server
        self.refusal = refusal
        self._url = launch.url
        self._client = client
        self._tasks = tasks
        self._protocol = ""
        self._outgoing: asyncio.Queue[tuple[bytes, str]] = asyncio.Queue()
        self._posts: dict[int, _PostChannel] = {}
        self._idle = anyio.Event()

    @property
    def closed_error(self) -> RpcError:
        """Return the error for requests that the server can no longer answer."""
        return RpcError(CONNECTION_CLOSED, self.refusal.why or f"{self.server} closed the connection")

    @property
    def unanswered_error(self) -> RpcError:
        """Return the error for a request whose response or event stream ended before its answer."""
        if self.refusal.unauthorized:
            return self.closed_error  # another request's 401 has ended the connection
        return RpcError(CONNECTION_CLOSED, f"{self.server} ended the connection before its answer")

    def adopt(self, protocol: str) -> None:
        """Use this protocol revision in the headers of later requests."""
        self._protocol = protocol

    async def exchange(
        self,
        inbound: Inbound,
        gone: anyio.Event,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Exchange messages until `close` is called, then set `gone`."""

        async def on_request(method: str, params: Params) -> dict[str, Any]:
            return await inbound.on_request(method, params, SENT_FOR.get())

        def on_notification(method: str, params: Params) -> None:
            inbound.on_notification(method, params, SENT_FOR.get())

        try:
            async with anyio.create_task_group() as sending:
                sending.start_soon(self._send_in_order)
                await self.run(on_request, on_notification, task_status=task_status)
                sending.cancel_scope.cancel()
        finally:
            gone.set()

    async def flush(self) -> None:
        """Send the remaining notifications once sending has ended: a cancelled call must end at the server, too."""
        while not self._outgoing.empty():
            frame, protocol = self._outgoing.get_nowait()
            message = loads(frame)
            if "id" not in message and protocol not in MODERN_VERSIONS:
                await self._tell(frame, message, protocol)

    async def drained(self) -> None:
        """Wait briefly for the answers to open requests: each request of a lost session gets its own 404."""
        with anyio.move_on_after(DRAIN_S, shield=True):
            while self._posts:
                self._idle = anyio.Event()
                await self._idle.wait()

    def take_text(self, text: bytes) -> None:
        """Handle a message from the server. Make it one line first, since it may be passed on unchanged."""
        if b"\n" in text or b"\r" in text:
            try:
                text = dumps(loads(text))
            except JsonError:
                text = text.replace(b"\n", b" ").replace(b"\r", b" ")
        self.take(text)

    # -- for each transport --------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Open whatever is needed before the first message. Raises httpx2.HTTPError, ValueError."""

    @abstractmethod
    async def _ask(self, request_id: int, frame: bytes, message: dict[str, Any], protocol: str) -> None:
        """Send a request. If no answer arrives here, another stream or task must answer it."""

    @abstractmethod
    async def _tell(self, frame: bytes, message: dict[str, Any], protocol: str) -> None:
        """Send a notification or an answer to the server. Return once the next message may be sent."""

    # -- sending -------------------------------------------------------------------------------------------------

    def _enqueue(self, data: bytes) -> None:
        for frame in data.split(b"\n"):
            if frame:
                self._outgoing.put_nowait((frame, self._protocol))

    async def _send_in_order(self) -> None:
        while True:
            frame, protocol = await self._outgoing.get()
            message = loads(frame)
            request_id = message.get("id")
            if "method" in message and type(request_id) is int:
                self._posts[request_id] = post = _PostChannel(protocol in MODERN_VERSIONS)
                self._tasks.start_soon(self._request, request_id, frame, message, protocol, post)
                continue
            is_modern = False
            if message.get("method") == CANCELLED:  # a request of 2026-07-28 is cancelled by closing its response
                cancelled = self._posts.get(own_id(message["params"].get("requestId")) or 0)  # none of our ids is 0
                is_modern = cancelled.modern if cancelled is not None else protocol in MODERN_VERSIONS
                if cancelled is not None and is_modern:
                    cancelled.scope.cancel()
            if not is_modern:
                await self._tell(frame, message, protocol)

    async def _request(
        self, request_id: int, frame: bytes, message: dict[str, Any], protocol: str, post: _PostChannel
    ) -> None:
        call = self.call_of(request_id)
        SENT_FOR.set(None if isinstance(call, PendingCall) else call)  # only for a session's call
        try:
            with post.scope:
                await self._ask(request_id, frame, message, protocol)
        except httpx2.HTTPError as error:
            log.info("A response of %s broke off: %s", self.server, error)
            self.answer(request_id, Reply.of_error(self.unanswered_error))
        finally:
            del self._posts[request_id]
            if not self._posts:
                self._idle.set()


@asynccontextmanager
async def response_to(client: httpx2.AsyncClient, request: httpx2.Request) -> AsyncIterator[httpx2.Response]:
    """Send a request and yield its unread response. Follow only redirects that keep the method and the origin."""
    for _ in range(REDIRECTS):
        response = await client.send(request, stream=True, follow_redirects=False)
        onward = response.next_request
        if onward is None or onward.method != request.method or origin(onward.url) != origin(request.url):
            break
        await response.aclose()
        request = onward
    try:
        yield response
    finally:
        with anyio.CancelScope(shield=True):
            await response.aclose()


def origin(url: httpx2.URL) -> tuple[str, str, int | None, bytes]:
    """Return the parts of a URL that a redirect must not change. They include the user name and password."""
    return url.scheme, url.host, url.port, url.userinfo
