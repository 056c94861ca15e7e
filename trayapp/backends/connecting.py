"""From a configured server to a connected one: each way to reach it in turn, each bounded by its timeout.

Never here: states, backoff, what a connected server is used for.
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
    """The server with hands shaken, by the first way that leads to it; its process ends with the context.

    Raises MultiMcpError: what is wrong with its entry, or ServerError.
    """
    stderr = context.stderr(key)
    record = await context.confinements.begin(server, context.settings(), context.environ, stderr)
    launch = await prepared(server, context.environ, context.keyring, context.clock.time(), record)
    if isinstance(launch, HttpLaunch) and launch.auth == "oauth":
        await context.sign_in(launch)  # here: a slow keyring is no slow server
    hints = [context.hint(key)]
    if not hints[0] and isinstance(launch, StdioLaunch):
        hints.append(HANDSHAKE_VERSIONS[-1])  # for servers that die of a request before initialize
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
                server.name, title, "Raise its connect_timeout in servers.yaml if it is slow to start"
            )


async def _greeted(
    transport: Transport, key: str, server: ServerConfig, context: BackendContext, hint: str, *, last: bool
) -> Live | None:
    """Hands shaken; None when the next way should be tried. Raises ServerError."""
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
    """Where to look next: a server over HTTP has no log here, and a silent one an empty log."""
    if transport.kind != "stdio":
        return f"Check its url in servers.yaml, then: multi-mcp reconnect {server.name}"
    if transport.has_printed():
        return f"See: multi-mcp logs {server.name}"
    import shlex  # for the few servers that end without a word

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
