"""Streamable HTTP and legacy SSE servers: the SDK's transports under its dispatcher, behind our Channel.

This package alone imports httpx2 and the SDK for servers, and their exceptions end here. Never here: sign-in flows.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
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
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext

from trayapp.auth.accounts import Accounts
from trayapp.backends.http.auth import signed_for
from trayapp.backends.http.refusal import UNAUTHORIZED, HttpRefusal, refused
from trayapp.backends.http.sse import sse_streams
from trayapp.backends.http.transport import SESSION, SESSION_LOST, Wire, retry_after_s, trust_for
from trayapp.backends.launch import HttpLaunch
from trayapp.backends.transport import Inbound, Transport, first_cause
from trayapp.model.errors import ConnectFailedError
from trayapp.model.reasons import reason_of
from trayapp.wire.frames import progress_token
from trayapp.wire.framing import MAX_FRAME_BYTES
from trayapp.wire.messages import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    Call,
    Params,
    Reply,
    RpcError,
)
from trayapp.wire.revisions import MODERN_VERSIONS

log = logging.getLogger(__name__)

DRAIN_S = 1.0  # how long the other requests of a lost session may take to hear of it
CONNECT_S = 15.0  # TCP and TLS; an answer itself may take as long as the caller waits
END_SESSION_S = 1.0  # a courtesy to the server; closing does not hang on it
SDK_STREAM_ENDED = ("SSE stream ", "Connection closed")  # how its words for that begin
SDK_CANNOT_READ = ("Failed to parse SSE message", "Failed to parse JSON response")
SDK_SENT_ON = "Redirect to "
CONTEXT = DispatchContext[TransportContext]
# The relayed request that this task sends. The SDK runs its POST in the sender's context, and hands on each message of
# that POST's stream with the context in which it was read: so it is known to which request a server's message belongs.
SENT_FOR: ContextVar[Call | None] = ContextVar("sent_for", default=None)


class SdkChannel:
    """Our Channel over the SDK's dispatcher: one task a relayed request."""

    def __init__(
        self,
        server: str,
        dispatcher: JSONRPCDispatcher[Any],
        tasks: anyio.abc.TaskGroup,
        refusal: HttpRefusal,
        input_schema: Callable[[str], Any],
    ) -> None:
        self._server = server
        self._input_schema = input_schema
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
        return RpcError(CONNECTION_CLOSED, self._refusal.why or f"{self._server} closed the connection")

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
        return await self._send(method, params, opts, None)

    async def _send(self, method: str, params: Params, opts: Any, call: Call | None) -> dict[str, Any]:
        options = {**(opts or {}), "headers": self._headers(method, params)}
        self._open += 1
        before = SENT_FOR.set(call)
        try:
            return await self._dispatcher.send_raw_request(method, params, options)  # type: ignore[arg-type]
        except MCPError as error:
            raise self._ours(error) from None
        finally:
            SENT_FOR.reset(before)
            self._open -= 1
            if not self._open:
                self._idle.set()

    def _ours(self, error: MCPError) -> RpcError:
        """The server's own error as it is; what the SDK says of a broken stream names the server."""
        if error.code == CONNECTION_CLOSED and error.message.startswith(SDK_STREAM_ENDED):
            if self._refusal.unauthorized:
                return self.closed_error  # another request's 401 has ended the connection
            return RpcError(error.code, f"{self._server} ended the connection before its answer", error.data)
        if error.code == PARSE_ERROR and error.message.startswith(SDK_CANNOT_READ):
            return RpcError(INTERNAL_ERROR, f"The answer of {self._server} is no JSON-RPC message")
        if error.code == INVALID_REQUEST and error.message.startswith(SDK_SENT_ON):
            return RpcError(INTERNAL_ERROR, f"{self._server} sends us on to another address: change its url")
        return RpcError(error.code, error.message, error.data)

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
                    reply = Reply.of_result(await self._send(method, params, None, call))
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
                if method == "tools/call":
                    headers |= self._of_arguments(name, (params or {}).get("arguments"))
        return headers

    def _of_arguments(self, tool: str, arguments: Any) -> dict[str, str]:
        """The arguments that this tool wants repeated (MCP transports, custom headers from tool parameters)."""
        wanted = x_mcp_header_map(self._input_schema(tool))
        return mcp_param_headers(wanted, arguments) if wanted and isinstance(arguments, dict) else {}


@asynccontextmanager
async def open_http(launch: HttpLaunch, inbound: Inbound, accounts: Accounts | None = None) -> AsyncIterator[Transport]:
    """Open a connection to an address. Raises ConnectFailedError, SignInWantedError."""
    refusal, gone = HttpRefusal(auth=launch.auth), anyio.Event()
    trust = await trust_for(launch.url)
    wire = Wire(launch, refusal, gone, signed=signed_for(launch, accounts, refusal), trust=trust)
    unbounded = httpx2.Timeout(None, connect=CONNECT_S)
    try:
        async with (
            httpx2.AsyncClient(transport=wire, headers=launch.headers, timeout=unbounded) as client,
            _streams(launch, client) as streams,
            anyio.create_task_group() as tasks,
        ):
            wire.tasks = tasks
            channel = await _start(launch, streams, tasks, inbound, refusal, gone)
            try:
                yield Transport(launch.kind or "http", channel, gone, _obituary(refusal), refusal=refusal)
            finally:
                if refusal.why == SESSION_LOST:
                    await channel.drained()
                channel.close()
                wire.tasks = None
                tasks.cancel_scope.cancel()
                if wire.session:
                    await _end_session(client, launch.url, wire.session)
    except BaseExceptionGroup as group:
        raise _ours(launch, first_cause(group), refusal) from None
    except (httpx2.HTTPError, ValueError) as error:
        raise _ours(launch, error, refusal) from None


def _streams(launch: HttpLaunch, client: httpx2.AsyncClient) -> AbstractAsyncContextManager[Any]:
    if launch.kind == "sse":
        return sse_streams(client, launch.url, launch.server)
    return streamable_http_client(
        launch.url, http_client=client, max_sse_event_size=MAX_FRAME_BYTES, terminate_on_close=False
    )


async def _end_session(client: httpx2.AsyncClient, url: str, session: str) -> None:
    """Tell the server that nobody comes back. The SDK's own way is cut off when we close by cancelling, as we do."""
    with anyio.move_on_after(END_SESSION_S, shield=True), suppress(httpx2.HTTPError):
        await client.delete(url, headers={SESSION: session})


async def _start(
    launch: HttpLaunch,
    streams: Any,
    tasks: anyio.abc.TaskGroup,
    inbound: Inbound,
    refusal: HttpRefusal,
    gone: anyio.Event,
) -> SdkChannel:
    dispatcher: JSONRPCDispatcher[Any] = JSONRPCDispatcher(*streams)
    channel = SdkChannel(launch.server, dispatcher, tasks, refusal, inbound.input_schema)

    async def on_request(context: CONTEXT, method: str, params: Params) -> dict[str, Any]:
        try:
            return await inbound.on_request(method, params, SENT_FOR.get())
        except RpcError as error:
            raise MCPError(error.code, error.message, error.data) from None

    async def on_notify(context: CONTEXT, method: str, params: Params) -> None:
        """Never reached: the intercept takes every notification."""

    def on_notification(method: str, params: Params) -> bool:
        if not (method == "notifications/progress" and channel.on_progress(params or {})):
            read_in = getattr(streams[0], "last_context", None)  # legacy SSE has one stream for all
            inbound.on_notification(method, params, read_in.get(SENT_FOR) if read_in is not None else None)
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
        refusal.retry_after_s = retry_after_s(error.response.headers.get("retry-after"))
    if not isinstance(error, httpx2.HTTPError | OSError | ValueError):
        return error
    if refusal.status == UNAUTHORIZED:
        return refused(launch.server, refusal)
    host = httpx2.URL(launch.url).host
    why = f"HTTP {refusal.status}" if refusal.status else reason_of(error, host)
    failure = ConnectFailedError(
        launch.server, f"Cannot reach {launch.server} at {host}: {why}", "Check its url in servers.yaml"
    )
    failure.http_status = refusal.status
    failure.retry_after_s = refusal.retry_after_s
    return failure
