"""A raw MCP client over the standard streams of any process: the shim, or a server. It keeps each frame as received.

`Conversation` is the part that the clients of all transports share.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from tests.patience import stretched

PATIENCE_S = 25.0  # enough for a busy machine to start six servers
END_S = 5.0  # limit from the end of stdin to the end of the process
LINE_LIMIT = 64 << 20
Message = dict[str, Any]


class RpcFailure(Exception):
    """An error answer. `error` is its JSON-RPC error object."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error))
        self.error = error


class Conversation:
    """The messages between a client and the other end. `told` holds the received notifications in order."""

    def __init__(self) -> None:
        self.told: list[Message] = []
        self.requests: list[Message] = []  # requests from the server, which only tests answer
        self.stray: list[Message] = []  # answers to no open request, of which there must be none
        self._open: dict[Any, asyncio.Future[Message]] = {}
        self._ids = count(1)
        self._news = anyio.Event()

    def send(self, message: Message) -> None:
        """Send a message as one frame."""
        raise NotImplementedError

    def take(self, message: Message) -> None:
        """Store a received message, or complete the request that it answers."""
        if "method" in message:
            (self.requests if "id" in message else self.told).append(message)
        elif (waiting := self._open.pop(_key(message["id"]), None)) is not None:
            if not waiting.cancelled():  # the caller may have given up
                waiting.set_result(message)
        else:
            self.stray.append(message)
        self._news.set()
        self._news = anyio.Event()

    def ended(self) -> None:
        """Fail all open requests, because no more messages will arrive."""
        for _, request_id in list(self._open):
            self.broke_off(request_id)

    def broke_off(self, request_id: Any) -> None:
        """Fail an open request, because its answer can no longer arrive."""
        waiting = self._open.get(_key(request_id))
        if waiting is not None and not waiting.done():
            waiting.set_exception(EOFError("the other end is gone"))
            waiting.exception()  # retrieved here, so that asyncio does not complain if nobody awaits it

    def ask(self, method: str, params: Message | None = None, request_id: Any = None) -> asyncio.Future[Message]:
        """Send a request and return a future of its whole answer."""
        number = next(self._ids) if request_id is None else request_id
        self._open[_key(number)] = waiting = asyncio.get_running_loop().create_future()
        self.send({"id": number, "method": method, **({} if params is None else {"params": params})})
        return waiting

    async def request(self, method: str, params: Message | None = None, request_id: Any = None) -> Message:
        """Send a request and return its result. Raises RpcFailure."""
        with anyio.fail_after(stretched(PATIENCE_S)):
            message = await self.ask(method, params, request_id)
        if "error" in message:
            raise RpcFailure(message["error"])
        result: Message = message["result"]
        return result

    async def call(self, tool: str, **arguments: Any) -> Message:
        """Call a tool and return its result."""
        return await self.request("tools/call", {"name": tool, "arguments": arguments})

    async def initialize(self, version: str = "2025-11-25", **capabilities: Any) -> Message:
        """Perform the handshake and return its result."""
        about = {"name": "test client", "version": "1"}
        params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": about}
        result = await self.request("initialize", params)
        self.send({"method": "notifications/initialized"})
        return result

    async def all(self, kind: str, method: str | None = None) -> list[Message]:
        """Return the items on all pages of a list."""
        items: list[Message] = []
        params: Message = {}
        while True:
            page = await self.request(method or f"{kind}/list", params)
            items += page[kind]
            if not page.get("nextCursor"):
                return items
            params = {"cursor": page["nextCursor"]}

    async def tools(self) -> list[str]:
        """Return the names of all tools that are currently listed."""
        return [tool["name"] for tool in await self.all("tools")]

    async def something(self) -> None:
        """Wait for the next message of any kind."""
        await self._news.wait()

    async def heard(self, method: str, times: int = 1) -> list[Message]:
        """Wait for this many notifications of a method. Return the params of all that have been received."""
        with anyio.fail_after(stretched(PATIENCE_S)):
            while len(found := [m.get("params", {}) for m in self.told if m["method"] == method]) < times:
                await self._news.wait()
        return found


class RawClient(Conversation):
    """A conversation with a process over its standard streams."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        super().__init__()
        self.process = process

    async def read(self) -> None:
        """Read messages until the process closes its stdout."""
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self.take(json.loads(line))
        self.ended()

    def send(self, message: Message) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


@asynccontextmanager
async def task_group() -> AsyncIterator[anyio.abc.TaskGroup]:
    """Open a task group. A single exception in it is raised without the group, so that a report begins with it."""
    try:
        async with anyio.create_task_group() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        only = group.exceptions[0]
        raise only from only.__cause__  # otherwise, the report would begin with the group


@asynccontextmanager
async def client_of(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path, version: str | None = "2025-11-25"
) -> AsyncIterator[RawClient]:
    """Start a process and yield a client that is connected to it. End the process afterwards.

    The client is initialized unless `version` is None.
    """
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=dict(env),
        cwd=cwd,
        limit=LINE_LIMIT,
    )
    client = RawClient(process)
    async with task_group() as tasks:
        tasks.start_soon(client.read)
        try:
            if version is not None:
                await client.initialize(version)
            yield client
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
            tasks.cancel_scope.cancel()


async def _end(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        with anyio.fail_after(stretched(END_S)):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
    process._transport.close()  # type: ignore[attr-defined]  # asyncio has no other way to free its pipes immediately


def _key(request_id: Any) -> tuple[type, Any]:
    return type(request_id), request_id
