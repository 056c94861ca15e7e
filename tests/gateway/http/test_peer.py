"""Tests of HttpPeer, a client's connection over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.wire.pair import Waiting
from trayapp.gateway.http.peer import REQUEST_CANCELLED, HttpPeer
from trayapp.gateway.http.streams import EventStore, EventStream
from trayapp.wire.messages import CANCELLED, Reply, Request

pytestmark = pytest.mark.anyio


class Side(HttpPeer):
    """An HTTP peer whose session reacts according to the method."""

    def __init__(self, standing: EventStream | None = None) -> None:
        super().__init__(standing)
        self.heard: list[Any] = []

    def on_request(self, request: Request) -> None:
        request_id, method = request.id, request.method
        self.heard.append(method)
        if method == "breaks":
            raise LookupError(method)
        if method == "tells":
            self.send_notification("notifications/progress", {"progress": 1}, request_id)
        if method != "waits":
            self.respond(request_id, Reply.of_result({"of": method}))

    def on_notification(self, method: str, params: Any) -> None:
        self.heard.append((method, params["requestId"]) if method == CANCELLED else method)

    def ask(self, method: str, request_id: Any = "c") -> EventStream:
        """Send a request and return the stream of its answer."""
        stream = EventStream()
        self.request(request_id, method, None, stream)
        return stream


@asynccontextmanager
async def side(standing: EventStream | None = None) -> AsyncIterator[Side]:
    made = Side(standing)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.run, made.on_request, made.on_notification)
        await made.ready()
        yield made
        made.close()


def waiting_in(stream: EventStream) -> list[Any]:
    """Return the messages that the stream has not sent yet."""
    text = b"".join(stream._waiting)
    return [json.loads(line[6:]) for line in text.split(b"\r\n") if line.startswith(b"data: ")]


async def test_a_request_is_answered_and_forgotten() -> None:
    async with side() as peer:
        reply = await peer.ask("tools/call").answered()
        assert reply is not None
        assert (reply.result(), peer.awaited) == ({"of": "tools/call"}, frozenset())


async def test_what_belongs_to_a_request_goes_out_before_its_answer() -> None:
    async with side() as peer:
        stream = peer.ask("tells")
        assert await stream.answered() is None
        assert [message.get("method", "answer") for message in waiting_in(stream)] == [
            "notifications/progress",
            "answer",
        ]


async def test_a_request_that_fails_unexpectedly_is_answered_and_forgotten() -> None:
    async with side() as peer:
        reply = await peer.ask("breaks").answered()
        assert reply is not None
        assert (reply.message["error"]["code"], peer.awaited) == (-32603, frozenset())


async def test_a_second_request_of_an_id_does_not_take_the_stream_of_the_first() -> None:
    async with side() as peer:
        first = peer.ask("waits")
        refused = await peer.ask("tools/call").answered()
        assert refused is not None
        assert "already in progress" in refused.message["error"]["message"]
        assert peer.heard == ["waits"]
        peer.respond("c", Reply.of_result({}))
        assert await first.answered() is not None


async def test_the_stream_of_a_cancelled_request_ends_with_an_event() -> None:
    """A JSON answer would break the SDK's own client, which does not wait for the body."""
    async with side() as peer:
        stream = peer.ask("waits")
        peer.notification(CANCELLED, {"requestId": "c"})
        assert await stream.answered() is None
        (answer,) = waiting_in(stream)
        assert (answer["id"], answer["error"]["code"]) == ("c", REQUEST_CANCELLED)
        assert peer.heard == ["waits", (CANCELLED, "c")]
        peer.respond("c", Reply.of_result({}))  # nobody waits for this answer
        assert len(waiting_in(stream)) == 1


async def test_a_question_goes_out_with_the_request_that_it_belongs_to_and_its_answer_comes_back() -> None:
    async with side(EventStream(EventStore(), "s", expects=None)) as peer:
        stream, waiting = peer.ask("waits"), Waiting()
        number = peer.relay("sampling/createMessage", {"_meta": {"progressToken": "mine"}, "x": 1}, waiting, "c")
        (asked,) = waiting_in(stream)
        assert (asked["id"], asked["params"]) == (number, {"_meta": {"progressToken": number}, "x": 1})
        peer.notification("notifications/progress", {"progressToken": number, "progress": 1})
        peer.answered({"jsonrpc": "2.0", "id": number, "result": {"a": 1}})
        peer.answered({"jsonrpc": "2.0", "id": number, "result": {"a": 2}})
        assert [reply.result() for reply in waiting.replies] == [{"a": 1}]
        assert peer.heard == ["waits"]


async def test_a_question_that_is_no_longer_wanted_is_taken_back() -> None:
    async with side(EventStream(EventStore(), "s", expects=None)) as peer:
        stream, waiting = peer.ask("waits"), Waiting()
        number = peer.relay("roots/list", None, waiting, "c")
        peer.cancel(number, "why")
        assert waiting_in(stream)[1]["params"] == {"requestId": number, "reason": "why"}
        peer.answered({"jsonrpc": "2.0", "id": number, "result": {}})
        assert waiting.replies == []


async def test_a_client_without_a_stream_of_its_own_cannot_be_asked() -> None:
    async with side() as peer:
        waiting = Waiting()
        peer.ask("waits")
        peer.relay("roots/list", None, waiting, "c")
        assert "cannot be asked" in waiting.replies[0].message["error"]["message"]


async def test_with_the_client_everything_ends_that_waits() -> None:
    standing = EventStream(EventStore(), "s", expects=None)
    async with side(standing) as peer:
        stream, waiting = peer.ask("waits"), Waiting()
        peer.relay("roots/list", None, waiting)
        peer.close()
        reply = await stream.answered()
        assert reply is not None
        assert "error" in reply.message
        assert "error" in waiting.replies[0].message
