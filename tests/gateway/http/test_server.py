"""The modules that the web server loads, and the answers to pending requests when the port is closed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest

from tests.tools import NO_CERTIFICATES
from trayapp.gateway.http.asgi import Asgi, open_stream, whole
from trayapp.gateway.http.port import bind
from trayapp.gateway.http.server import listen
from trayapp.wire.framing import MAX_FRAME_BYTES

pytestmark = pytest.mark.anyio

ASK = {"jsonrpc": "2.0", "id": "mine", "method": "tools/list"}
WORDS = "The gateway closed its HTTP port before the answer"


@asynccontextmanager
async def waiting(app: Asgi, asks: Any) -> AsyncIterator[list[httpx2.Response]]:
    """Post to an application that never completes its answer, close the port, and yield the received responses."""
    bound, answers = bind(0), list[httpx2.Response]()
    assert bound is not None
    reached = anyio.Event()

    async def hung(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)
        reached.set()
        await anyio.sleep_forever()

    async def ask(where: str) -> None:
        async with httpx2.AsyncClient(verify=NO_CERTIFICATES, timeout=20) as http:
            answers.append(await http.post(where, json=asks))

    async with anyio.create_task_group() as clients, anyio.create_task_group() as port:
        port.start_soon(listen, hung, bound.sock, 0.01)
        clients.start_soon(ask, f"http://127.0.0.1:{bound.port}/mcp")
        await reached.wait()
        port.cancel_scope.cancel()
    yield answers


async def untouched(scope: Any, receive: Any, send: Any) -> None:
    """Leave the request unread."""


async def read(scope: Any, receive: Any, send: Any) -> None:
    assert await whole(receive, MAX_FRAME_BYTES)


async def began(scope: Any, receive: Any, send: Any) -> None:
    await read(scope, receive, send)
    await open_stream(send)
    await send({"type": "http.response.body", "body": b": well\r\n\r\n", "more_body": True})


@pytest.mark.parametrize(("app", "request_id"), [(untouched, None), (read, "mine")])
async def test_a_request_without_an_answer_gets_an_error(app: Asgi, request_id: str | None, caplog: Any) -> None:
    async with waiting(app, ASK) as (answer,):
        assert answer.status_code == 503
        assert answer.json() == {"jsonrpc": "2.0", "id": request_id, "error": {"code": -32000, "message": WORDS}}
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("asks", [ASK, {**ASK, "id": None}, [ASK], {"jsonrpc": "2.0", "id": 1, "result": {}}])
async def test_a_stream_ends_whole_and_says_so_to_who_waits_at_it(asks: Any, caplog: Any) -> None:
    async with waiting(began, asks) as (answer,):
        assert answer.status_code == 200
        assert (WORDS in answer.text) == (asks is ASK)
        assert ('"id":"mine"' in answer.text) == (asks is ASK)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.requirement("http-own")
def test_what_listens_loads_nothing_of_the_sdk() -> None:
    program = "import sys, trayapp.gateway.main, trayapp.gateway.http.server; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "trayapp.gateway.http.streamable" in loaded
    large = (
        "mcp",
        "mcp_types",
        "pydantic",
        "pydantic_core",
        "starlette",
        "sse_starlette",
        "httpx2",
        "jinja2",
        "trayapp.panel.app",
    )
    assert [name for name in large if name in loaded] == []
