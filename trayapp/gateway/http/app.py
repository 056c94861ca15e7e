"""What listens behind the HTTP port: a web server, and the applications behind their paths. The SDK comes later.

Imported when the first client knocks. Never here: binding the port, who may come in, sessions' behaviour.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread
import uvicorn

from trayapp.auth.sdk import load_sdk
from trayapp.gateway.http.arrivals import Arrivals
from trayapp.gateway.http.asgi import Asgi, respond
from trayapp.gateway.http.batches import Batches
from trayapp.gateway.http.connections import HttpConnection
from trayapp.gateway.http.door import BACKLOG
from trayapp.gateway.http.guard import Access, Guard
from trayapp.gateway.http.leaving import ended_in_order
from trayapp.gateway.http.opening import Opening
from trayapp.gateway.http.presence import IDLE_MOST, Presence
from trayapp.gateway.http.quick import Quick
from trayapp.gateway.http.single import Single
from trayapp.gateway.http.sse import MESSAGES, Streams
from trayapp.wire.pending_connections import PendingConnections

if TYPE_CHECKING:
    from trayapp.gateway.gateway import Gateway
    from trayapp.gateway.http.manage import FileEdits

LAST_ANSWERS_S = 1.0  # at the end, for what is on its way
LAST_WORDS_S = 0.2  # then, to tell who has got none


class Sdk:
    """The applications for which the SDK is loaded, 0.3 s and tens of MB: when somebody needs one."""

    def __init__(self, file: FileEdits, arrivals: Arrivals, presence: Presence, tasks: anyio.abc.TaskGroup) -> None:
        self._parts = (arrivals.gateway, file, arrivals, presence)
        self._tasks = tasks
        self._wanted = False
        self._there = anyio.Event()
        self._applications: tuple[Asgi, Asgi] | None = None

    async def streamable(self, scope: Any, receive: Any, send: Any) -> None:
        """Streamable HTTP of both eras."""
        await (await self.loaded())(scope, receive, send)

    async def others(self, scope: Any, receive: Any, send: Any) -> None:
        """All other paths."""
        await self.loaded()
        assert self._applications is not None
        await self._applications[1](scope, receive, send)

    async def loaded(self) -> Asgi:
        """`streamable` itself."""
        if not self._wanted:
            self._wanted = True
            self._tasks.start_soon(self._run)
        await self._there.wait()
        assert self._applications is not None
        return self._applications[0]

    async def _run(self) -> None:
        module = await anyio.to_thread.run_sync(_load_full)
        async with module.running(*self._parts) as self._applications:
            self._there.set()
            await anyio.sleep_forever()


def _load_full() -> Any:
    """Load what needs the SDK. Not before a client on HTTP wants it."""
    load_sdk()
    from trayapp.gateway.http import full

    return full


async def serve(
    gateway: Gateway, file: FileEdits, sock: socket.socket, access: Access, idle_most: int = IDLE_MOST
) -> None:
    """Serve on a listening socket until cancelled. `idle_most`: sessions without an open request."""
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        arrivals = Arrivals(gateway, tasks)
        presence = Presence(gateway.services.clock, tasks, idle_most)
        sdk = Sdk(file, arrivals, presence, tasks)
        opened = Opening(arrivals, presence, sdk.loaded, tasks).around(sdk.streamable)
        quick = Quick(presence.peer_of, gateway.services.clock).around(opened)
        streamable = presence.around(Batches(presence.peer_of).around(Single(arrivals).around(quick)))
        await listen(Guard(by_path(streamable, Streams(arrivals), sdk.others), access), sock)


def by_path(streamable: Asgi, streams: Streams, others: Asgi) -> Asgi:
    """Each request to its application."""

    async def routed(scope: Any, receive: Any, send: Any) -> None:
        path, method = scope["path"].rstrip("/"), scope["method"]
        if path == "/mcp":
            await streamable(scope, receive, send)
        elif (path, method) == ("/sse", "GET"):
            await streams.stream(scope, receive, send)
        elif (path, method) == (MESSAGES, "POST"):
            await streams.post(scope, receive, send)
        elif path in ("/sse", MESSAGES):
            await respond(send, b"", 405, more=[(b"allow", b"GET" if path == "/sse" else b"POST")])
        else:
            await others(scope, receive, send)

    return routed


async def listen(app: Asgi, sock: socket.socket, last_answers_s: float = LAST_ANSWERS_S) -> None:
    """Uvicorn without its main loop, which wakes up ten times a second, and without its signal handlers."""
    pending = PendingConnections()
    config = uvicorn.Config(
        ended_in_order(app), http="h11", ws="none", lifespan="off", log_config=None, access_log=False,
        server_header=False, date_header=False, backlog=pending.burst,
    )  # fmt: skip
    config.load()
    config.http_protocol_class = cast(type[asyncio.Protocol], partial(HttpConnection, pending))
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[sock])
    sock.listen(BACKLOG)  # startup has set it to what is accepted in one turn
    try:
        await anyio.sleep_forever()
    finally:
        server.should_exit = True
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(last_answers_s):
                await server.shutdown(sockets=[sock])
            await _end(server.server_state)


async def _end(left: uvicorn.server.ServerState) -> None:
    """Who waits is told, streams that stay open are ended, whose clients come again; then all connections are."""
    waiting = list(left.tasks)
    for task in waiting:
        task.cancel()
    if waiting:
        await asyncio.wait(waiting, timeout=LAST_WORDS_S)
    for _ in range(2):  # who does not read; and who came at the last moment
        await anyio.lowlevel.checkpoint()
        for connection in list(left.connections):
            connection.transport.abort()
