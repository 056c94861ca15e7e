"""A table of faults of an HTTP server. Each runs against a real gateway and a server of the tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import pytest
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from tests.contract.http_servers import HttpServer, ReceivedRequest
from tests.e2e.client import task_group
from tests.e2e.gateway import Gateway
from tests.faults.trial import ANSWER, EITHER, ERROR, LIMIT_S, Trial, trial
from tests.faults.world import LONG
from tests.patience import stretched

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("forked")]
OPEN = 3  # calls in flight when the fault begins
MB = 1 << 20


class Site:
    """The victim: an HTTP server that can be stopped and started again at the same address."""

    def __init__(self, tasks: anyio.abc.TaskGroup, way: str) -> None:
        self.server = HttpServer(streamable=way == "http", sse=way == "sse")
        self.url_path = "/mcp" if way == "http" else "/sse"
        self._tasks = tasks
        self._end: anyio.Event | None = None  # not None while the server listens
        self._ended = anyio.Event()

    async def up(self) -> None:
        """Stop any refusals and make the server listen."""
        self.server.refusal = lambda seen: None
        if self._end is None:
            await self._tasks.start(self._listen)

    async def _listen(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        self._end, self._ended = anyio.Event(), anyio.Event()
        async with self.server.running():
            task_status.started()
            await self._end.wait()
        self._end = None
        self._ended.set()

    async def down(self) -> None:
        """Stop listening, cut all connections and forget the sessions."""
        if self._end is not None:
            self._end.set()
            await self._ended.wait()
        self.server.sessions.clear()

    def answer_with(self, make: Callable[[ReceivedRequest], Response]) -> None:
        """Answer every POST with a response from `make` from now on."""
        self.server.refusal = lambda seen: make(seen) if seen.verb == "POST" else None


class Mute(Response):
    """A response that never comes, on a connection that stays open."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await anyio.sleep_forever()


class Half(Response):
    """The beginning of a JSON answer, after which the connection is cut or stays open without more data."""

    def __init__(self, cut: Callable[[int], None] | None) -> None:
        super().__init__()
        self._cut = cut

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"jsonrpc":"2.0",', "more_body": True})
        if self._cut is None:
            await anyio.sleep_forever()
        else:
            self._cut(scope["client"][1])


class Endless(Response):
    """A JSON answer of 200 MB, more than the gateway accepts."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        for _ in range(200):
            await send({"type": "http.response.body", "body": b" " * MB, "more_body": True})
            await anyio.lowlevel.checkpoint()


def status(code: int, **headers: str) -> Callable[[ReceivedRequest], Response]:
    return lambda seen: Response("no", code, headers)


Act = Callable[[Site, Trial], Awaitable[None]]


def answering(make: Callable[[ReceivedRequest], Response]) -> Act:
    async def begin(site: Site, made: Trial) -> None:
        site.answer_with(make)

    return begin


async def mute(site: Site, made: Trial) -> None:
    site.server.refusal = lambda seen: Mute()


async def cut_calls(site: Site, made: Trial) -> None:
    """Reset every connection while the server stays healthy."""
    assert site.server._uvicorn is not None
    for connection in list(site.server._uvicorn.server_state.connections):
        connection.transport.abort()


async def half_and_cut(site: Site, made: Trial) -> None:
    site.answer_with(lambda seen: Half(site.server._cut))


async def gone(site: Site, made: Trial) -> None:
    await site.down()


async def forgotten(site: Site, made: Trial) -> None:
    site.server.forget_sessions()


async def back(site: Site, made: Trial) -> None:
    await site.up()


async def reconnected_by_hand(site: Site, made: Trial) -> None:
    """Reconnect as a user does, because a refused sign-in is never retried automatically."""
    await site.up()
    await made.gateway.ask("reconnect", server="bad")


@dataclass(frozen=True)
class Fault:
    """A fault: how it begins and ends, and the possible outcomes of calls in flight and of a call during the fault."""

    name: str
    begin: Act
    under_way: tuple[str, ...]
    meanwhile: tuple[str, ...]
    end: Act = back


GRAPHQL = {"errors": [{"message": "Must provide query string."}]}
FAULTS = [
    Fault("never-answers", mute, (ERROR,), (ERROR,)),
    Fault("all-connections-reset", cut_calls, (ERROR,), EITHER),
    Fault("gone-and-back", gone, (ERROR,), (ERROR,)),
    Fault("session-forgotten-404", forgotten, EITHER, (ANSWER,)),
    Fault("401", answering(status(401)), EITHER, (ERROR,), reconnected_by_hand),
    Fault("403", answering(status(403)), EITHER, (ERROR,)),
    Fault("429-wait-1-s", answering(status(429, **{"Retry-After": "1"})), EITHER, (ERROR,)),
    Fault("503-wait-1-s", answering(status(503, **{"Retry-After": "1"})), EITHER, (ERROR,)),
    Fault("503", answering(status(503)), EITHER, (ERROR,)),
    Fault("500", answering(status(500)), EITHER, (ERROR,)),
    Fault("a-web-page", answering(lambda seen: Response("<html>", 200, media_type="text/html")), EITHER, (ERROR,)),
    Fault("not-json", answering(lambda seen: Response("{", 200, media_type="application/json")), EITHER, (ERROR,)),
    Fault("not-json-rpc", answering(lambda seen: JSONResponse(GRAPHQL)), EITHER, (ERROR,)),
    Fault("half-an-answer-then-cut", half_and_cut, EITHER, (ERROR,)),
    Fault("half-an-answer-then-silence", answering(lambda seen: Half(None)), EITHER, (ERROR,)),
    Fault("200-mb", answering(lambda seen: Endless()), EITHER, (ERROR,)),
    Fault("accepted-and-no-answer-202", answering(lambda seen: Response(status_code=202)), EITHER, (ERROR,)),
    Fault(
        "sent-elsewhere",
        answering(lambda seen: Response(status_code=307, headers={"Location": "http://127.0.0.1:9/"})),
        EITHER,
        (ERROR,),
    ),
]


@asynccontextmanager
async def on_trial(gateway: Gateway, folder: Path, way: str, **more: Any) -> AsyncIterator[tuple[Site, Trial]]:
    async with task_group() as tasks:
        site = Site(tasks, way)
        await site.up()
        entry = {
            "url": site.server.url(site.url_path),
            "type": way,
            "connect_timeout": stretched(LIMIT_S),
            "request_timeout": stretched(LIMIT_S),
            **more,
        }
        async with trial(gateway, folder, entry) as made:
            yield site, made
        await site.down()


# With legacy SSE, a POST is answered only with a status, so one fault of each kind is enough, except in long runs.
OF_SSE: tuple[str, ...] = (
    "never-answers",
    "all-connections-reset",
    "gone-and-back",
    "session-forgotten-404",
    "401",
    "503-wait-1-s",
)
OF_SSE += ("500", "not-json-rpc", "half-an-answer-then-cut", "sent-elsewhere")
ROWS = [("http", fault) for fault in FAULTS]
ROWS += [("sse", fault) for fault in FAULTS if LONG or fault.name in OF_SSE]


@pytest.mark.requirement("fault-table")
@pytest.mark.parametrize(("way", "fault"), ROWS, ids=[f"{way}-{fault.name}" for way, fault in ROWS])
async def test_a_fault_of_an_http_server(gateway: Gateway, tmp_path: Path, way: str, fault: Fault) -> None:
    async with on_trial(gateway, tmp_path, way) as (site, made):
        await made.recovers("bad_echo", text="before")  # connect first, so that the calls below take only milliseconds
        for key in range(OPEN):
            made.begin_call("bad_hold", key=str(key))
        await site.server.heard_of("held", OPEN)
        await fault.begin(site, made)
        assert await made.tries("bad_echo", text="meanwhile") in fault.meanwhile
        assert set(await made.ended()) <= set(fault.under_way)
        await fault.end(site, made)
        await made.recovers("bad_echo", text="after")
