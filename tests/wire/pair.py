"""Two connected FrameDispatchers, or a single one whose peer is the test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel

from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.messages import METHOD_NOT_FOUND, Params, Reply, RpcError

Handler = Callable[[Params], Awaitable[Any]]
TURNS = 20  # turns of the event loop, more than any chain of tasks in these tests takes


class Peer:
    """One end of a connection. `writes`: the data of each write. `other`, if set, receives the data."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.junk: list[bytes] = []
        self.notified: list[tuple[str, Params]] = []
        self.handlers: dict[str, Handler] = {"echo": echo}
        self.other: Peer | None = None
        self.dispatcher = FrameDispatcher(self._write, on_junk=self.junk.append)

    def _write(self, data: bytes) -> None:
        self.writes.append(data)
        if self.other is not None:
            asyncio.get_running_loop().call_soon(self.other.dispatcher.feed, data)

    async def run(self) -> None:
        await self.dispatcher.run(self.on_request, self.on_notify)

    async def on_request(self, method: str, params: Params) -> dict[str, Any]:
        if method not in self.handlers:
            raise RpcError(METHOD_NOT_FOUND, f"no {method} here")
        result: dict[str, Any] = await self.handlers[method](params)
        return result

    def on_notify(self, method: str, params: Params) -> None:
        self.notified.append((method, params))

    @property
    def frames(self) -> list[bytes]:
        """The written data as frames."""
        return b"".join(self.writes).splitlines(keepends=True)

    @property
    def messages(self) -> list[Any]:
        """The written frames, parsed."""
        return [json.loads(frame) for frame in self.frames]

    def feed(self, *messages: Any) -> None:
        """Receive these messages in one read. Bytes are received unchanged, anything else as JSON."""
        frames = [m if isinstance(m, bytes) else json.dumps(m, separators=(",", ":")).encode() for m in messages]
        self.dispatcher.feed(b"".join(frame + b"\n" for frame in frames))


class Waiting:
    """A Call that records replies and progress."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.heard: list[dict[str, Any]] = []

    def answered(self, reply: Reply) -> None:
        self.replies.append(reply)

    def progress(self, params: dict[str, Any]) -> None:
        self.heard.append(params)

    @property
    def error(self) -> dict[str, Any]:
        (reply,) = self.replies
        error: dict[str, Any] = reply.message["error"]
        return error


async def echo(params: Params) -> Any:
    return {"echo": dict(params or {})}


async def turns() -> None:
    """Wait until all tasks that are ready have run."""
    for _ in range(TURNS):
        await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def running(*peers: Peer) -> AsyncIterator[None]:
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for peer in peers:
                tasks.start_soon(peer.run)
            await turns()
            try:
                yield
            finally:
                for peer in peers:
                    peer.dispatcher.close()


@asynccontextmanager
async def joined() -> AsyncIterator[tuple[Peer, Peer]]:
    """Yield two running peers. Each receives what the other writes."""
    left, right = Peer(), Peer()
    left.other, right.other = right, left
    async with running(left, right):
        yield left, right


@asynccontextmanager
async def alone() -> AsyncIterator[Peer]:
    """Yield a running peer without a counterpart. The test feeds it and reads what it has written."""
    peer = Peer()
    async with running(peer):
        yield peer
