"""The lifetime of a session over HTTP: what happens to a silent or vanished client and its calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.e2e.http_client import STREAMS, HttpClient, http_client
from tests.fixtures.clock import FakeClock
from tests.gateway.http.place import OWNER, TOKEN, Place, no_panel, place, until
from tests.gateway.world import serve, server
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.gateway.http import server as http_server
from trayapp.gateway.http.asgi import HttpRequest
from trayapp.gateway.http.guard import Access
from trayapp.gateway.http.peer import HttpPeer
from trayapp.gateway.http.port import bind
from trayapp.gateway.http.sessions import GONE_S, IDLE_S, HttpSessions
from trayapp.gateway.http.streams import EventStore
from trayapp.wire.messages import Reply, Request

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("http-client-gone")]

VERSION = "2025-11-25"


@asynccontextmanager
async def calling(at: Place, key: str) -> AsyncIterator[HttpClient]:
    """Yield a client with a call in progress whose id is `key`. The client exits as if it were killed."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with http_client(f"{at.url}/mcp", VERSION, headers) as client:
        assert isinstance(client, HttpClient)
        await client.initialize(VERSION)
        before = at.made.net["a"].methods().count("held")
        client.ask("tools/call", {"name": "a_hold", "arguments": {"key": key}}, key)
        await at.made.net["a"].heard_of("held", before + 1)
        yield client


@asynccontextmanager
async def port(tmp_path: Path, idle_most: int) -> AsyncIterator[tuple[Place, httpx2.AsyncClient]]:
    """Serve on a port that keeps at most `idle_most` idle sessions. Yield the place and a client of that port."""
    bound = bind(0)
    assert bound is not None
    async with place(tmp_path) as at, anyio.create_task_group() as tasks, at.http(Accept=STREAMS) as http:
        access = Access(TOKEN, OWNER)
        tasks.start_soon(http_server.serve, at.made.gateway, at.edits.file, bound.sock, access, no_panel, idle_most)
        http.base_url = httpx2.URL(f"http://127.0.0.1:{bound.port}")
        yield at, http
        tasks.cancel_scope.cancel()


async def known(at: Place) -> None:
    serve(at.made.net["a"])
    await at.made.known(server("a"))


async def test_the_calls_of_a_client_that_was_killed_are_cancelled_soon(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        await known(at)
        async with calling(at, "stays") as stays:
            async with calling(at, "leaves"):
                pass
            await until(lambda: GONE_S in at.made.clock.slept)  # the gateway has noticed that the client is gone
            assert at.made.net["a"].cancelled == []
            await at.made.clock.pass_(GONE_S)
            await at.made.net["a"].cancelled_of("leaves")
            await stays.call("a_release", key="stays")
            assert at.made.net["a"].cancelled == ["leaves"]
            assert len(at.made.gateway.sessions) == 1


async def test_a_stream_that_its_client_drops_is_no_cancel(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        await known(at)
        async with calling(at, "mine") as client:
            client.drop("mine")
            await client.call("a_echo")
            await at.made.clock.pass_(2 * GONE_S)
            assert at.made.net["a"].cancelled == []
            assert GONE_S not in at.made.clock.slept  # the stream for messages outside requests is still open


async def test_a_client_that_comes_again_in_time_keeps_its_calls(tmp_path: Path) -> None:
    async with place(tmp_path) as at, anyio.create_task_group() as tasks:
        await known(at)
        async with calling(at, "mine") as client:
            session = client.session
        await until(lambda: GONE_S in at.made.clock.slept)
        headers = {"Mcp-Session-Id": session, "Mcp-Protocol-Version": VERSION, "Accept": "text/event-stream"}

        async def come_again() -> None:
            async with at.http(**headers) as http, http.stream("GET", "/mcp") as answer:
                assert answer.status_code == 200
                there.set()
                await anyio.sleep_forever()

        there = anyio.Event()
        tasks.start_soon(come_again)
        with anyio.fail_after(10):
            await there.wait()
        await at.made.clock.pass_(2 * GONE_S)
        assert at.made.net["a"].cancelled == []
        tasks.cancel_scope.cancel()


async def test_a_client_that_comes_again_late_need_not_know(tmp_path: Path) -> None:
    """The client's session has ended. The gateway restores it with the same client name and revision."""
    async with place(tmp_path) as at:
        await known(at)
        async with calling(at, "mine") as client:
            session = client.session
        await until(lambda: GONE_S in at.made.clock.slept)
        await at.made.clock.pass_(GONE_S)
        await until(lambda: not at.made.gateway.sessions)
        headers = {"Mcp-Session-Id": session, "Mcp-Protocol-Version": VERSION, "Accept": STREAMS}
        async with at.http(**headers) as http:
            call = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "a_echo", "arguments": {}}}
            answer = await http.post("/mcp", json=call)
            assert '"result"' in answer.text
            (status,) = snapshot_of(at.made.gateway).gateway.sessions
            assert (status.client, status.protocol) == ("test client", VERSION)
            before = at.made.clock.slept.count(GONE_S)
            async with http.stream("GET", "/mcp") as stream:
                assert stream.status_code == 200
        await until(lambda: at.made.clock.slept.count(GONE_S) > before)  # the client's end is noticed again
        await at.made.clock.pass_(GONE_S)
        await until(lambda: not at.made.gateway.sessions)


async def test_a_client_without_a_stream_of_its_own_keeps_its_session(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http(Accept=STREAMS) as http:
        session = await opened(http)
        assert await ping(http, session) == 200
        await at.made.clock.pass_(2 * GONE_S)
        assert len(at.made.gateway.sessions) == 1


async def opened(http: httpx2.AsyncClient) -> str:
    """Open a session and return its id."""
    params = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "plain", "version": "1"}}
    answer = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    return str(answer.headers["mcp-session-id"])


async def ping(http: httpx2.AsyncClient, session: str) -> int:
    """Send a ping in the session and return the HTTP status."""
    headers = {"Mcp-Session-Id": session, "Mcp-Protocol-Version": VERSION}
    return (await http.post("/mcp", json={"jsonrpc": "2.0", "id": 2, "method": "ping"}, headers=headers)).status_code


async def test_of_very_many_idle_sessions_the_oldest_end_and_their_clients_begin_anew(tmp_path: Path) -> None:
    async with port(tmp_path, idle_most=2) as (at, http):
        oldest, streaming = await opened(http), await opened(http)
        async with http.stream("GET", "/mcp", headers={"Mcp-Session-Id": streaming}) as stream:
            assert stream.status_code == 200
            notice = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
            told = await http.post("/mcp", json=notice, headers={"Mcp-Session-Id": oldest})
            assert told.status_code == 202
            left = await opened(http)
            assert (await http.delete("/mcp", headers={"Mcp-Session-Id": left})).status_code == 200
            unused, used = await opened(http), await opened(http)  # ends `oldest`
            await until(lambda: len(at.made.gateway.sessions) == 3)
            assert await ping(http, unused) == 200
            third = await opened(http)  # ends `used`, the oldest by now
            await until(lambda: len(at.made.gateway.sessions) == 3)
            answers = [await ping(http, session) for session in (oldest, used, left, unused, third, streaming)]
            assert answers == [404, 404, 404, 200, 200, 200]


async def test_no_session_with_an_open_request_ends_for_many_idle_ones(tmp_path: Path) -> None:
    """A restored session with an open request stays open as well. Sessions whose clients have left end first."""
    async with port(tmp_path, idle_most=3) as (at, http):
        idle, away, gone = await opened(http), await opened(http), await opened(http)
        for times, session in enumerate((away, gone), 1):
            async with http.stream("GET", "/mcp", headers={"Mcp-Session-Id": session}) as stream:
                assert stream.status_code == 200
            await until(lambda: at.made.clock.slept.count(GONE_S) == times)  # noqa: B023  # waited for in this turn
        await at.made.clock.pass_(GONE_S)
        await until(lambda: len(at.made.gateway.sessions) == 1)
        headers = {"Mcp-Session-Id": away, "Mcp-Protocol-Version": VERSION}
        async with http.stream("GET", "/mcp", headers=headers) as stream:
            assert (stream.status_code, await ping(http, away)) == (200, 200)
            few = [idle, await opened(http), await opened(http)]
            await until(lambda: len(at.made.gateway.sessions) == 4)
            assert [await ping(http, session) for session in few] == [200, 200, 200]
            for _ in range(4):
                last = await opened(http)
            await until(lambda: len(at.made.gateway.sessions) == 4)
            assert [await ping(http, session) for session in (*few, last, away)] == [404, 404, 404, 200, 200]


async def test_a_session_of_which_nothing_is_heard_for_long_is_forgotten(tmp_path: Path) -> None:
    """A session without a request for IDLE_S is forgotten. A session with an open request is kept."""
    async with port(tmp_path, idle_most=9) as (at, http):
        away, idle, listening = await opened(http), await opened(http), await opened(http)
        async with http.stream("GET", "/mcp", headers={"Mcp-Session-Id": away}) as stream:
            assert stream.status_code == 200
        await until(lambda: GONE_S in at.made.clock.slept)
        async with http.stream("GET", "/mcp", headers={"Mcp-Session-Id": listening}) as stream:
            assert stream.status_code == 200
            await at.made.clock.pass_(IDLE_S - 1)
            assert await ping(http, idle) == 200
            await at.made.clock.pass_(1)
            assert [await ping(http, session) for session in (away, idle, listening)] == [404, 200, 200]
            await at.made.clock.pass_(IDLE_S)
            assert [await ping(http, session) for session in (idle, listening)] == [404, 200]


async def test_a_session_that_ends_while_its_client_is_introduced_again_leaves_nothing() -> None:
    async with anyio.create_task_group() as tasks:
        made: list[HttpPeer] = []

        def begin(peer: Any, options: Any, *, lasting: bool = True) -> None:
            made.append(peer)

        sessions = HttpSessions(begin, FakeClock(), tasks, EventStore())
        session = sessions.begin({})
        sessions.add(session, {}, VERSION)
        session.peer.close()
        tasks.start_soon(sessions.peer, session, HttpRequest({"headers": [], "method": "GET"}, None, None))
        await anyio.wait_all_tasks_blocked()
        sessions.end(session)

        def answer(request: Request) -> None:
            made[1].respond(request.id, Reply.of_result({}))

        tasks.start_soon(made[1].run, answer, lambda method, params: None)
        await anyio.wait_all_tasks_blocked()
        assert made[1].is_closed
