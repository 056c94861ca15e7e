"""Behavior of all transports, tested once for each: stdio, Streamable HTTP, legacy SSE and the fake for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.contract.ways import WAYS, opened
from tests.fixtures.fake_transport import Awaiting
from trayapp.backends.http.channel import SENT_FOR
from trayapp.backends.listing import fetch_offer
from trayapp.model.offer import Offer
from trayapp.wire.messages import CONNECTION_CLOSED, REQUEST_TIMEOUT, RpcError

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("way", WAYS)]


async def told(offer: Offer) -> None:
    """Ignore the part of the offer that has been read so far."""


@pytest.mark.requirement("transport-all-three")
async def test_handshake_lists_and_a_call(way: str, tmp_path: Path) -> None:
    """All pages of the lists are read."""
    async with opened(way, tmp_path) as server:
        assert server.transport.kind == ("stdio" if way == "fake" else way)
        assert server.peer.protocol == "2025-11-25"
        assert server.peer.instructions
        offer = await fetch_offer(server.transport.channel, server.peer, {}, told)
        names = [tool["name"] for tool in offer.tools]
        assert {"echo", "hold", "release", "progress", "fail", "notify", "ask"} <= set(names)
        assert len(names) == len(set(names)) > 6
        assert await server.call("echo", text="x")
        assert await server.heard_of("notifications/initialized") == {}


@pytest.mark.requirement("call-no-field-lost")
async def test_unknown_fields_arrive_both_ways(way: str, tmp_path: Path) -> None:
    async with opened(way, tmp_path) as server:
        page = await server.request("tools/list")
        tool = next(tool for tool in page["tools"] if tool["name"] == "echo")
        assert tool["x-unknown"] == {"kept": True}
        assert tool["inputSchema"]["x-in-schema"] == [1, None]
        assert tool["_meta"] == {"example.test/tool": {"deep": [1, 2.5, "ü"]}}
        sent = {
            "name": "echo",
            "arguments": {"text": "ä\u2028\U0001f600", "n": None, "f": 1.5, "deep": [{"a": [True]}]},
            "_meta": {"example.test/q": {"z": 1}},
            "x-param": ["kept", None],
        }
        result = await server.request("tools/call", sent)
        heard = await server.heard_of("tools/call")
        assert {**heard, "_meta": {"example.test/q": heard["_meta"]["example.test/q"]}} == sent
        assert result["x-unknown"] == [1]
        assert result["_meta"]
        assert result["structuredContent"]


@pytest.mark.requirement("call-progress")
@pytest.mark.parametrize("token", ["mine", 7, "7", 0], ids=repr)
async def test_progress_comes_under_the_caller_s_own_token_with_every_field(
    way: str, tmp_path: Path, token: str | int
) -> None:
    async with opened(way, tmp_path) as server:
        waiting = Awaiting()
        params = {"name": "progress", "arguments": {}, "_meta": {"progressToken": token, "other": 1}}
        server.transport.channel.relay("tools/call", params, waiting)
        message = await waiting.message()
        assert message["result"]["content"][0]["text"] == "steps done"
        assert [step["progress"] for step in waiting.steps] == [1, 2, 3]
        assert [step["progressToken"] for step in waiting.steps] == [token] * 3
        assert [type(step["progressToken"]) for step in waiting.steps] == [type(token)] * 3
        assert [step["x-more"] for step in waiting.steps] == [[1], [2], [3]]
        assert params["_meta"] == {"progressToken": token, "other": 1}
        assert [method for method, _ in server.ear.told if "progress" in method] == []


@pytest.mark.requirement("call-cancel")
async def test_a_cancel_reaches_the_server_and_the_caller_hears_nothing(way: str, tmp_path: Path) -> None:
    async with opened(way, tmp_path) as server:
        waiting = Awaiting()
        channel = server.transport.channel
        number = channel.relay("tools/call", {"name": "hold", "arguments": {"key": "k"}}, waiting)
        await server.heard_of("held")
        channel.cancel(number, "changed my mind")
        assert "requestId" in await server.heard_of("notifications/cancelled")
        assert await server.call("echo")
        assert waiting.answers == 0
        channel.cancel(number, "again")
        channel.cancel(12345, "never there")
        assert await server.call("echo")


async def test_giving_up_an_awaited_request_cancels_it_at_the_server(way: str, tmp_path: Path) -> None:
    async with opened(way, tmp_path) as server:
        async with anyio.create_task_group() as tasks:

            async def hold() -> None:
                await server.call("hold", key="k")

            tasks.start_soon(hold)
            await server.heard_of("held")
            tasks.cancel_scope.cancel()
        assert "requestId" in await server.heard_of("notifications/cancelled")
        assert await server.call("echo")


async def test_a_request_that_runs_out_of_time_says_so_and_the_next_works(way: str, tmp_path: Path) -> None:
    async with opened(way, tmp_path) as server:
        with pytest.raises(RpcError) as caught:
            await server.transport.channel.send_raw_request(
                "tools/call", {"name": "hold", "arguments": {"key": "k"}}, timeout_s=0.05
            )
        assert caught.value.code == REQUEST_TIMEOUT
        assert await server.call("echo")


async def test_an_error_keeps_code_message_and_data(way: str, tmp_path: Path) -> None:
    async with opened(way, tmp_path) as server:
        with pytest.raises(RpcError) as caught:
            await server.call("fail")
        error = caught.value
        assert (error.code, error.message, error.data) == (-32050, "it failed", {"why": ["a", 1]})
        waiting = Awaiting()
        server.transport.channel.relay("tools/call", {"name": "fail", "arguments": {}}, waiting)
        body = (await waiting.message())["error"]
        assert (body["code"], body["message"], body["data"]) == (-32050, "it failed", {"why": ["a", 1]})


async def test_a_notification_of_the_server_arrives_with_every_field(way: str, tmp_path: Path) -> None:
    async with opened(way, tmp_path) as server:
        params = {"level": "info", "data": {"x": [1, None]}, "x-unknown": True}
        await server.call("notify", method="notifications/message", params=params)
        assert await server.ear.heard("notifications/message") == params
        await server.call("notify", method="notifications/tools/list_changed")
        assert await server.ear.heard("notifications/tools/list_changed") == {}


async def test_a_ping_of_the_server_is_answered_and_another_request_refused(way: str, tmp_path: Path) -> None:
    async with opened(way, tmp_path) as server:
        answered = await server.call("ask", method="ping")
        assert json.loads(answered["content"][0]["text"]) in ({}, {"result": {}})
        try:
            answer: Any = await server.call("ask", method="sampling/createMessage")
        except RpcError as error:
            answer = error.message  # our refusal, which the server may return as its own error
        assert "not supported" in str(answer)
        assert await server.call("echo")


@pytest.mark.requirement("bridge-who")
async def test_a_connection_that_is_opened_for_a_call_takes_no_later_question_for_one_of_that_call(
    way: str, tmp_path: Path
) -> None:
    """The task that sends a lost call again also opens the new connection, so SENT_FOR may still hold that call."""
    SENT_FOR.set(Awaiting())
    async with opened(way, tmp_path) as server:
        await server.call("ask", method="ping", params={"of": "nobody"})
        assert server.ear.asked == [({"of": "nobody"}, None)]


@pytest.mark.requirement("bridge-who")
async def test_by_streamable_http_it_is_known_to_which_call_a_question_belongs(way: str, tmp_path: Path) -> None:
    async with opened(way, tmp_path) as server:
        calls = [Awaiting() for _ in range(3)]
        for number, call in enumerate(calls):
            asked = {"method": "ping", "params": {"of": number}}
            server.transport.channel.relay("tools/call", {"name": "ask", "arguments": asked}, call)
        for call in calls:
            await call.message()
        await server.call("ask", method="ping", params={"of": "nobody"})
        known = way == "http"
        expected = [({"of": number}, call if known else None) for number, call in enumerate(calls)]
        assert sorted(server.ear.asked[:3], key=str) == sorted(expected, key=str)
        assert server.ear.asked[3:] == [({"of": "nobody"}, None)]


async def test_many_at_once_each_get_their_own_answer(way: str, tmp_path: Path) -> None:
    async with opened(way, tmp_path) as server:
        answers: dict[int, str] = {}

        async def one(number: int) -> None:
            answers[number] = json.dumps(await server.call("echo", text=f"number {number}!"))

        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(one, number)
        assert [number for number in range(50) if f"number {number}!" not in answers[number]] == []


async def test_an_answer_of_two_megabytes_arrives_whole(way: str, tmp_path: Path) -> None:
    async with opened(way, tmp_path) as server:
        text = "ü\n\u2028" * 400_000
        result = await server.call("echo", text=text)
        assert result["structuredContent"]
        assert text in json.loads(result["content"][0]["text"])["arguments"].values()


async def test_a_death_sets_gone_answers_each_call_once_and_says_why(way: str, tmp_path: Path) -> None:
    async with opened(way, tmp_path) as server:
        waiting = [Awaiting() for _ in range(3)]
        for number, call in enumerate(waiting):
            server.transport.channel.relay("tools/call", {"name": "hold", "arguments": {"key": f"{number}"}}, call)
        await server.heard_of("held")
        server.die()
        for call in waiting:
            message = await call.message()
            assert message["error"]["code"] == CONNECTION_CLOSED
        with anyio.move_on_after(0.2):
            await server.transport.gone.wait()
        if way == "http":  # without an open stream, the end is noticed only at the next request
            with pytest.raises(RpcError):
                await server.call("echo")
        with anyio.fail_after(10):
            await server.transport.gone.wait()
        assert await server.transport.end_reason()
        if way == "stdio":
            assert await server.transport.end_reason() == "ended by SIGKILL"
        assert [call.answers for call in waiting] == [1, 1, 1]


async def test_after_the_end_every_request_is_answered_at_once(way: str, tmp_path: Path) -> None:
    async with opened(way, tmp_path) as server:
        waiting = Awaiting()
        server.transport.channel.relay("tools/call", {"name": "hold", "arguments": {"key": "k"}}, waiting)
        await server.heard_of("held")
        channel = server.transport.channel
    message = await waiting.message()
    assert message["error"]["code"] == CONNECTION_CLOSED
    late = Awaiting()
    channel.relay("tools/call", {"name": "echo", "arguments": {}}, late)
    assert (await late.message())["error"]["code"] == CONNECTION_CLOSED
    with pytest.raises(RpcError) as caught:
        await channel.send_raw_request("ping", None)
    assert caught.value.code == CONNECTION_CLOSED
    channel.send_notification("notifications/initialized", None)
    channel.cancel(1, "too late")
    assert (waiting.answers, late.answers) == (1, 1)
