"""Connect to a configured server: try each transport that its entry allows. A connect timeout ends the attempts.

Every transport is one async context manager. Those over HTTP are imported at their first use. States and backoff are
in `connection`.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from importlib import import_module

import anyio
import anyio.to_thread

from trayapp.auth.accounts import Accounts
from trayapp.backends.context import BackendContext, Inbound, Live, Transport, first_cause
from trayapp.backends.handshake import HTTP_PROBE_PATIENCE_S, PROBE_PATIENCE_S, shake_hands
from trayapp.backends.http.refusal import SSE_AFTER, refused
from trayapp.backends.launch import HttpLaunch, Launch, StdioLaunch, prepare_start
from trayapp.backends.stdio.orphans import ProcessTracker
from trayapp.backends.stdio.processes import open_stdio
from trayapp.model.config import ServerConfig
from trayapp.model.errors import ConnectFailedError, ServerError
from trayapp.wire.messages import CONNECTION_CLOSED, RpcError
from trayapp.wire.revisions import HANDSHAKE_VERSIONS


@asynccontextmanager
async def open_transport(
    launch: Launch,
    inbound: Inbound,
    stderr: Callable[[bytes], None],
    *,
    tracker: ProcessTracker,
    accounts: Accounts | None = None,
) -> AsyncIterator[Transport]:
    """Yield an open transport for `launch`, with the user's sign-in if there is one. Raises ServerError."""
    if isinstance(launch, StdioLaunch):
        opened: AbstractAsyncContextManager[Transport] = open_stdio(launch, inbound, stderr, tracker)
    else:
        # In a thread, so that other servers' calls continue
        await anyio.to_thread.run_sync(import_module, "trayapp.backends.http.streamable")
        from trayapp.backends.http.streamable import open_http

        opened = open_http(launch, inbound, accounts)
    try:
        async with opened as transport:
            yield transport
    except BaseExceptionGroup as group:
        raise first_cause(group) from None


@asynccontextmanager
async def connect(key: str, server: ServerConfig, context: BackendContext, inbound: Inbound) -> AsyncIterator[Live]:
    """Connect over the first transport that works, and yield the server after its handshake.

    A server's process ends with the context. Raises MultiMcpError: an error in the server's entry, or a ServerError.
    """
    stderr = context.stderr(key)
    record = await context.confinements.begin(server, context.settings(), context.environ, stderr)
    launch = await prepare_start(server, context.environ, context.keyring, context.clock.time(), record, context.locks)
    if isinstance(launch, HttpLaunch) and launch.auth == "oauth":
        await context.sign_in(launch)  # outside the timeout: a slow keyring is not the server's fault
    hints = [context.hint(key)]
    if not hints[0] and isinstance(launch, StdioLaunch):
        hints.append(HANDSHAKE_VERSIONS[-1])  # for servers that exit on any request before initialize
    attempts: tuple[Launch, ...] = (launch,)
    if isinstance(launch, HttpLaunch) and launch.kind is None:  # an address without a `type`
        attempts = tuple(replace(launch, kind=kind) for kind in ("http", "sse"))
    tries = [(attempt, hint) for attempt in attempts for hint in hints]
    timeout = server.connect_timeout or context.settings().connect_timeout
    for attempt, hint in tries:
        with anyio.move_on_after(timeout) as limit:
            async with AsyncExitStack() as stack:
                transport = await stack.enter_async_context(context.open(attempt, inbound, context.stderr(key)))
                live = await _shake_hands(transport, key, server, context, hint, last=(attempt, hint) == tries[-1])
                if live is None:
                    continue
                limit.deadline = math.inf
                yield live
                return
        if limit.cancelled_caught:
            title = f"{server.name} did not finish its handshake within {timeout:g} s"
            raise ConnectFailedError(
                server.name, title, "If it is slow to start, raise its connect_timeout in servers.yaml"
            )


async def _shake_hands(
    transport: Transport, key: str, server: ServerConfig, context: BackendContext, hint: str, *, last: bool
) -> Live | None:
    """Shake hands and return the live connection. Raises ServerError.

    Unless this is the `last` attempt, return None after a failure that the next attempt may avoid.
    """
    capabilities = context.capabilities(key)
    patience_s = HTTP_PROBE_PATIENCE_S if transport.kind == "http" else PROBE_PATIENCE_S
    try:
        peer = await shake_hands(transport.channel, capabilities, hint, patience_s)
        return Live(transport, peer, capabilities)
    except RpcError as error:
        is_stdio = transport.kind == "stdio"
        go_on = error.code == CONNECTION_CLOSED if is_stdio else transport.refusal.status in SSE_AFTER
        if go_on and not last:
            return None
        raise _connect_error(server, transport, error) from None


def _connect_error(server: ServerConfig, transport: Transport, error: RpcError) -> ServerError:
    name = server.name
    if transport.refusal.refuses_authorization:
        return refused(name, transport.refusal)
    why = error.message
    if transport.refusal.status is not None and "(HTTP" not in why:
        why = f"{why} (HTTP {transport.refusal.status})"
    if transport.kind != "stdio":
        hint = f"Check its url in servers.yaml, then: multi-mcp reconnect {name}"
    elif transport.has_printed():
        hint = f"See: multi-mcp logs {name}"
    else:
        import shlex  # needed only for servers that exit without any output

        line = " ".join((server.command or "", *map(shlex.quote, server.args)))
        hint = f"It printed nothing. Run it yourself: {line}"
    title = why if why.startswith(f"Cannot reach {name} ") else f"Cannot connect to {name}: {why}"
    failure = ConnectFailedError(name, title, hint)
    failure.model_hint = "Tell the user"
    failure.retry_after_s = transport.refusal.retry_after_s
    return failure
