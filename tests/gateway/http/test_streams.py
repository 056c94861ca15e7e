"""Event streams, and the store that keeps their events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.gateway.http.place import until
from trayapp.gateway.http.asgi import CONNECTION, HttpRequest
from trayapp.gateway.http.streams import BEHIND_MOST, LARGEST_KEPT, PING, EventStore, EventStream, event
from trayapp.wire.messages import Reply

pytestmark = pytest.mark.anyio

DONE = Reply.of_result({"done": True})


class Body:
    """The response that an HTTP client receives. The client can stop reading or disconnect."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.gone, self.reads = anyio.Event(), anyio.Event()
        self.reads.set()
        self.is_aborted = False
        self.transport = self  # a stand-in for the connection, which needs only `abort`
        self.request = HttpRequest(
            {"headers": [], "method": "GET", "state": {CONNECTION: self}}, self.receive, self.send
        )

    def abort(self) -> None:
        self.is_aborted = True

    async def receive(self) -> Any:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, sent: Any) -> None:
        await self.reads.wait()
        self.sent.append(sent)

    @property
    def text(self) -> bytes:
        return b"".join(one.get("body", b"") for one in self.sent)

    @property
    def is_whole(self) -> bool:
        return bool(self.sent) and "body" in self.sent[-1] and not self.sent[-1].get("more_body")

    @property
    def messages(self) -> list[Any]:
        """The messages in its events."""
        data = [line.removeprefix(b"data: ") for line in self.text.split(b"\r\n") if line.startswith(b"data: {")]
        return [json.loads(one) for one in data]

    @property
    def ids(self) -> list[str]:
        """The ids of its events."""
        return [line.removeprefix(b"id: ").decode() for line in self.text.split(b"\r\n") if line.startswith(b"id: ")]


@asynccontextmanager
async def carried(stream: EventStream, after: int | None = None, *, primed: bool = False) -> AsyncIterator[Body]:
    """Yield the response to a client that stays connected until the context ends."""
    body = Body()
    async with anyio.create_task_group() as tasks:
        first = stream.priming(resumed=after is not None) if primed else b""
        tasks.start_soon(stream.carry, body.request, first, after)
        await anyio.wait_all_tasks_blocked()
        yield body
        await anyio.wait_all_tasks_blocked()
        body.gone.set()
        body.reads.set()


def told(number: int, size: int = 0) -> bytes:
    return json.dumps({"n": number, "x": "x" * size}).encode()


def test_an_event_has_one_line_of_data() -> None:
    assert event(b'{"a":\r1}\n') == b'event: message\r\ndata: {"a": 1}\r\n\r\n'
    assert event(b"{}", "1-2") == b"event: message\r\nid: 1-2\r\ndata: {}\r\n\r\n"


async def test_an_answer_with_nothing_before_it_may_be_json() -> None:
    stream = EventStream()
    stream.answer("a", DONE)
    assert await stream.answered() is DONE
    late = EventStream()
    assert await late.answered(within_s=0) is None
    late.answer("a", DONE)
    async with carried(late) as body:
        assert [message["id"] for message in body.messages] == ["a"]
        assert body.is_whole


async def test_what_is_put_before_an_answer_makes_events_of_both() -> None:
    stream = EventStream()
    stream.put(told(1))
    stream.answer("a", DONE)
    assert await stream.answered() is None
    async with carried(stream) as body:
        assert [message.get("n", "answer") for message in body.messages] == [1, "answer"]


async def test_a_stream_of_several_answers_ends_with_the_last_and_takes_nothing_after() -> None:
    stream = EventStream(expects=2)
    stream.answer(1, DONE)
    async with carried(stream) as body:
        assert not body.is_whole
        stream.answer(2, DONE)
        stream.answer(3, DONE)
        stream.put(told(4))
        await anyio.wait_all_tasks_blocked()
        assert ([message["id"] for message in body.messages], body.is_whole) == ([1, 2], True)


@pytest.mark.requirement("http-resume")
async def test_a_stream_that_broke_off_goes_on_after_the_last_event_that_came() -> None:
    store = EventStore()
    stream = EventStream(store, "s")
    for number in range(3):
        stream.put(told(number))
    async with carried(stream) as first:
        assert [message["n"] for message in first.messages] == [0, 1, 2]
    stream.put(told(3))
    assert first.ids[0].partition("-")[0] == str(stream.number)
    seen = int(first.ids[0].partition("-")[2])
    async with carried(stream, seen) as second:
        stream.put(told(4))
        stream.answer("a", DONE)
        await anyio.wait_all_tasks_blocked()
        assert [message.get("n", "answer") for message in second.messages] == [1, 2, 3, 4, "answer"]
        assert second.is_whole
    assert len(store.after("s", stream.number, seen)) == 5
    assert store.after("another", stream.number, seen) == []
    store.forget("s")
    assert store.after("s", stream.number, 0) == []


@pytest.mark.requirement("http-resume")
async def test_what_follows_each_id_can_be_resumed_from_it_priming_events_too() -> None:
    stream = EventStream(EventStore(), "s")
    stream.put(told(0))
    async with carried(stream, primed=True) as first:
        stream.put(told(1))
    stream.put(told(2))
    primed, *numbers = (int(event_id.partition("-")[2]) for event_id in first.ids)
    assert [primed, *numbers] == sorted({primed, *numbers})
    async with carried(stream, primed, primed=True) as second:
        stream.put(told(3))
        await anyio.wait_all_tasks_blocked()
        assert [message["n"] for message in second.messages] == [0, 1, 2, 3]
        numbers = [int(event_id.partition("-")[2]) for event_id in second.ids]
        assert (len(numbers), numbers) == (5, sorted(set(numbers)))


async def test_what_was_put_while_nobody_listened_comes_first() -> None:
    stream = EventStream(EventStore(), "s", expects=None)
    stream.put(told(1))
    async with carried(stream) as first:
        assert [message["n"] for message in first.messages] == [1]
    stream.put(told(2))
    async with carried(stream) as second:
        assert [message["n"] for message in second.messages] == [2]


async def test_a_second_response_takes_the_stream_over_and_the_first_ends_whole() -> None:
    stream = EventStream(EventStore(), "s", expects=None)
    async with carried(stream) as first, carried(stream, 0) as second:
        stream.put(told(1))
        await anyio.wait_all_tasks_blocked()
        assert (first.messages, first.is_whole) == ([], True)
        assert (len(second.messages), second.is_whole, stream.is_carried) == (1, False, True)
        stream.end()
        await anyio.wait_all_tasks_blocked()
        assert second.is_whole


async def test_of_an_answer_too_large_to_keep_who_comes_again_gets_an_error() -> None:
    stream = EventStream(EventStore(), "s")
    stream.be_events()
    large = Reply.of_result({"x": "x" * LARGEST_KEPT})
    async with carried(stream) as first:
        pass
    assert not first.is_whole or not first.messages
    stream.answer("a", large)
    async with carried(stream, 0) as second:
        (message,) = second.messages
        assert (message["id"], "too large" in message["error"]["message"]) == ("a", True)
    there = EventStream(EventStore(), "s")
    there.put(told(1))
    there.answer("a", large)
    async with carried(there) as whole:
        assert whole.messages[1]["result"] == {"x": "x" * LARGEST_KEPT}


@pytest.mark.requirement("safe-limits", "http-resume")
def test_what_is_kept_has_bounds() -> None:
    store = EventStore(most=3, most_bytes=100)
    for number in range(1, 6):
        store.keep("s", 1, number, b"%d" % number)
    assert store.after("s", 1, 0) == [b"3", b"4", b"5"]
    store.keep("s", 1, 6, b"x" * 99)
    assert store.after("s", 1, 0) == [b"5", b"x" * 99]


@pytest.mark.requirement("safe-limits")
async def test_a_client_that_does_not_read_is_given_up() -> None:
    stream = EventStream(expects=None)
    async with carried(stream) as body:
        body.reads = anyio.Event()
        stream.put(told(1))
        await anyio.wait_all_tasks_blocked()  # the event is being sent
        stream.put(b"x" * BEHIND_MOST)  # a large event alone does not show that the client stopped reading
        await anyio.wait_all_tasks_blocked()
        assert not body.is_aborted
        stream.put(told(2))
        await until(lambda: body.is_aborted)


async def test_a_silent_stream_is_kept_alive() -> None:
    body, stream = Body(), EventStream(expects=None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.pour, body.request, tasks.cancel_scope, 0.0)
        with anyio.fail_after(10):
            while PING not in body.text:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
