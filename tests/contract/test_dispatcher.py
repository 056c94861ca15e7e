"""FrameDispatcher works with the SDK's client and dispatcher over a socket."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import pytest
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import ProgressToken, jsonrpc_message_adapter

from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.messages import METHOD_NOT_FOUND, PROGRESS, Params, Reply, RpcError


class Wire(asyncio.Protocol):
    """Our end of a socket, which passes its data to a FrameDispatcher."""

    def __init__(self) -> None:
        self.dispatcher = FrameDispatcher(self.write)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    def data_received(self, data: bytes) -> None:
        self.dispatcher.feed(data)

    def connection_lost(self, error: Exception | None) -> None:
        self.dispatcher.close()


@asynccontextmanager
async def ends() -> AsyncIterator[tuple[FrameDispatcher, tuple[Any, Any]]]:
    """Yield our dispatcher at one end of a socket, and the two streams for the SDK at the other end."""
    left, right = socket.socketpair()
    transport, wire = await asyncio.get_running_loop().create_connection(Wire, sock=left)
    theirs = await anyio.abc.SocketStream.from_socket(right)
    to_sdk, sdk_reads = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sdk_writes, from_sdk = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        rest = b""
        async with to_sdk:
            async for chunk in theirs:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    await to_sdk.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))

    async def write() -> None:
        async with from_sdk:
            async for item in from_sdk:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await theirs.send(text.encode() + b"\n")

    with anyio.fail_after(20):
        async with theirs, to_sdk, sdk_reads, sdk_writes, from_sdk, anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            tasks.start_soon(write)
            yield wire.dispatcher, (sdk_reads, sdk_writes)
            transport.close()
            tasks.cancel_scope.cancel()


class OurContext:
    """The part of the SDK's DispatchContext that the server's handlers need, for one request to our dispatcher."""

    def __init__(self, dispatcher: FrameDispatcher, params: Any) -> None:
        self._dispatcher = dispatcher
        self._token = (params or {}).get("_meta", {}).get("progressToken")

    async def progress(self, progress: float, total: float, message: str | None = None) -> None:
        if self._token is not None:
            told = {"progressToken": self._token, "progress": progress, "total": total}
            self._dispatcher.send_notification(PROGRESS, told | ({"message": message} if message else {}))

    async def send_raw_request(self, method: str, params: Params) -> dict[str, Any]:
        return await self._dispatcher.send_raw_request(method, params)


class Server:
    """A server's request handlers for either dispatcher. `error` makes the exception that the dispatcher expects."""

    def __init__(self, error: Callable[[int, str, Any], Exception]) -> None:
        self._error = error
        self.notified: list[str] = []
        self.begun = anyio.Event()
        self.cancelled = anyio.Event()

    async def on_request(self, context: Any, method: str, params: Params) -> dict[str, Any]:
        handlers: dict[str, Callable[[Any, Any], Awaitable[dict[str, Any]]]] = {
            "initialize": self._initialize,
            "tools/list": self._list,
            "tools/call": self._call,
        }
        if method not in handlers:
            raise self._error(METHOD_NOT_FOUND, "Method not found", method)
        return await handlers[method](context, params or {})

    async def on_notify(self, context: Any, method: str, params: Params) -> None:
        self.notified.append(method)

    async def _initialize(self, context: Any, params: Any) -> dict[str, Any]:
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "seam", "version": "1"},
        }

    async def _list(self, context: Any, params: Any) -> dict[str, Any]:
        names = ("echo", "steps", "asks", "fails", "stuck")
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}

    async def _call(self, context: Any, params: Any) -> dict[str, Any]:
        name, text = params["name"], str(params.get("arguments", {}).get("text"))
        if name == "steps":
            await context.progress(1, 2, "one")
            await context.progress(2, 2)
        elif name == "asks":
            text = str(await context.send_raw_request("ping", None))
        elif name == "fails":
            raise self._error(-32050, "it fails", {"why": "so"})
        elif name == "stuck":
            self.begun.set()
            try:
                await anyio.sleep_forever()
            finally:
                self.cancelled.set()
        return {"content": [{"type": "text", "text": text}]}


def text_of(result: Any) -> str:
    text: str = result.content[0].text
    return text


async def use(session: ClientSession, server: Server) -> None:
    """Use the session as a client does: initialize, list, call, get an error, cancel a call and continue."""
    assert (await session.initialize()).server_info.name == "seam"
    assert [tool.name for tool in (await session.list_tools()).tools][:2] == ["echo", "steps"]
    assert text_of(await session.call_tool("echo", {"text": "ünï\u2028"})) == "ünï\u2028"
    assert text_of(await session.call_tool("asks")) == "{}"
    big = "x" * 300_000
    assert text_of(await session.call_tool("echo", {"text": big})) == big
    with pytest.raises(MCPError, match="it fails"):
        await session.call_tool("fails")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.call_tool, "stuck")
        await server.begun.wait()
        tasks.cancel_scope.cancel()
    await server.cancelled.wait()
    assert text_of(await session.call_tool("echo", {"text": "still here"})) == "still here"
    assert server.notified[0] == "notifications/initialized"


@pytest.mark.anyio
async def test_the_sdks_client_works_with_our_dispatcher_as_server() -> None:
    server = Server(RpcError)
    async with ends() as (ours, (read, write)), anyio.create_task_group() as tasks:

        async def on_request(method: str, params: Params) -> dict[str, Any]:
            return await server.on_request(OurContext(ours, params), method, params)

        await tasks.start(ours.run, on_request, lambda method, params: server.notified.append(method))
        async with ClientSession(read, write) as session:
            await use(session, server)
            heard: list[Any] = []

            async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                heard.append((progress, total, message))

            await session.call_tool("steps", progress_callback=on_progress)
            assert heard == [(1, 2, "one"), (2, 2, None)]
            with pytest.raises(MCPError) as caught:
                await session.call_tool("fails")
            assert (caught.value.error.code, caught.value.error.data) == (-32050, {"why": "so"})
        tasks.cancel_scope.cancel()


class Relayed:
    """A Call that records its progress and its reply."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def answered(self, reply: Reply) -> None:
        self.reply.set_result(reply)

    def progress(self, params: dict[str, Any]) -> None:
        self.heard.append(params)


async def nothing(method: str, params: Params) -> dict[str, Any]:
    return {}


@pytest.mark.anyio
@pytest.mark.parametrize("token", [77, "mine"])
async def test_a_relayed_call_to_the_sdks_dispatcher_keeps_the_callers_token(token: ProgressToken) -> None:
    server = Server(MCPError)
    async with ends() as (ours, streams), anyio.create_task_group() as tasks:
        theirs: JSONRPCDispatcher[TransportContext] = JSONRPCDispatcher(*streams)
        await tasks.start(theirs.run, server.on_request, server.on_notify)
        await tasks.start(ours.run, nothing, lambda method, params: None)
        call = Relayed()
        ours.relay("tools/call", {"name": "steps", "_meta": {"progressToken": token}}, call)
        assert (await call.reply).result()["content"] == [{"type": "text", "text": "None"}]
        assert [params["progressToken"] for params in call.heard] == [token, token]
        tasks.cancel_scope.cancel()
