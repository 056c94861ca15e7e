"""The seam to the SDK: FrameDispatcher has the shape of its Dispatcher, and both understand each other over a socket.

The SDK calls that Protocol provisional: an update that changes it fails here first.
"""

from __future__ import annotations

import asyncio
import inspect
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import fields
from typing import Any

import anyio
import anyio.abc
import pytest
from mcp.client.session import ClientSession
from mcp.shared import dispatcher as seam
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import ProgressToken, jsonrpc_message_adapter

from trayapp.wire.frames import CallOptions, FrameDispatcher, FrameTransport, RequestContext
from trayapp.wire.messages import METHOD_NOT_FOUND, Params, Reply, RpcError

# -- shape -------------------------------------------------------------------------------------------------------


def public_names(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


PAIRS = [(FrameDispatcher, seam.Dispatcher), (RequestContext, seam.DispatchContext)]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_every_member_of_the_sdks_protocol_is_there(ours: type, theirs: type) -> None:
    assert public_names(theirs) - public_names(ours) == set()


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_methods_take_the_same_arguments_with_the_same_defaults(ours: type, theirs: type) -> None:
    methods = [name for name in public_names(theirs) if inspect.isfunction(getattr(theirs, name))]
    assert len(methods) >= 3
    for name in methods:
        mine, protocol = getattr(ours, name), getattr(theirs, name)
        assert parameters(mine) == parameters(protocol), name
        assert inspect.iscoroutinefunction(mine) == inspect.iscoroutinefunction(protocol), name


def test_the_protocol_is_the_one_that_we_know() -> None:
    assert public_names(seam.Dispatcher) == {"run", "send_raw_request", "notify"}
    assert public_names(seam.DispatchContext) == {
        "send_raw_request",
        "notify",
        "progress",
        "transport",
        "can_send_request",
        "request_id",
        "message_metadata",
        "cancel_requested",
    }
    assert isinstance(FrameDispatcher(lambda data: None), seam.Outbound)


def test_transport_and_options_hold_no_name_that_the_sdk_has_not() -> None:
    assert set(FrameTransport._fields) == {field.name for field in fields(TransportContext)}
    assert CallOptions.__annotations__.keys() <= seam.CallOptions.__annotations__.keys()


# -- over a socket -----------------------------------------------------------------------------------------------


class Wire(asyncio.Protocol):
    """Our end of a socket."""

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
    """Our dispatcher at one end of a socket, the two streams that the SDK wants at the other."""
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


class Server:
    """A server as request handlers, for either dispatcher; `error` is how that one wants errors raised."""

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


async def use(session: ClientSession, server: Server, error: type[Exception]) -> None:
    """Do what a client does: initialize, list, call, get an error, give up a call, and continue."""
    assert (await session.initialize()).server_info.name == "seam"
    assert [tool.name for tool in (await session.list_tools()).tools][:2] == ["echo", "steps"]
    assert text_of(await session.call_tool("echo", {"text": "ünï\u2028"})) == "ünï\u2028"
    assert text_of(await session.call_tool("asks")) == "{}"
    big = "x" * 300_000
    assert text_of(await session.call_tool("echo", {"text": big})) == big
    with pytest.raises(error, match="it fails"):
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
        await tasks.start(ours.run, server.on_request, server.on_notify)
        async with ClientSession(read, write) as session:
            await use(session, server, MCPError)
            heard: list[Any] = []

            async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                heard.append((progress, total, message))

            await session.call_tool("steps", progress_callback=on_progress)
            assert heard == [(1, 2, "one"), (2, 2, None)]
            with pytest.raises(MCPError) as caught:
                await session.call_tool("fails")
            assert (caught.value.error.code, caught.value.error.data) == (-32050, {"why": "so"})
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_the_sdks_client_runs_on_our_dispatcher() -> None:
    server = Server(MCPError)
    async with ends() as (ours, streams), anyio.create_task_group() as tasks:
        theirs: JSONRPCDispatcher[TransportContext] = JSONRPCDispatcher(*streams)
        await tasks.start(theirs.run, server.on_request, server.on_notify)
        async with ClientSession(dispatcher=ours) as session:  # type: ignore[arg-type]  # dataclasses for their bases
            await use(session, server, RpcError)
        tasks.cancel_scope.cancel()


class Relayed:
    """A Call that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def answered(self, reply: Reply) -> None:
        self.reply.set_result(reply)

    def progress(self, params: dict[str, Any]) -> None:
        self.heard.append(params)


async def nothing(context: Any, method: str, params: Params) -> Any:
    return {}


@pytest.mark.anyio
@pytest.mark.parametrize("token", [77, "mine"])
async def test_a_relayed_call_to_the_sdks_dispatcher_keeps_the_callers_token(token: ProgressToken) -> None:
    server = Server(MCPError)
    async with ends() as (ours, streams), anyio.create_task_group() as tasks:
        theirs: JSONRPCDispatcher[TransportContext] = JSONRPCDispatcher(*streams)
        await tasks.start(theirs.run, server.on_request, server.on_notify)
        await tasks.start(ours.run, nothing, nothing)
        call = Relayed()
        ours.relay("tools/call", {"name": "steps", "_meta": {"progressToken": token}}, call)
        assert (await call.reply).result()["content"] == [{"type": "text", "text": "None"}]
        assert [params["progressToken"] for params in call.heard] == [token, token]
        tasks.cancel_scope.cancel()
