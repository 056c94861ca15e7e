"""Every way to reach a server as one async context manager that yields a Transport.

Never here: which server, when, how often; the handshake. HTTP lives in backends/http, imported at its first use.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import anyio

from trayapp.auth.accounts import Accounts
from trayapp.backends.keeper import Keeper, NoKeeper
from trayapp.backends.launch import HttpLaunch, Launch, StdioLaunch
from trayapp.backends.processes import StderrTail, running
from trayapp.model.errors import (
    ConnectFailedError,
    KeyringLockedError,
    KeyringUnavailableError,
    MultiMcpError,
    ServerError,
    SignInWantedError,
)
from trayapp.model.late import load_in_turn
from trayapp.model.servers import Auth
from trayapp.wire.frames import FrameDispatcher, RequestContext
from trayapp.wire.messages import CONNECTION_CLOSED, Call, Channel, Params, RpcError

# The error data of a request that the server refused because it had forgotten our session: nothing was executed, it may
# be sent again on a new one. Unguessable, so that no server's own error is taken for it.
NOT_EXECUTED = f"not-executed-{secrets.token_hex(8)}"
UNAUTHORIZED = 401
# What an error answer tells programs besides its words, as gateway/errors does of exceptions
SIGN_IN_DATA: dict[str, object] = {"code": SignInWantedError.code, "exit_code": int(SignInWantedError.exit_code)}
BUSY = frozenset({429, 503})  # with Retry-After: left alone until then (RFC 9110 10.2.3, RFC 6585 4)
LONGEST_WAIT_S = 3600.0  # however long a busy server asks us to wait
SSE_AFTER = frozenset(
    {404, 405, 406, 415}
)  # HTTP answers that mean "no Streamable HTTP here" (MCP transports, backwards compatibility)


class Inbound(Protocol):
    """Where messages that a server sends by itself go. A channel's answers to our requests are not among them.

    `about`: the relayed request on whose own stream the message came (Streamable HTTP); None: the transport does not
    say.
    """

    async def on_request(self, method: str, params: Params, about: Call | None = None) -> dict[str, Any]:
        """Answer a request of the server. Raises RpcError."""

    def on_notification(self, method: str, params: Params, about: Call | None = None) -> None:
        """Take a notification, without blocking."""

    def input_schema(self, tool: str) -> Any:
        """What the server said that a tool takes, None when not known: HTTP repeats some arguments in headers."""


@dataclass(slots=True)
class HttpRefusal:
    """What went wrong on HTTP last: the status of an error answer, and for how many seconds it asks us to wait."""

    status: int | None = None
    retry_after_s: float | None = None
    why: str = ""  # a connection that failed without an answer

    @property
    def asks_to_wait(self) -> bool:
        """Whether the last answer was that of a busy server which said when to come again."""
        return self.status in BUSY and bool(self.retry_after_s)

    auth: Auth = "oauth"  # how the server was told who asks
    unauthorized: bool = False  # some request was answered 401, whatever became of later ones
    scope_wanted: bool = False  # the user has to grant more than was granted
    unread: KeyringUnavailableError | None = None  # why the user's sign-in, if there is one, could not be read

    @property
    def is_of_us(self) -> bool:
        """Whether the server answers, but not to the one who asks."""
        return self.unauthorized or self.status == UNAUTHORIZED or self.scope_wanted


@dataclass(frozen=True, slots=True)
class Transport:
    """An open way to a server. `gone` is set once it can carry nothing more; `obituary` then says why."""

    kind: str
    channel: Channel
    gone: anyio.Event
    obituary: Callable[[], Awaitable[str]]
    pid: int | None = None
    exit_code: Callable[[], int | None] = lambda: None
    refusal: HttpRefusal = field(default_factory=HttpRefusal)
    has_printed: Callable[[], bool] = lambda: False  # besides frames, so that its log holds something


Open = Callable[[Launch, Inbound, Callable[[bytes], None]], AbstractAsyncContextManager[Transport]]


@asynccontextmanager
async def open_transport(
    launch: Launch,
    inbound: Inbound,
    stderr: Callable[[bytes], None],
    *,
    keeper: Keeper | None = None,
    accounts: Accounts | None = None,
) -> AsyncIterator[Transport]:
    """Open the way that `launch` names, with the user's sign-in where there is one. Raises ConnectFailedError."""
    if isinstance(launch, StdioLaunch):
        way = _stdio(launch, inbound, stderr, keeper or NoKeeper())
    else:
        # 0.2 s of imports: in a thread, so that everybody else is served meanwhile (DESIGN, decision 2).
        http = await anyio.to_thread.run_sync(load_in_turn, "trayapp.backends.http")
        way = http.open_http(launch, inbound, accounts)
    try:
        async with way as transport:
            yield transport
    except BaseExceptionGroup as group:
        raise first_cause(group) from None


def first_cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The exception in a task group's bundle that says most: one of ours before any other."""
    leaves: list[BaseException] = []
    waiting: list[BaseException] = [group]
    while waiting:
        error = waiting.pop(0)
        if isinstance(error, BaseExceptionGroup):
            waiting.extend(error.exceptions)
        else:
            leaves.append(error)
    ours = [leaf for leaf in leaves if isinstance(leaf, MultiMcpError | RpcError)]
    return ours[0] if ours else leaves[0]


def refused(server: str, refusal: HttpRefusal) -> ServerError:
    """The error for a refusal that `is_of_us`: the user may sign in, or has to look at a token of his own."""
    if refusal.auth == "oauth":
        return KeyringLockedError(server, refusal.unread) if refusal.unread else SignInWantedError(server)
    hint = f"Check bearer_token_env and headers of {server} in servers.yaml"
    if refusal.auth == "none":
        hint = f"Set auth: oauth for {server} in servers.yaml to sign in, or give it a token"
    failure = ConnectFailedError(server, f"{server} does not accept us (HTTP {refusal.status})", hint)
    failure.http_status = refusal.status
    return failure


def ways(launch: Launch) -> tuple[Launch, ...]:
    """What to try in turn: an address without a `type` is tried as Streamable HTTP, then as legacy SSE."""
    if isinstance(launch, HttpLaunch) and launch.kind is None:
        return tuple(replace(launch, kind=kind) for kind in ("http", "sse"))
    return (launch,)


@asynccontextmanager
async def _stdio(
    launch: StdioLaunch, inbound: Inbound, stderr: Callable[[bytes], None], keeper: Keeper
) -> AsyncIterator[Transport]:
    async def on_request(context: RequestContext, method: str, params: Params) -> dict[str, Any]:
        return await inbound.on_request(method, params)

    async def on_notify(context: RequestContext, method: str, params: Params) -> None:
        """Never reached: the intercept below takes every notification."""

    def on_notification(method: str, params: Params) -> bool:
        inbound.on_notification(method, params)
        return True

    printed: list[bool] = []

    def keep(data: bytes) -> None:
        printed[:] = printed or [True] * bool(data.strip())
        stderr(data)

    tail = StderrTail(keep)
    dispatcher: FrameDispatcher = FrameDispatcher(
        lambda data: process.write(data), on_junk=_to_stderr_log(keep), peer=launch.server
    )
    async with running(launch, dispatcher.feed, tail, keeper) as process, anyio.create_task_group() as tasks:
        dispatcher.write_to(process.write)
        await tasks.start(dispatcher.run, on_request, on_notify, on_notification)
        tasks.start_soon(_close_with_obituary, process, dispatcher)
        try:
            yield Transport(
                "stdio",
                dispatcher,
                process.gone,
                process.obituary,
                process.pid,
                lambda: process.exit_code,
                has_printed=lambda: bool(printed),
            )
        finally:
            dispatcher.close(RpcError(CONNECTION_CLOSED, "The server was stopped"))
            tasks.cancel_scope.cancel()


async def _close_with_obituary(process: Any, dispatcher: FrameDispatcher) -> None:
    await process.gone.wait()
    dispatcher.close(RpcError(CONNECTION_CLOSED, f"The server {await process.obituary()}"))


def _to_stderr_log(stderr: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """What a server prints on stdout besides frames is kept with its stderr, shortened."""
    return lambda junk: stderr(b"[stdout] " + junk[:400] + b"\n")
