"""The HTTP transport to one server. It classifies responses, records failures, and limits times and sizes.

A response is that of an MCP server, of a busy one, or of something else. An error that would end the whole connection
ends only its request.
"""

from __future__ import annotations

import math
import re
import socket
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import httpx2

from trayapp.backends.http.auth import RequestSigner
from trayapp.backends.http.refusal import (
    LONGEST_WAIT_S,
    NOT_EXECUTED,
    SIGN_IN_DATA,
    UNAUTHORIZED,
    HttpRefusal,
    refused,
)
from trayapp.backends.launch import HttpLaunch
from trayapp.model.reasons import reason_of
from trayapp.wire.framing import MAX_FRAME_BYTES
from trayapp.wire.jsonio import JsonError, dumps, loads
from trayapp.wire.messages import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    RequestId,
    RpcError,
    is_answer,
    is_request_id,
    mended,
    own_id,
)

UNAVAILABLE = frozenset({429, 502, 503, 504})
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_BEARER = re.compile(r"(?:^|,)\s*bearer(?=\s|,|$)", re.IGNORECASE)
LONGEST_WORD = 60  # characters of a content type in error texts
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ResponseKind(StrEnum):
    """The kind of server that answers. The values go into error texts, after the server's name."""

    MCP = "answered"
    BUSY = "is temporarily unavailable"
    SIGN_IN = "wants a sign-in"
    MAYBE_SIGN_IN = "may want a sign-in, but does not say which kind"
    OTHER = "does not answer as an MCP server does"


def kind_of(status: int, content_type: str = "", body: bytes = b"", challenge: str | None = None) -> ResponseKind:
    """Classify a response to a JSON-RPC request; `challenge` is its WWW-Authenticate header.

    An event stream counts as MCP before its first event: nothing else streams in answer to a JSON-RPC message.
    """
    if status == 401:  # RFC 9110 11.6.1: there may be several challenges
        is_bearer = challenge is not None and _BEARER.search(_QUOTED.sub("", challenge)) is not None
        return ResponseKind.SIGN_IN if is_bearer else ResponseKind.MAYBE_SIGN_IN
    if is_json_rpc(body):
        return ResponseKind.MCP
    if status in UNAVAILABLE:
        return ResponseKind.BUSY
    if status == 200 and content_type.lower().startswith("text/event-stream"):
        return ResponseKind.MCP
    return ResponseKind.OTHER


def is_json_rpc(body: bytes) -> bool:
    """Return True if the body is a JSON-RPC message or a batch of messages."""
    try:
        message = loads(body)
    except JsonError:
        return False
    parts = message if isinstance(message, list) and message else [message]
    return all(isinstance(part, dict) and part.get("jsonrpc") == "2.0" for part in parts)


def words(server: str, kind: ResponseKind, status: int, content_type: str = "") -> str:
    """Return one line for people: the server, its kind, and the status and content type that show it."""
    said = content_type.partition(";")[0].strip()[:LONGEST_WORD]
    told = f"HTTP {status}, {said}" if said and kind is ResponseKind.OTHER else f"HTTP {status}"
    return f"{server} {kind} ({told})"


def find_answer(body: bytes, request_id: RequestId, words: str) -> dict[str, Any] | None:
    """Return the answer in a JSON response to a request, or None if the response is a valid answer as it stands.

    A single answer without an id counts as the request's: the server could not read the id. A batch is searched. A
    response without an answer becomes an error; otherwise it would be dropped and the request would never end.
    """
    try:
        said = loads(body)
    except JsonError:
        return _error(request_id, f"{words} is not valid JSON, or nested too deep")
    parts = [part for part in (said if isinstance(said, list) else [said]) if isinstance(part, dict)]
    number = own_id(request_id)
    for part in parts:
        given = part.get("id")
        is_ours = given is None or given == request_id or (number is not None and own_id(given) == number)
        if "method" not in part and is_ours:
            plain = part is said and given is not None and ("result" in part or "error" in part)
            return None if plain and is_answer(part) else {**_readable(part, words), "id": request_id}
    return _error(request_id, f"{words} does not answer the request")


def _readable(part: dict[str, Any], words: str) -> dict[str, Any]:
    if "method" in part or not is_request_id(part.get("id", 0)):
        return part
    if "result" in part or "error" in part:
        return part if is_answer(part) else mended(part, words)
    return _error(part.get("id"), f"{words} holds neither a result nor an error")


def _error(request_id: Any, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": INTERNAL_ERROR, "message": text}}


class EventLines(httpx2.AsyncByteStream):
    """A byte stream with newlines as line ends and without a leading byte order mark (WHATWG HTML, 9.2.5).

    After a lone carriage return, the event reader would wait for the next byte and delay the event that the line ends.
    """

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        begun = returned = False
        async for came in self._stream:
            part = came if begun else came.removeprefix(BYTE_ORDER_MARK)
            begun = begun or bool(came)
            if returned:
                part = part.removeprefix(b"\n")
            returned = came.endswith(b"\r") or (returned and not came)
            if part:
                yield part.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in part else part

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()


SESSION_LOST = "The server ended the session"
SESSION = "mcp-session-id"
_KEPT_HEADERS = ("www-authenticate", "retry-after")
_OF_THE_WAY = ("content-encoding", "content-length", "transfer-encoding")  # no longer valid once the body was read
# The kernel detects a peer that vanished silently (a pulled cable, a sleeping host, a router that lost its state) by
# TCP keepalive. The other kernel answers even if the server is too busy to answer a ping.
SILENT_S = 30  # seconds without a byte until the first keepalive probe
ASK_AGAIN_S = 10  # seconds between probes
TAKEN_S = 5.0  # for a server to accept a notification; a healthy one does in milliseconds
REDIRECTS = 3  # within the same origin
# Each waiting call holds a TCP connection. With a limit, answers, cancels and pings would wait for calls to end.
OPEN = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=5.0)
NOTICES_MOST = 1000  # notifications that wait for a server that accepts none; more are dropped
LONGEST_REFUSAL = 1_000  # bytes; a longer answer is not searched for a lost session
_NO_SESSION = re.compile(
    r"\b(?:no valid|invalid|unknown|expired|missing)\b[\w -]{0,9}\bsession\b"
    r"|\bsession\b.{0,60}\b(?:not found|not exist|expired|unknown|invalid|not initialized|terminated)\b",
    re.IGNORECASE | re.DOTALL,
)
# The TypeScript SDK's transport says so after a restart, before it looks at the request
_NOT_INITIALIZED = re.compile(r"\bnot (?:yet )?(?:been )?initiali[sz]ed\b|\bbefore initiali[sz]ation\b", re.IGNORECASE)
LARGE = 1 << 20  # bytes: longer bodies are not parsed
QUESTIONS = 3  # unanswered probes that end the connection, after one minute in total


NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody: no redirect leads from http:// to https://


async def trust_for(url: str) -> ssl.SSLContext:
    """Return the TLS context for that address. Loading the certificates takes 20 ms or more, in a thread."""
    if url.lower().startswith("http://"):
        return NOBODY
    return await anyio.to_thread.run_sync(httpx2.create_ssl_context)


class HttpTransport(httpx2.AsyncHTTPTransport):
    """An httpx2 transport that records failures and the session id, and turns a failed connection into an answer.

    In the SDK's transport, one request's network error ends all others on the connection. As a 502 with a JSON-RPC
    error, it ends that request alone.
    """

    def __init__(
        self,
        launch: HttpLaunch,
        refusal: HttpRefusal,
        gone: anyio.Event,
        now: Callable[[], float] = time.monotonic,
        signed: RequestSigner | None = None,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(verify=trust or NOBODY, limits=OPEN, socket_options=signs_of_life())
        self._server = launch.server
        self._answers_in_place = launch.kind != "sse"  # with legacy SSE, answers come on another connection
        self._now = now
        self._busy_until = 0.0
        self._notices: deque[httpx2.Request] = deque()
        self.tasks: anyio.abc.TaskGroup | None = None  # runs the sending of messages that nothing waits for
        self._refusal = refusal
        self._gone = gone
        self.session: str | None = None
        self._signed = signed

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()  # a redirected request has its body as a stream
        kind = _kind(request)
        if kind == "request" or self.tasks is None:
            return await self._exchange(request)
        if kind == "initialized":
            return await self._tell(request)
        if kind == "answer":
            self.tasks.start_soon(self._tell, request, math.inf)  # otherwise the call that asked would never end
        elif len(self._notices) < NOTICES_MOST:
            self._notices.append(request)
            if len(self._notices) == 1:
                self.tasks.start_soon(self._tell_in_order)
        return httpx2.Response(202, request=request)

    async def flush(self) -> None:
        """Send the queued notifications, now that nothing else is sent."""
        while self._notices:
            await self._tell(self._notices.popleft())

    async def _tell_in_order(self) -> None:
        """Send the queued notifications one by one, in order: progress must not go backwards."""
        while self._notices:
            await self._tell(self._notices[0])
            self._notices.popleft()

    async def _tell(self, request: httpx2.Request, within_s: float | None = None) -> httpx2.Response:
        """Send a message that has no answer. Give it up if the server does not accept it in time."""
        with anyio.move_on_after(TAKEN_S if within_s is None else within_s):
            for _ in range(REDIRECTS):
                response = await self._exchange(request)
                await response.aclose()
                if response.status_code not in (307, 308) or not response.has_redirect_location:
                    break
                where = request.url.join(response.headers["location"])
                if _origin(where) != _origin(request.url):
                    break  # followed within the origin only, as from `/mcp` to `/mcp/`
                headers, content = request.headers, request.content
                extensions = request.extensions
                request = httpx2.Request(request.method, where, headers=headers, content=content, extensions=extensions)
        return httpx2.Response(202, request=request)

    async def _exchange(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST" and (left := self._busy_until - self._now()) > 0:
            return _json_answer(request, 503, RpcError(INTERNAL_ERROR, f"{self._server} {_busy(left)}"))
        try:
            send = super().handle_async_request
            response = await (send(request) if self._signed is None else self._signed.send(request, send))
            if request.method == "POST" and is_json(response):
                response = await _whole(self._server, request, response)
        except httpx2.RequestError as failure:
            return self._unreachable(request, failure)
        self.session = response.headers.get(SESSION) or self.session
        if request.method == "POST" and SESSION in request.headers and session_is_lost(response):
            self._refusal.status, self._refusal.why, self.session = response.status_code, SESSION_LOST, None
            self._gone.set()
            await response.aclose()
            error = RpcError(CONNECTION_CLOSED, SESSION_LOST, NOT_EXECUTED)
            return _json_answer(request, max(response.status_code, 400), error)
        if response.status_code >= 400:
            return await self._refused(request, response)
        if request.method == "POST":
            self._refusal.status = None
            if why := self._no_answer(request, response):
                await response.aclose()
                return _json_answer(request, 502, RpcError(INTERNAL_ERROR, why))
            if is_json(response):
                return self._settled(request, response)
        if is_event_stream(response):
            response.stream = EventLines(response.stream)  # type: ignore[arg-type]  # of an asynchronous transport
        return response

    def _settled(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """Return the response, with its content repaired if it is not a valid answer to its request."""
        if not self._answers_in_place or len(response.content) > LARGE or _kind(request) != "request":
            return response
        request_id = loads(request.content)["id"]
        answer = find_answer(response.content, request_id, f"The answer of {self._server}")
        if answer is None:
            return response
        headers = [(name, value) for name, value in response.headers.multi_items() if name != "content-length"]
        return httpx2.Response(response.status_code, headers=headers, content=dumps(answer), request=request)

    def _no_answer(self, request: httpx2.Request, response: httpx2.Response) -> str | None:
        """Return why a response is not valid in MCP, or None. The SDK's own error would not name the server."""
        if _kind(request) != "request":
            return None
        kind, status = response.headers.get("content-type", ""), response.status_code
        if response.has_redirect_location:
            where = request.url.join(response.headers["location"])
            known = _origin(where) == _origin(request.url)
            return None if known else f"{self._server} has moved to another host ({where.host}): change its url"
        if not self._answers_in_place:
            return None
        if status == 202:
            return f"{self._server} accepted the request but will not answer it (HTTP 202)"
        found = kind_of(status, kind, response.content if is_json(response) else b"")
        return words(self._server, found, status, kind) if found is ResponseKind.OTHER else None

    def _unreachable(self, request: httpx2.Request, error: httpx2.RequestError) -> httpx2.Response:
        host = request.url.host
        self._refusal.why = why = f"Cannot reach {self._server} at {host}: {reason_of(error, host)}"
        self._refusal.status = None
        not_sent = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
        if not_sent:
            self.session = None
            self._gone.set()  # the server is not there; any other error may affect this request alone
        if request.method != "POST":
            raise error
        return _json_answer(request, 502, RpcError(CONNECTION_CLOSED, why, NOT_EXECUTED if not_sent else None))

    async def _refused(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        status = response.status_code
        if request.method != "POST":
            return response  # no event stream or no DELETE: the server may still answer requests
        self._refusal.status = status
        self._refusal.retry_after_s = retry_after_s(response.headers.get("retry-after"))
        if self._refusal.asks_to_wait and self._refusal.retry_after_s:
            self._busy_until = self._now() + min(self._refusal.retry_after_s, LONGEST_WAIT_S)
        if status == UNAUTHORIZED:
            self._refusal.unauthorized = True
            why = refused(self._server, self._refusal)
            self._refusal.why = f"{why.title}. {why.hint}"  # for other open requests, since the connection ends now
            self._gone.set()
        if status == 404:
            return response
        kind, body = response.headers.get("content-type", ""), b""
        if is_json(response):
            body = response.content
            if is_json_rpc(body):
                return self._settled(request, response)  # the server's own error
        else:
            await response.aclose()
        found = kind_of(status, kind, body, response.headers.get("www-authenticate"))
        data = SIGN_IN_DATA if status == UNAUTHORIZED and self._refusal.auth == "oauth" else None
        answer = _json_answer(request, status, RpcError(INTERNAL_ERROR, self._words(found, status, kind), data))
        answer.headers.update({k: v for k, v in response.headers.items() if k in _KEPT_HEADERS})
        return answer

    def _words(self, kind: ResponseKind, status: int, content_type: str) -> str:
        if status == UNAUTHORIZED:
            why = refused(self._server, self._refusal)
            title = words(self._server, kind, status) if self._refusal.auth == "oauth" else why.title
            return f"{title}. {why.hint}"
        left = self._busy_until - self._now()
        if left > 0:
            return f"{self._server} {_busy(left)} (HTTP {status})"
        return words(self._server, kind, status, content_type)


def session_is_lost(response: httpx2.Response) -> bool:
    """Return True if the response to a request with a session id says that the server has forgotten the session.

    That is a 404 (MCP transports, session management) or a 400 with an error in words. Servers that follow the first
    examples of the TypeScript SDK send the latter. With 200, only an error without a request id counts: a call's own
    error means that the call was made. A 400 that says "not initialized" means that the server restarted: it cannot
    have executed anything.
    """
    status = response.status_code
    if status == 404:
        return True
    short = status in (200, 400) and is_json(response) and len(response.content) <= LONGEST_REFUSAL
    if not short or not is_json_rpc(response.content):
        return False
    message = loads(response.content)
    if not isinstance(message, dict):
        return False
    error = message.get("error")
    told = error.get("message") if isinstance(error, dict) else None
    of_nobody = status == 400 or message.get("id") is None
    if not of_nobody or not isinstance(told, str):
        return False
    return _NO_SESSION.search(told) is not None or (status == 400 and _NOT_INITIALIZED.search(told) is not None)


def _kind(request: httpx2.Request) -> str:
    """Return the kind of message that a request carries.

    - `request`: it gets an answer.
    - `initialized`: it must precede everything else.
    - `answer`: to a request of the server.
    - `notice`: any other notification.
    """
    if request.method != "POST" or len(request.content) > LARGE:
        return "request"
    try:
        message = loads(request.content)
    except JsonError:
        return "request"
    if not isinstance(message, dict) or ("id" in message and "method" in message):
        return "request"
    if "method" not in message:
        return "answer"
    return "initialized" if message["method"] == "notifications/initialized" else "notice"


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _busy(left_s: float) -> str:
    return f"is temporarily unavailable and asks not to be called for {max(1, round(left_s))} s"


def is_json(response: httpx2.Response) -> bool:
    """Return True if the content type is JSON."""
    return bool(response.headers.get("content-type", "").lower().startswith("application/json"))


def is_event_stream(response: httpx2.Response) -> bool:
    """Return True if the body is an event stream without a content encoding."""
    kind = response.headers.get("content-type", "").lower()
    return kind.startswith("text/event-stream") and "content-encoding" not in response.headers


async def _whole(server: str, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """Return the response with its body read, up to MAX_FRAME_BYTES. Raises httpx2.RequestError.

    The SDK reads bodies without a limit and does not survive a truncated one.
    """
    body = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MAX_FRAME_BYTES:
                error = RpcError(
                    INVALID_REQUEST, f"The answer of {server} is larger than {MAX_FRAME_BYTES // 2**20} MiB"
                )
                return _json_answer(request, 502, error)
    finally:
        await response.aclose()
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_WAY]
    return httpx2.Response(response.status_code, headers=headers, content=bytes(body), request=request)


def signs_of_life() -> list[tuple[int, int, int]]:
    """Return the socket options, of those this system knows, that make the kernel end a connection to a lost peer."""
    tcp, ms = socket.IPPROTO_TCP, 1000
    wanted = [
        ("TCP_KEEPIDLE", SILENT_S),
        ("TCP_KEEPALIVE", SILENT_S),  # what macOS calls it
        ("TCP_KEEPINTVL", ASK_AGAIN_S),
        ("TCP_KEEPCNT", QUESTIONS),
        ("TCP_USER_TIMEOUT", (SILENT_S + QUESTIONS * ASK_AGAIN_S) * ms),  # for data that was sent but not acknowledged
    ]
    known = [(tcp, getattr(socket, name), value) for name, value in wanted if hasattr(socket, name)]
    return [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *known]


def _json_answer(request: httpx2.Request, status: int, error: RpcError) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": error.body()}
    return httpx2.Response(status, headers={"content-type": "application/json"}, content=dumps(body), request=request)


def retry_after_s(header: str | None) -> float | None:
    """Return `Retry-After` in seconds (RFC 9110, 10.2.3), or None if absent or unreadable."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - time.time())
