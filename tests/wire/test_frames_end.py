"""Tests of cancellation and timeouts, and of the beginning and end of a connection."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from tests.wire.pair import Peer, Waiting, alone, joined, running, turns
from trayapp.wire.messages import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    Params,
    Reply,
    RpcError,
)

pytestmark = pytest.mark.anyio


# -- cancellation and timeouts -----------------------------------------------------------------------------------------


class Stuck:
    """A handler that runs until it is cancelled. Its events show whether it has begun and ended."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.ended = anyio.Event()

    async def __call__(self, params: Params) -> Any:
        self.begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.ended.set()


@pytest.mark.requirement("call-cancel")
async def test_a_cancelled_relay_ends_the_peers_handler_and_nobody_hears_more() -> None:
    async with joined() as (left, right):
        right.handlers["stuck"] = stuck = Stuck()
        call = Waiting()
        number = left.dispatcher.relay("stuck", {}, call)
        await stuck.begun.wait()
        left.dispatcher.cancel(number, "enough")
        await stuck.ended.wait()
        await turns()
        assert right.writes == []
        assert call.replies == []
        assert left.messages[-1]["params"] == {"requestId": number, "reason": "enough"}
        assert await left.dispatcher.send_raw_request("echo", {}) == {"echo": {}}


@pytest.mark.requirement("call-cancel")
async def test_a_late_answer_and_late_progress_of_a_cancelled_call_are_dropped() -> None:
    async with alone() as peer:
        call = Waiting()
        number = peer.dispatcher.relay("x", {"_meta": {"progressToken": 1}}, call)
        peer.dispatcher.cancel(number, "enough")
        peer.dispatcher.cancel(number, "twice")
        peer.feed(
            {"method": "notifications/progress", "params": {"progressToken": number, "progress": 1}},
            {"jsonrpc": "2.0", "id": number, "result": {}},
        )
        assert (call.replies, call.heard) == ([], [])
        assert [message["method"] for message in peer.messages] == ["x", "notifications/cancelled"]


async def test_a_handler_that_answers_although_cancelled_is_not_heard() -> None:
    async with alone() as peer:
        cancelled = anyio.Event()

        async def stubborn(params: Params) -> Any:
            with anyio.CancelScope(shield=True):
                await cancelled.wait()
            return {}

        peer.handlers["stubborn"] = stubborn
        peer.feed({"id": 4, "method": "stubborn"})
        await turns()
        peer.feed({"method": "notifications/cancelled", "params": {"requestId": 4}})
        cancelled.set()
        await turns()
        assert peer.writes == []


@pytest.mark.parametrize("odd", [True, 1.0, None, [1], {"a": 1}, "1", 99])
async def test_a_cancellation_of_nothing_cancels_nothing(odd: Any) -> None:
    async with alone() as peer:
        peer.handlers["stuck"] = stuck = Stuck()
        peer.feed({"id": 1, "method": "stuck"})
        await stuck.begun.wait()
        peer.feed({"method": "notifications/cancelled", "params": {"requestId": odd}})
        peer.feed({"id": 2, "method": "echo"})
        await turns()
        assert not stuck.ended.is_set()
        assert [message["id"] for message in peer.messages] == [2]


async def test_a_request_that_takes_too_long_is_cancelled_at_the_peer_and_an_error_here() -> None:
    async with joined() as (left, right):
        right.handlers["stuck"] = stuck = Stuck()
        with pytest.raises(RpcError) as caught:
            await left.dispatcher.send_raw_request("stuck", {}, timeout_s=0.01)
        assert caught.value.code == REQUEST_TIMEOUT
        await stuck.ended.wait()
        assert left.dispatcher.call_of(1) is None


async def test_a_caller_that_is_cancelled_cancels_its_request_at_the_peer() -> None:
    async with joined() as (left, right):
        right.handlers["stuck"] = stuck = Stuck()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(left.dispatcher.send_raw_request, "stuck", {})
            await stuck.begun.wait()
            tasks.cancel_scope.cancel()
        await stuck.ended.wait()
        assert left.dispatcher.call_of(1) is None


async def test_a_request_that_must_not_be_cancelled_is_given_up_in_silence() -> None:
    async with joined() as (left, right):
        right.handlers["stuck"] = stuck = Stuck()
        with pytest.raises(RpcError):
            await left.dispatcher.send_raw_request("stuck", {}, timeout_s=0.01, cancel_on_abandon=False)
        await turns()
        assert not stuck.ended.is_set()
        assert left.dispatcher.call_of(1) is None


# -- beginning and end -------------------------------------------------------------------------------------------------


async def test_what_came_before_run_is_handled() -> None:
    peer = Peer()
    call = Waiting()
    peer.dispatcher.relay("x", None, call)
    peer.dispatcher.feed(b'{"jsonrpc":"2.0","id":1,"result":{"n":1}}\n{"id":5,"meth')
    peer.dispatcher.feed(b'od":"echo"}\n{"method":"note"}\n')
    async with running(peer):
        await turns()
        assert call.replies[0].result() == {"n": 1}
        assert peer.messages[-1]["id"] == 5
        assert peer.notified == [("note", None)]


async def test_the_end_answers_every_open_request_once() -> None:
    async with joined() as (left, right):
        right.handlers["stuck"] = stuck = Stuck()
        calls = [Waiting() for _ in range(10)]
        for call in calls:
            left.dispatcher.relay("stuck", {}, call)
        await stuck.begun.wait()
        left.dispatcher.close(RpcError(CONNECTION_CLOSED, "it died"))
        left.dispatcher.close()
        left.feed({"jsonrpc": "2.0", "id": 1, "result": {}})
        assert [call.error for call in calls] == [{"code": CONNECTION_CLOSED, "message": "it died"}] * 10


async def test_after_the_end_requests_are_answered_at_once_and_nothing_is_written() -> None:
    async with alone() as peer:
        peer.dispatcher.close()
        call = Waiting()
        peer.dispatcher.relay("x", None, call)
        assert call.error["code"] == CONNECTION_CLOSED
        with pytest.raises(RpcError) as caught:
            await peer.dispatcher.send_raw_request("x", None)
        assert caught.value.code == CONNECTION_CLOSED
        peer.dispatcher.send_notification("x", None)
        peer.dispatcher.respond(1, Reply.of_result({}))
        assert peer.writes == []


async def test_the_end_cancels_what_is_being_handled() -> None:
    peer = Peer()
    async with running(peer):
        peer.handlers["stuck"] = stuck = Stuck()
        peer.feed({"id": 1, "method": "stuck"})
        await stuck.begun.wait()
    assert stuck.ended.is_set()
    assert peer.writes == []


async def test_a_run_that_is_cancelled_answers_the_open_requests() -> None:
    peer = Peer()
    call = Waiting()
    async with anyio.create_task_group() as tasks:
        await tasks.start(peer.dispatcher.run, peer.on_request, peer.on_notify)
        peer.dispatcher.relay("x", None, call)
        tasks.cancel_scope.cancel()
    assert call.error["code"] == CONNECTION_CLOSED
