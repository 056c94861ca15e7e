"""Calls to servers: which session gets an answer, and what ends a call. Each call ends exactly once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.clock import settle
from tests.fixtures.fake_transport import refused
from tests.gateway.calls.test_server_requests import enveloped
from tests.gateway.world import Client, House, echo_of, house, offer, serve, server
from trayapp.backends.http.refusal import NOT_EXECUTED
from trayapp.gateway.exposure.exposure import INDEX_URI
from trayapp.model.config import Profile, ServerConfig, Settings
from trayapp.model.lifecycle import State
from trayapp.wire.messages import CONNECTION_CLOSED, REQUEST_TIMEOUT, RpcError
from trayapp.wire.revisions import LOG_LEVEL

pytestmark = pytest.mark.anyio


async def hanging(made: House, number: int | str = 1, key: str = "k") -> Client:
    """Return a client whose call is in flight at the server `a`."""
    client = await made.ready()
    client.call_only("a_hold", number, key=key)
    await made.net["a"].heard_of("held")
    return client


# -- what passes unchanged -------------------------------------------------------------------------------------------


@pytest.mark.requirement("call-no-field-lost")
async def test_every_field_of_a_call_and_of_its_result_arrives(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await made.ready()
        params: dict[str, Any] = {
            "name": "a_echo",
            "arguments": {"deep": [1, 2.5, None, {"ü": "😀"}], "big": 2**70},
            "_meta": {"example.test/x": 1},
            "x-unknown": {"kept": True},
        }
        result = await client.result("tools/call", params)
        assert result["structuredContent"]["got"] == {**params, "name": "echo"}
        assert result["x-unknown"] == [1]
        assert result["_meta"] == {"r": 2}
        heard = await made.net["a"].heard_of("tools/call")
        assert heard == {**params, "name": "echo"}


@pytest.mark.requirement("call-no-field-lost")
async def test_an_error_of_a_server_arrives_with_its_code_and_data(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        error = (await (await made.ready()).call("a_fail"))["error"]
        assert error == {"code": -32050, "message": "it failed", "data": {"why": ["a", 1]}}


@pytest.mark.requirement("call-features")
async def test_a_tool_s_own_error_is_a_result_and_stays_one(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        parts = [{"type": "text", "text": "boom"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}]

        async def answer(params: dict[str, Any]) -> dict[str, Any]:
            return {"content": parts, "isError": True}

        made.net["a"].replies["tools/call"] = answer
        await made.known(server("a"))
        assert await (await made.ready()).call("a_echo") == {
            "jsonrpc": "2.0",
            "id": 1,
            "result": {"content": parts, "isError": True},
        }


@pytest.mark.requirement("call-features")
async def test_a_prompt_is_got_from_its_server_under_its_own_name(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        serve(made.net["a"], prompts=({"name": "do it"},))
        serve(made.net["b"], prompts=({"name": "do it"},))
        echo_of(made.net["b"], "prompts/get")
        await made.known(server("a"), server("b"))
        client = await made.ready()
        names = [item["name"] for item in (await client.result("prompts/list"))["prompts"]]
        assert names == ["a_do_it", "b_do_it"]
        params = {"name": "b_do_it", "arguments": {"x": "1"}, "x-more": 1}
        assert await client.result("prompts/get", params) == {"got": {**params, "name": "do it"}}


@pytest.mark.requirement("call-features", "resource-clash")
async def test_resources_are_read_from_the_server_that_has_them_prefixed_where_they_clash(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        for name, own in (("a", "file:///a"), ("b", "file:///b")):
            serve(made.net[name], resources=({"uri": own}, {"uri": "file:///both", "x": name}))
            echo_of(made.net[name], "resources/read")
        await made.known(server("a"), server("b"))
        client = await made.ready()
        uris = [item["uri"] for item in (await client.result("resources/list"))["resources"]]
        assert uris == ["file:///a", "multi-mcp://a/file:///both", "file:///b", "multi-mcp://b/file:///both", INDEX_URI]
        for uri, name, original in (
            ("file:///b", "b", "file:///b"),
            ("multi-mcp://b/file:///both", "b", "file:///both"),
            ("multi-mcp://a/file:///b", "a", "file:///b"),
        ):
            assert await client.result("resources/read", {"uri": uri}) == {"got": {"uri": original}}
            assert made.net[name].methods()[-1] == "resources/read"
        assert "multi-mcp://a/" in (await client.error("resources/read", {"uri": "file:///both"}))["message"]


@pytest.mark.requirement("call-features")
async def test_a_resource_that_fits_a_template_is_read_from_the_template_s_server(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        serve(made.net["a"], resourceTemplates=({"uriTemplate": "db://{table}"},))
        serve(made.net["b"], resourceTemplates=({"uriTemplate": "log://{day}"},))
        echo_of(made.net["b"], "resources/read")
        await made.known(server("a"), server("b"))
        client = await made.ready()
        assert await client.result("resources/read", {"uri": "log://7"}) == {"got": {"uri": "log://7"}}
        error = await client.error("resources/read", {"uri": "nope://7"})
        assert (error["code"], error["data"]) == (-32002, {"uri": "nope://7"})


@pytest.mark.requirement("call-features")
async def test_a_resource_that_nobody_lists_is_asked_of_the_only_server_that_has_resources(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        serve(made.net["a"])
        echo_of(made.net["a"], "resources/read")
        await made.known(server("a"), server("b"))
        client = await made.ready()
        assert await client.result("resources/read", {"uri": "odd://1"}) == {"got": {"uri": "odd://1"}}
        assert (await client.error("resources/read", {"uri": "multi-mcp://nobody"}))["code"] == -32002


@pytest.mark.requirement("call-features")
async def test_completion_reaches_the_server_of_the_prompt_or_of_the_template(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        for name in ("a", "b"):
            serve(made.net[name], prompts=({"name": "p"},), resourceTemplates=({"uriTemplate": "x://{v}"},))
            echo_of(made.net[name], "completion/complete")
        await made.known(server("a"), server("b"))
        client = await made.ready()
        argument = {"name": "v", "value": "1"}
        asked = {"ref": {"type": "ref/prompt", "name": "b_p", "title": "t"}, "argument": argument}
        got = (await client.result("completion/complete", asked))["got"]
        assert got == {"ref": {"type": "ref/prompt", "name": "p", "title": "t"}, "argument": argument}
        assert made.net["b"].methods()[-1] == "completion/complete"
        asked = {"ref": {"type": "ref/resource", "uri": "multi-mcp://a/x://{v}"}, "argument": argument}
        got = (await client.result("completion/complete", asked))["got"]
        assert got["ref"] == {"type": "ref/resource", "uri": "x://{v}"}
        assert made.net["a"].methods()[-1] == "completion/complete"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", {}),
        ("prompts/get", {"name": "nope"}),
        ("resources/read", {"uri": 5}),
        ("completion/complete", {}),
        ("completion/complete", {"ref": "x"}),
        ("completion/complete", {"ref": {"type": "ref/prompt"}}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "nope"}}),
        ("completion/complete", {"ref": {"type": "ref/odd"}}),
    ],
)
async def test_what_names_nothing_is_an_error_and_starts_nothing(
    tmp_path: Path, method: str, params: dict[str, Any]
) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        assert (await (await made.ready()).error(method, params))["code"] == -32602
        assert made.net["a"].open_now == 0


@pytest.mark.requirement("call-progress", "call-two-clients")
async def test_progress_comes_to_the_one_who_asked_under_its_own_token(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        one, two = await made.ready(), await made.ready()
        for client, token in ((one, "t"), (two, 0)):
            params = {"name": "a_progress", "_meta": {"progressToken": token}}
            client.ask_only(1, "tools/call", params)
        await one.answer(1)
        await two.answer(1)
        expected = [{"progress": step, "total": 3, "x-more": [step]} for step in (1, 2, 3)]
        assert one.told("notifications/progress") == [{"progressToken": "t", **step} for step in expected]
        assert two.told("notifications/progress") == [{"progressToken": 0, **step} for step in expected]
        order = [m.get("method", "answer") for m in one.heard[-4:]]
        assert order == ["notifications/progress"] * 3 + ["answer"]


@pytest.mark.requirement("call-progress")
async def test_progress_that_comes_too_late_comes_to_nobody(tmp_path: Path) -> None:
    """The gateway chose the token of late progress. The client may use the same number for another request."""
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await made.ready()
        for method in ("notifications/progress", "notifications/cancelled"):
            told = {"method": method, "params": {"progressToken": 1, "requestId": 1, "progress": 1}}
            assert "result" in await client.call("a_notify", 2, **told)
        assert client.told("notifications/progress") == client.told("notifications/cancelled") == []


# -- servers that are not running ------------------------------------------------------------------------------------


@pytest.mark.requirement("life-single-flight", "cat-cache-first")
async def test_20_calls_at_once_to_a_cold_server_start_it_once(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.cache(server("a"), offer("echo"))
        made.apply(server("a"))
        made.start()
        clients = [await made.ready() for _ in range(4)]
        for number in range(5):
            for client in clients:
                client.call_only("a_echo", number, of=f"{number}")
        answers = [await client.answer(number) for client in clients for number in range(5)]
        assert [json.loads(a["result"]["content"][0]["text"])["arguments"]["of"] for a in answers] == list("01234") * 4
        assert made.net["a"].opened == 1
        assert made.in_flight() == {}


@pytest.mark.requirement("life-single-flight")
async def test_20_calls_at_once_to_a_server_of_which_nothing_is_known_start_it_once(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.apply(server("a"))
        client = await made.ready()
        for number in range(20):
            client.call_only("a_echo", number)
        assert all(["result" in await client.answer(number) for number in range(20)])
        assert made.net["a"].opened == 1
        assert made.net["a"].methods().count("tools/list") == 3  # one list of three pages


@pytest.mark.requirement("life-backoff")
async def test_a_server_that_cannot_be_started_answers_each_call_with_why_and_then_with_how_long_ago(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as made:
        made.cache(server("a"), offer("echo"))
        made.net["a"].before = refused
        made.apply(server("a"))
        made.start()
        client = await made.ready()
        first = (await client.call("a_echo"))["error"]
        assert first["code"] == CONNECTION_CLOSED
        assert first["data"]["code"] == "connect_failed"
        assert first["data"]["server"] == "a"
        assert made.state("a") is State.FAILED
        await made.clock.pass_(30)
        second = (await client.call("a_echo"))["error"]
        assert second["data"]["code"] == "server_backoff"
        assert "30s" in second["message"]
        assert made.net["a"].opened == 1
        assert made.in_flight() == {}


# -- cancellation ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("call-cancel")
async def test_a_cancelled_call_is_cancelled_at_the_server_and_not_answered(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await hanging(made)
        assert made.in_flight() == {"a": 1}
        client.tell("notifications/cancelled", {"requestId": 1, "reason": "enough"})
        await made.net["a"].cancelled_of("k")
        assert (await made.net["a"].heard_of("notifications/cancelled"))["reason"] == "enough"
        assert "result" in await client.call("a_echo", 2)
        assert client.answers(1) == []
        assert made.in_flight() == {}


@pytest.mark.requirement("call-cancel")
async def test_a_call_that_is_cancelled_while_its_server_starts_is_never_sent(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client, gate = await made.starting()
        client.call_only("a_echo", 1)
        client.call_only("a_echo", 2)
        await settle()
        client.tell("notifications/cancelled", {"requestId": 1})
        gate.set()
        assert "result" in await client.answer(2)
        await settle()
        assert client.answers(1) == []
        assert made.net["a"].methods().count("tools/call") == 1
        assert made.in_flight() == {}


@pytest.mark.parametrize(
    "params",
    [{"requestId": True}, {"requestId": 99}, {"requestId": "1"}, {"requestId": [1]}, {"requestId": None}, {}, None],
)
async def test_a_cancellation_of_something_else_cancels_nothing(tmp_path: Path, params: Any) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await hanging(made)
        client.tell("notifications/cancelled", params)
        await settle()
        assert made.net["a"].cancelled == []
        await client.call("a_release", 2, key="k")
        assert "result" in await client.answer(1)


@pytest.mark.requirement("call-cancel", "call-two-clients")
async def test_one_client_cannot_cancel_the_other_s_call(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        one, two = await hanging(made), await made.ready()
        two.tell("notifications/cancelled", {"requestId": 1})
        await two.call("a_release", 1, key="k")
        assert "result" in await one.answer(1)
        assert made.net["a"].cancelled == []


# -- clients and servers that go away --------------------------------------------------------------------------------


async def test_the_calls_of_a_client_that_goes_away_are_cancelled_at_the_server(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client, other = await hanging(made, key="mine"), await made.ready()
        other.call_only("a_hold", 1, key="other")
        await made.net["a"].heard_of("held", 2)
        client.end()
        await made.net["a"].cancelled_of("mine")
        await settle()
        assert made.in_flight() == {"a": 1}
        assert len(made.gateway.sessions) == 1
        await other.call("a_release", 2, key="other")
        assert "result" in await other.answer(1)
        assert made.in_flight() == {}


async def test_a_client_that_goes_away_while_its_server_starts_leaves_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client, gate = await made.starting()
        client.call_only("a_echo", 1)
        await settle()
        client.end()
        gate.set()
        await settle()
        assert made.net["a"].methods().count("tools/call") == 0
        assert made.in_flight() == {}
        assert made.gateway.sessions == {}
        assert made.state("a") is State.CONNECTED


@pytest.mark.requirement("life-crash-in-box")
async def test_a_server_that_dies_gives_each_call_one_error_and_serves_the_next(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"), server("b"))
        client = await hanging(made)
        client.call_only("b_hold", 2, key="b")
        await made.net["b"].heard_of("held")
        made.net["a"].die()
        error = (await client.answer(1))["error"]
        assert error["code"] == CONNECTION_CLOSED
        assert error["data"]["code"] == "connection_lost"
        assert "exited with code 9" in error["message"]
        assert "not repeated" in error["message"]
        assert "result" in await client.call("a_echo", 3)
        await client.call("b_release", 4, key="b")
        assert "result" in await client.answer(2)
        assert len(client.answers(1)) == 1
        assert made.in_flight() == {}


async def test_a_server_that_is_changed_in_the_file_under_a_call_gives_it_one_error(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await hanging(made)
        old = made.gateway.services.pool.find("a")
        made.apply(server("a", args=("--new",)))
        assert (await client.answer(1))["error"]["data"]["code"] == "connection_lost"
        assert "result" in await client.call("a_echo", 2)
        client.tell("notifications/cancelled", {"requestId": 1})
        await settle()
        assert (old.in_flight, made.in_flight(), len(client.answers(1))) == (0, {}, 1)


async def test_a_server_s_own_error_with_the_code_of_a_closed_connection_stays_its_own(tmp_path: Path) -> None:
    """HTTP answers have no frames, so the code alone does not tell whether the server or the gateway sent the error."""
    async with house(tmp_path) as made:
        made.net["a"].kind = "http"
        made.net["a"].replies["prompts/get"] = failing_with_closed
        serve(made.net["a"], prompts=({"name": "p"},))
        await made.known(server("a"))
        error = await (await made.ready()).error("prompts/get", {"name": "a_p"})
        assert error == {"code": CONNECTION_CLOSED, "message": "Bad Request: none of mine", "data": [1]}


async def failing_with_closed(params: dict[str, Any]) -> dict[str, Any]:
    raise RpcError(CONNECTION_CLOSED, "Bad Request: none of mine", [1])


# -- request_timeout -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "own"), [(Settings(request_timeout=0.01), {}), (Settings(), {"request_timeout": 0.01})]
)
async def test_a_call_that_takes_too_long_is_answered_once_and_cancelled_at_the_server(
    tmp_path: Path, settings: Settings, own: dict[str, float]
) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a", **own), settings=settings)
        client = await hanging(made)
        await made.net["a"].cancelled_of("k")
        error = (await client.answer(1))["error"]
        assert error["code"] == REQUEST_TIMEOUT
        assert "a did not answer within 0.01 s" in error["message"]
        client.tell("notifications/cancelled", {"requestId": 1})
        assert "result" in await client.call("a_echo", 2)
        assert len(client.answers(1)) == 1
        assert made.in_flight() == {}


async def test_a_server_s_own_request_timeout_of_0_is_none_whatever_the_setting(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a", request_timeout=0), settings=Settings(request_timeout=0.001))
        client = await hanging(made)
        await client.call("a_release", 2, key="k")
        assert "result" in await client.answer(1)


# -- notifications and requests of servers ---------------------------------------------------------------------------


@pytest.mark.requirement("call-features")
async def test_a_notification_comes_to_the_session_whose_call_is_under_way_there(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"), server("b"))
        one, two = await made.ready(), await made.ready()
        two.call_only("b_hold", 1, key="b")
        await made.net["b"].heard_of("held")
        said = {"method": "notifications/message", "params": {"level": "info", "data": "hello", "x": 1}}
        await one.call("a_notify", 1, **said)
        assert one.told("notifications/message") == [said["params"]]
        assert two.told("notifications/message") == []


@pytest.mark.requirement("server-words-to-its-sessions")
async def test_a_notification_outside_of_all_calls_comes_to_every_client_that_uses_the_server(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a", lifecycle="eager"), server("b"))
        one, two, early = await made.ready(), await made.ready(), await made.ready()
        for client, tool in ((one, "a_echo"), (two, "a_echo"), (early, "b_echo")):
            await client.call(tool)
        channel = made.net["a"].channel
        assert channel is not None
        channel.tell(0, None, "notifications/x-odd", {"deep": [1]})
        assert [client.told("notifications/x-odd") for client in (one, two, early)] == [[{"deep": [1]}]] * 2 + [[]]


@pytest.mark.requirement("server-words-to-its-sessions")
async def test_a_server_that_a_session_may_no_longer_use_is_not_heard_there(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        everyone = Profile(servers=("a", "b"))
        config = [server("a", lifecycle="eager"), server("b")]
        await made.known(*config, settings=Settings(profiles={"some": everyone}))
        whole, some = await made.ready(), await made.ready(profile="some")
        for client in (whole, some):
            await client.call("a_echo")
        made.apply(*config, settings=Settings(profiles={"some": Profile(servers=("b",))}))
        channel = made.net["a"].channel
        assert channel is not None
        for method in ("notifications/message", "notifications/x-odd"):
            channel.tell(0, None, method, {"level": "error", "data": "x"})
        assert [len(whole.told(method)) for method in ("notifications/message", "notifications/x-odd")] == [1, 1]
        assert [len(some.told(method)) for method in ("notifications/message", "notifications/x-odd")] == [0, 0]


@pytest.mark.requirement("call-features")
async def test_log_messages_that_an_answer_overtakes_still_reach_a_newer_client(tmp_path: Path) -> None:
    """An older server over HTTP writes its answers to one stream and its log messages to another."""
    async with house(tmp_path) as made:
        fake = made.net["a"]
        serve(fake)
        fake.kind = "http"
        echo_of(fake, "logging/setLevel")

        async def answer_before_log(params: dict[str, Any]) -> dict[str, Any]:
            """Answer before the log message, which follows before any timer of the gateway expires."""
            assert fake.channel is not None
            logged = {"level": "info", "data": "late"}
            asyncio.get_running_loop().call_soon(fake.channel.tell, 0, None, "notifications/message", logged)
            return {"content": []}

        fake.replies["tools/call"] = answer_before_log
        await made.known(server("a", lifecycle="eager"))
        client = made.client()
        called = enveloped({"name": "a_echo", "arguments": {}})
        client.ask_only(1, "tools/call", {**called, "_meta": {**called["_meta"], LOG_LEVEL: "info"}})
        assert "result" in await client.answer(1)
        assert [told["data"] for told in client.told("notifications/message")] == ["late"]
        assert client.heard[-1]["id"] == 1  # the answer comes last


@pytest.mark.requirement("call-features")
async def test_log_messages_below_the_level_that_a_session_asked_for_do_not_reach_it(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a", lifecycle="eager"))
        loud, quiet = await made.ready(), await made.ready()
        for client in (loud, quiet):
            await client.call("a_echo")
        assert await quiet.result("logging/setLevel", {"level": "error"}) == {}
        channel = made.net["a"].channel
        assert channel is not None
        for level in ("debug", "error", "emergency", "odd", None):
            channel.tell(0, None, "notifications/message", {"level": level, "data": level})
        assert [told["data"] for told in loud.told("notifications/message")] == [
            "debug",
            "error",
            "emergency",
            "odd",
            None,
        ]
        assert [told["data"] for told in quiet.told("notifications/message")] == ["error", "emergency", "odd", None]


@pytest.mark.requirement("call-features")
async def test_servers_hear_of_the_lowest_level_that_any_session_wants_now_and_when_they_start(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        for name in ("a", "b"):
            serve(made.net[name])
            echo_of(made.net[name], "logging/setLevel")
        await made.known(server("a", lifecycle="eager"), server("b"), server("no-logging", lifecycle="eager"))
        one, two = await made.ready(), await made.ready()
        await one.result("logging/setLevel", {"level": "warning"})
        await two.result("logging/setLevel", {"level": "error"})
        await two.result("logging/setLevel", {"level": "debug"})
        # an unchanged level is not sent again
        assert await made.net["a"].heard_of("logging/setLevel", 2) == {"level": "debug"}
        await two.result("logging/setLevel", {"level": "warning"})
        await one.call("b_echo")
        assert await made.net["b"].heard_of("logging/setLevel") == {"level": "warning"}
        assert "logging/setLevel" not in made.net["no-logging"].methods()


@pytest.mark.parametrize("level", ["loud", None, 3, ["info"], {}])
async def test_an_unknown_log_level_is_refused(tmp_path: Path, level: Any) -> None:
    async with house(tmp_path) as made:
        made.start()
        assert (await (await made.ready()).error("logging/setLevel", {"level": level}))["code"] == -32602


async def test_a_request_of_a_server_that_nobody_can_answer_is_refused_and_the_call_goes_on(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await made.ready()
        assert (await client.call("a_ask", 1, method="sampling/createMessage"))["error"]["code"] == -32601
        assert (await client.call("a_ask", 2, method="ping"))["result"]["content"][0]["text"] == "{}"


# -- sessions that the server has lost -------------------------------------------------------------------------------


@pytest.mark.requirement("life-session-lost")
@pytest.mark.parametrize(("refusals", "executed"), [(1, True), (2, False)])
async def test_a_call_that_was_not_executed_is_sent_once_more_and_no_third_time(
    tmp_path: Path, refusals: int, executed: bool
) -> None:
    asked: list[str] = []

    async def answer(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params["name"])
        if len(asked) <= refusals:
            raise RpcError(CONNECTION_CLOSED, "The server ended the session", NOT_EXECUTED)
        return {"content": []}

    async with house(tmp_path) as made:
        await made.known(server("a"))
        made.net["a"].replies["tools/call"] = answer
        client = await made.ready()
        reply = await client.call("a_echo")
        assert ("result" in reply) is executed
        assert asked == ["echo", "echo"]
        connection = made.gateway.services.pool.find("a")
        assert connection.in_flight == 0


TAKEN_AWAY: dict[str, tuple[tuple[ServerConfig, ...], str]] = {
    "disabled": ((server("a", disabled=True),), "a was disabled during the call. The call was not repeated"),
    "removed": ((server("b"),), "a was stopped during the call: its entry in servers.yaml changed"),
    "launched again": ((server("a", args=("x",)),), "a was stopped during the call: its entry in servers.yaml changed"),
}


@pytest.mark.parametrize("calls", [1, 5])
async def test_a_call_of_a_server_that_never_lists_its_tools_waits_no_longer_than_for_a_start(
    tmp_path: Path, calls: int
) -> None:
    """Several concurrent calls wait together, not one after the other."""
    async with house(tmp_path) as made:
        made.net["a"].hold("tools/list", {})
        made.apply(server("a", connect_timeout=0.3))
        made.start()
        client = await made.ready()
        for number in range(calls):
            client.call_only("a_echo", number)
        for number in range(calls):
            error = (await client.answer(number))["error"]
            assert error["message"].startswith("a did not list its tools within 0.3 s")
        assert made.net["a"].methods().count("tools/list") == 1


@pytest.mark.requirement("stop-says-so")
async def test_a_call_under_way_when_the_gateway_stops_hears_just_that(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        gate = made.net["b"].hold_start()
        made.cache(server("b"), offer("echo"))
        await made.known(server("a"))
        made.apply(server("a"), server("b"))
        client, late = await hanging(made), await made.ready()
        late.call_only("b_echo", 1)
        await settle()
        await made.gateway.services.pool.stop()
        gate.set()
        texts = [(await one.answer(1))["error"]["message"] for one in (client, late)]
        texts.append((await late.call("a_echo", 2))["error"]["message"])
        assert texts[0].startswith("a was stopped during the call: the gateway stopped. The call was not repeated")
        assert texts[1].startswith("b was stopped while it was starting: the gateway stopped")
        assert texts[2].startswith("a cannot be started: the gateway stopped")
        assert "servers.yaml" not in " ".join(texts)


@pytest.mark.parametrize("change", TAKEN_AWAY)
async def test_a_call_whose_server_the_user_takes_away_says_so_and_promises_no_start(
    tmp_path: Path, change: str
) -> None:
    servers, words = TAKEN_AWAY[change]
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await hanging(made)
        made.apply(*servers)
        message = (await client.answer(1))["error"]["message"]
        assert message.startswith(words)
        assert "restarts the server" not in message
