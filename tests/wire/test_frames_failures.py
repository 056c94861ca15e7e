"""Tests that a failure affects only the message that caused it, and that its text does not leave the process."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from tests.wire.pair import Peer, Waiting, alone, joined, turns
from trayapp.wire.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Params,
    Reply,
    Request,
    RpcError,
)

pytestmark = pytest.mark.anyio


class Secret(Exception):
    """An exception whose text must not leave the process."""


async def test_a_failing_handler_is_an_internal_error_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    async with joined() as (left, right):

        async def fails(params: Params) -> Any:
            raise Secret("password 1234")

        right.handlers["fails"] = fails
        with pytest.raises(RpcError) as caught:
            await left.dispatcher.send_raw_request("fails", {})
        assert caught.value.code == INTERNAL_ERROR
        assert b"1234" not in b"".join(right.writes)
        assert "Secret" in caplog.text
        assert await left.dispatcher.send_raw_request("echo", {}) == {"echo": {}}


@pytest.mark.parametrize("result", [object(), {"x": object()}, {1, 2}])
async def test_a_result_that_json_cannot_hold_is_an_internal_error(result: Any) -> None:
    async with joined() as (left, right):

        async def odd(params: Params) -> Any:
            return result

        right.handlers["odd"] = odd
        with pytest.raises(RpcError) as caught:
            await left.dispatcher.send_raw_request("odd", {})
        assert caught.value.code == INTERNAL_ERROR
        assert await left.dispatcher.send_raw_request("echo", {}) == {"echo": {}}


async def test_an_intercept_gets_every_request_and_may_answer_it_later() -> None:
    async with alone() as peer:
        seen: list[Request] = []
        peer.dispatcher.request_intercept = seen.append
        peer.feed({"id": "a", "method": "mine", "params": {"x": 1}}, {"id": "b", "method": "echo"})
        await turns()
        assert (seen, peer.messages) == ([Request("a", "mine", {"x": 1}), Request("b", "echo", None)], [])
        peer.dispatcher.respond("a", Reply.of_result({"by": "intercept"}))
        assert peer.messages == [{"jsonrpc": "2.0", "id": "a", "result": {"by": "intercept"}}]


async def test_a_failing_intercept_is_an_internal_error_of_that_request_alone() -> None:
    async with alone() as peer:

        def intercept(request: Request) -> bool:
            raise Secret("password 1234")

        peer.dispatcher.request_intercept = intercept
        peer.feed({"id": 1, "method": "x"}, {"id": 2, "method": "y"})
        assert [(m["id"], m["error"]["code"]) for m in peer.messages] == [(1, INTERNAL_ERROR), (2, INTERNAL_ERROR)]
        assert b"1234" not in b"".join(peer.writes)


async def test_a_failing_notification_handler_harms_nobody() -> None:
    peer = Peer()

    seen: list[str] = []

    def on_notify(method: str, params: Params) -> None:
        seen.append(method)
        if method == "broken":
            raise Secret("no")

    async with anyio.create_task_group() as tasks:
        await tasks.start(peer.dispatcher.run, peer.on_request, on_notify)
        peer.feed({"method": "first"}, {"method": "broken"}, {"method": "last"}, {"id": 1, "method": "echo"})
        assert seen == ["first", "broken", "last"]  # immediately and in order
        await turns()
        assert peer.messages[0]["id"] == 1
        peer.dispatcher.close()


class Failing(Waiting):
    def answered(self, reply: Reply) -> None:
        super().answered(reply)
        raise Secret("no")

    def progress(self, params: dict[str, Any]) -> None:
        raise Secret("no")


async def test_one_that_fails_over_its_answer_harms_nobody_else() -> None:
    async with alone() as peer:
        failing, well = [Failing(), Failing()], [Waiting(), Waiting()]
        token = {"_meta": {"progressToken": 1}}
        for call in (failing[0], well[0], failing[1], well[1]):
            peer.dispatcher.relay("x", token, call)
        progress = {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
        peer.feed(progress, {"id": 1, "result": {}}, {"id": 2, "result": {}})
        assert [len(call.replies) for call in (failing[0], well[0])] == [1, 1]
        peer.dispatcher.close()
        assert [len(call.replies) for call in (failing[1], well[1])] == [1, 1]


@pytest.mark.parametrize("params", [[], [1], "text", 5, False])
async def test_params_that_are_no_object_are_refused(params: Any) -> None:
    async with alone() as peer:
        peer.feed({"id": 1, "method": "echo", "params": params}, {"method": "note", "params": params})
        await turns()
        assert [(m["id"], m["error"]["code"]) for m in peer.messages] == [(1, INVALID_PARAMS)]
        assert peer.notified == []
