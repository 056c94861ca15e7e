"""Client side of Streamable HTTP (MCP 2025-03-26 to 2026-07-28, transports), and `open_http` for all HTTP transports.

Only this package imports httpx2 to reach servers, and httpx2's exceptions end here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.abc
import httpx2

from trayapp.auth.accounts import Accounts
from trayapp.backends.context import Inbound, Transport, first_cause
from trayapp.backends.http.auth import signer_for
from trayapp.backends.http.channel import EVENTS, SENT_FOR, HttpChannel, response_to
from trayapp.backends.http.refusal import UNAUTHORIZED, HttpRefusal, refused
from trayapp.backends.http.sse import SseChannel
from trayapp.backends.http.transport import SESSION, SESSION_LOST, HttpTransport, is_json, retry_after_s, trust_for
from trayapp.backends.launch import HttpLaunch
from trayapp.model.errors import ConnectFailedError
from trayapp.model.reasons import reason_of
from trayapp.wire.framing import MAX_FRAME_BYTES
from trayapp.wire.jsonio import JsonError, loads
from trayapp.wire.messages import INTERNAL_ERROR, METHOD_NOT_FOUND, Reply, RpcError
from trayapp.wire.mirror_headers import (
    METHOD_HEADER,
    NAME_HEADER,
    NAMED_BY,
    VERSION_HEADER,
    argument_headers,
    encoded,
)
from trayapp.wire.revisions import MODERN_VERSIONS

CONNECT_S = 15.0  # TCP and TLS; an answer itself may take as long as the caller waits
END_SESSION_S = 1.0  # closing waits no longer than this: the request is only a courtesy to the server
RETRY_S = 1.0  # before an ended stream is opened again, unless the server names another time
TRIES = 2  # consecutive failures to open a stream before it is given up
LAST_EVENT_ID = "last-event-id"
NO_STREAM = 405  # the server offers no stream for its own messages


@dataclass(slots=True)
class _StreamPosition:
    """A position in an event stream. `last_id` is the last event id; without one the stream cannot be resumed."""

    last_id: str = ""
    retry_s: float = RETRY_S


class StreamableChannel(HttpChannel):
    """A channel over Streamable HTTP. Answers come in the response to their POST or on the stream that resumes it."""

    def __init__(
        self,
        launch: HttpLaunch,
        client: httpx2.AsyncClient,
        refusal: HttpRefusal,
        tasks: anyio.abc.TaskGroup,
        input_schema: Callable[[str], Any],
    ) -> None:
        super().__init__(launch, client, refusal, tasks)
        self._input_schema = input_schema
        self._session = ""

    async def _ask(self, request_id: int, frame: bytes, message: dict[str, Any], protocol: str) -> None:
        place = _StreamPosition()
        async with self._post(frame, message, protocol) as response:
            if message["method"] == "initialize":
                self._session = response.headers.get(SESSION, "")
            if not response.is_success:
                await response.aread()
                self.answer(request_id, Reply.of_error(self._refusal_in(response)))
            elif is_json(response):
                await response.aread()
                self.take_text(response.content)
                if self.call_of(request_id) is not None:
                    error = RpcError(INTERNAL_ERROR, f"The answer of {self.server} is not a JSON-RPC message")
                    self.answer(request_id, Reply.of_error(error))
            else:  # an event stream: HttpTransport passes nothing else
                try:
                    await self._read_events(response, place, request_id)
                except httpx2.SSEError:
                    place.last_id = ""  # do not resume: an event over the limit would be sent again
        if self.call_of(request_id) is not None and place.last_id:
            await anyio.sleep(place.retry_s)
            await self._follow_stream(place, protocol, request_id)
        self.answer(request_id, Reply.of_error(self.unanswered_error))

    async def _tell(self, frame: bytes, message: dict[str, Any], protocol: str) -> None:
        if message.get("method") == "notifications/initialized" and self._session:
            self._tasks.start_soon(self._follow_stream, _StreamPosition(), protocol, None)
        with suppress(httpx2.HTTPError):  # HttpTransport has recorded it
            async with self._post(frame, message, protocol):
                pass

    # -- event streams -------------------------------------------------------------------------------------------

    async def _follow_stream(self, place: _StreamPosition, protocol: str, request_id: int | None) -> None:
        """Read a stream from `place` until it answers the request, and open it again when it ends.

        Without a request it is the stream for all messages that the server starts itself.
        """
        failures = 0
        while failures < TRIES:
            headers = {**self._headers(protocol), **EVENTS}
            if place.last_id:
                headers[LAST_EVENT_ID] = place.last_id
            request = self._client.build_request("GET", self._url, headers=headers)
            failures += 1
            with suppress(httpx2.HTTPError):
                async with response_to(self._client, request) as response:
                    if response.status_code == NO_STREAM:
                        return
                    if response.is_success:
                        if await self._read_events(response, place, request_id):
                            return
                        failures = 0
            await anyio.sleep(place.retry_s)

    async def _read_events(self, response: httpx2.Response, place: _StreamPosition, request_id: int | None) -> bool:
        """Handle the messages of a stream. Return True once the request has its answer.

        Raises httpx2.SSEError if the body is not an event stream, or for an event over the limit.
        """
        try:
            async for event in httpx2.EventSource(response, max_event_size=MAX_FRAME_BYTES):
                place.last_id = event.id or place.last_id
                if event.retry is not None:
                    place.retry_s = event.retry / 1000
                if event.event == "message" and event.data:
                    self.take_text(event.data.encode("utf-8", "surrogatepass"))
                if request_id is not None and self.call_of(request_id) is None:
                    return True
        except httpx2.SSEError:
            raise
        except httpx2.HTTPError:
            pass  # the stream broke: it may be resumed
        return False

    # -- requests ------------------------------------------------------------------------------------------------

    def _post(self, frame: bytes, message: dict[str, Any], protocol: str) -> Any:
        headers = self._headers(protocol)
        if protocol in MODERN_VERSIONS and "method" in message:  # parts of the message are repeated in headers
            method, params = message["method"], message.get("params") or {}
            headers[METHOD_HEADER] = method
            name, arguments = params.get(NAMED_BY.get(method, "")), params.get("arguments")
            if isinstance(name, str):
                headers[NAME_HEADER] = encoded(name)
                if method == "tools/call" and isinstance(arguments, dict):
                    headers |= argument_headers(self._input_schema(name), arguments)
        headers |= {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        return response_to(self._client, self._client.build_request("POST", self._url, content=frame, headers=headers))

    def _headers(self, protocol: str) -> dict[str, str]:
        headers = {VERSION_HEADER: protocol, SESSION: self._session}
        return {name: value for name, value in headers.items() if value}

    def _refusal_in(self, response: httpx2.Response) -> RpcError:
        """Return the error of a response without a success status: the one in its body, or a general one."""
        if response.has_redirect_location:
            return RpcError(INTERNAL_ERROR, f"{self.server} redirects to another address: change its url")
        try:
            message = loads(response.content) if is_json(response) else None
        except JsonError:
            message = None
        if isinstance(message, dict) and "error" in message:
            return RpcError.received(message["error"])
        code = METHOD_NOT_FOUND if response.status_code == 404 else INTERNAL_ERROR
        return RpcError(code, f"{self.server} answered HTTP {response.status_code}")


@asynccontextmanager
async def open_http(launch: HttpLaunch, inbound: Inbound, accounts: Accounts | None = None) -> AsyncIterator[Transport]:
    """Open a connection to an address. Raises ConnectFailedError, SignInWantedError."""
    refusal, gone = HttpRefusal(auth=launch.auth), anyio.Event()
    SENT_FOR.set(None)  # a call is sent again by the task that read its failure, and that task opens this connection
    trust = await trust_for(launch.url)
    wire = HttpTransport(launch, refusal, gone, signed=signer_for(launch, accounts, refusal), trust=trust)
    unbounded = httpx2.Timeout(None, connect=CONNECT_S)

    async def end_reason() -> str:
        return refusal.why or (f"answered HTTP {refusal.status}" if refusal.status else "closed the connection")

    try:
        async with (
            httpx2.AsyncClient(transport=wire, headers=launch.headers, timeout=unbounded) as client,
            anyio.create_task_group() as tasks,
        ):
            wire.tasks = tasks
            channel: HttpChannel
            if launch.kind == "sse":
                channel = SseChannel(launch, client, refusal, tasks)
            else:
                channel = StreamableChannel(launch, client, refusal, tasks, inbound.input_schema)
            await tasks.start(channel.exchange, inbound, gone)
            await channel.open()
            try:
                yield Transport(launch.kind or "http", channel, gone, end_reason, refusal=refusal)
            finally:
                if refusal.why == SESSION_LOST:
                    await channel.drained()
                channel.close(channel.closed_error)
                wire.tasks = None
                tasks.cancel_scope.cancel()
                with anyio.move_on_after(END_SESSION_S, shield=True):
                    await wire.flush()
                    await channel.flush()
                if wire.session:
                    with anyio.move_on_after(END_SESSION_S, shield=True), suppress(httpx2.HTTPError):
                        await client.delete(launch.url, headers={SESSION: wire.session})
    except BaseExceptionGroup as group:
        raise _as_server_error(launch, first_cause(group), refusal) from None
    except (httpx2.HTTPError, ValueError) as error:
        raise _as_server_error(launch, error, refusal) from None


def _as_server_error(launch: HttpLaunch, error: BaseException, refusal: HttpRefusal) -> BaseException:
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
    failure.retry_after_s = refusal.retry_after_s
    return failure
