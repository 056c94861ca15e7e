"""The transports over HTTP, as a client: Streamable HTTP (MCP 2025-03-26 to 2026-07-28) and legacy SSE (2024-11-05).

Only this package imports httpx2 to reach servers, and httpx2's exceptions end here.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.abc
import httpx2

from trayapp.auth.accounts import Accounts
from trayapp.backends.context import Inbound, Transport, first_cause
from trayapp.backends.http.auth import signer_for
from trayapp.backends.http.channel import SENT_FOR, SESSION, SESSION_LOST, HttpChannel, http_client, origin
from trayapp.backends.http.refusal import HttpRefusal, refused
from trayapp.backends.http.responses import is_mcp, retry_after_s, words
from trayapp.backends.launch import HttpLaunch
from trayapp.model.errors import ConnectFailedError
from trayapp.model.reasons import reason_of
from trayapp.wire.framing import MAX_FRAME_BYTES
from trayapp.wire.messages import CONNECTION_CLOSED, INTERNAL_ERROR, Reply, RpcError
from trayapp.wire.mirror_headers import METHOD_HEADER, NAME_HEADER, NAMED_BY, VERSION_HEADER, argument_headers, encoded
from trayapp.wire.revisions import MODERN_VERSIONS

log = logging.getLogger(__name__)

END_SESSION_S = 1.0  # closing waits this long for the last notifications, and then again for the session's end
RETRY_S = 1.0  # the wait before an ended stream is opened again, unless the server names another
TRIES = 2  # consecutive failures to open a stream before it is given up
LAST_EVENT_ID = "last-event-id"
NO_STREAM = 405  # the server offers no stream for its own messages


@dataclass(slots=True)
class _StreamPosition:
    """A position in an event stream. `last_id` is the last event id; without an id, the stream cannot be resumed."""

    last_id: str = ""
    retry_s: float = RETRY_S


class StreamableChannel(HttpChannel):
    """A channel over Streamable HTTP. Answers come in the response to their POST or on the stream that resumes it."""

    async def _ask(self, request_id: int, frame: bytes, message: dict[str, Any], protocol: str) -> None:
        place = _StreamPosition()
        async with self.post(frame, self._headers(protocol, message), request_id=request_id) as (response, body):
            if message["method"] == "initialize":
                self.session = response.headers.get(SESSION, "")
            status, content_type = response.status_code, response.headers.get("content-type", "")
            if status == 202:
                why = f"{self.server} accepted the request but will not answer it (HTTP 202)"
                raise RpcError(INTERNAL_ERROR, why)
            if not is_mcp(status, content_type, body or b""):
                raise RpcError(INTERNAL_ERROR, words(self.server, status, content_type))
            if body is not None:
                self.take_answer(request_id, body)
                return
            try:
                await self._read_events(response, place, request_id)
            except httpx2.SSEError:
                place.last_id = ""  # do not resume: an event over the limit would be sent again
        if self.call_of(request_id) is not None and place.last_id:
            await anyio.sleep(place.retry_s)
            await self._follow_stream(place, protocol, request_id)
        self.answer(request_id, Reply.of_error(self.unanswered_error))

    async def _tell(self, frame: bytes, message: dict[str, Any], protocol: str) -> None:
        if message.get("method") == "notifications/initialized" and self.session:
            self._tasks.start_soon(self._follow_stream, _StreamPosition(), protocol, None)
        async with self.post(frame, self._headers(protocol, message)):
            pass

    async def _follow_stream(self, place: _StreamPosition, protocol: str, request_id: int | None) -> None:
        """Read a stream from `place` until it answers the request, and open it again when it ends.

        Give up after TRIES failures in a row. Without a request, the stream carries what the server sends on its own.
        """
        failures = 0
        while failures < TRIES:
            headers = self._session_headers(protocol)
            if place.last_id:
                headers[LAST_EVENT_ID] = place.last_id
            failures += 1
            with suppress(httpx2.HTTPError, RpcError):
                async with self.stream(headers) as response:
                    if response.status_code == NO_STREAM:
                        return
                    if response.is_success:
                        if await self._read_events(response, place, request_id):
                            return
                        failures = 0
            await anyio.sleep(place.retry_s)

    async def _read_events(self, response: httpx2.Response, place: _StreamPosition, request_id: int | None) -> bool:
        """Handle the messages of a stream. Return True once the request has its answer, False if the stream ends first.

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

    def _headers(self, protocol: str, message: dict[str, Any]) -> dict[str, str]:
        headers = {**self._session_headers(protocol), "accept": "application/json, text/event-stream"}
        if protocol in MODERN_VERSIONS and "method" in message:  # headers repeat parts of the message
            method, params = message["method"], message.get("params") or {}
            headers[METHOD_HEADER] = method
            name, arguments = params.get(NAMED_BY.get(method, "")), params.get("arguments")
            if isinstance(name, str):
                headers[NAME_HEADER] = encoded(name)
                if method == "tools/call" and isinstance(arguments, dict):
                    headers |= argument_headers(self._inbound.input_schema(name), arguments)
        return headers

    def _session_headers(self, protocol: str) -> dict[str, str]:
        headers = {VERSION_HEADER: protocol, SESSION: self.session}
        return {name: value for name, value in headers.items() if value}


class SseChannel(HttpChannel):
    """A channel over legacy HTTP+SSE: messages are posted, and all answers are events of one stream.

    The channel ends when its event stream ends. If a message cannot be posted, only that message fails.
    """

    _endpoint: httpx2.URL  # where to post

    async def open(self) -> None:
        """Open the event stream and wait for the address to post to. Raises httpx2.HTTPError, ValueError, RpcError."""
        self._endpoint = await self._tasks.start(self._read)

    async def _read(self, *, task_status: anyio.abc.TaskStatus[httpx2.URL]) -> None:
        known = False
        try:
            async with self.stream({}) as response:
                response.raise_for_status()
                async for event in httpx2.EventSource(response, max_event_size=MAX_FRAME_BYTES):
                    if event.event == "endpoint" and not known:
                        known = True
                        task_status.started(_endpoint(response, event.data))
                    elif event.event == "message" and event.data:
                        self.take_text(event.data.encode("utf-8", "surrogatepass"))
        except httpx2.HTTPError as error:
            if not known:
                raise
            log.info("An event stream was interrupted: %s", error)
        finally:
            self.close(self.unanswered_error)
        if not known:
            raise httpx2.RemoteProtocolError("The server sent no address for messages")

    async def _ask(self, request_id: int, frame: bytes, message: dict[str, Any], protocol: str) -> None:
        try:
            await self._tell(frame, message, protocol)
        except RpcError as error:  # whatever the error, the server did not take the message
            raise RpcError(CONNECTION_CLOSED, error.message, error.data) from None

    async def _tell(self, frame: bytes, message: dict[str, Any], protocol: str) -> None:
        async with self.post(frame, {}, self._endpoint) as (response, body):
            if body is None:
                await response.aread()


def _endpoint(response: httpx2.Response, text: str) -> httpx2.URL:
    url = response.request.url.join(text)
    if origin(url) != origin(response.request.url):
        raise ValueError("The server asks for messages to be sent to another host")
    return url


@asynccontextmanager
async def open_http(launch: HttpLaunch, inbound: Inbound, accounts: Accounts | None = None) -> AsyncIterator[Transport]:
    """Yield an open transport to an address. Raises ConnectFailedError, SignInWantedError, KeyringLockedError."""
    refusal = HttpRefusal(auth=launch.auth)
    SENT_FOR.set(None)  # this task may have inherited the value of a task that reads a call's answer

    async def end_reason() -> str:
        return refusal.why or (f"answered HTTP {refusal.status}" if refusal.status else "closed the connection")

    try:
        async with (
            http_client(launch, signer_for(launch, accounts, refusal)) as client,
            anyio.create_task_group() as tasks,
        ):
            kind = SseChannel if launch.kind == "sse" else StreamableChannel
            channel = kind(launch, client, refusal, tasks, inbound)
            await tasks.start(channel.exchange)
            await channel.open()
            try:
                yield Transport(launch.kind or "http", channel, channel.gone, end_reason, refusal=refusal)
            finally:
                if refusal.why == SESSION_LOST:
                    await channel.drained()
                channel.close(channel.closed_error)
                tasks.cancel_scope.cancel()
                with anyio.move_on_after(END_SESSION_S, shield=True):
                    await channel.flush()
                if channel.session:
                    with anyio.move_on_after(END_SESSION_S, shield=True), suppress(httpx2.HTTPError, RpcError):
                        await client.delete(launch.url, headers={SESSION: channel.session})
    except BaseExceptionGroup as group:
        raise _as_server_error(launch, first_cause(group), refusal) from None
    except (httpx2.HTTPError, ValueError) as error:
        raise _as_server_error(launch, error, refusal) from None


def _as_server_error(launch: HttpLaunch, error: BaseException, refusal: HttpRefusal) -> BaseException:
    if isinstance(error, httpx2.HTTPStatusError):
        refusal.status = error.response.status_code
        refusal.retry_after_s = retry_after_s(error.response.headers.get("retry-after"))
    if not isinstance(error, httpx2.HTTPError | OSError | ValueError | RpcError):
        return error
    if refusal.refuses_authorization:
        return refused(launch.server, refusal)
    if isinstance(error, RpcError):  # the sign-in cannot be renewed
        return ConnectFailedError(launch.server, error.message)
    host = httpx2.URL(launch.url).host
    why = f"HTTP {refusal.status}" if refusal.status else reason_of(error, host)
    failure = ConnectFailedError(
        launch.server, f"Cannot reach {launch.server} at {host}: {why}", "Check its url in servers.yaml"
    )
    failure.retry_after_s = refusal.retry_after_s
    return failure
