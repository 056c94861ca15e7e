"""Servers' requests to clients in all four combinations of eras: which client gets them, and how the call ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fixtures.behaviour import tool
from tests.fixtures.clock import settle
from tests.gateway.world import Client, House, house, offer, server
from trayapp.gateway.calls.routed_call import MAX_ROUNDS
from trayapp.gateway.calls.server_requests import HELD_S, STATE_PREFIX, STOPS_WITHIN_S, STUCK_S, UNSTUCK_S
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.gateway.scopes.connection_keys import CALLS_MOST, PARKED_MOST
from trayapp.gateway.scopes.sharing import PARKED_S, PROVE_S, QUIET_S, TRUSTED, WORKS_S
from trayapp.model.config import Config, Profile, ServerConfig, Settings, ToolSwitch
from trayapp.wire.capabilities import EVERYTHING
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
    """Return a client of 2025-11-25 with the given capabilities, or with all of ABLE."""
    client = made.client()
    able = ABLE if capabilities is None else capabilities
    info = {"name": name, "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": able, "clientInfo": info}
    await client.result("initialize", params, "init")
    client.tell("notifications/initialized")
    return client


def enveloped(params: dict[str, Any], capabilities: dict[str, Any] = ABLE) -> dict[str, Any]:
    """Return the params of a request of 2026-07-28."""
    return {**params, "_meta": {**ENVELOPE, META + "clientCapabilities": capabilities}}


def tool_call(name: str, **arguments: Any) -> dict[str, Any]:
    """Return the params of a tools/call."""
    return {"name": name, "arguments": arguments}


async def question(client: Client, method: str) -> dict[str, Any]:
    """Wait until the client gets a request of that method, and return the request."""
    with anyio.fail_after(10):
        while True:
            for message in client.heard:
                if message.get("method") == method and "id" in message:
                    client.heard.remove(message)
                    return message
            await settle()


def resumed(call: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """Return the params that continue a call with an answer to its only question."""
    answers: dict[str, Any] = {key: {"roots": []} for key in asked["inputRequests"]}
    return enveloped({**call, "inputResponses": answers, "requestState": asked["requestState"]})


def said(answer: dict[str, Any]) -> Any:
    """Return the client's answer, as the tool `ask` received it."""
    return json.loads(answer["result"]["content"][0]["text"])


def asking(made: House, name: str, question: dict[str, Any], state: str | None = "theirs") -> None:
    """Make the fake server use 2026-07-28 and send `question` before it answers a call."""

    async def answer(params: dict[str, Any]) -> dict[str, Any]:
        if "inputResponses" not in params:
            more = {} if state is None else {"requestState": state}
            return {"resultType": "input_required", "inputRequests": {"k": question}, **more}
        text = json.dumps({"got": params["inputResponses"]["k"], "state": params.get("requestState")})
        return {"resultType": "complete", "content": [{"type": "text", "text": text}]}

    made.net[name].modern = True
    made.net[name].versions = ()
    made.net[name].replies["tools/call"] = answer


# -- older servers: a question is a request --------------------------------------------------------------------------


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
        again = resumed(call, result)
        assert said(await two.ask("tools/call", again, 1)) == {"roots": []}


@pytest.mark.requirement("bridge-older-newer")
@pytest.mark.parametrize("changed", ["arguments", "client"])
async def test_a_request_state_is_good_for_its_own_arguments_and_client_alone(tmp_path: Path, changed: str) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        one = made.client(lasting=False)
        call = tool_call("a_ask", method="roots/list")
        result = await one.result("tools/call", enveloped(call), 1)
        answers: dict[str, Any] = {"inputResponses": {next(iter(result["inputRequests"])): {"roots": []}}}
        again = enveloped({**call, **answers, "requestState": result["requestState"]})
        other = {
            "arguments": {**again, "arguments": {**call["arguments"], "more": 1}},
            "client": {**again, "_meta": {**again["_meta"], META + "clientInfo": {"name": "another", "version": "1"}}},
        }[changed]
        error = await made.client(lasting=False).error("tools/call", other, 1)
        assert (error["code"], error["data"]) == (INVALID_PARAMS, {"reason": "invalid_request_state"})
        assert said(await made.client(lasting=False).ask("tools/call", again, 1)) == {"roots": []}


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
    """An older server's question does not name its call. A client that was already asked may never return."""
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
            connection = made.gateway.services.pool.find("a")
            channel.answer_now(next(iter(channel.open_numbers())), {"content": []})
            await settle()
            again = resumed(tool_call("a_ask"), first)
            last = await client.result("tools/call", again, 2)
        assert last["content"] == []
        assert "has ended" in failures[0].message
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
        again = resumed(call, first)
        assert "result" in await client.ask("tools/call", again, 2)
        assert "error" in await client.ask("tools/call", again, 3)


async def test_a_session_that_cannot_see_the_server_carries_on_no_call_of_it(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"), server("b"))
        asker, stranger = made.client(), made.client(servers="b")
        call = tool_call("a_ask", method="roots/list")
        first = await asker.result("tools/call", enveloped(call), 1)
        again = resumed(call, first)
        assert (await stranger.error("tools/call", again, 2))["code"] == INVALID_PARAMS
        assert "result" in await asker.ask("tools/call", again, 3)


async def test_a_newer_client_that_went_away_ends_its_parked_call(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = made.client()
        await client.result("tools/call", enveloped(tool_call("a_ask", method="roots/list")), 1)
        client.end()
        await made.net["a"].heard_of("notifications/cancelled")
        connection = made.gateway.services.pool.find("a")
        while connection.in_flight:
            await settle()


async def test_a_question_goes_on_to_another_call_once_the_client_cancels_the_one_it_was_sent_with(
    tmp_path: Path,
) -> None:
    """The cancellation and the question cross, so the client ignores the question."""
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = made.client()
        call = tool_call("a_ask", method="roots/list")
        client.ask_only(1, "tools/call", enveloped(tool_call("a_hold", key="k")))
        await made.net["a"].heard_of("held")
        client.ask_only(2, "tools/call", enveloped(call))
        assert (await client.answer(1))["result"]["resultType"] == "input_required"
        client.tell("notifications/cancelled", {"requestId": 1})
        asked = (await client.answer(2))["result"]
        again = resumed(call, asked)
        assert said(await client.ask("tools/call", again, 3)) == {"roots": []}
        await made.net["a"].heard_of("notifications/cancelled")


async def test_a_server_that_dies_while_the_client_thinks_is_the_answer_when_it_comes_back(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = made.client()
        call = tool_call("a_ask", method="roots/list")
        first = await client.result("tools/call", enveloped(call), 1)
        made.net["a"].die()
        await settle()
        again = resumed(call, first)
        assert "Lost the connection to a during the call" in (await client.error("tools/call", again, 2))["message"]


# -- newer servers: a question is a result ---------------------------------------------------------------------------


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


# -- which client is asked -------------------------------------------------------------------------------------------


async def asks(made: House, method: str = "roots/list") -> Any:
    """Send a request from the server `a` that belongs to no call. Return its result or its error."""
    channel = made.net["a"].channel
    assert channel is not None
    try:
        return await channel.ask(method, {})
    except RpcError as error:
        return error


def asked_of(client: Client) -> list[str]:
    """Return the methods of all requests that a client has received."""
    return [m["method"] for m in client.heard if "id" in m and "method" in m]


async def holding(made: House, client: Client, number: int = 1) -> None:
    """Start a call of `a` and let time pass until other sessions' calls no longer wait for it."""
    heard = made.net["a"].methods().count("held")
    client.ask_only(number, "tools/call", tool_call("a_hold", key=f"{id(client)}-{number}"))
    await made.net["a"].heard_of("held", heard + 1)
    await made.clock.pass_(WORKS_S)


async def known_to_hold(made: House) -> None:
    """Complete a call of `a_hold` without a question. From then on, sessions share the connection during such calls."""
    client = await older(made, name="first")
    client.ask_only(1, "tools/call", tool_call("a_hold", key="first"))
    await made.net["a"].heard_of("held")
    await client.call("a_release", 2, key="first")
    await client.answer(1)
    client.end()


async def give_roots(client: Client, number: int = 1) -> None:
    """Answer the client's question and check that its call returns the answer."""
    asked = await question(client, "roots/list")
    client.send({"id": asked["id"], "result": {"roots": [id(client)]}})
    assert said(await client.answer(number)) == {"roots": [id(client)]}


async def ask_itself(client: Client, number: int = 1) -> None:
    """Call `a_ask` as a client, answer its question and check the result."""
    client.ask_only(number, "tools/call", tool_call("a_ask", method="roots/list"))
    await give_roots(client, number)


@pytest.mark.requirement("bridge-who")
async def test_a_tool_that_may_ask_runs_for_one_session_and_another_gets_a_process_of_its_own(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        one, two = await older(made, name="one"), await older(made, name="two")
        await holding(made, one)
        two.ask_only(1, "tools/call", tool_call("a_ask", method="roots/list"))
        await settle()
        assert made.net["a"].methods().count("tools/call") == 1  # the call waits for a moment first
        await made.clock.pass_(PROVE_S)
        await give_roots(two)
        assert asked_of(one) == []
        assert made.net["a#1"].opened == 1


@pytest.mark.requirement("bridge-who")
async def test_a_session_that_has_used_a_server_stays_with_what_it_left_there(tmp_path: Path) -> None:
    """The second session waits briefly and keeps the shared process. An ambiguous request reaches neither session."""
    async with house(tmp_path) as made:
        await made.known(server("a"))
        one, two = await older(made, name="one"), await older(made, name="two")
        await two.call("a_echo")
        one.call_only("a_hold", 1, key="one")
        await made.net["a"].heard_of("held")
        two.call_only("a_hold", 5, key="two")
        await made.clock.pass_(WORKS_S - QUIET_S)
        assert made.net["a"].methods().count("held") == 1
        await made.clock.pass_(QUIET_S)
        await made.net["a"].heard_of("held", 2)
        assert "a#1" not in {key for key, fake in made.net.servers.items() if fake.opened}
        two.ask_only(6, "tools/call", tool_call("a_ask", method="roots/list"))
        await made.clock.pass_(WORKS_S + HELD_S)
        assert asked_of(one) == asked_of(two) == []


@pytest.mark.requirement("bridge-who")
async def test_each_session_that_can_answer_has_its_own_stream_of_a_legacy_sse_server(tmp_path: Path) -> None:
    """Each session has its stream from its first call on, so that both sessions can be asked at the same time."""
    async with house(tmp_path) as made:
        await made.known(ServerConfig("a", url="http://127.0.0.1:9/sse", type="sse"))
        one, two, weak = await older(made, name="one"), await older(made, name="two"), await older(made, {})
        for client in (one, two, weak):
            await client.call("a_echo")
        for client in (one, two):
            client.ask_only(2, "tools/call", tool_call("a_ask", method="roots/list"))
        for client in (one, two):
            await give_roots(client, 2)
        assert [made.net[key].methods().count("tools/call") for key in ("a", "a#1", "a#2")] == [1, 2, 2]


@pytest.mark.requirement("bridge-who")
@pytest.mark.parametrize("began", ["just now", "a while ago", "and asks"])
async def test_a_tool_that_was_quiet_so_far_starts_for_one_session_after_the_other(tmp_path: Path, began: str) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        await known_to_hold(made)
        one, two = await older(made, name="one"), await older(made, name="two")

        def held() -> int:
            return made.net["a"].methods().count("held")

        one.ask_only(1, "tools/call", tool_call("a_hold", key="one"))
        await made.net["a"].heard_of("held", 2)
        if began == "a while ago":
            await made.clock.pass_(WORKS_S)
        two.ask_only(1, "tools/call", tool_call("a_hold", key="two"))
        # This call does not wait, because it belongs to the same session.
        one.ask_only(2, "tools/call", tool_call("a_hold", key="another"))
        await made.net["a"].heard_of("held", 3)
        await settle()
        assert held() == (4 if began == "a while ago" else 3)
        if began == "and asks":
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(asks, made)
                asked = await question(one, "roots/list")
                one.send({"id": asked["id"], "result": {"roots": []}})
            await made.net["a#1"].heard_of("held")
            assert (held(), asked_of(two)) == (3, [])
        elif began == "just now":
            await made.net["a"].let_go("one")
            await settle()
            assert held() == 3  # the other call of the first session is still in progress
            await made.clock.pass_(QUIET_S)
            assert held() == 3  # that call has taken longer than any earlier call of the tool
            await made.clock.pass_(WORKS_S)
            assert held() == 4
            assert made.net["a#1"].opened == 0


@pytest.mark.requirement("bridge-who")
async def test_a_tool_that_is_known_to_take_long_without_asking_holds_up_other_sessions_for_a_quarter_of_a_second(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        one, two = await older(made, name="one"), await older(made, name="two")
        one.ask_only(1, "tools/call", tool_call("a_hold", key="long"))
        await made.net["a"].heard_of("held")
        await made.clock.pass_(PROVE_S)
        await made.net["a"].let_go("long")
        await one.answer(1)
        for number, client in enumerate((one, two)):
            client.ask_only(2, "tools/call", tool_call("a_hold", key=str(number)))
            await settle()
        assert made.net["a"].methods().count("held") == 2
        await made.clock.pass_(QUIET_S)
        assert made.net["a"].methods().count("held") == 3


@pytest.mark.requirement("bridge-who")
async def test_a_quiet_tool_of_another_session_follows_as_soon_as_the_call_before_it_has_ended(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        await known_to_hold(made)
        clients = [await older(made, name=str(number)) for number in range(3)]
        for number, client in enumerate(clients):
            client.ask_only(1, "tools/call", tool_call("a_hold", key=str(number)))
            client.ask_only(2, "tools/call", tool_call("a_hold", key=f"{number} too"))
        for number in range(3):
            await made.net["a"].heard_of("held", 1 + 2 * number + 2)
            await settle()
            assert made.net["a"].methods().count("held") == 1 + 2 * number + 2
            for key in (str(number), f"{number} too"):
                await made.net["a"].let_go(key)
        for client in clients:
            assert [set(await client.answer(number)) for number in (1, 2)] == [{"jsonrpc", "id", "result"}] * 2


@pytest.mark.requirement("bridge-who")
async def test_a_slow_start_of_a_server_is_no_wait_for_another_sessions_call(tmp_path: Path) -> None:
    """Single requests stay on the shared connection, so they wait for the call that runs there."""
    async with house(tmp_path) as made:
        made.cache(server("a"), offer("hold"))
        gate = made.net["a"].hold_start()
        made.apply(server("a"))
        made.start()
        clients = [await older(made, name="lasting"), made.client(lasting=False), made.client(lasting=False)]
        for number, client in enumerate(clients):
            call = tool_call("a_hold", key=str(number))
            client.ask_only(1, "tools/call", enveloped(call) if number else call)
        await settle()
        await made.clock.pass_(WORKS_S)
        gate.set()
        await made.net["a"].heard_of("held")
        await settle()
        assert made.net["a"].methods().count("held") == 1


@pytest.mark.requirement("bridge-who")
async def test_sessions_that_have_waited_for_a_new_tools_first_answer_call_it_one_after_the_other(
    tmp_path: Path,
) -> None:
    """After a new tool's first answer, its next call is the most likely to ask."""
    async with house(tmp_path) as made:
        await made.known(server("a"))
        one, two, three = [await older(made, name=str(number)) for number in range(3)]
        for client in (two, three):
            await client.call("a_echo")
        one.ask_only(1, "tools/call", tool_call("a_hold", key="one"))
        await made.net["a"].heard_of("held")
        for client in (two, three):
            client.ask_only(1, "tools/call", tool_call("a_hold", key=str(id(client))))
        await settle()
        await made.clock.pass_(PROVE_S)
        await made.net["a"].let_go("one")
        await made.net["a"].heard_of("held", 2)
        await settle()
        assert made.net["a"].methods().count("held") == 2
        await made.clock.pass_(QUIET_S)
        await made.net["a"].heard_of("held", 3)


@pytest.mark.requirement("bridge-who")
async def test_a_tool_that_has_been_quiet_often_enough_starts_for_all_sessions_at_once(tmp_path: Path) -> None:
    """A call shows that the tool is quiet only if it could overlap with a call of another session."""
    async with house(tmp_path) as made:
        await made.known(server("a"))
        await known_to_hold(made)
        one, two = await older(made, name="one"), await older(made, name="two")
        for number in range(TRUSTED):
            await one.call("a_echo", number)
        for trusted in (False, True):
            one.ask_only("long", "tools/call", tool_call("a_hold", key=f"long {trusted}"))
            await made.net["a"].heard_of("held", 2 + trusted)
            two.call_only("a_echo", "now")
            await settle()
            assert bool(two.answers("now")) == trusted
            await made.clock.pass_(WORKS_S)
            await two.answer("now")
            for number in range(0 if trusted else TRUSTED):
                await one.call("a_echo", number)
            await made.net["a"].let_go(f"long {trusted}")
            await one.answer("long")
            two.heard.clear()


@pytest.mark.requirement("bridge-who")
async def test_a_server_that_has_asked_has_a_process_for_each_session_that_can_answer(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        one, two, weak = await older(made, name="one"), await older(made, name="two"), await older(made, {})
        for number in range(2):
            for client in (one, two):
                await ask_itself(client, number)
        assert (await made.net["a#1"].heard_of("initialize"))["capabilities"] == ABLE
        assert made.net["a#1"].opened == made.net["a#2"].opened == 1
        await weak.call("a_echo")
        assert (await made.net["a#3"].heard_of("initialize"))["capabilities"] == {}
        (row,) = snapshot_of(made.gateway).servers
        assert (row.name, row.state, row.connections) == ("a", "connected", 4)
        made.gateway.servers.take(Config())
        while any(made.net[key].open_now for key in ("a", "a#1", "a#2", "a#3")):
            await settle()


@pytest.mark.requirement("bridge-who")
async def test_that_a_server_asks_is_remembered_by_the_next_gateway(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        await ask_itself(await older(made))
        await made.gateway.services.writer.written()
    async with house(tmp_path) as made:
        made.apply(server("a"))
        made.start()
        one, two = await older(made), await older(made)
        for client in (one, two):
            client.ask_only(1, "tools/call", tool_call("a_hold", key="k"))
        await made.net["a#1"].heard_of("held")
        await made.net["a#2"].heard_of("held")


@pytest.mark.requirement("bridge-who")
async def test_a_question_that_may_be_of_several_sessions_waits_until_one_is_left(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        await known_to_hold(made)
        one, two = await older(made, name="one"), await older(made, name="two")
        await holding(made, one)
        two.ask_only(1, "tools/call", tool_call("a_ask", method="roots/list"))
        await made.net["a"].heard_of("tools/call", 4)
        await settle()
        assert asked_of(one) == asked_of(two) == []
        await made.net["a"].let_go(f"{id(one)}-1")
        await give_roots(two)
        assert asked_of(one) == []


@pytest.mark.requirement("bridge-who")
async def test_a_question_that_stays_in_doubt_is_refused_and_the_log_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        await known_to_hold(made)
        one, two = await older(made, name="one"), await older(made, name="two")
        await holding(made, one)
        for number in (1, 2):
            two.ask_only(number, "tools/call", tool_call("a_ask", method="roots/list"))
        await made.net["a"].heard_of("tools/call", 5)
        await made.clock.pass_(HELD_S)
        for number in (1, 2):
            assert "several sessions" in (await two.answer(number))["error"]["message"]
        assert asked_of(one) == asked_of(two) == []
        assert caplog.text.count("several sessions") == 1


def server_that_works(made: House, gate: anyio.Event, annotations: dict[str, Any]) -> None:
    """Add a tool `work` to all processes of `a`. Without arguments, it waits for `gate` and then asks."""
    made.net["a"].tools.append({**tool("work"), "annotations": annotations})
    for key in ("a", "a#1", "a#2", "a#3"):

        async def call(params: dict[str, Any], key: str = key) -> dict[str, Any]:
            if params["arguments"]:
                return {"content": []}
            await gate.wait()
            channel = made.net[key].channel
            assert channel is not None
            return {"content": [{"type": "text", "text": json.dumps(await channel.ask("roots/list", {}))}]}

        made.net[key].replies["tools/call"] = call


@pytest.mark.requirement("bridge-who")
@pytest.mark.parametrize("annotations", [{"readOnlyHint": True}, {"idempotentHint": True}, {}, {"readOnlyHint": 1}])
async def test_calls_that_may_be_executed_twice_are_sent_again_where_their_questions_are_certain(
    tmp_path: Path, annotations: dict[str, Any]
) -> None:
    """Other calls are not repeated. If two sessions' calls ask, one question is refused, so the other is certain."""
    async with house(tmp_path) as made:
        gate = anyio.Event()
        server_that_works(made, gate, annotations)
        await made.known(server("a"))
        clients = [await older(made, name=str(number)) for number in range(2)]
        for client in clients:
            await client.call("a_work", quiet=True)
        for client in clients:
            client.ask_only(2, "tools/call", tool_call("a_work"))
            await made.clock.pass_(WORKS_S)
        assert made.net["a"].methods().count("tools/call") == 4
        gate.set()
        await settle()
        if any(hint is True for hint in annotations.values()):
            for client in clients:
                await give_roots(client, 2)
            assert [made.net[key].methods().count("tools/call") for key in ("a#1", "a#2")] == [1, 1]
            assert made.net["a"].methods().count("notifications/cancelled") == 2
            return
        assert [asked_of(client) for client in clients] == [[], []]
        await made.clock.pass_(STUCK_S)
        await made.clock.pass_(UNSTUCK_S)
        assert made.net["a"].methods().count("tools/call") == 4
        assert [made.net[key].opened for key in ("a#1", "a#2")] == [0, 0]
        (left,) = [client for client in clients if not client.answers(2)]
        await give_roots(left, 2)
        (other,) = [client for client in clients if client is not left]
        assert "several sessions" in (await other.answer(2))["error"]["message"]


@pytest.mark.requirement("bridge-who")
async def test_where_the_transport_says_whose_question_it_is_that_client_is_asked(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["a"].says_whose = True
        await made.known(server("a"))
        await known_to_hold(made)
        one, two = await older(made, name="one"), await older(made, name="two")
        await holding(made, one)
        two.ask_only(1, "tools/call", tool_call("a_ask", method="roots/list"))
        await give_roots(two)
        assert asked_of(one) == []


@pytest.mark.requirement("bridge-who")
async def test_a_question_of_a_call_that_is_over_reaches_nobody(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["a"].says_whose = True
        await made.known(server("a"))
        one, two = await older(made, name="one"), await older(made, name="two")
        await holding(made, one)
        channel = made.net["a"].channel
        assert channel is not None
        number = channel.open_numbers()[-1]
        call = channel.call_of(number)
        one.tell("notifications/cancelled", {"requestId": 1})
        await made.net["a"].heard_of("notifications/cancelled")
        await holding(made, two)
        with pytest.raises(RpcError, match="has ended"):
            await made.gateway.session_dependencies.server_requests.asked(
                made.gateway.services.pool.find("a"), "roots/list", {}, call
            )
        assert asked_of(one) == asked_of(two) == []


@pytest.mark.requirement("bridge-who")
async def test_another_client_is_not_asked_in_the_place_of_one_that_cannot_answer(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        able = await older(made, name="able")
        unable = await older(made, {}, "unable")
        answer = await unable.call("a_ask", method="sampling/createMessage", params={"messages": []})
        assert answer["error"]["code"] == METHOD_NOT_FOUND
        assert asked_of(able) == asked_of(unable) == []


@pytest.mark.requirement("bridge-who")
async def test_several_calls_of_one_session_are_no_doubt(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client, other = await older(made), await older(made)
        await holding(made, client)
        client.ask_only(2, "tools/call", tool_call("a_ask", method="roots/list"))
        await give_roots(client, 2)
        assert asked_of(other) == []


@pytest.mark.requirement("bridge-who")
@pytest.mark.parametrize("method", ["roots/list", "sampling/createMessage", "elicitation/create", "vendor/unknown"])
async def test_a_question_outside_of_a_call_reaches_nobody(tmp_path: Path, method: str) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a", lifecycle="eager"))
        client = await older(made)
        await client.call("a_echo")
        refused = await asks(made, method)
        assert isinstance(refused, RpcError)
        assert "no client has a call in progress" in refused.message
        assert asked_of(client) == []


@pytest.mark.requirement("bridge-who")
@pytest.mark.parametrize("sessions", [1, 2])
async def test_while_a_server_starts_for_calls_of_one_session_that_one_is_asked(tmp_path: Path, sessions: int) -> None:
    async with house(tmp_path) as made:
        first, gate = await made.starting()
        first.end()
        idle = await older(made, name="idle")
        clients = [await older(made) for _ in range(sessions)]
        got: list[Any] = []

        async def initialize(params: dict[str, Any]) -> dict[str, Any]:
            got.append(await asks(made))
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}

        made.net["a"].replies["initialize"] = initialize
        for client in clients:
            client.call_only("a_echo", 1)
        await settle()
        gate.set()
        if sessions == 1:
            asked = await question(clients[0], "roots/list")
            clients[0].send({"id": asked["id"], "result": {"roots": []}})
        for client in clients:
            assert "result" in await client.answer(1)
        assert got == [{"roots": []}] if sessions == 1 else isinstance(got[0], RpcError)
        assert [asked_of(client) for client in (idle, *clients)] == [[]] * (sessions + 1)


@pytest.mark.requirement("bridge-who")
async def test_the_client_whose_call_meets_a_server_for_the_first_time_is_asked(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        gate = made.net["a"].hold_start()
        got: list[Any] = []

        async def tools(params: dict[str, Any]) -> dict[str, Any]:
            if made.net["a"].methods().count("tools/list") == 1:
                got.append(await asks(made))
            return {"tools": [tool("echo")]}

        made.net["a"].replies["tools/list"] = tools
        made.apply(server("a"))
        made.start()
        idle, client = await older(made, name="idle"), await older(made)
        client.call_only("a_echo", 1)
        await settle()
        gate.set()
        asked = await question(client, "roots/list")
        client.send({"id": asked["id"], "result": {"roots": []}})
        assert "result" in await client.answer(1)
        assert got == [{"roots": []}]
        assert asked_of(idle) == []


@pytest.mark.requirement("bridge-who")
@pytest.mark.parametrize("way", ["cancelled", "gone"])
@pytest.mark.parametrize("then", ["the server has read the cancel", "time passes"])
async def test_what_is_asked_after_a_call_was_given_up_may_belong_to_that(tmp_path: Path, way: str, then: str) -> None:
    """The server may have asked before it read the cancellation. Until it has, no other session gets the question."""
    async with house(tmp_path) as made:
        await made.known(server("a"))
        await known_to_hold(made)
        one, two = await older(made, name="one"), await older(made, name="two")
        read = made.net["a"].hold("ping", {})
        for number in (1, 2):
            await holding(made, one, number)
        await holding(made, two)
        if way == "cancelled":
            for number in (1, 2):
                one.tell("notifications/cancelled", {"requestId": number})
        else:
            one.end()
        await made.net["a"].heard_of("notifications/cancelled", 2)
        refused = await asks(made)
        assert isinstance(refused, RpcError)
        assert "another session has just cancelled a call" in refused.message
        if then == "time passes":
            await made.clock.pass_(STOPS_WITHIN_S)
        else:
            read.set()
            await made.net["a"].heard_of("ping", 2)  # the first ping was sent before the second cancellation
            await settle()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asks, made)
            asked = await question(two, "roots/list")
            two.send({"id": asked["id"], "result": {"roots": []}})
        assert asked_of(one) == []


@pytest.mark.requirement("bridge-who")
async def test_what_is_asked_after_the_only_call_was_given_up_reaches_nobody(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await older(made)
        made.net["a"].hold("ping", {})
        await holding(made, client)
        client.tell("notifications/cancelled", {"requestId": 1})
        await made.net["a"].heard_of("notifications/cancelled")
        refused = await asks(made)
        assert isinstance(refused, RpcError)
        assert "has ended" in refused.message


@pytest.mark.requirement("bridge-who")
async def test_a_server_that_ignores_the_cancel_of_a_single_request_does_not_ask_the_client_of_the_next(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        await ask_itself(await older(made))
        of_requests = made.net["a#call-1"]
        gate = of_requests.hold("tools/call", {"content": []})
        one, two = made.client(lasting=False), made.client(lasting=False)
        call = enveloped(tool_call("a_ask", method="roots/list"))
        one.ask_only(1, "tools/call", call)
        await of_requests.heard_of("tools/call")
        its_own = of_requests.channel
        assert its_own is not None
        one.end()
        await settle()
        del of_requests.replies["tools/call"]
        asked = await two.result("tools/call", call, 1)
        assert (of_requests.opened, of_requests.open_now, its_own.gone.is_set()) == (2, 1, True)
        again = resumed(call, asked)
        assert said(await made.client(lasting=False).ask("tools/call", again, 1)) == {"roots": []}
        gate.set()


@pytest.mark.requirement("bridge-who")
@pytest.mark.parametrize(
    ("entry", "at_once"), [(server("a"), CALLS_MOST[False]), (ServerConfig("a", url="http://127.0.0.1:9/mcp"), 10)]
)
async def test_of_single_requests_that_make_a_server_ask_more_run_at_once_at_an_address_than_of_a_program(
    tmp_path: Path, entry: ServerConfig, at_once: int
) -> None:
    """A connection to a URL needs no process."""
    async with house(tmp_path) as made:
        await made.known(entry)
        await ask_itself(await older(made))
        own = [made.net[f"a#call-{number}"] for number in range(1, 11)]
        for fake in own:
            fake.hold("tools/call", {"content": []})
        for _ in own:
            client = made.client(lasting=False)
            client.ask_only(1, "tools/call", enveloped(tool_call("a_ask", method="roots/list")))
        await own[at_once - 1].heard_of("tools/call")
        await settle()
        assert sum(fake.opened for fake in own) == at_once


@pytest.mark.requirement("bridge-who")
async def test_clients_that_never_come_back_with_their_answers_keep_no_other_single_request_waiting(
    tmp_path: Path,
) -> None:
    """The request whose client was asked first is given up."""
    async with house(tmp_path) as made:
        await made.known(server("a"))
        await ask_itself(await older(made))
        call = enveloped(tool_call("a_ask", method="roots/list"))

        async def asked() -> tuple[Client, dict[str, Any]]:
            client = made.client(lasting=False)
            result = await client.result("tools/call", call, 1)
            client.end()
            return client, result

        gone = []
        for _ in range(PARKED_MOST[False]):
            gone.append((await asked())[1])
            await made.clock.pass_(1.0)
        late = made.client(lasting=False)
        late.ask_only(1, "tools/call", call)
        await settle()
        await made.clock.pass_(PARKED_S - PARKED_MOST[False] - PROVE_S)
        assert late.answers(1) == []
        await made.clock.pass_(2 * PROVE_S)
        assert (await late.answer(1))["result"]["resultType"] == "input_required"
        for place, result in enumerate(gone):
            again = resumed(call, result)
            answer = await made.client(lasting=False).ask("tools/call", again, 1)
            assert ("error" in answer) is (place == 0)


@pytest.mark.requirement("bridge-who")
async def test_a_call_of_the_command_line_is_no_sessions(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await older(made)
        await holding(made, client)
        control = made.control()
        control.ask_only(1, "call", {"tool": "a_ask", "args": {"method": "roots/list"}})
        await made.net["a"].heard_of("tools/call", 2)
        await made.clock.pass_(HELD_S)
        answer = await control.answer(1)
        assert "several sessions" in json.dumps(answer)
        assert asked_of(client) == []


@pytest.mark.requirement("bridge-who")
async def test_while_one_session_is_asked_another_has_a_process_of_its_own(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        newer, two = made.client(), await older(made)
        first = await newer.result("tools/call", enveloped(tool_call("a_ask", method="roots/list")), 1)
        await ask_itself(two)
        again = resumed(tool_call("a_ask"), first)
        assert said(await newer.ask("tools/call", again, 2)) == {"roots": []}
        assert asked_of(two) == []


@pytest.mark.requirement("filters-bind-servers-words")
async def test_a_server_cannot_ask_a_session_whose_filter_leaves_it_out(tmp_path: Path) -> None:
    """The session is asked neither while it calls another server, nor during another session's call."""
    async with house(tmp_path) as made:
        await made.known(server("a", lifecycle="eager"), server("good"))
        filtered = made.client(servers="good")
        params = {"protocolVersion": "2025-11-25", "capabilities": ABLE, "clientInfo": {"name": "f", "version": "1"}}
        await filtered.result("initialize", params, "init")
        filtered.tell("notifications/initialized")
        filtered.call_only("good_hold", 1, key="k")
        await made.net["good"].heard_of("held")
        for method in ("elicitation/create", "sampling/createMessage", "roots/list", "vendor/unknown"):
            assert isinstance(await asks(made, method), RpcError)
        unable = await older(made, {}, "unable")
        answer = await unable.call("a_ask", method="elicitation/create", params={"message": "password?"})
        assert answer["error"]["code"] == METHOD_NOT_FOUND
        assert asked_of(filtered) == []


@pytest.mark.requirement("filters-bind-servers-words")
async def test_a_session_hears_nothing_of_a_server_that_its_filter_leaves_out(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        profiles = {"quiet": Profile(servers=("b",))}
        await made.known(server("a", lifecycle="eager"), server("b"), settings=Settings(profiles=profiles))
        clients = [await made.ready(servers="b"), await made.ready(profile="quiet"), await made.ready()]
        for client in clients:
            await client.call("a_echo" if client is clients[2] else "b_echo")
            await client.result("logging/setLevel", {"level": "debug"})
        channel = made.net["a"].channel
        assert channel is not None
        for method in ("notifications/message", "notifications/vendor"):
            channel.tell(0, None, method, {"level": "error", "data": "x"})
        assert [len(client.told("notifications/message")) for client in clients] == [0, 0, 1]
        assert [len(client.told("notifications/vendor")) for client in clients] == [0, 0, 1]
        for client in clients[:2]:
            client.tell("notifications/roots/list_changed")
        await settle()
        assert "notifications/roots/list_changed" not in made.net["a"].methods()


@pytest.mark.requirement("many-sessions")
async def test_a_log_message_that_may_be_of_several_sessions_calls_reaches_none_of_them(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        await known_to_hold(made)
        clients = [await older(made, name="one"), await older(made, name="two")]
        for client in clients:
            await holding(made, client)
        channel = made.net["a"].channel
        assert channel is not None
        channel.tell(0, None, "notifications/message", {"level": "error", "data": "of one of them"})
        clients[0].tell("notifications/cancelled", {"requestId": 1})
        await settle()
        channel.tell(0, None, "notifications/message", {"level": "error", "data": "of two"})
        assert [[m["data"] for m in client.told("notifications/message")] for client in clients] == [[], ["of two"]]


@pytest.mark.requirement("many-sessions")
@pytest.mark.parametrize(("url", "heard"), [("https://a.test/mcp", ["own"]), (None, ["shared", "own"])])
async def test_a_server_at_an_address_tells_a_session_only_over_the_connection_that_it_uses(
    tmp_path: Path, url: str | None, heard: list[str]
) -> None:
    """A remote server may notify every connection, so only the session's own counts. With local processes, all do."""
    async with house(tmp_path) as made:
        await made.known(ServerConfig("a", url=url) if url else server("a"))
        one, two = await older(made, name="one"), await older(made, name="two")
        await one.call("a_echo")
        await ask_itself(two)  # from now on, each session has its own connection
        await one.call("a_echo", 2)
        for key, text in (("a", "shared"), ("a#1", "own")):
            channel = made.net[key].channel
            assert channel is not None
            channel.tell(0, None, "notifications/message", {"level": "error", "data": text})
        assert [message["data"] for message in one.told("notifications/message")] == heard


@pytest.mark.requirement("filters-bind-servers-words")
async def test_a_server_that_is_switched_off_asks_tells_and_logs_nothing_more(tmp_path: Path) -> None:
    """A call to that server gets one error, the question to the client is withdrawn, and late messages are dropped."""
    async with house(tmp_path) as made:
        await made.known(server("a"), server("b"))
        client = await older(made)
        await client.result("logging/setLevel", {"level": "debug"})
        client.ask_only(5, "tools/call", tool_call("a_ask", method="elicitation/create", params={"message": "?"}))
        asked = await question(client, "elicitation/create")
        channel = made.net["a"].channel
        assert channel is not None
        made.apply(server("a", disabled=True), server("b"))
        assert "error" in await client.answer(5)
        await made.told()
        assert client.told("notifications/cancelled") == [{"requestId": asked["id"], "reason": "no longer wanted"}]
        client.heard.clear()
        for method in ("notifications/message", "notifications/vendor", "notifications/tools/list_changed"):
            channel.tell(0, None, method, {"level": "error", "data": "x"})
        await made.told()
        assert client.heard == []
        assert {name.partition("_")[0] for name in await client.names()} == {"b"}
        assert "error" in await client.call("a_echo")


@pytest.mark.requirement("filters-bind-servers-words")
async def test_a_tool_that_is_switched_off_asks_nothing_more_also_in_a_call_that_is_under_way(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await older(made)
        client.call_only("a_hold", 1, key="k")
        await made.net["a"].heard_of("held")
        made.apply(server("a", tools={"hold": ToolSwitch(enabled=False)}))
        assert isinstance(await asks(made, "elicitation/create"), RpcError)
        assert asked_of(client) == []
        assert "a_hold" not in await client.names()
        assert "error" in await client.call("a_hold", 2)


@pytest.mark.requirement("filters-bind-servers-words")
@pytest.mark.parametrize("says_whose", [False, True])
@pytest.mark.parametrize("off", ["server", "tool"])
async def test_a_call_under_way_hears_nothing_more_once_a_filter_leaves_its_server_or_tool_out(
    tmp_path: Path, off: str, says_whose: bool
) -> None:
    """No other session gets the messages of that call."""
    async with house(tmp_path) as made:
        made.net["a"].says_whose = says_whose
        entries = [server("a", lifecycle="eager"), server("b")]
        await made.known(*entries, settings=Settings(profiles={"some": Profile(servers=("a", "b"))}))
        client, other = await made.ready(profile="some"), await made.ready()
        for one in (client, other):
            await one.call("a_echo")
            await one.result("logging/setLevel", {"level": "debug"})
        client.call_only("a_hold", 1, key="k")
        await made.net["a"].heard_of("held")
        channel = made.net["a"].channel
        assert channel is not None
        number = channel.open_numbers()[-1]
        said = {"level": "error", "data": "x"}
        channel.tell(number, None, "notifications/message", said)
        assert client.told("notifications/message") == [said]
        servers = ("b",) if off == "server" else ("a", "b")
        if off == "tool":
            entries[0] = server("a", lifecycle="eager", tools={"hold": ToolSwitch(enabled=False)})
        made.apply(*entries, settings=Settings(profiles={"some": Profile(servers=servers)}))
        for method in ("notifications/message", "notifications/vendor"):
            channel.tell(number, None, method, said)
        assert [len(client.told(method)) for method in ("notifications/message", "notifications/vendor")] == [1, 0]
        assert [other.told(method) for method in ("notifications/message", "notifications/vendor")] == [[], []]


@pytest.mark.requirement("bridge-who")
async def test_what_the_transport_says_to_be_of_one_call_is_told_to_its_session_alone(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["a"].says_whose = True
        await made.known(server("a"))
        clients = [await made.ready(), await made.ready()]
        for client in clients:
            await client.result("logging/setLevel", {"level": "debug"})
            await holding(made, client)
        told = {"level": "error", "data": "x"}
        await clients[0].call("a_notify", 2, method="notifications/message", params=told)
        assert [client.told("notifications/message") for client in clients] == [[told], []]


# -- what servers learn about their clients --------------------------------------------------------------------------


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


async def test_a_server_that_is_connected_before_its_first_client_hears_all_that_a_client_may_be_asked(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a", lifecycle="eager"))
        assert (await made.net["a"].heard_of("initialize"))["capabilities"] == EVERYTHING
        await (await older(made, {"roots": {}})).call("a_echo", 1)
        assert made.net["a"].methods().count("initialize") == 1


async def test_a_client_that_can_do_more_than_a_server_in_use_was_told_gets_a_process_of_its_own(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        weak = await older(made, {"roots": {}})
        await weak.call("a_echo", 1)
        assert (await made.net["a"].heard_of("initialize", 2))["capabilities"] == {"roots": {}}
        abler = await older(made)
        await abler.call("a_echo", 1)
        assert (await made.net["a#1"].heard_of("initialize"))["capabilities"] == ABLE
        await weak.call("a_echo", 2)
        await (await older(made, {})).call("a_echo", 1)
        assert made.net["a"].methods().count("initialize") == 2


async def test_a_change_of_roots_is_told_to_the_servers_that_run(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"), server("idle"))
        client = await older(made)
        await client.call("a_echo")
        client.tell("notifications/roots/list_changed")
        await made.net["a"].heard_of("notifications/roots/list_changed")
        assert "notifications/roots/list_changed" not in made.net["idle"].methods()
