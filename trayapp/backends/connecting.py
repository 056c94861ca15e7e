"""Connect to a configured server: try each transport in turn, each limited by the connect timeout.

States and backoff are in `connection`.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import anyio

from trayapp.backends.context import BackendContext, Live
from trayapp.backends.handshake import shake_hands
from trayapp.backends.http.refusal import SSE_AFTER, refused
from trayapp.backends.launch import HttpLaunch, StdioLaunch, prepared
from trayapp.backends.open_transport import ways
from trayapp.backends.transport import Inbound, Transport
from trayapp.model.errors import ConnectFailedError, ServerError
from trayapp.model.servers import ServerConfig
from trayapp.wire.messages import CONNECTION_CLOSED, RpcError
from trayapp.wire.revisions import HANDSHAKE_VERSIONS


@asynccontextmanager
async def connected(key: str, server: ServerConfig, context: BackendContext, inbound: Inbound) -> AsyncIterator[Live]:
    """Connect by the first transport that works, and yield the server after its handshake.

    Its process ends with the context. Raises MultiMcpError: an error in the server's entry, or a ServerError.
    """
    stderr = context.stderr(key)
    record = await context.confinements.begin(server, context.settings(), context.environ, stderr)
    launch = await prepared(server, context.environ, context.keyring, context.clock.time(), record, context.locks)
    if isinstance(launch, HttpLaunch) and launch.auth == "oauth":
        await context.sign_in(launch)  # outside the timeout: a slow keyring does not make the server slow
    hints = [context.hint(key)]
    if not hints[0] and isinstance(launch, StdioLaunch):
        hints.append(HANDSHAKE_VERSIONS[-1])  # for servers that exit on any request before initialize
    tries = [(way, hint) for way in ways(launch) for hint in hints]
    timeout = server.connect_timeout or context.settings().connect_timeout
    for way, hint in tries:
        with anyio.move_on_after(timeout) as limit:
            async with AsyncExitStack() as stack:
                transport = await stack.enter_async_context(context.open(way, inbound, context.stderr(key)))
                live = await _greeted(transport, key, server, context, hint, last=(way, hint) == tries[-1])
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


async def _greeted(
    transport: Transport, key: str, server: ServerConfig, context: BackendContext, hint: str, *, last: bool
) -> Live | None:
    """Shake hands and return the live connection, or None if the next transport should be tried. Raises ServerError."""
    capabilities = context.capabilities(key)
    try:
        return Live(transport, await shake_hands(transport.channel, capabilities, hint), capabilities)
    except RpcError as error:
        if not last and _may_go_on(transport, error):
            return None
        raise _failure(server, transport, error) from None


def _may_go_on(transport: Transport, error: RpcError) -> bool:
    if transport.kind == "stdio":
        return error.code == CONNECTION_CLOSED
    return transport.refusal.status in SSE_AFTER


def _remedy(server: ServerConfig, transport: Transport) -> str:
    """Return a hint on where to look next. An HTTP server has no log here; a silent server's log is empty."""
    if transport.kind != "stdio":
        return f"Check its url in servers.yaml, then: multi-mcp reconnect {server.name}"
    if transport.has_printed():
        return f"See: multi-mcp logs {server.name}"
    import shlex  # needed only for servers that exit without any output

    return f"It printed nothing. Run it yourself: {' '.join((server.command or '', *map(shlex.quote, server.args)))}"


def _failure(server: ServerConfig, transport: Transport, error: RpcError) -> ServerError:
    name = server.name
    if transport.refusal.is_of_us:
        return refused(name, transport.refusal)
    why = error.message
    if transport.refusal.status is not None and "(HTTP" not in why:
        why = f"{why} (HTTP {transport.refusal.status})"
    failure = ConnectFailedError(name, f"Cannot connect to {name}: {why}", _remedy(server, transport))
    failure.model_hint = "Tell the user"
    failure.http_status = transport.refusal.status
    failure.retry_after_s = transport.refusal.retry_after_s
    return failure
