"""Questions of servers to clients in all four pairings of eras, whom they go to, and what becomes of the call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fixtures.clock import settle
from tests.gateway.world import Client, House, house, server
from trayapp.gateway.bridge import MAX_ROUNDS, STATE_PREFIX
from trayapp.wire.messages import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError

pytestmark = pytest.mark.anyio

ABLE: dict[str, Any] = {
    "sampling": {"tools": {}},
    "elicitation": {"form": {}, "url": {}},
    "roots": {"listChanged": True},
}
META = "io.modelcontextprotocol/"
ENVELOPE = {META + "protocolVersion": "2026-07-28", META + "clientInfo": {"name": "new", "version": "1"}}
QUESTIONS = [
    ("sampling/createMessage", {"messages": [], "maxTokens": 5, "x-more": [1]}, {"role": "assistant", "x-kept": 1}),
    ("elicitation/create", {"message": "who?", "requestedSchema": {"type": "object"}}, {"action": "accept"}),
    ("elicitation/create", {"mode": "url", "message": "go", "url": "https://x.test"}, {"action": "decline"}),
    ("roots/list", {}, {"roots": [{"uri": "file:///a", "x-kept": True}]}),
]


async def older(made: House, capabilities: dict[str, Any] | None = None, name: str = "old") -> Client:
    """A client of 2025-11-25 that can do all of that."""
    client = made.client()
    able = ABLE if capabilities is None else capabilities
    info = {"name": name, "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": able, "clientInfo": info}
    await client.result("initialize", params, "init")
    client.tell("notifications/initialized")
    return client


def enveloped(params: dict[str, Any], capabilities: dict[str, Any] = ABLE) -> dict[str, Any]:
    """The params of a request of 2026-07-28."""
    return {**params, "_meta": {**ENVELOPE, META + "clientCapabilities": capabilities}}


def tool_call(name: str, **arguments: Any) -> dict[str, Any]:
    """The params of a tools/call."""
    return {"name": name, "arguments": arguments}


async def question(client: Client, method: str) -> dict[str, Any]:
    """The next request that the client gets."""
    with anyio.fail_after(10):
        while True:
            for message in client.heard:
                if message.get("method") == method and "id" in message:
                    client.heard.remove(message)
                    return message
            await settle()


def said(answer: dict[str, Any]) -> Any:
    """What the `ask` tool got as the answer to its question."""
    return json.loads(answer["result"]["content"][0]["text"])


def asking(made: House, name: str, question: dict[str, Any], state: str | None = "theirs") -> None:
    """Make the fake 2026-07-28 server answer each call with a question until it got what it asked for."""

    async def answer(params: dict[str, Any]) -> dict[str, Any]:
        if "inputResponses" not in params:
            more = {} if state is None else {"requestState": state}
            return {"resultType": "input_required", "inputRequests": {"k": question}, **more}
        text = json.dumps({"got": params["inputResponses"]["k"], "state": params.get("requestState")})
        return {"resultType": "complete", "content": [{"type": "text", "text": text}]}

    made.net[name].modern = True
    made.net[name].versions = ()
    made.net[name].replies["tools/call"] = answer


# -- an older server asks by a request -------------------------------------------------------------------------------


@pytest.mark.requirement("bridge-older-older")
@pytest.mark.parametrize(("method", "params", "reply"), QUESTIONS)
async def test_an_older_client_gets_an_older_servers_question_as_it_is(
    tmp_path: Path, method: str, params: dict[str, Any], reply: dict[str, Any]
) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await older(made)
        client.ask_only(1, "tools/call", tool_call("a_ask", method=method, params=params))
        asked = await question(client, method)
        assert asked["params"] == params
        client.send({"id": asked["id"], "result": reply})
        assert said(await client.answer(1)) == reply


@pytest.mark.requirement("bridge-older-newer")
@pytest.mark.parametrize(("method", "params", "reply"), QUESTIONS)
async def test_a_newer_client_gets_an_older_servers_question_as_an_answer_and_carries_on(
    tmp_path: Path, method: str, params: dict[str, Any], reply: dict[str, Any]
) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = made.client()
        call = tool_call("a_ask", method=method, params=params)
        result = await client.result("tools/call", enveloped(call), 1)
        assert result["resultType"] == "input_required"
        ((key, asked),) = result["inputRequests"].items()
        assert asked["method"] == method
        assert asked.get("params", {}) == params
        again = {**call, "inputResponses": {key: reply}, "requestState": result["requestState"]}
        answer = await client.ask("tools/call", enveloped(again), 2)
        assert said(answer) == reply
        assert answer["result"]["resultType"] == "complete"
        assert made.net["a"].methods().count("tools/call") == 1


async def test_a_newer_client_may_carry_on_from_another_session(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        one, two = made.client(lasting=False), made.client(lasting=False)
        call = tool_call("a_ask", method="roots/list")
        result = await one.result("tools/call", enveloped(call), 1)
        one.end()
        await settle()
        key = next(iter(result["inputRequests"]))
        again = {**call, "inputResponses": {key: {"roots": []}}, "requestState": result["requestState"]}
        assert said(await two.ask("tools/call", enveloped(again), 1)) == {"roots": []}


async def test_a_newer_client_that_comes_back_without_an_answer_is_asked_again(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = made.client()
        call = tool_call("a_ask", method="roots/list")
        first = await client.result("tools/call", enveloped(call), 1)
        second = await client.result(
            "tools/call", enveloped({**call, "requestState": first["requestState"], "inputResponses": {}}), 2
        )
        assert second["inputRequests"] == first["inputRequests"]
        assert second["requestState"] != first["requestState"]


async def test_a_question_goes_out_with_a_call_whose_client_waits_before_one_whose_client_is_away(
    tmp_path: Path,
) -> None:
    """An older server does not say to which call a question belongs; who was asked already may never come back."""
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = made.client()
        client.ask_only(1, "tools/call", enveloped(tool_call("a_hold", key="k")))
        await made.net["a"].heard_of("held")
        for number in (2, 3):
            asking = tool_call("a_ask", method="roots/list", params={"of": number})
            client.ask_only(number, "tools/call", enveloped(asking))
        results = {number: (await client.answer(number))["result"] for number in (1, 2)}
        questions = {number: result["inputRequests"] for number, result in results.items()}
        assert [next(iter(asked.values()))["params"] for asked in questions.values()] == [{"of": 2}, {"of": 3}]
        for number, result in results.items():
            key, asked = next(iter(result["inputRequests"].items()))
            again = {
                "inputResponses": {key: {"roots": [asked["params"]["of"]]}},
                "requestState": result["requestState"],
            }
            client.ask_only(number + 10, "tools/call", enveloped({**tool_call("a_ask"), **again}))
        assert said(await client.answer(12)) == {"roots": [2]}
        assert said(await client.answer(3)) == {"roots": [3]}


async def test_a_question_that_came_in_with_a_call_that_is_over_is_no_hang_for_its_server(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = made.client()
        first = await client.result("tools/call", enveloped(tool_call("a_ask", method="roots/list")), 1)
        channel = made.net["a"].channel
        assert channel is not None
        failures: list[RpcError] = []

        async def ask() -> None:
            try:
                await channel.ask("roots/list", {"late": True})
            except RpcError as error:
                failures.append(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await settle()
            connection = made.gateway.pool.find("a")
            channel.answer_now(next(iter(channel.open_numbers())), {"content": []})
            await settle()
            key = next(iter(first["inputRequests"]))
            again = {"inputResponses": {key: {"roots": []}}, "requestState": first["requestState"]}
            last = await client.result("tools/call", enveloped({**tool_call("a_ask"), **again}), 2)
        assert last["content"] == []
        assert failures[0].code == METHOD_NOT_FOUND
        assert connection.in_flight == 0


@pytest.mark.parametrize("state", [STATE_PREFIX, STATE_PREFIX + "made-up"])
async def test_a_request_state_that_is_gone_is_refused(tmp_path: Path, state: str) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        call = {**tool_call("a_echo"), "requestState": state}
        assert (await made.client().error("tools/call", enveloped(call)))["code"] == INVALID_PARAMS


async def test_a_request_state_works_once(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = made.client()
        call = tool_call("a_ask", method="roots/list")
        first = await client.result("tools/call", enveloped(call), 1)
        key = next(iter(first["inputRequests"]))
        again = enveloped({**call, "requestState": first["requestState"], "inputResponses": {key: {"roots": []}}})
        assert "result" in await client.ask("tools/call", again, 2)
        assert "error" in await client.ask("tools/call", again, 3)


async def test_a_newer_client_that_went_away_ends_its_parked_call(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = made.client()
        await client.result("tools/call", enveloped(tool_call("a_ask", method="roots/list")), 1)
        client.end()
        await made.net["a"].heard_of("notifications/cancelled")
        connection = made.gateway.pool.find("a")
        while connection.in_flight:
            await settle()


async def test_a_server_that_dies_while_the_client_thinks_is_the_answer_when_it_comes_back(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = made.client()
        call = tool_call("a_ask", method="roots/list")
        first = await client.result("tools/call", enveloped(call), 1)
        made.net["a"].die()
        await settle()
        key = next(iter(first["inputRequests"]))
        again = enveloped({**call, "requestState": first["requestState"], "inputResponses": {key: {"roots": []}}})
        assert "went away" in (await client.error("tools/call", again, 2))["message"]


# -- a newer server asks by an answer --------------------------------------------------------------------------------


@pytest.mark.requirement("bridge-newer-older")
@pytest.mark.parametrize(("method", "params", "reply"), QUESTIONS)
async def test_an_older_client_gets_a_newer_servers_question_as_a_request(
    tmp_path: Path, method: str, params: dict[str, Any], reply: dict[str, Any]
) -> None:
    async with house(tmp_path) as made:
        asking(made, "a", {"method": method, "params": params})
        await made.known(server("a"))
        client = await older(made)
        client.ask_only(1, "tools/call", tool_call("a_echo"))
        asked = await question(client, method)
        assert {k: v for k, v in asked.get("params", {}).items() if k != "elicitationId"} == params
        client.send({"id": asked["id"], "result": reply})
        answer = await client.answer(1)
        assert said(answer) == {"got": reply, "state": "theirs"}
        assert "resultType" not in answer["result"]


@pytest.mark.requirement("bridge-newer-newer")
async def test_a_newer_servers_question_reaches_a_newer_client_untouched(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        asking(made, "a", {"method": "roots/list", "x-more": 1})
        await made.known(server("a"))
        client = made.client()
        result = await client.result("tools/call", enveloped(tool_call("a_echo")), 1)
        assert result == {
            "resultType": "input_required",
            "inputRequests": {"k": {"method": "roots/list", "x-more": 1}},
            "requestState": "theirs",
        }
        again = {**tool_call("a_echo"), "inputResponses": {"k": {"roots": []}}, "requestState": "theirs"}
        assert said(await client.ask("tools/call", enveloped(again), 2)) == {"got": {"roots": []}, "state": "theirs"}


async def test_a_refusal_of_an_older_client_is_the_answer_of_its_call(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        asking(made, "a", {"method": "elicitation/create", "params": {"message": "?"}})
        await made.known(server("a"))
        client = await older(made)
        client.ask_only(1, "tools/call", tool_call("a_echo"))
        asked = await question(client, "elicitation/create")
        client.send({"id": asked["id"], "error": {"code": -1, "message": "no"}})
        assert (await client.answer(1))["error"]["message"] == "no"


async def test_a_call_that_the_older_client_cancels_meanwhile_is_over(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        asking(made, "a", {"method": "roots/list"})
        await made.known(server("a"))
        client = await older(made)
        client.ask_only(1, "tools/call", tool_call("a_echo"))
        asked = await question(client, "roots/list")
        client.tell("notifications/cancelled", {"requestId": 1})
        with anyio.fail_after(10):
            while not client.told("notifications/cancelled"):
                await settle()
        assert client.told("notifications/cancelled")[0]["requestId"] == asked["id"]
        assert client.answers(1) == []


async def test_a_server_that_asks_for_ever_is_given_up(tmp_path: Path) -> None:
    async with house(tmp_path) as made:

        async def answer(params: dict[str, Any]) -> dict[str, Any]:
            return {"resultType": "input_required", "inputRequests": {"k": {"method": "roots/list"}}}

        made.net["a"].modern, made.net["a"].versions = True, ()
        made.net["a"].replies["tools/call"] = answer
        await made.known(server("a"))
        client = await older(made)
        client.ask_only(1, "tools/call", tool_call("a_echo"))
        for _ in range(MAX_ROUNDS):
            asked = await question(client, "roots/list")
            client.send({"id": asked["id"], "result": {"roots": []}})
        assert str(MAX_ROUNDS) in (await client.answer(1))["error"]["message"]


async def test_a_question_that_the_client_cannot_answer_is_an_error_not_a_hang(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        asking(made, "a", {"method": "sampling/createMessage", "params": {}})
        await made.known(server("a"))
        client = await older(made, {"roots": {}})
        assert "sampling" in (await client.call("a_echo"))["error"]["message"]


# -- who is asked ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("bridge-who")
async def test_the_client_whose_call_is_under_way_is_asked(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        idle, busy = await older(made, name="idle"), await older(made, name="busy")
        busy.ask_only(1, "tools/call", tool_call("a_ask", method="roots/list"))
        asked = await question(busy, "roots/list")
        busy.send({"id": asked["id"], "result": {"roots": []}})
        await busy.answer(1)
        assert not [m for m in idle.heard if m.get("method") == "roots/list"]


async def test_of_several_the_oldest_that_can_answer_is_asked_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with house(tmp_path) as made:
        await made.known(server("a"))
        unable = await older(made, {}, "unable")
        oldest, newest = await older(made, name="oldest"), await older(made, name="newest")
        for client in (unable, oldest):
            client.call_only("a_hold", 1, key=client.session.client if client.session else "")
            await made.net["a"].heard_of("held")
        newest.ask_only(1, "tools/call", tool_call("a_ask", method="roots/list"))
        asked = await question(oldest, "roots/list")
        oldest.send({"id": asked["id"], "result": {"roots": []}})
        assert said(await newest.answer(1)) == {"roots": []}
        assert "oldest is asked" in caplog.text


async def test_a_server_whose_clients_cannot_answer_gets_an_error(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await older(made, {})
        answer = await client.call("a_ask", method="elicitation/create", params={"message": "?"})
        assert answer["error"]["code"] == METHOD_NOT_FOUND


async def test_a_question_outside_of_a_call_goes_to_the_newest_client(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a", lifecycle="eager"))
        client = await older(made)
        await client.call("a_echo")
        channel = made.net["a"].channel
        assert channel is not None
        async with anyio.create_task_group() as tasks:
            answers: list[Any] = []

            async def ask() -> None:
                answers.append(await channel.ask("roots/list", {}))

            tasks.start_soon(ask)
            asked = await question(client, "roots/list")
            client.send({"id": asked["id"], "result": {"roots": []}})
        assert answers == [{"roots": []}]


# -- what servers are told of their clients --------------------------------------------------------------------------


async def test_a_server_hears_what_all_its_clients_can_do_together(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        await older(made, {"roots": {"listChanged": True}, "extensions": {"x": {}}})
        two = await older(made, {"elicitation": {}, "sampling": {}})
        await two.call("a_echo")
        told = (await made.net["a"].heard_of("initialize"))["capabilities"]
        assert told == {
            "roots": {"listChanged": True}, "extensions": {"x": {}}, "elicitation": {}, "sampling": {},
        }  # fmt: skip


async def test_a_newer_server_hears_with_each_call_what_that_client_can_do(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["a"].modern, made.net["a"].versions = True, ()
        await made.known(server("a"))
        able: list[dict[str, Any]] = [{"roots": {}}, {"elicitation": {"url": {}}}]
        for capabilities in able:
            client = await older(made, capabilities)
            await client.call("a_echo")
            heard = [params for method, params in made.net["a"].heard if method == "tools/call"]
            assert heard[-1]["_meta"][META + "clientCapabilities"] == capabilities


async def test_a_server_that_was_connected_before_its_first_client_is_started_anew_for_what_that_one_can_do(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a", lifecycle="eager"))
        await made.net["a"].heard_of("initialize")
        client = await older(made, {"roots": {}})
        await client.call("a_echo", 1)
        assert (await made.net["a"].heard_of("initialize", 2))["capabilities"] == {"roots": {}}
        await (await older(made)).call("a_echo", 2)  # used by then: it keeps what it may hold for the first client
        assert made.net["a"].methods().count("initialize") == 2


async def test_a_change_of_roots_is_told_to_the_servers_that_run(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"), server("idle"))
        client = await older(made)
        await client.call("a_echo")
        client.tell("notifications/roots/list_changed")
        await made.net["a"].heard_of("notifications/roots/list_changed")
        assert "notifications/roots/list_changed" not in made.net["idle"].methods()
