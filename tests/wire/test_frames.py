"""Tests of two dispatchers as client and server: requests, answers, notifications and progress."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from tests.wire.pair import Waiting, alone, joined, turns
from trayapp.wire.messages import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    PROGRESS,
    Params,
    RpcError,
)

pytestmark = pytest.mark.anyio


# -- both directions ---------------------------------------------------------------------------------------------------


async def test_requests_are_answered_in_both_directions() -> None:
    async with joined() as (left, right):
        assert await left.dispatcher.send_raw_request("echo", {"a": 1}) == {"echo": {"a": 1}}
        assert await right.dispatcher.send_raw_request("echo", None) == {"echo": {}}


async def test_requests_under_way_at_once_get_each_its_own_answer() -> None:
    async with joined() as (left, right):
        opened = [anyio.Event() for _ in range(20)]

        async def slow(params: Params) -> Any:
            number = (params or {})["n"]
            if number:
                await opened[number - 1].wait()  # the last request that was sent is answered first
            opened[number].set()
            return {"n": number}

        right.handlers["slow"] = slow
        results: dict[int, Any] = {}

        async def ask(number: int) -> None:
            results[number] = await left.dispatcher.send_raw_request("slow", {"n": number})

        async with anyio.create_task_group() as tasks:
            for number in reversed(range(20)):
                tasks.start_soon(ask, number)
        assert results == {number: {"n": number} for number in range(20)}
        assert not any(left.dispatcher.call_of(number + 1) for number in range(20))


async def test_a_handler_may_ask_back_while_it_works() -> None:
    async with joined() as (left, right):

        async def asks(params: Params) -> Any:
            return {"heard": await right.dispatcher.send_raw_request("echo", {"from": "right"})}

        right.handlers["asks"] = asks
        assert await left.dispatcher.send_raw_request("asks", {}) == {"heard": {"echo": {"from": "right"}}}


async def test_an_error_answer_arrives_whole_with_fields_that_nobody_knows() -> None:
    async with alone() as peer:
        call = Waiting()
        peer.dispatcher.relay("x", None, call)
        error = {"code": -7, "message": "no", "data": {"big": 2**70}, "extra": [1]}
        peer.feed({"jsonrpc": "2.0", "id": 1, "error": error, "more": 1})
        assert call.error == error
        with pytest.raises(RpcError) as caught:
            call.replies[0].result()
        assert (caught.value.code, caught.value.data, caught.value.body()) == (-7, {"big": 2**70}, error)


async def test_an_error_of_the_handler_reaches_the_caller() -> None:
    async with joined() as (left, _):
        with pytest.raises(RpcError) as caught:
            await left.dispatcher.send_raw_request("unknown", {})
        assert (caught.value.code, caught.value.message) == (METHOD_NOT_FOUND, "no unknown here")


@pytest.mark.parametrize("error", ["text", None, [["deep"]], {"message": "no code"}, {"code": "x"}])
async def test_an_odd_error_is_an_error_all_the_same(error: Any) -> None:
    async with alone() as peer:
        call = Waiting()
        peer.dispatcher.relay("x", None, call)
        peer.feed({"jsonrpc": "2.0", "id": 1, "error": error})
        with pytest.raises(RpcError) as caught:
            call.replies[0].result()
        assert caught.value.code == INTERNAL_ERROR


@pytest.mark.parametrize("result", [None, 5, "text", [1]])
async def test_a_result_that_is_no_object_is_an_error_for_who_awaits_it(result: Any) -> None:
    async with alone() as peer:
        call = Waiting()
        peer.dispatcher.relay("x", None, call)
        peer.feed({"jsonrpc": "2.0", "id": 1, "result": result})
        with pytest.raises(RpcError):
            call.replies[0].result()


async def test_notifications_arrive_in_order() -> None:
    async with joined() as (left, right):
        for number in range(5):
            left.dispatcher.send_notification("note", {"n": number})
        left.dispatcher.send_notification("bare", None)
        await turns()
        assert right.notified == [*(("note", {"n": number}) for number in range(5)), ("bare", None)]


@pytest.mark.parametrize("request_id", [0, 7, -3, "7", "abc", "", 2**63, "é"])
@pytest.mark.requirement("wire-id-kept")
async def test_a_request_is_answered_under_its_own_id_number_or_text(request_id: Any) -> None:
    async with alone() as peer:
        peer.feed({"jsonrpc": "2.0", "id": request_id, "method": "echo"})
        await turns()
        (answer,) = peer.messages
        assert answer == {"jsonrpc": "2.0", "id": request_id, "result": {"echo": {}}}
        assert type(answer["id"]) is type(request_id)


@pytest.mark.requirement("wire-id-kept")
async def test_an_answer_whose_id_came_back_as_text_finds_its_request() -> None:
    async with alone() as peer:
        first, second = Waiting(), Waiting()
        peer.dispatcher.relay("x", None, first)
        peer.dispatcher.relay("x", None, second)
        peer.feed({"jsonrpc": "2.0", "id": "2", "result": {"n": 2}}, {"jsonrpc": "2.0", "id": "1", "result": {"n": 1}})
        assert first.replies[0].result() == {"n": 1}
        assert second.replies[0].result() == {"n": 2}


@pytest.mark.parametrize("odd", ["１", "1" * 5000, "0x1", "", True, 1.0, None, [1], {"a": 1}, 99, -1, 2**80])
async def test_an_answer_to_nothing_that_was_asked_is_ignored(odd: Any) -> None:
    async with alone() as peer:
        call = Waiting()
        peer.dispatcher.relay("x", None, call)
        peer.feed({"jsonrpc": "2.0", "id": odd, "result": {}})
        assert call.replies == []
        peer.feed({"jsonrpc": "2.0", "id": 1, "result": {}})
        assert len(call.replies) == 1


async def test_a_second_answer_to_the_same_request_is_ignored() -> None:
    async with alone() as peer:
        call = Waiting()
        peer.dispatcher.relay("x", None, call)
        peer.feed({"jsonrpc": "2.0", "id": 1, "result": {"n": 1}}, {"jsonrpc": "2.0", "id": 1, "result": {"n": 2}})
        assert [reply.result() for reply in call.replies] == [{"n": 1}]


@pytest.mark.requirement("call-no-field-lost")
async def test_fields_that_nobody_knows_pass_in_requests_and_answers() -> None:
    async with joined() as (left, _):
        params = {"_meta": {"x/y": [1, None]}, "unknown": {"z": 2**70, "lone": "\ud800"}, "a": 1.5}
        assert await left.dispatcher.send_raw_request("echo", params) == {"echo": params}


# -- progress ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("call-progress")
@pytest.mark.parametrize("token", [5, 0, "5", "my-token", ""])
async def test_progress_comes_under_the_callers_own_token(token: Any) -> None:
    async with joined() as (left, right):

        async def works(params: Params) -> Any:
            assert params is not None
            assert params["_meta"]["other"] == 1
            own = {"progressToken": params["_meta"]["progressToken"]}
            right.dispatcher.send_notification(PROGRESS, {**own, "progress": 1, "total": 2.5, "message": "half"})
            right.dispatcher.send_notification(PROGRESS, {**own, "progress": 2})
            return {}

        right.handlers["works"] = works
        calls = [Waiting(), Waiting()]
        for call in calls:  # the same token twice, because two sessions may choose the same
            left.dispatcher.relay("works", {"_meta": {"progressToken": token, "other": 1}}, call)
        await turns()
        for call in calls:
            assert call.heard == [
                {"progressToken": token, "progress": 1, "total": 2.5, "message": "half"},
                {"progressToken": token, "progress": 2},
            ]
            assert type(call.heard[0]["progressToken"]) is type(token)
            assert len(call.replies) == 1
        assert len({message["params"]["_meta"]["progressToken"] for message in left.messages}) == 2


async def test_progress_whose_token_came_back_as_text_finds_its_call() -> None:
    async with alone() as peer:
        call = Waiting()
        peer.dispatcher.relay("x", {"_meta": {"progressToken": "mine"}}, call)
        peer.feed({"method": "notifications/progress", "params": {"progressToken": "1", "progress": 3, "odd": "kept"}})
        assert call.heard == [{"progressToken": "mine", "progress": 3, "odd": "kept"}]


@pytest.mark.parametrize("token", [1, 99, "zzz", True, None, [1], {"a": 1}, 1.0, "1" * 5000])
async def test_progress_for_nobody_is_a_notification_like_others(token: Any) -> None:
    async with alone() as peer:
        call = Waiting()
        peer.dispatcher.relay("x", {"no": "token"}, call)
        params = {"progressToken": token, "progress": 1}
        peer.feed({"method": "notifications/progress", "params": params})
        await turns()
        assert call.heard == []
        assert peer.notified == [("notifications/progress", params)]
