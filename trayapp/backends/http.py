"""Streamable HTTP and legacy SSE servers: the SDK's transports under its dispatcher, behind our Channel.

With backends/sse the one place of the backends that imports the SDK; its exceptions and httpx2's end here.
Never here: sign-in flows.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import Any

import anyio
import anyio.abc
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext

from trayapp.backends.handshake import MODERN_VERSIONS
from trayapp.backends.launch import HttpLaunch
from trayapp.backends.sse import sse_streams
from trayapp.backends.transports import NOT_EXECUTED, HttpRefusal, Inbound, Transport, first_cause
from trayapp.model.errors import ConnectFailedError
from trayapp.wire.frames import progress_token
from trayapp.wire.framing import MAX_FRAME_BYTES
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import CONNECTION_CLOSED, INTERNAL_ERROR, Call, Params, Reply, RpcError

log = logging.getLogger(__name__)

SESSION_LOST = "The server has ended our session"
DRAIN_S = 1.0  # how long the other requests of a lost session may take to hear of it
CONNECT_S = 15.0  # TCP and TLS; an answer itself may take as long as the caller waits
END_SESSION_S = 1.0  # a courtesy to the server; closing does not hang on it
_UNAUTHORIZED = 401
CONTEXT = DispatchContext[TransportContext]


class SdkChannel:
    """Our Channel over the SDK's dispatcher: one task a relayed request."""

    def __init__(self, dispatcher: JSONRPCDispatcher[Any], tasks: anyio.abc.TaskGroup, refusal: HttpRefusal) -> None:
        self._dispatcher = dispatcher
        self._tasks = tasks
        self._refusal = refusal
        self._last_id = 0
        self._scopes: dict[int, anyio.CancelScope] = {}
        self._progress: dict[str, tuple[Call, int | str]] = {}
        self._protocol = ""
        self._closed = False
        self._open = 0
        self._idle = anyio.Event()

    @property
    def closed_error(self) -> RpcError:
        """What requests are answered with that the server cannot answer any more."""
        return RpcError(CONNECTION_CLOSED, self._refusal.why or "Connection closed")

    def close(self) -> None:
        """From here on requests are answered at once."""
        self._closed = True

    async def drained(self) -> None:
        """Wait a moment for the answers of requests under way: of a lost session each gets its own 404."""
        with anyio.move_on_after(DRAIN_S, shield=True):
            if self._open:
                self._idle = anyio.Event()
                await self._idle.wait()

    def adopt(self, protocol: str) -> None:
        """See wire.messages.Channel."""
        self._protocol = protocol

    async def send_raw_request(self, method: str, params: Params, opts: Any = None) -> dict[str, Any]:
        """See wire.messages.Channel."""
        options = {**(opts or {}), "headers": self._headers(method, params)}
        self._open += 1
        try:
            return await self._dispatcher.send_raw_request(method, params, options)  # type: ignore[arg-type]
        except MCPError as error:
            raise RpcError(error.code, error.message, error.data) from None
        finally:
            self._open -= 1
            if not self._open:
                self._idle.set()

    async def notify(self, method: str, params: Params, opts: Any = None) -> None:
        """See wire.messages.Channel."""
        await self._dispatcher.notify(method, params, {"headers": self._headers(method, params)})

    def relay(self, method: str, params: Params, call: Call) -> int:
        """See wire.messages.Channel."""
        self._last_id += 1
        if self._closed:
            call.answered(Reply.of_error(self.closed_error))
            return self._last_id
        self._scopes[self._last_id] = scope = anyio.CancelScope()
        self._tasks.start_soon(self._relay, self._last_id, scope, method, params, call)
        return self._last_id

    def cancel(self, request_id: int, reason: str) -> None:
        """See wire.messages.Channel; the SDK's dispatcher tells the peer."""
        scope = self._scopes.pop(request_id, None)
        if scope is not None:
            scope.cancel()

    def on_progress(self, params: Mapping[str, Any]) -> bool:
        """Take a progress notification that belongs to a relayed request."""
        waiting = self._progress.get(str(params.get("progressToken")))
        if waiting is None:
            return False
        call, original = waiting
        call.progress({**params, "progressToken": original})
        return True

    async def _relay(self, number: int, scope: anyio.CancelScope, method: str, params: Params, call: Call) -> None:
        token = progress_token(params)
        ours = f"multi-mcp-{number}"
        if token is not None and params is not None:
            # Ours instead of the SDK's own progress callback, which knows three fields and drops the rest.
            params = {**params, "_meta": {**params["_meta"], "progressToken": ours}}
            self._progress[ours] = (call, token)
        reply: Reply | None = None
        try:
            with scope:
                try:
                    reply = Reply.of_result(await self.send_raw_request(method, params))
                except RpcError as error:
                    reply = Reply.of_error(error)
        finally:
            self._progress.pop(ours, None)
            answer_wanted = self._scopes.pop(number, None) is not None
            if answer_wanted:
                call.answered(reply or Reply.of_error(self.closed_error))

    def _headers(self, method: str, params: Params) -> dict[str, str]:
        if not self._protocol:
            return {}
        headers = {MCP_PROTOCOL_VERSION_HEADER: self._protocol}
        if self._protocol in MODERN_VERSIONS:
            headers[MCP_METHOD_HEADER] = method
            name = (params or {}).get(NAME_BEARING_METHODS.get(method, ""))
            if isinstance(name, str):
                headers[MCP_NAME_HEADER] = encode_header_value(name)
        return headers


class _Wire(httpx2.AsyncHTTPTransport):
    """Notes what went wrong and the session's id, and turns a failed connection into an answer.

    In the SDK's transport one request that meets a network error ends all others on the connection; as a 502 with a
    JSON-RPC error in it, it ends alone.
    """

    def __init__(self, refusal: HttpRefusal, gone: anyio.Event) -> None:
        super().__init__()
        self._refusal = refusal
        self._gone = gone
        self.session: str | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await super().handle_async_request(request)
        except httpx2.TransportError as error:
            return self._unreachable(request, error)
        self.session = response.headers.get(_SESSION) or self.session
        if response.status_code >= 400:
            return await self._refused(request, response)
        if request.method == "POST":
            self._refusal.status = None
        return response

    def _unreachable(self, request: httpx2.Request, error: httpx2.TransportError) -> httpx2.Response:
        self._refusal.why = why = f"Cannot reach {request.url.host}: {error or type(error).__name__}"
        self._refusal.status = None
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            self.session = None
            self._gone.set()  # nobody is there; any other error may be this one request's alone
        if request.method != "POST":
            raise error
        return _json_answer(request, 502, RpcError(CONNECTION_CLOSED, why))

    async def _refused(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        status = response.status_code
        if request.method != "POST":
            return response  # no event stream here, or no DELETE: the server may still serve
        self._refusal.status = status
        self._refusal.retry_after_s = _seconds(response.headers.get("retry-after"))
        if status == _UNAUTHORIZED:
            self._gone.set()
        if status == 404:
            if _SESSION in request.headers:
                self._refusal.why, self.session = SESSION_LOST, None
                self._gone.set()  # it has forgotten our session (MCP transports, session management)
                await response.aclose()
                return _json_answer(request, status, RpcError(CONNECTION_CLOSED, self._refusal.why, NOT_EXECUTED))
            return response
        if response.headers.get("content-type", "").lower().startswith("application/json"):
            return response  # may hold a JSON-RPC error of its own
        await response.aclose()
        answer = _json_answer(request, status, RpcError(INTERNAL_ERROR, f"The server answered HTTP {status}"))
        answer.headers.update({k: v for k, v in response.headers.items() if k in _KEPT_HEADERS})
        return answer


_SESSION = "mcp-session-id"
_KEPT_HEADERS = ("www-authenticate", "retry-after")


def _json_answer(request: httpx2.Request, status: int, error: RpcError) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": error.body()}
    return httpx2.Response(status, headers={"content-type": "application/json"}, content=dumps(body), request=request)


@asynccontextmanager
async def open_http(launch: HttpLaunch, inbound: Inbound) -> AsyncIterator[Transport]:
    """Open a connection to an address. Raises ConnectFailedError."""
    refusal, gone = HttpRefusal(), anyio.Event()
    wire = _Wire(refusal, gone)
    unbounded = httpx2.Timeout(None, connect=CONNECT_S)
    try:
        async with (
            httpx2.AsyncClient(transport=wire, headers=launch.headers, timeout=unbounded) as client,
            _streams(launch, client) as streams,
            anyio.create_task_group() as tasks,
        ):
            channel = await _start(streams, tasks, inbound, refusal, gone)
            try:
                yield Transport(launch.kind or "http", channel, gone, _obituary(refusal), refusal=refusal)
            finally:
                if refusal.why == SESSION_LOST:
                    await channel.drained()
                channel.close()
                tasks.cancel_scope.cancel()
                if wire.session:
                    await _end_session(client, launch.url, wire.session)
    except BaseExceptionGroup as group:
        raise _ours(launch, first_cause(group), refusal) from None
    except (httpx2.HTTPError, ValueError) as error:
        raise _ours(launch, error, refusal) from None


def _streams(launch: HttpLaunch, client: httpx2.AsyncClient) -> AbstractAsyncContextManager[Any]:
    if launch.kind == "sse":
        return sse_streams(client, launch.url)
    return streamable_http_client(
        launch.url, http_client=client, max_sse_event_size=MAX_FRAME_BYTES, terminate_on_close=False
    )


async def _end_session(client: httpx2.AsyncClient, url: str, session: str) -> None:
    """Tell the server that nobody comes back. The SDK's own way is cut off when we close by cancelling, as we do."""
    with anyio.move_on_after(END_SESSION_S, shield=True), suppress(httpx2.HTTPError):
        await client.delete(url, headers={_SESSION: session})


async def _start(
    streams: Any, tasks: anyio.abc.TaskGroup, inbound: Inbound, refusal: HttpRefusal, gone: anyio.Event
) -> SdkChannel:
    dispatcher: JSONRPCDispatcher[Any] = JSONRPCDispatcher(*streams)
    channel = SdkChannel(dispatcher, tasks, refusal)

    async def on_request(context: CONTEXT, method: str, params: Params) -> dict[str, Any]:
        try:
            return await inbound.on_request(method, params)
        except RpcError as error:
            raise MCPError(error.code, error.message, error.data) from None

    async def on_notify(context: CONTEXT, method: str, params: Params) -> None:
        """Never reached: the intercept takes every notification."""

    def on_notification(method: str, params: Params) -> bool:
        if not (method == "notifications/progress" and channel.on_progress(params or {})):
            inbound.on_notification(method, params)
        return True

    async def run(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        try:
            await dispatcher.run(on_request, on_notify, on_notification, task_status=task_status)
        finally:
            gone.set()

    await tasks.start(run)
    return channel


def _obituary(refusal: HttpRefusal) -> Any:
    async def obituary() -> str:
        return refusal.why or (f"answered HTTP {refusal.status}" if refusal.status else "closed the connection")

    return obituary


def _ours(launch: HttpLaunch, error: BaseException, refusal: HttpRefusal) -> BaseException:
    if isinstance(error, httpx2.HTTPStatusError):
        refusal.status = error.response.status_code
        refusal.retry_after_s = _seconds(error.response.headers.get("retry-after"))
    if not isinstance(error, httpx2.HTTPError | OSError | ValueError):
        return error
    host = httpx2.URL(launch.url).host
    why = f"HTTP {refusal.status}" if refusal.status else str(error) or type(error).__name__
    failure = ConnectFailedError(
        launch.server, f"Cannot reach {launch.server} at {host}: {why}", "Check its url in servers.yaml"
    )
    failure.http_status = refusal.status
    failure.retry_after_s = refusal.retry_after_s
    return failure


def _seconds(retry_after: str | None) -> float | None:
    """`Retry-After` in seconds (RFC 9110, 10.2.3), None when absent or unreadable."""
    if retry_after is None:
        return None
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        moment = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    import time

    return max(0.0, moment.timestamp() - time.time())
