"""The shim as a Streamable HTTP server, because the official suite does not support stdio.

Each session of the older era, and each request of the newer era, has its own shim process. `python -m
tests.conformance.adapter` prints its URL.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

import anyio
import anyio.abc
import uvicorn
from mcp.server.context import CallNext, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tests.conformance.reference.server import RETRY_MS, Events
from trayapp.service.command_line import own_command

LINE_LIMIT = 64 << 20
META = "io.modelcontextprotocol/"
Context = ServerRequestContext[Any, Any]
Message = dict[str, Any]


class Line:
    """One shim process. `standing` is the stream to the client for messages that belong to no request."""

    def __init__(self, process: asyncio.subprocess.Process, standing: Any, tasks: anyio.abc.TaskGroup) -> None:
        self._process = process
        self._standing = standing
        self._tasks = tasks
        self._open: dict[Any, tuple[asyncio.Future[Message], Any]] = {}

    async def read(self) -> None:
        """Dispatch the shim's messages until it ends."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            message: Message = json.loads(line)
            if "method" not in message:
                waiting, _ = self._open.pop(message["id"], (None, None))
                if waiting and not waiting.done():  # the client may have gone
                    waiting.set_result(message)
            elif "id" in message:
                self._tasks.start_soon(self._ask, message)
            else:
                await self._way().notify(message["method"], message.get("params"))

    def _way(self) -> Any:
        """Return the stream to the client: that of its newest open request, or else the standing stream."""
        return next((channel for _, channel in reversed(self._open.values())), self._standing)

    async def _ask(self, question: Message) -> None:
        answer: Message = {"id": question["id"]}
        try:
            answer["result"] = await self._way().send_raw_request(question["method"], question.get("params"))
        except MCPError as error:
            answer["error"] = {"code": error.code, "message": error.message}
        self.send(answer)

    def send(self, message: Message) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def request(self, method: str, params: Any, request_id: Any = 1, channel: Any = None) -> Message:
        """Send a request and return its result. Raises MCPError."""
        waiting: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._open[request_id] = waiting, channel
        self.send({"id": request_id, "method": method, **({} if params is None else {"params": dict(params)})})
        try:
            message = await waiting
        finally:
            self._open.pop(request_id, None)
        if "error" in message:
            error = message["error"]
            raise MCPError(error["code"], error["message"], error.get("data"))
        result: Message = message["result"]
        return result

    async def close(self) -> None:
        """Close the connection as a departing client does, and wait until the shim ends."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


class Adapter:
    """The sessions' shims, and the middleware that forwards messages to them."""

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self._tasks = tasks
        self._lines: WeakKeyDictionary[Any, Line] = WeakKeyDictionary()  # the SDK's connection -> its shim
        self.schemas: dict[str, Any] = {}  # tool -> the schema by which the SDK checks headers

    async def start_line(self, standing: Any = None) -> Line:
        """Start a shim and read its messages."""
        process = await asyncio.create_subprocess_exec(
            *own_command(), "stdio", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LINE_LIMIT
        )
        line = Line(process, standing, self._tasks)
        self._tasks.start_soon(line.read)
        return line

    @asynccontextmanager
    async def one_line(self) -> AsyncIterator[Line]:
        """Yield a shim for one request, and close it afterwards."""
        line = await self.start_line()
        try:
            yield line
        finally:
            with anyio.CancelScope(shield=True):
                await line.close()

    async def learn(self) -> None:
        """Load the tools' input schemas."""
        meta = {META + "protocolVersion": MODERN_PROTOCOL_VERSIONS[-1], META + "clientCapabilities": {}}
        async with self.one_line() as line:
            tools = (await line.request("tools/list", {"_meta": meta}))["tools"]
        self.schemas = {tool["name"]: tool["inputSchema"] for tool in tools}

    async def forward(self, ctx: Context, call_next: CallNext) -> Any:
        """Forward a message unchanged to the client's shim, as middleware of the SDK's server."""
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            # Over HTTP, only a header names the newer era. A stdio frame has no header, so the shim would accept this
            # request.
            if ctx.method == "initialize":
                raise MCPError(METHOD_NOT_FOUND, "Method not found")
            async with self.one_line() as line:
                return await line.request(ctx.method, ctx.params, ctx.request_id, ctx.session._request_outbound)
        connection = ctx.session._connection
        line = self._lines.get(connection) or await self._new(connection)
        if ctx.request_id is not None:
            return await line.request(ctx.method, ctx.params, ctx.request_id, ctx.session._request_outbound)
        line.send({"method": ctx.method, **({} if ctx.params is None else {"params": dict(ctx.params)})})
        return await call_next(ctx)

    async def _new(self, connection: Any) -> Line:
        self._lines[connection] = line = await self.start_line(connection.outbound)
        connection.exit_stack.push_async_callback(line.close)
        return line


async def main() -> None:
    """Print the URL and serve until killed."""
    async with anyio.create_task_group() as tasks:
        adapter = Adapter(tasks)
        await adapter.learn()
        server: Server[Any] = Server("adapter", get_tool_input_schema=adapter.schemas.get)
        server.middleware.append(adapter.forward)
        app = server.streamable_http_app(event_store=Events(), retry_interval=RETRY_MS)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
            config = uvicorn.Config(app, log_level=logging.CRITICAL, http="h11")  # h11, as in the reference server
            await uvicorn.Server(config).serve([listener])
        os._exit(0)


if __name__ == "__main__":
    anyio.run(main)
