"""Every transport as one async context manager that yields a Transport.

HTTP is in backends/http, imported at its first use.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

import anyio
import anyio.to_thread

from trayapp.auth.accounts import Accounts
from trayapp.backends.launch import HttpLaunch, Launch, StdioLaunch
from trayapp.backends.stdio.orphans import NoTracker, ProcessTracker
from trayapp.backends.stdio.transport import open_stdio
from trayapp.backends.transport import Inbound, Transport, first_cause

OpenHttp = Callable[[HttpLaunch, Inbound, Accounts | None], AbstractAsyncContextManager[Transport]]


@asynccontextmanager
async def open_transport(
    launch: Launch,
    inbound: Inbound,
    stderr: Callable[[bytes], None],
    *,
    keeper: ProcessTracker | None = None,
    accounts: Accounts | None = None,
) -> AsyncIterator[Transport]:
    """Open the transport that `launch` names, with the user's sign-in if there is one. Raises ConnectFailedError."""
    if isinstance(launch, StdioLaunch):
        way: AbstractAsyncContextManager[Transport] = open_stdio(launch, inbound, stderr, keeper or NoTracker())
    else:
        open_http = await anyio.to_thread.run_sync(_load_http)
        way = open_http(launch, inbound, accounts)
    try:
        async with way as transport:
            yield transport
    except BaseExceptionGroup as group:
        raise first_cause(group) from None


def _load_http() -> OpenHttp:
    """Import the HTTP transports. This waits until a server needs them, so that no list is delayed."""
    from trayapp.backends.http.streamable import open_http

    return open_http


def ways(launch: Launch) -> tuple[Launch, ...]:
    """Return the launches to try in turn: an address without a `type` as Streamable HTTP, then as legacy SSE."""
    if isinstance(launch, HttpLaunch) and launch.kind is None:
        return tuple(replace(launch, kind=kind) for kind in ("http", "sse"))
    return (launch,)
