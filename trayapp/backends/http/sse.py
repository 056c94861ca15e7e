"""The client side of the legacy HTTP+SSE transport (MCP 2024-11-05), as a pair of the SDK's message streams.

The SDK's own ends the connection over an event of more than 1 MiB, and over any one message that the server refuses.
Never here: sessions of Streamable HTTP, what messages mean.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.abc
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, jsonrpc_message_adapter

from trayapp.backends.http.responses import messages_in
from trayapp.model.reasons import reason_of
from trayapp.wire.framing import MAX_FRAME_BYTES
from trayapp.wire.jsonio import JsonError, loads
from trayapp.wire.messages import CONNECTION_CLOSED, RpcError

log = logging.getLogger(__name__)

REDIRECTS = 3  # within the address's own origin, as `/sse` to `/sse/`
Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def sse_streams(client: httpx2.AsyncClient, url: str, server: str) -> AsyncIterator[Streams]:
    """Open the event stream, learn where to post, yield (incoming, outgoing). Raises httpx2.HTTPError, ValueError.

    The incoming stream ends with the event stream. A message that cannot be posted is answered with an error in place
    of the server's answer; the others go on.
    """
    response = await _open(client, url)
    to_us, incoming = anyio.create_memory_object_stream[Incoming](0)
    outgoing, from_us = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with to_us, incoming, outgoing, from_us, anyio.create_task_group() as tasks:
            endpoint = await tasks.start(_read, response, to_us, server)
            tasks.start_soon(_write, client, endpoint, from_us, to_us, server)
            yield incoming, outgoing
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await response.aclose()


async def _open(client: httpx2.AsyncClient, url: str) -> httpx2.Response:
    request = client.build_request("GET", url, headers={"accept": "text/event-stream", "cache-control": "no-store"})
    for _ in range(REDIRECTS):
        response = await client.send(request, stream=True)
        onward = response.next_request
        if onward is None or _origin(onward.url) != _origin(request.url):
            break
        await response.aclose()
        request = onward
    if not response.is_success:
        await response.aclose()
        response.raise_for_status()
    return response


async def _read(
    response: httpx2.Response,
    to_us: MemoryObjectSendStream[Incoming],
    server: str,
    *,
    task_status: anyio.abc.TaskStatus[httpx2.URL],
) -> None:
    known = False
    async with to_us:
        try:
            async for event in httpx2.EventSource(response, max_event_size=MAX_FRAME_BYTES):
                if event.event == "endpoint" and not known:
                    known = True
                    task_status.started(_endpoint(response, event.data))
                elif event.event == "message" and event.data:
                    await _take(event.data, to_us, server)
        except httpx2.HTTPError as error:
            if not known:
                raise
            log.info("An event stream broke: %s", error)
    if not known:
        raise httpx2.RemoteProtocolError("The server named no address to post to")


def _endpoint(response: httpx2.Response, text: str) -> httpx2.URL:
    url = response.request.url.join(text)
    if _origin(url) != _origin(response.request.url):
        raise ValueError("The server wants messages posted to another host")
    return url


async def _take(data: str, to_us: MemoryObjectSendStream[Incoming], server: str) -> None:
    try:
        messages = [jsonrpc_message_adapter.validate_json(data, by_name=False)]
    except ValueError:
        messages = list(_odd(data, server))
    for message in messages:
        await _give(to_us, message)


def _odd(data: str, server: str) -> Iterator[Any]:
    """Of an event that is no message, what can be told of it all the same: somebody may wait for that."""
    log.info("An event is no JSON-RPC message: %.200s", data)
    for part in messages_in(data.encode("utf-8", "surrogatepass"), f"The answer of {server}"):
        with suppress(ValueError):
            yield jsonrpc_message_adapter.validate_python(part, by_name=False)


async def _write(
    client: httpx2.AsyncClient,
    endpoint: httpx2.URL,
    from_us: MemoryObjectReceiveStream[SessionMessage],
    to_us: MemoryObjectSendStream[Incoming],
    server: str,
) -> None:
    """Post in order; a request is not waited for, since some servers answer its POST only when it is done."""
    async with from_us, anyio.create_task_group() as tasks:
        async for outgoing in from_us:
            if isinstance(outgoing.message, JSONRPCRequest):
                tasks.start_soon(_post, client, endpoint, outgoing.message, to_us, server)
            else:
                await _post(client, endpoint, outgoing.message, to_us, server)


async def _post(
    client: httpx2.AsyncClient, endpoint: httpx2.URL, message: Any, to_us: MemoryObjectSendStream[Incoming], server: str
) -> None:
    body = message.model_dump(by_alias=True, mode="json", exclude_unset=True)
    try:
        response = await client.post(endpoint, json=body)
        why, data = ("", None) if response.is_success else _said(response, server)
    except httpx2.HTTPError as error:
        why, data = f"{server} could not be sent the message: {reason_of(error, endpoint.host)}", None
    if why and isinstance(message, JSONRPCRequest):
        error_body = RpcError(CONNECTION_CLOSED, why, data).body()
        refusal = JSONRPCError.model_validate({"jsonrpc": "2.0", "id": message.id, "error": error_body})
        await _give(to_us, refusal)


def _said(response: httpx2.Response, server: str) -> tuple[str, Any]:
    """What a refused POST says of itself, and its error data: transport, or the server, may have put it into words."""
    try:
        error = loads(response.content)["error"]
        message, data = error["message"], error.get("data")
    except (JsonError, KeyError, TypeError, AttributeError):
        message, data = None, None
    return (message, data) if isinstance(message, str) else (f"{server} answered HTTP {response.status_code}", None)


async def _give(to_us: MemoryObjectSendStream[Incoming], message: Any) -> None:
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # the connection has ended meanwhile
        await to_us.send(SessionMessage(message))


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
