"""The wire format of the legacy SSE transport. test_clients tests it with SDK clients."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.http_client import events
from tests.gateway.http.place import Place, place, until
from tests.gateway.world import server

pytestmark = pytest.mark.anyio

ASK = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@asynccontextmanager
async def stream(at: Place, query: str = "") -> AsyncIterator[tuple[httpx2.AsyncClient, str, AsyncIterator[Any]]]:
    """Yield a client, the path that it posts to, and the events that arrive."""
    async with at.http() as http, http.stream("GET", f"/sse{query}") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        coming = events(answer.aiter_lines())
        kind, where = await anext(coming)
        assert kind == "endpoint"
        yield http, where, coming


async def test_messages_are_posted_and_answered_by_the_stream_until_it_ends(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        await at.made.known(server("a"))
        async with stream(at) as (http, where, coming), at.http() as other:
            for body in (json.dumps(ASK), json.dumps(ASK, indent=2), json.dumps(ASK, indent=2).replace("\n", "\r\n")):
                answer = await other.post(where, content=body, headers={"Content-Type": "application/json"})
                assert (answer.status_code, answer.text) == (202, "Accepted")
                assert json.loads((await anext(coming))[1]) == {"jsonrpc": "2.0", "id": 1, "result": {}}
            assert len(at.made.gateway.sessions) == 1
        await until(lambda: not at.made.gateway.sessions)
        async with at.http() as http:
            assert (await http.post(where, json=ASK)).status_code == 404


async def test_the_query_chooses_what_the_session_sees(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        await at.made.known(server("a"))
        async with stream(at, "?expose=search") as (_, where, coming), at.http() as other:
            await other.post(where, json={**ASK, "method": "tools/list"})
            assert [tool["name"] for tool in json.loads((await anext(coming))[1])["result"]["tools"]] == ["mcp"]


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"not JSON", "application/json", 400),
        (b"[1]", "application/json", 400),
        (b"\xff", "application/json", 400),
        (json.dumps(ASK).encode(), "text/plain", 400),  # a web page could send this without a preflight request
        (json.dumps(ASK).encode(), "application/json; charset=utf-8", 202),
    ],
)
async def test_what_is_no_message_is_refused(tmp_path: Path, body: bytes, kind: str, status: int) -> None:
    async with place(tmp_path) as at:
        at.made.start()
        async with stream(at) as (_, where, _coming), at.http() as other:
            answer = await other.post(where, content=body, headers={"Content-Type": kind})
            assert answer.status_code == status


async def test_other_places_and_methods(tmp_path: Path) -> None:
    async with place(tmp_path) as at, at.http() as http:
        for where in ("/messages/", "/messages/?session_id=x", "/messages?session_id="):
            assert (await http.post(where, json=ASK)).status_code == 404
        assert (await http.get("/messages/")).headers["allow"] == "POST"
        assert (await http.post("/sse", json=ASK)).headers["allow"] == "GET"
