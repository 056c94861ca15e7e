"""A channel over HTTP. Each outgoing message is a POST. Messages in responses and event streams come in as frames.

This module decides the order of sending, handles refusals, and limits time and size. The differences between the
transports are in `streamable`. An error ends only the request that it belongs to. The connection ends if its session is
lost, the server cannot be reached, or authorization is refused.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.abc
import httpx2

from trayapp.backends.context import Inbound
from trayapp.backends.http.auth import RequestSigner
from trayapp.backends.http.refusal import LONGEST_WAIT_S, NOT_EXECUTED, SIGN_IN_DATA, UNAUTHORIZED, HttpRefusal, refused
from trayapp.backends.http.responses import (
    EventLines,
    find_answer,
    is_event_stream,
    is_json,
    json_rpc_in,
    retry_after_s,
    session_is_lost,
    words,
)
from trayapp.backends.launch import HttpLaunch
from trayapp.model.reasons import reason_of
from trayapp.wire.frames import FrameDispatcher, PendingCall
from trayapp.wire.framing import MAX_FRAME_BYTES
from trayapp.wire.jsonio import JsonError, dumps, loads
from trayapp.wire.messages import (
    CANCELLED,
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Call,
    Params,
    Reply,
    RpcError,
    own_id,
)
from trayapp.wire.revisions import MODERN_VERSIONS

log = logging.getLogger(__name__)

DRAIN_S = 1.0  # once a session is lost, its other requests have this long to get their own 404
REDIRECTS = 3  # the most redirects to follow, all within one origin, such as `/mcp` to `/mcp/`
TAKEN_S = 5.0  # limit on sending a notification; a healthy server accepts it in milliseconds
NOTICES_MOST = 1000  # the most notifications that wait while the server accepts none; further ones are dropped
LARGE = 1 << 20  # in bytes; a longer body is not searched for the answer
EVENTS = {"accept": "text/event-stream", "cache-control": "no-store"}  # the headers of a GET for an event stream
SESSION = "mcp-session-id"
SESSION_LOST = "The server ended the session"
# The relayed request whose answer this task reads. It shows which request a server's message belongs to.
SENT_FOR: ContextVar[Call | None] = ContextVar("sent_for", default=None)


class HttpChannel(FrameDispatcher, ABC):
    """A channel to one server. Messages are sent in order; no request waits for the answer to another."""

    def __init__(
        self,
        launch: HttpLaunch,
        client: httpx2.AsyncClient,
        refusal: HttpRefusal,
        tasks: anyio.abc.TaskGroup,
        inbound: Inbound,
    ) -> None:
        super().__init__(self._enqueue, peer=launch.server)
        self.server = launch.server
        self.refusal = refusal
        self.session = ""  # the session id, or "" without a session
        self.gone = anyio.Event()  # set when the channel can carry no more frames
        self._url = launch.url
        self._client = client
        self._tasks = tasks
        self._inbound = inbound
        self._protocol = ""
        self._outgoing: asyncio.Queue[tuple[bytes, str]] = asyncio.Queue()
        self._notices: deque[tuple[bytes, dict[str, Any], str]] = deque()
        self._posts: dict[int, anyio.CancelScope] = {}  # requests in flight
        self._idle = anyio.Event()
        self._busy_until = 0.0  # monotonic seconds until which the server asked not to be called

    @property
    def closed_error(self) -> RpcError:
        """Return the error for requests on a closed channel."""
        return RpcError(CONNECTION_CLOSED, self.refusal.why or f"{self.server} closed the connection")

    @property
    def unanswered_error(self) -> RpcError:
        """Return the error for a request whose response or event stream ended before its answer."""
        if self.refusal.unauthorized:
            return self.closed_error  # another request's 401 has ended the connection
        return RpcError(CONNECTION_CLOSED, f"{self.server} ended the connection before it answered")

    def adopt(self, protocol: str) -> None:
        self._protocol = protocol

    async def exchange(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Exchange messages until `close` is called, then set `gone`."""

        async def on_request(method: str, params: Params) -> dict[str, Any]:
            return await self._inbound.on_request(method, params, SENT_FOR.get())

        def on_notification(method: str, params: Params) -> None:
            self._inbound.on_notification(method, params, SENT_FOR.get())

        try:
            async with anyio.create_task_group() as sending:
                sending.start_soon(self._send_in_order)
                await self.run(on_request, on_notification, task_status=task_status)
                sending.cancel_scope.cancel()
        finally:
            self.gone.set()

    async def flush(self) -> None:
        """Send the waiting notifications after `exchange` has ended: a cancelled call must end at the server, too."""
        while self._notices:
            await self._tell_in_time(*self._notices.popleft())
        while not self._outgoing.empty():
            frame, protocol = self._outgoing.get_nowait()
            message = loads(frame)
            if "id" not in message and protocol not in MODERN_VERSIONS:
                await self._tell_in_time(frame, message, protocol)

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

    def take_answer(self, request_id: int, body: bytes) -> None:
        """Handle the JSON response to a request, repaired if it is not a valid answer. The request always ends."""
        said = json_rpc_in(body) if len(body) <= LARGE else None
        answer = find_answer(said, request_id, f"The answer of {self.server}") if said is not None else None
        body = dumps(answer) if answer is not None else body
        self.take_text(body)
        error = RpcError(INTERNAL_ERROR, f"The answer of {self.server} is not a JSON-RPC message")
        self.answer(request_id, Reply.of_error(error))

    # -- for each transport --------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Open whatever is needed before the first message. Raises httpx2.HTTPError, ValueError, RpcError."""

    @abstractmethod
    async def _ask(self, request_id: int, frame: bytes, message: dict[str, Any], protocol: str) -> None:
        """Send a request, and pass its answer on unless another stream or task does that. Raises RpcError."""

    @abstractmethod
    async def _tell(self, frame: bytes, message: dict[str, Any], protocol: str) -> None:
        """Send a notification or an answer to the server. Raises RpcError, httpx2.HTTPError."""

    # -- sending -------------------------------------------------------------------------------------------------

    def _enqueue(self, data: bytes) -> None:
        for frame in data.split(b"\n"):
            if frame:
                self._outgoing.put_nowait((frame, self._protocol))

    async def _send_in_order(self) -> None:
        while True:
            frame, protocol = await self._outgoing.get()
            message = loads(frame)
            method, request_id = message.get("method"), message.get("id")
            if method is None:  # an answer to the server's request, which the server may need to finish a call
                self._tasks.start_soon(self._tell_quietly, frame, message, protocol)
            elif type(request_id) is int:
                self._posts[request_id] = scope = anyio.CancelScope()
                self._tasks.start_soon(self._request, request_id, frame, message, protocol, scope)
            elif method == "notifications/initialized":  # must arrive before everything that follows
                await self._tell_in_time(frame, message, protocol)
            elif method == CANCELLED and self._ends_response(message, protocol):
                continue
            elif len(self._notices) < NOTICES_MOST:
                self._notices.append((frame, message, protocol))
                if len(self._notices) == 1:
                    self._tasks.start_soon(self._send_notices)

    def _ends_response(self, message: dict[str, Any], protocol: str) -> bool:
        """Close the response of a cancelled request. Return False, without closing it, if a notification is needed."""
        if protocol not in MODERN_VERSIONS:
            return False
        scope = self._posts.get(own_id(message["params"].get("requestId")) or 0)  # none of our ids is 0
        if scope is not None:
            scope.cancel()
        return True

    async def _send_notices(self) -> None:
        """Send the waiting notifications one by one, in order: progress must not go backwards."""
        while self._notices:
            await self._tell_in_time(*self._notices[0])
            self._notices.popleft()

    async def _tell_in_time(self, frame: bytes, message: dict[str, Any], protocol: str) -> None:
        """Send a message that gets no answer. Give up if the server does not accept it within TAKEN_S."""
        with anyio.move_on_after(TAKEN_S):
            await self._tell_quietly(frame, message, protocol)

    async def _tell_quietly(self, frame: bytes, message: dict[str, Any], protocol: str) -> None:
        """Send a message that gets no answer. A failure is only recorded in `refusal`."""
        with suppress(httpx2.HTTPError, RpcError):
            await self._tell(frame, message, protocol)

    async def _request(
        self, request_id: int, frame: bytes, message: dict[str, Any], protocol: str, scope: anyio.CancelScope
    ) -> None:
        call = self.call_of(request_id)
        SENT_FOR.set(None if isinstance(call, PendingCall) else call)  # set only for a session's call
        try:
            with scope:
                await self._ask(request_id, frame, message, protocol)
        except RpcError as error:
            self.answer(request_id, Reply.of_error(error))
        except httpx2.HTTPError as error:
            log.info("A response of %s was interrupted: %s", self.server, error)
            self.answer(request_id, Reply.of_error(self.unanswered_error))
        finally:
            del self._posts[request_id]
            if not self._posts:
                self._idle.set()

    # -- responses -----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def stream(self, headers: dict[str, str]) -> AsyncIterator[httpx2.Response]:
        """Yield the response to a GET for an event stream. Raises httpx2.HTTPError, RpcError."""
        async with AsyncExitStack() as stack:
            request = self._client.build_request("GET", self._url, headers={**headers, **EVENTS})
            try:
                response = await stack.enter_async_context(response_to(self._client, request))
            except httpx2.RequestError as error:
                self._note_unreachable(request.url, error)
                raise
            yield response

    @asynccontextmanager
    async def post(
        self, frame: bytes, headers: dict[str, str], url: httpx2.URL | None = None, request_id: int | None = None
    ) -> AsyncIterator[tuple[httpx2.Response, bytes | None]]:
        """Post a message. Once the server has accepted it, yield the response, and its body if it is JSON.

        `request_id` is given for a request only. Raises RpcError if the server is unreachable or refuses the message.
        """
        if (left_s := self._busy_until - time.monotonic()) > 0:
            raise RpcError(INTERNAL_ERROR, f"{self.server} {_busy(left_s)}")
        headers = {**headers, "content-type": "application/json"}
        request = self._client.build_request("POST", url or self._url, content=frame, headers=headers)
        async with AsyncExitStack() as stack:
            try:
                response = await stack.enter_async_context(response_to(self._client, request))
                body = await self._whole(response) if is_json(response) else None
            except httpx2.RequestError as error:
                not_sent = self._note_unreachable(request.url, error)
                raise RpcError(CONNECTION_CLOSED, self.refusal.why, NOT_EXECUTED if not_sent else None) from None
            status = response.status_code
            if SESSION in request.headers and session_is_lost(status, body):
                self.refusal.status, self.refusal.why, self.session = status, SESSION_LOST, ""
                self.gone.set()
                raise RpcError(CONNECTION_CLOSED, SESSION_LOST, NOT_EXECUTED)
            if status >= 400:
                raise self._refusal_of(response, body, request_id)
            self.refusal.status = None
            if response.has_redirect_location:
                where = response.request.url.join(response.headers["location"])
                place = "another address" if origin(where) == origin(request.url) else f"another host ({where.host})"
                raise RpcError(INTERNAL_ERROR, f"{self.server} has moved to {place}. Change its url in servers.yaml")
            yield response, body

    async def _whole(self, response: httpx2.Response) -> bytes:
        """Return a response's body. Raises httpx2.RequestError, and RpcError beyond MAX_FRAME_BYTES."""
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MAX_FRAME_BYTES:
                limit = f"{MAX_FRAME_BYTES // 2**20} MiB"
                raise RpcError(INVALID_REQUEST, f"The answer of {self.server} is larger than {limit}")
        return bytes(body)

    def _note_unreachable(self, url: httpx2.URL, error: httpx2.RequestError) -> bool:
        """Record why a request failed. If it was not sent (connecting failed), end the channel and return True."""
        self.refusal.why = f"Cannot reach {self.server} at {url.host}: {reason_of(error, url.host)}"
        self.refusal.status = None
        not_sent = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
        if not_sent:
            self.session = ""
            self.gone.set()  # any other error may affect this request alone
        return not_sent

    def _refusal_of(self, response: httpx2.Response, body: bytes | None, request_id: int | None) -> RpcError:
        """Record an error status and return the server's own error, or one that explains the status."""
        status, headers, refusal = response.status_code, response.headers, self.refusal
        refusal.status, refusal.retry_after_s = status, retry_after_s(headers.get("retry-after"))
        if refusal.asks_to_wait and refusal.retry_after_s:
            self._busy_until = time.monotonic() + min(refusal.retry_after_s, LONGEST_WAIT_S)
        if status == UNAUTHORIZED:
            refusal.unauthorized = True
            why = refused(self.server, refusal)
            refusal.why = f"{why.title}. {why.hint}"  # for other open requests, since the connection ends now
            self.gone.set()
        if body is not None and (rpc := json_rpc_in(body)) is not None:
            found = find_answer(rpc, request_id, f"The answer of {self.server}") if request_id is not None else None
            message = found or rpc
            if isinstance(message, dict) and message.get("error") is not None:
                return RpcError.received(message["error"])
        if status == 404:
            return RpcError(METHOD_NOT_FOUND, f"{self.server} answered HTTP {status}")
        said = words(self.server, status, headers.get("content-type", ""), headers.get("www-authenticate", ""))
        if status == UNAUTHORIZED:
            said = f"{said if refusal.auth == 'oauth' else why.title}. {why.hint}"
        elif (left_s := self._busy_until - time.monotonic()) > 0:
            said = f"{self.server} {_busy(left_s)} (HTTP {status})"
        wants_sign_in = status == UNAUTHORIZED and refusal.auth == "oauth"
        return RpcError(INTERNAL_ERROR, said, SIGN_IN_DATA if wants_sign_in else None)


def _busy(left_s: float) -> str:
    return f"is temporarily unavailable and asks not to be called for {max(1, round(left_s))} s"


@asynccontextmanager
async def response_to(client: httpx2.AsyncClient, request: httpx2.Request) -> AsyncIterator[httpx2.Response]:
    """Send a request and yield its unread response. Follow only redirects that keep the method and the origin."""
    for left in range(REDIRECTS, -1, -1):
        response = await client.send(request, stream=True, follow_redirects=False)
        onward = response.next_request
        if not left or onward is None or onward.method != request.method or origin(onward.url) != origin(request.url):
            break
        await response.aclose()
        request = onward
    if is_event_stream(response):
        response.stream = EventLines(response.stream)  # type: ignore[arg-type]  # always an asynchronous stream
    try:
        yield response
    finally:
        with anyio.CancelScope(shield=True):
            await response.aclose()


def origin(url: httpx2.URL) -> tuple[str, str, int | None, bytes]:
    """Return the parts of a URL that a redirect must not change. They include the user name and password."""
    return url.scheme, url.host, url.port, url.userinfo


# -- the client of one server ----------------------------------------------------------------------------------------

CONNECT_S = 15.0  # limit on connecting (TCP and TLS); an answer itself may take as long as the caller waits
# Each waiting call holds a TCP connection. With a limit, answers, cancels and pings would wait for calls to end.
OPEN = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=5.0)
NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts no certificates: no redirect leads from http:// to https://
# The kernel detects a peer that vanished silently (a pulled cable, a sleeping host, a router that lost its state) by
# TCP keepalive. The peer's kernel answers the probes even if the server is too busy to answer a ping.
SILENT_S = 30  # seconds without a byte until the first keepalive probe
ASK_AGAIN_S = 10  # seconds between probes
QUESTIONS = 3  # unanswered probes that end the connection, after one minute in total


class SignedTransport(httpx2.AsyncHTTPTransport):
    """A transport that adds the sign-in to each request where allowed. Each redirect is checked again."""

    def __init__(self, signer: RequestSigner | None, trust: ssl.SSLContext) -> None:
        super().__init__(verify=trust, limits=OPEN, socket_options=keepalive_options())
        self._signer = signer

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()  # a redirected request has its body as a stream, but may have to be sent twice
        send = super().handle_async_request
        return await (send(request) if self._signer is None else self._signer.send(request, send))


@asynccontextmanager
async def http_client(launch: HttpLaunch, signer: RequestSigner | None) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield the client for a server's address. For https, load certificates in a thread, which takes 20 ms or more."""
    trust = NOBODY
    if not launch.url.lower().startswith("http://"):
        trust = await anyio.to_thread.run_sync(httpx2.create_ssl_context)
    unbounded = httpx2.Timeout(None, connect=CONNECT_S)
    transport = SignedTransport(signer, trust)
    async with httpx2.AsyncClient(transport=transport, headers=launch.headers, timeout=unbounded) as client:
        yield client


def keepalive_options() -> list[tuple[int, int, int]]:
    """Return the socket options that make the kernel end a connection to a lost peer, if this system supports them."""
    tcp, ms = socket.IPPROTO_TCP, 1000
    wanted = [
        ("TCP_KEEPIDLE", SILENT_S),
        ("TCP_KEEPALIVE", SILENT_S),  # its name on macOS
        ("TCP_KEEPINTVL", ASK_AGAIN_S),
        ("TCP_KEEPCNT", QUESTIONS),
        ("TCP_USER_TIMEOUT", (SILENT_S + QUESTIONS * ASK_AGAIN_S) * ms),  # for data that was sent but not acknowledged
    ]
    known = [(tcp, getattr(socket, name), value) for name, value in wanted if hasattr(socket, name)]
    return [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *known]
