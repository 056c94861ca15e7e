"""Which requests over HTTP are answered in one JSON body, and that the SDK goes on with what is no such request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.fixtures.clock import FakeClock
from trayapp.gateway.http.peers import BEGUN, HttpPeer
from trayapp.gateway.http.quick import LARGEST, SEEN_S, Quick
from trayapp.wire.messages import CANCELLED, Reply, Request

pytestmark = pytest.mark.anyio

CALL = {"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "t"}}
HEADERS = {
    "accept": "application/json, text/event-stream", "content-type": "application/json", "mcp-session-id": "s",
    "mcp-protocol-version": "2025-11-25",
}  # fmt: skip
PATIENCE_S = 60.0  # what is to come at once comes by itself


class Side:
    """A session that answers as its method says, the SDK's application, and what both have heard."""

    def __init__(self, at_once_s: float = PATIENCE_S) -> None:
        self.clock = FakeClock()
        self.peer = HttpPeer(None)
        self.heard: list[Any] = []
        self.passed: list[tuple[bytes, bool]] = []  # to the SDK: the body, and whether it was begun
        self.quick = Quick({"s": self.peer}.get, self.clock, at_once_s)  # type: ignore[arg-type]

    def on_request(self, request: Request) -> None:
        request_id, method, _ = request
        self.heard.append(method)
        if method == "breaks":
            raise LookupError(method)
        if method == "tells":
            self.peer.send_notification("notifications/progress", {"progress": 1}, request_id)
        if method != "waits":
            self.peer.respond(request_id, Reply.of_result({"of": method}))

    def on_notification(self, method: str, params: Any) -> None:
        self.heard.append((method, params["requestId"]))

    async def sdk(self, scope: Any, receive: Any, send: Any) -> None:
        self.passed.append(((await receive())["body"], BEGUN in scope))

    async def post(self, message: Any, verb: str = "POST", **headers: str) -> list[Any]:
        """The ASGI events of the answer; none when the SDK was asked."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        known = {**HEADERS, "content-length": str(len(body)), **headers}
        scope = {"type": "http", "method": verb, "headers": [(k.encode(), v.encode()) for k, v in known.items()]}
        sent: list[Any] = []
        first = {"type": "http.request", "body": body[:9], "more_body": True}
        parts = [first, {"type": "http.request", "body": body[9:]}]

        async def receive() -> Any:
            return parts.pop(0)

        async def send(event: Any) -> None:
            sent.append(event)

        await self.quick.around(self.sdk)(scope, receive, send)
        return sent


@asynccontextmanager
async def side(at_once_s: float = PATIENCE_S) -> AsyncIterator[Side]:
    made = Side(at_once_s)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.peer.run, made.on_request, made.on_notification)
        await anyio.wait_all_tasks_blocked()
        yield made
        made.peer.close()


async def test_an_answer_that_comes_at_once_is_one_json_body() -> None:
    async with side() as at:
        start, body = await at.post(CALL)
        assert (start["status"], dict(start["headers"])[b"content-type"]) == (200, b"application/json")
        assert json.loads(body["body"]) == {"jsonrpc": "2.0", "id": "c", "result": {"of": "tools/call"}}
        assert int(dict(start["headers"])[b"content-length"]) == len(body["body"])
        assert (at.passed, at.peer.awaited) == ([], frozenset())


@pytest.mark.parametrize(("method", "at_once_s"), [("tells", PATIENCE_S), ("waits", 0.0)])
async def test_what_tells_something_first_or_takes_longer_goes_on_by_the_sdk(method: str, at_once_s: float) -> None:
    async with side(at_once_s) as at:
        message = {**CALL, "method": method}
        assert await at.post(message) == []
        assert at.passed == [(json.dumps(message).encode(), True)]
        # The SDK of this test did not go on with it: nobody waits any more, and the session hears so.
        assert at.heard == [method, (CANCELLED, "c")]
        assert at.peer.awaited == frozenset()


async def test_a_request_that_fails_unexpectedly_is_answered_and_forgotten() -> None:
    async with side() as at:
        _, body = await at.post({**CALL, "method": "breaks"})
        assert json.loads(body["body"])["error"]["code"] == -32603
        assert (at.passed, at.peer.awaited) == ([], frozenset())


async def test_a_second_request_of_an_id_does_not_take_the_stream_of_the_first() -> None:
    async with side() as at, anyio.create_task_group() as tasks:
        tasks.start_soon(at.post, {**CALL, "method": "waits"})
        await anyio.wait_all_tasks_blocked()
        _, body = await at.post(CALL)
        assert "already under way" in json.loads(body["body"])["error"]["message"]
        assert at.heard == ["waits"]
        assert not at.passed
        at.peer.respond("c", Reply.of_result({}))


async def test_a_cancelled_request_is_answered_by_the_sdk() -> None:
    async with side() as at, anyio.create_task_group() as tasks:
        tasks.start_soon(at.post, {**CALL, "method": "waits"})
        await anyio.wait_all_tasks_blocked()
        at.peer.notification(CANCELLED, {"requestId": "c"})
        await anyio.wait_all_tasks_blocked()
        assert [begun for _, begun in at.passed] == [True]


@pytest.mark.parametrize(
    ("message", "headers"),
    [
        ({**CALL, "method": "initialize"}, {}),
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, {}),
        ({**CALL, "id": True}, {}),
        ({**CALL, "id": None}, {}),
        ({**CALL, "params": [1]}, {}),
        ({**CALL, "jsonrpc": "1.0"}, {}),
        ([CALL], {}),
        (b"not JSON at all", {}),
        (CALL, {"accept": "application/json"}),
        (CALL, {"content-type": "text/plain"}),
        (CALL, {"accept": "application/jsonl, text/event-stream"}),
        (CALL, {"mcp-protocol-version": "2026-07-28"}),
        (CALL, {"mcp-protocol-version": "1999-01-01"}),
        (CALL, {"mcp-protocol-version": ""}),
        (b'{"jsonrpc":"2.0","id":1,"method":"waits","params":{"a":"\\ud800"}}', {}),
        (b'{"jsonrpc":"2.0","id":1,"method":"waits","params":{"a":%b}}' % (b"[" * 300 + b"]" * 300), {}),
        (CALL, {"mcp-session-id": "another"}),
        (CALL, {"content-length": str(LARGEST + 1)}),
        (CALL, {"transfer-encoding": "chunked"}),
    ],
)
async def test_what_else_comes_is_the_sdks(message: Any, headers: dict[str, str]) -> None:
    async with side() as at:
        assert await at.post(message, **headers) == []
        assert ([begun for _, begun in at.passed], at.heard) == ([False], [])


async def test_the_sdk_sees_a_session_that_is_used_from_time_to_time() -> None:
    """It would end it after half an hour."""
    async with side() as at:
        assert await at.post(CALL)
        await at.clock.pass_(SEEN_S)
        assert not await at.post(CALL)
        assert await at.post(CALL)


async def test_a_session_that_is_gone_is_the_sdks() -> None:
    async with side() as at:
        at.peer.close()
        assert await at.post(CALL) == []
        assert at.passed


async def test_a_session_that_its_client_ended_is_the_sdks() -> None:
    async with side() as at:
        await at.post(b"", verb="DELETE")
        assert await at.post(CALL) == []
        assert [begun for _, begun in at.passed] == [False, False]
