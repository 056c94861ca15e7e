"""Behavior that only HTTP has: refusals, the fallback to SSE, sessions, headers and eras.

Each test uses a whole Connection over real sockets.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import pytest
from starlette.responses import JSONResponse, Response, StreamingResponse

from tests.backends.world import Ear, open_untracked
from tests.contract.http_servers import HttpServer, ReceivedRequest
from tests.fixtures.behaviour import MODERN
from tests.fixtures.clock import FakeClock
from tests.fixtures.secrets import no_secrets
from tests.patience import stretched
from trayapp.backends.connection import Connection
from trayapp.backends.context import BackendContext
from trayapp.backends.handshake import PROBE_PATIENCE_S
from trayapp.backends.http import channel
from trayapp.backends.http.channel import keepalive_options
from trayapp.model.config import ServerConfig, Settings
from trayapp.model.errors import ConnectFailedError, ServerBackoffError, ServerError, SignInWantedError
from trayapp.model.lifecycle import State
from trayapp.wire.messages import RpcError

pytestmark = pytest.mark.anyio

MANY = 120  # more than the 100 connections that httpx2 allows by default


@dataclass
class Case:
    """A connection that has not been tried yet, with its inbound handler and its clock."""

    connection: Connection
    ear: Ear
    clock: FakeClock

    async def call(self, tool: str = "echo", **arguments: Any) -> dict[str, Any]:
        with anyio.fail_after(stretched(20.0)):
            return await self.connection.request("tools/call", {"name": tool, "arguments": arguments})


@asynccontextmanager
async def connecting(
    url: str, hint: str = "", schemas: Mapping[str, Any] | None = None, **more: Any
) -> AsyncIterator[Case]:
    """Yield a connection to `url` that has not been tried yet. `schemas` holds the known input schemas by tool."""
    async with anyio.create_task_group() as tasks:
        ear, clock = Ear(), FakeClock()
        context = BackendContext(
            clock=clock,
            settings=Settings,
            environ={"TOKEN": "t0ken"},
            keyring=no_secrets,
            open=open_untracked,
            stderr=lambda name: lambda data: None,
            hint=lambda name: hint,
            wants_offer=lambda name: False,
            input_schema=lambda name, tool: (schemas or {}).get(tool),
        )
        case = Case(Connection(ServerConfig("web", url=url, **more), context, ear, tasks), ear, clock)
        try:
            yield case
        finally:
            await case.connection.close()
            tasks.cancel_scope.cancel()


def refusing(status: int, when: Callable[[ReceivedRequest], bool] = lambda seen: True, body: Any = None) -> Any:
    """Return a `refusal` that answers matching requests with this status."""

    def refuse(seen: ReceivedRequest) -> Response | None:
        if not when(seen):
            return None
        if body is None:
            return Response(status_code=status)
        return JSONResponse({**body, "id": seen.id} if "jsonrpc" in body else body, status)

    return refuse


def posts(server: HttpServer) -> list[tuple[str, str | None]]:
    return [(seen.path, seen.method) for seen in server.seen if seen.verb == "POST"]


# -- the fallback to SSE: case, status of the answer to Streamable HTTP, whether SSE is tried ------------------------
FALLBACK = [
    ("unknown-404", 404, True),
    ("transport-02", 405, True),
    ("transport-03", 406, True),
    ("unknown-415", 415, True),
    ("transport-05", 401, False),
    ("forbidden", 403, False),
    ("bad-request", 400, False),
    ("transport-07", 500, False),
    ("gateway", 502, False),
    ("transport-22", 503, False),
    ("too-many", 429, False),
    ("gone", 410, False),
]


@pytest.mark.requirement("transport-sse-fallback")
@pytest.mark.parametrize("hint", ["", "2025-11-25"], ids=["unmet", "met"])
@pytest.mark.parametrize(("status", "falls_back"), [row[1:] for row in FALLBACK], ids=[row[0] for row in FALLBACK])
async def test_sse_is_tried_after_four_answers_only(status: int, falls_back: bool, hint: str) -> None:
    server = HttpServer(streamable=True, sse=True)
    server.refusal = refusing(status, lambda seen: seen.path == "/mcp" and seen.verb == "POST")
    server.get_is_sse = True
    async with server.running(), connecting(server.url(), hint) as case:
        if falls_back:
            assert await case.call()
            assert case.connection.live is not None
            assert case.connection.live.transport.kind == "sse"
            return
        with pytest.raises(SignInWantedError if status == 401 else ConnectFailedError) as caught:
            await case.call()
        assert "GET" not in [seen.verb for seen in server.seen]
        if status != 401:
            assert str(status) in str(caught.value)
            assert "web" in str(caught.value)


@pytest.mark.requirement("transport-sse-fallback")
async def test_nothing_is_sent_twice_and_no_probe_is_thrown_away() -> None:
    server = HttpServer()
    async with server.running(), connecting(server.url(), "2025-11-25") as case:
        await case.call()
        assert posts(server) == [
            ("/mcp", "initialize"),
            ("/mcp", "notifications/initialized"),
            ("/mcp", "tools/call"),
        ]


async def test_nobody_there_is_no_reason_for_sse() -> None:
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    async with connecting(f"http://127.0.0.1:{port}/mcp") as case:
        with pytest.raises(ConnectFailedError, match=r"web.*127\.0\.0\.1"):
            await case.call()
        assert case.connection.state is State.FAILED


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_stated_type_is_the_only_one_tried(kind: Any) -> None:
    server = HttpServer(streamable=kind == "sse", sse=kind == "http")
    async with server.running(), connecting(server.url("/mcp"), type=kind) as case:
        with pytest.raises(ConnectFailedError):
            await case.call()
        verbs = {seen.verb for seen in server.seen}
        assert verbs == ({"POST"} if kind == "http" else {"GET"})


@pytest.mark.parametrize("way", ["http", "sse"])
async def test_401_wants_a_sign_in_however_it_is_reached(way: Any) -> None:
    server = HttpServer(sse=True)
    server.refusal = refusing(401)
    async with server.running(), connecting(server.url("/mcp" if way == "http" else "/sse"), type=way) as case:
        with pytest.raises(SignInWantedError):
            await case.call()
        assert case.connection.state is State.NEEDS_AUTH
        seen = len(server.seen)
        with pytest.raises(SignInWantedError):
            await case.call()
        assert len(server.seen) == seen


async def test_401_later_wants_a_sign_in_too() -> None:
    server = HttpServer()
    async with server.running(), connecting(server.url()) as case:
        await case.call()
        server.refusal = refusing(401)
        with pytest.raises(RpcError):
            await case.call()
        with anyio.fail_after(stretched(10.0)):
            while case.connection.state is not State.NEEDS_AUTH:  # noqa: ASYNC110
                await anyio.sleep(0.01)


async def test_a_server_that_cannot_be_reached_is_named_once() -> None:
    server = HttpServer()
    async with server.running():
        url = server.url()
    async with connecting(url) as case:
        with pytest.raises(ConnectFailedError) as caught:
            await case.call()
        assert str(caught.value).startswith("Cannot reach web at 127.0.0.1: nothing answers there")


async def test_what_a_busy_server_asks_for_is_noted() -> None:
    server = HttpServer()
    server.refusal = lambda seen: Response(status_code=503, headers={"Retry-After": "7"})
    async with server.running(), connecting(server.url()) as case:
        with pytest.raises(ConnectFailedError, match="503") as caught:
            await case.call()
        assert caught.value.retry_after_s == 7.0


@pytest.mark.requirement("life-retry-after")
async def test_a_busy_server_is_left_alone_for_as_long_as_it_asked() -> None:
    server = HttpServer()
    server.refusal = lambda seen: Response(status_code=429, headers={"Retry-After": "300"})
    async with server.running(), connecting(server.url()) as case:
        with pytest.raises(ConnectFailedError):
            await case.call()
        asked = len(server.seen)
        await case.clock.pass_(Settings().failure_backoff + 1)
        with pytest.raises(ServerBackoffError):
            await case.call()
        assert len(server.seen) == asked
        server.refusal = lambda seen: None
        await case.clock.pass_(300)
        assert await case.call()


# -- headers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["http", "sse"])
async def test_the_entry_s_headers_go_out_with_every_request(way: Any) -> None:
    server = HttpServer(sse=True)
    headers = {"X-Team": "${TEAM:-none}", "A": "1"}
    async with server.running():
        url = server.url("/mcp" if way == "http" else "/sse")
        async with connecting(url, type=way, headers=headers, auth="bearer", bearer_token_env="TOKEN") as case:
            await case.call()
            if way == "http":
                await wait_for(lambda: "GET" in [seen.verb for seen in server.seen])
        await wait_for(lambda: way == "sse" or "DELETE" in [seen.verb for seen in server.seen])
    assert len(server.seen) >= 4
    wrong = [seen for seen in server.seen if (seen.headers.get("a"), seen.headers.get("x-team")) != ("1", "none")]
    assert wrong == []
    assert {seen.headers.get("authorization") for seen in server.seen} == {"Bearer t0ken"}


async def wait_for(condition: Callable[[], Any]) -> None:
    with anyio.fail_after(stretched(10.0)):
        while not condition():  # noqa: ASYNC110 (uvicorn tells nobody)
            await anyio.sleep(0.01)


async def test_the_agreed_revision_and_the_session_are_named_in_every_later_request() -> None:
    server = HttpServer(versions=("2025-06-18",))
    async with server.running(), connecting(server.url(), "2025-06-18") as case:
        await case.call()
        (session,) = server.sessions
        first, *later = [seen for seen in server.seen if seen.verb == "POST"]
        assert "mcp-protocol-version" not in first.headers
        assert {seen.headers["mcp-protocol-version"] for seen in later} == {"2025-06-18"}
        assert {seen.headers["mcp-session-id"] for seen in later} == {session}


# -- sessions --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("life-session-lost")
async def test_a_call_that_meets_a_lost_session_is_executed_once_on_a_new_one() -> None:
    server = HttpServer()
    async with server.running(), connecting(server.url()) as case:
        await case.call()
        server.forget_sessions()
        assert await case.call()
        assert server.methods().count("initialize") == 2
        assert executed(server) == 2


@pytest.mark.requirement("life-session-lost")
async def test_two_calls_that_meet_a_lost_session_share_one_new_one() -> None:
    server = HttpServer()
    async with server.running(), connecting(server.url()) as case:
        await case.call()
        server.forget_sessions()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(case.call)
            tasks.start_soon(case.call)
        assert server.methods().count("initialize") == 2
        assert executed(server) == 3


NO_SESSION = {"code": -32000, "message": "Bad Request: No valid session ID provided"}


@pytest.mark.requirement("life-session-lost")
@pytest.mark.parametrize(
    ("status", "error"),
    [(400, NO_SESSION), (400, {"code": -32001, "message": "Session not found"}),
     (400, {"code": -32600, "message": "session 5f0c has expired"}),
     (400, {"code": -32000, "message": "Bad Request: Server not initialized"}),
     (400, {"code": -32002, "message": "Server has not been initialised"}),
     (400, {"code": -32600, "message": "Received request before initialization was complete"})],
)  # fmt: skip
async def test_a_session_that_is_refused_in_words_is_a_lost_one(status: int, error: dict[str, Any]) -> None:
    """Servers based on early examples of the TypeScript SDK do not answer 404 for a lost session."""
    server = HttpServer()
    async with server.running(), connecting(server.url()) as case:
        await case.call()
        old = set(server.sessions)
        server.refusal = refusing(
            status, lambda seen: seen.headers.get("mcp-session-id") in old, {"jsonrpc": "2.0", "error": error}
        )
        assert await case.call()
        assert server.methods().count("initialize") == 2
        assert executed(server) == 2


@pytest.mark.requirement("life-session-lost")
async def test_there_is_no_third_try() -> None:
    server = HttpServer()
    server.refusal = refusing(404, lambda seen: seen.method == "tools/call")
    async with server.running(), connecting(server.url()) as case:
        with pytest.raises(RpcError, match="ended the session"):
            await case.call()
        assert [seen.method for seen in server.seen].count("tools/call") == 2


async def test_a_404_without_a_session_is_an_answer_and_nothing_is_sent_again() -> None:
    server = HttpServer(versions=(), modern=True)
    server.refusal = refusing(404, lambda seen: seen.method == "tools/call")
    async with server.running(), connecting(server.url()) as case:
        with pytest.raises(RpcError):
            await case.call()
        assert [seen.method for seen in server.seen].count("tools/call") == 1


@pytest.mark.requirement("life-not-sent")
@pytest.mark.parametrize("way", ["http", "sse"])
async def test_a_call_that_cannot_be_sent_says_why_and_not_that_it_may_have_had_effects(way: Any) -> None:
    server = HttpServer(sse=way == "sse")
    async with server.running(), connecting(server.url("/mcp" if way == "http" else "/sse"), type=way) as case:
        await case.call()
        server.die()
        if way == "sse":
            await wait_for(lambda: case.connection.state is not State.CONNECTED)
        with pytest.raises(ServerError) as failed:
            await case.call()
        assert "Cannot reach web at 127.0.0.1: nothing answers there (connection refused)" in str(failed.value)
        again = HttpServer(port=server.port, sse=way == "sse")
        async with again.running():
            case.clock.jump(1_000)
            await case.call()
            assert executed(again) == 1
            await case.connection.close()


@pytest.mark.requirement("life-not-sent")
async def test_a_call_that_meets_a_server_which_began_again_is_executed_once() -> None:
    server = HttpServer()
    async with server.running(), connecting(server.url()) as case:
        await case.call()
        server.die()
        again = HttpServer(port=server.port)
        async with again.running():
            await case.call()
            assert (executed(server), executed(again)) == (1, 1)
            await case.connection.close()


def executed(server: HttpServer) -> int:
    """Return how many tool calls reached the MCP server."""
    return server.methods().count("tools/call")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        pytest.param(400, None, id="transport-15"),
        pytest.param(500, None, id="500"),
        pytest.param(503, None, id="503"),
        pytest.param(413, {"detail": "too large"}, id="413-json"),
        pytest.param(200, {"jsonrpc": "2.0", "error": {"code": -32000, "message": "other"}}, id="transport-14"),
        pytest.param(200, {"jsonrpc": "2.0", "error": {"code": -32000, "message": "Session not found"}}, id="its-own"),
        pytest.param(400, {"jsonrpc": "2.0", "error": {"code": -32000, "message": "other"}}, id="400-other"),
        pytest.param(
            200, {"jsonrpc": "2.0", "error": {"code": -32000, "message": "Server not initialized"}}, id="its-own-words"
        ),
    ],
)
async def test_one_refused_request_ends_neither_the_session_nor_the_other_calls(status: int, body: Any) -> None:
    server = HttpServer()
    async with server.running(), connecting(server.url()) as case:
        live = await case.connection.ensure()
        answers: list[dict[str, Any]] = []

        async def long() -> None:
            answers.append(await case.call("hold", key="k"))

        async with anyio.create_task_group() as callers:
            callers.start_soon(long)
            await server.heard_of("held")
            server.refusal = refusing(status, body=body)
            with pytest.raises(RpcError) as caught:
                await case.call()
            if status != 200 and body is None:
                assert str(status) in str(caught.value)
            server.refusal = lambda seen: None
            await case.call("release", key="k")
        assert answers
        assert case.connection.live is live


@pytest.mark.parametrize("way", ["http", "sse"])
async def test_one_cut_request_ends_no_other(way: Any) -> None:
    server = HttpServer(sse=True)
    async with server.running(), connecting(server.url("/mcp" if way == "http" else "/sse"), type=way) as case:
        live = await case.connection.ensure()
        answers: list[dict[str, Any]] = []

        async def long() -> None:
            answers.append(await case.call("hold", key="k"))

        async with anyio.create_task_group() as callers:
            callers.start_soon(long)
            await server.heard_of("held")
            server.cut_next = True
            with pytest.raises(RpcError):
                await case.call()
            await case.call("release", key="k")
        assert answers
        assert case.connection.live is live


async def test_a_refused_message_ends_nothing_on_sse_either() -> None:
    server = HttpServer(sse=True)
    async with server.running(), connecting(server.url("/sse"), type="sse") as case:
        live = await case.connection.ensure()
        server.refusal = refusing(400, lambda seen: seen.verb == "POST")
        with pytest.raises(RpcError, match="400"):
            await case.call()
        server.refusal = lambda seen: Response("Could not find session", 404) if seen.verb == "POST" else None
        # a typical answer if the stream was cut and the client has not noticed yet
        with pytest.raises(RpcError, match="web answered HTTP 404"):
            await case.call()
        server.refusal = lambda seen: None
        assert await case.call()
        assert case.connection.live is live


async def test_a_result_that_says_it_failed_is_a_result() -> None:
    """The connection neither opens a new session nor sends the call again."""
    server = HttpServer()

    async def failed(params: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "session not found"}], "isError": True}

    server.replies["tools/call"] = failed
    async with server.running(), connecting(server.url(), "2025-11-25") as case:
        assert (await case.call())["isError"] is True
        assert server.methods().count("initialize") == 1
        assert server.methods().count("tools/call") == 1


async def test_a_busy_server_is_left_alone_for_as_long_as_it_asked_in_the_middle_of_a_session_too() -> None:
    server = HttpServer()
    async with server.running(), connecting(server.url()) as case:
        await case.call()
        server.refusal = lambda seen: Response(status_code=503, headers={"Retry-After": "300"})
        with pytest.raises(RpcError, match="web is temporarily unavailable and asks not to be called for 300 s"):
            await case.call()
        asked = len(server.seen)
        with pytest.raises(RpcError, match="web is temporarily unavailable"):
            await case.call()
        assert len(server.seen) == asked
        assert case.connection.state is State.CONNECTED


@pytest.mark.requirement("life-retry-after", "life-keep-alive")
async def test_a_busy_server_passes_its_health_check_and_is_left_alone() -> None:
    server = HttpServer()
    async with server.running(), connecting(server.url(), lifecycle="keep-alive") as case:
        await case.call()
        server.refusal = lambda seen: Response(status_code=503, headers={"Retry-After": "3000"})
        for _ in range(3):
            await case.clock.pass_(Settings().health_interval)
            await wait_for(lambda: server.seen[-1].method == "ping")
        assert [seen.method for seen in server.seen].count("ping") == 1
        assert case.connection.state is State.CONNECTED


async def test_a_message_that_the_server_does_not_take_holds_up_no_request() -> None:
    """The notification's POST gets no answer. The SDK would then stop sending."""
    server = HttpServer()
    async with server.running(), connecting(server.url(), "2025-11-25") as case:
        await case.call()
        server.refusal = lambda seen: Never() if seen.method == "notifications/cancelled" else None
        assert case.connection.live is not None
        case.connection.live.channel.send_notification("notifications/cancelled", {"requestId": 77})
        await wait_for(lambda: "notifications/cancelled" in [seen.method for seen in server.seen])
        assert await case.call()


async def test_a_server_that_sends_us_on_within_its_host_gets_every_message() -> None:
    """Many frameworks redirect /mcp to /mcp/."""
    server = HttpServer()

    def refuse(seen: ReceivedRequest) -> Response | None:
        moved = seen.path == "/mcp" and "moved" not in seen.query
        return Response(status_code=307, headers={"Location": "/mcp?moved=1"}) if moved else None

    server.refusal = refuse
    async with server.running(), connecting(server.url(), "2025-11-25") as case:
        assert await case.call()
        assert case.connection.live is not None
        case.connection.live.channel.send_notification("notifications/roots/list_changed", None)
        await server.heard_of("notifications/roots/list_changed")
        assert server.methods()[:3] == ["initialize", "notifications/initialized", "tools/call"]


@pytest.mark.parametrize("where", ["/mcp?again", "http://elsewhere.test/mcp"])
async def test_a_request_that_is_redirected_without_end_or_elsewhere_fails_alone_and_says_so(where: str) -> None:
    def redirects(seen: ReceivedRequest) -> Response | None:
        headers = {"Location": where, "Content-Type": "application/json"}
        return Response(b"{}", 307, headers) if seen.method == "tools/call" else None

    server = HttpServer()
    async with server.running(), connecting(server.url()) as case:
        await case.call()
        server.refusal = redirects
        with pytest.raises(RpcError, match="has moved to another"):
            await case.call()
        server.refusal = lambda seen: None
        assert await case.call()
        assert server.methods().count("initialize") == 1


async def test_notifications_arrive_in_their_order() -> None:
    server = HttpServer()
    async with server.running(), connecting(server.url(), "2025-11-25") as case:
        await case.call()
        assert case.connection.live is not None
        for step in range(20):
            told = {"progressToken": "t", "progress": step}
            case.connection.live.channel.send_notification("notifications/progress", told)
        await server.heard_of("notifications/progress", 20)
        steps = [params["progress"] for method, params in server.heard if method == "notifications/progress"]
        assert steps == list(range(20))


class Never(Response):
    """A response that never comes."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await anyio.sleep_forever()


def test_the_kernel_is_told_to_look_after_silent_peers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as ours:
        for level, option, value in keepalive_options():
            ours.setsockopt(level, option, value)
        ours.connect(listener.getsockname())
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if sys.platform == "linux":
            limits = [ours.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in KEPT_UP]
            assert limits == [30, 10, 3, 60_000]


KEPT_UP = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")


async def test_closing_ends_the_session_at_the_server() -> None:
    server = HttpServer()
    async with server.running(), connecting(server.url()) as case:
        await case.call()
        await case.connection.close()
        assert [seen.verb for seen in server.seen][-1] == "DELETE"


async def test_a_server_that_takes_no_leave_does_not_hold_up_the_close() -> None:
    server = HttpServer()
    async with server.running(), connecting(server.url()) as case:
        await case.call()
        server.hang_on = "DELETE"
        with anyio.fail_after(stretched(10.0)):
            await case.connection.close()
        assert case.connection.state is State.IDLE


async def test_a_server_that_is_gone_is_tried_with_the_call_and_then_left_alone() -> None:
    server = HttpServer()
    async with connecting("http://127.0.0.1:1/mcp") as unused:
        assert unused
    async with server.running():
        url = server.url()
        async with connecting(url) as case:
            await case.call()
            server.die()
            with pytest.raises(ConnectFailedError):
                await case.call()
            assert case.connection.state is State.FAILED
            with pytest.raises(ServerBackoffError):
                await case.call()
            assert case.connection.failed_at is not None


async def test_a_notification_by_no_request_arrives() -> None:
    server = HttpServer()
    async with server.running(), connecting(server.url()) as case:
        await case.call()
        await wait_for(lambda: "GET" in [seen.verb for seen in server.seen])
        await server.tell("notifications/message", {"level": "info", "data": "x", "x-unknown": 1})
        await wait_for(lambda: case.ear.told)
        assert case.ear.told == [("web", "notifications/message", {"level": "info", "data": "x", "x-unknown": 1})]


@pytest.mark.requirement("answers-arrive")
@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_an_answer_reaches_its_server_however_long_that_takes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only notifications have a time limit. Without the answer, the server's tool call would never end."""
    server = HttpServer(streamable=kind == "http", sse=kind == "sse")
    async with server.running(), connecting(server.url("/mcp" if kind == "http" else "/sse"), type=kind) as case:
        await case.call()
        monkeypatch.setattr(channel, "TAKEN_S", 0.0)
        assert await case.call("ask", method="ping")


@pytest.mark.requirement("answers-arrive")
async def test_however_many_calls_are_under_way_the_next_and_an_answer_get_through() -> None:
    """Each waiting call holds a TCP connection."""
    server = HttpServer()
    async with server.running(), connecting(server.url()) as case, anyio.create_task_group() as tasks:
        for number in range(MANY):
            tasks.start_soon(partial(case.call, "hold", key=str(number)))
        await wait_for(lambda: posts(server).count(("/mcp", "tools/call")) == MANY)
        assert await case.call()
        assert await case.call("ask", method="ping")
        tasks.cancel_scope.cancel()


async def test_a_reply_without_its_answer_is_an_error_and_not_a_hang() -> None:
    server = HttpServer()
    async with server.running(), connecting(server.url()) as case:
        await case.call()
        server.refusal = lambda seen: Response("<html>", 200, media_type="text/html")
        with pytest.raises(RpcError, match="text/html"):
            await case.call()


@pytest.mark.parametrize(("status", "said"), [(200, "result"), (400, "error")])
async def test_an_answer_in_a_batch_is_the_request_s_and_ends_no_connection(status: int, said: str) -> None:
    """MCP 2025-03-26 allows a server to answer with a batch."""
    server = HttpServer()

    def batch(seen: ReceivedRequest) -> Response | None:
        body = {"jsonrpc": "2.0", "id": seen.id, said: {"code": 5, "message": "batched", "content": []}}
        return JSONResponse([body], status) if seen.method == "tools/call" else None

    async with server.running(), connecting(server.url()) as case:
        live = await case.connection.ensure()
        server.refusal = batch
        if said == "result":
            assert (await case.call())["message"] == "batched"
        else:
            with pytest.raises(RpcError, match="batched"):
                await case.call()
        assert case.connection.live is live


def rough(seen: ReceivedRequest) -> bytes:
    """Return the answer of a careless server: a batch, or a result that is null."""
    if seen.method in ("tools/call", "server/discover"):
        return json.dumps({"jsonrpc": "2.0", "id": seen.id, "result": None}).encode()
    result = {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "rough", "version": "1"}}
    return json.dumps([{"jsonrpc": "2.0", "id": seen.id, "result": result}]).encode()


async def test_a_rough_answer_is_understood_and_an_empty_one_is_an_error_and_not_a_hang() -> None:
    server = HttpServer()
    async with server.running(), connecting(server.url()) as case:
        await case.connection.ensure()
        server.refusal = lambda seen: Response(rough(seen), media_type="application/json")
        with pytest.raises(RpcError, match="The answer of web has no result object"):
            await case.call()


async def test_so_it_is_on_sse() -> None:
    said, heard = anyio.create_memory_object_stream[bytes](10)

    async def events() -> AsyncIterator[bytes]:
        yield b"event: endpoint\rdata: /messages/\r\r"
        async for event in heard:
            yield b"data: " + event + b"\r\r"

    def answered(seen: ReceivedRequest) -> Response:
        if seen.verb == "GET":
            return StreamingResponse(events(), media_type="text/event-stream")
        if seen.id is not None:
            said.send_nowait(rough(seen))
        return Response(status_code=202)

    server = HttpServer(sse=True)
    server.refusal = answered
    with said, heard:
        async with server.running(), connecting(server.url("/sse"), type="sse") as case:
            with pytest.raises(RpcError, match="The answer of web has no result object"):
                await case.call()


# -- eras ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("transport-both-eras")
@pytest.mark.parametrize(
    ("server", "hint", "kind", "protocol"),
    [
        pytest.param(HttpServer(versions=(), modern=True), "", "http", MODERN, id="2026-only"),
        pytest.param(HttpServer(versions=(), modern=True), "2025-11-25", "http", MODERN, id="2026-only-wrong-hint"),
        pytest.param(HttpServer(versions=(), modern=True), MODERN, "http", MODERN, id="2026-only-hint"),
        pytest.param(HttpServer(versions=("2025-11-25",)), "", "http", "2025-11-25", id="2025-11-25-only"),
        pytest.param(HttpServer(versions=("2025-11-25",)), MODERN, "http", "2025-11-25", id="2025-wrong-hint"),
        pytest.param(HttpServer(versions=("2025-03-26",)), "", "http", "2025-03-26", id="2025-03-26-only"),
        pytest.param(HttpServer(modern=True), "", "http", MODERN, id="both"),
        pytest.param(
            HttpServer(versions=("2024-11-05",), streamable=False, sse=True), "", "sse", "2024-11-05", id="2024-sse"
        ),
    ],
)
async def test_servers_of_every_era_are_met(server: HttpServer, hint: str, kind: str, protocol: str) -> None:
    async with server.running(), connecting(server.url(), hint) as case:
        live = await case.connection.ensure()
        assert (live.transport.kind, live.peer.protocol) == (kind, protocol)
        assert (await case.connection.fetch()).tools[0]["name"] == "echo"
        result = await case.call("echo", text="ä")
        assert result["x-unknown"] == [1]
        if protocol == MODERN:
            calls = [seen.headers for seen in server.seen if seen.method == "tools/call"]
            assert calls
            assert {headers["mcp-protocol-version"] for headers in calls} == {MODERN}
            assert {headers["mcp-name"] for headers in calls} == {"echo"}
            await server.heard_of("subscriptions/listen")


async def test_a_slow_server_is_asked_in_one_era_at_a_time() -> None:
    """A host that starts its server on demand takes seconds. An early `initialize` would open a needless session."""
    server = HttpServer(modern=True)

    async def starting(params: dict[str, Any]) -> dict[str, Any]:
        await anyio.sleep(PROBE_PATIENCE_S + 0.5)
        return {"supportedVersions": [MODERN], "capabilities": {}, "resultType": "complete"}

    server.replies["server/discover"] = starting
    async with server.running(), connecting(server.url()) as case:
        assert (await case.connection.ensure()).peer.protocol == MODERN
        assert "initialize" not in server.methods()


@pytest.mark.requirement("transport-header-params")
@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("eu", "eu"),
        (" eu", "=?base64?IGV1?="),
        ("Zürich", "=?base64?WsO8cmljaA==?="),
        ("", ""),
        (5, "5"),
        (False, "false"),
        (None, None),
    ],
)
async def test_arguments_that_a_tool_wants_in_a_header_are_repeated_there(value: Any, header: str | None) -> None:
    server = HttpServer(versions=(), modern=True)
    known = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    async with server.running(), connecting(server.url(), schemas={"echo": known}) as case:
        await case.call("echo", region=value, text="x")
        (call,) = [seen for seen in server.seen if seen.method == "tools/call"]
        assert call.headers.get("mcp-param-region") == header


async def test_an_older_server_gets_no_argument_in_a_header() -> None:
    server = HttpServer()
    known = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    async with server.running(), connecting(server.url(), schemas={"echo": known}) as case:
        await case.call("echo", region="eu")
        assert not any("mcp-param-region" in seen.headers for seen in server.seen)
