"""The resolution of tool names in a session: unknown, disabled and ambiguous names, and all spellings."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.fixtures.behaviour import tool
from tests.fixtures.clock import settle
from tests.fixtures.fake_transport import refused
from tests.gateway.world import House, house, offer, serve, server
from trayapp.gateway.scopes.view import FIRST_LIST_GRACE_S
from trayapp.model.config import ServerConfig, ToolSwitch
from trayapp.model.lifecycle import State
from trayapp.wire.messages import CONNECTION_CLOSED, INVALID_PARAMS

pytestmark = pytest.mark.anyio


async def nothing_known(made: House, *servers: ServerConfig) -> None:
    """Start the gateway with servers whose discovery has failed, as after a start without a network."""
    for entry in servers:
        made.net[entry.name].before = refused
    made.apply(*servers)
    made.start()
    await made.gateway.services.pool.settled()
    await made.clock.pass_(61)  # the backoff ends
    for entry in servers:
        made.net[entry.name].before = None
        made.net[entry.name].opened = 0


@pytest.mark.requirement("name-resolved")
async def test_a_name_with_the_prefix_of_an_unknown_server_asks_that_one_and_is_looked_up_again(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await nothing_known(made, server("searxng"), server("other"))
        made.net["searxng"].tools = [tool("web_search")]
        client = await made.ready()
        assert "result" in await client.call("searxng_web_search")
        assert (await made.net["searxng"].heard_of("tools/call"))["name"] == "web_search"
        assert (made.net["searxng"].opened, made.net["other"].opened) == (1, 0)
        assert made.state("searxng") is State.CONNECTED


async def test_the_longest_prefix_is_asked_first_and_nobody_further_once_it_is_found(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await nothing_known(made, server("a"), server("a-b"))
        made.net["a-b"].tools = [tool("x")]
        client = await made.ready()
        assert "result" in await client.call("a-b_x")
        assert (made.net["a-b"].opened, made.net["a"].opened) == (1, 0)


async def test_the_next_server_is_asked_when_the_likelier_one_has_no_such_tool_or_cannot_be_had(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await nothing_known(made, server("a"), server("a_b"), server("a_b_c"))
        made.net["a_b_c"].before = refused
        made.net["a_b"].tools = [tool("y")]
        made.net["a"].tools = [tool("b_c_x")]
        client = await made.ready()
        assert "result" in await client.call("a_b_c_x")
        assert (await made.net["a"].heard_of("tools/call"))["name"] == "b_c_x"
        assert [made.net[name].opened for name in ("a_b_c", "a_b", "a")] == [1, 1, 1]


async def test_when_nobody_has_it_the_failure_of_the_likeliest_server_is_the_answer(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await nothing_known(made, server("a"), server("a_b"))
        made.net["a_b"].before = refused
        client = await made.ready()
        error = (await client.call("a_b_x"))["error"]
        assert (error["code"], error["data"]["server"], error["data"]["code"]) == (
            CONNECTION_CLOSED,
            "a_b",
            "connect_failed",
        )


async def test_a_tool_that_nobody_has_gets_the_nearest_names_and_starts_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.cache(server("github"), offer("create_issue", "list_issues"))
        made.apply(server("github"))
        made.start()
        client = await made.ready()
        error = (await client.call("github_creat_issue"))["error"]
        assert (error["code"], error["data"]["code"]) == (INVALID_PARAMS, "tool_not_found")
        assert "github_create_issue" in error["message"]
        assert (await client.call("zzz"))["error"]["message"].startswith("No tool is named zzz")
        assert made.net["github"].opened == 0


@pytest.mark.requirement("call-disabled-refused", "merge-kept")
async def test_a_disabled_tool_is_in_no_list_and_refused_in_every_spelling_and_says_who_did_it(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as made:
        entry = server("a", tools={"rm": ToolSwitch(enabled=False)})
        made.cache(entry, offer("rm", "ls"))
        made.apply(entry)
        made.start()
        client = await made.ready()
        assert await client.names() == ["a_ls"]
        for name in ("a_rm", "rm", "mcp__a__rm", "a/rm", "A_RM"):
            error = (await client.call(name))["error"]
            assert (error["code"], error["data"]["code"]) == (INVALID_PARAMS, "tool_not_found")
            assert "The user disabled it" in error["message"]
        assert made.net["a"].opened == 0
        assert "result" in await client.call("a_ls")
        await made.gateway.services.pool.reconnect(made.gateway.services.pool.find("a"))
        assert (await client.call("a_rm"))["error"]["data"]["code"] == "tool_not_found"
        assert [heard["name"] for method, heard in made.net["a"].heard if method == "tools/call"] == ["ls"]


@pytest.mark.requirement("call-disabled-refused")
async def test_the_tools_of_a_disabled_server_are_refused_and_say_who_did_it(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        serve(made.net["a"], prompts=({"name": "p"},), resources=({"uri": "x://1"},))
        await made.known(server("a"))
        made.apply(server("a", disabled=True))
        client = await made.ready()
        assert await client.names() == []
        assert "The user disabled its server" in (await client.call("a_echo"))["error"]["message"]
        assert (await client.result("prompts/list"))["prompts"] == []
        assert "error" in await client.ask("prompts/get", {"name": "a_p"})
        assert "error" in await client.ask("resources/read", {"uri": "x://1"})
        assert made.net["a"].open_now == 0


async def test_a_tool_that_is_switched_on_again_is_called_without_a_restart(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.cache(server("a"), offer("rm"))
        made.apply(server("a", tools={"rm": ToolSwitch(enabled=False)}))
        made.start()
        client = await made.ready()
        assert await client.names() == []
        made.apply(server("a", tools={"rm": ToolSwitch()}))
        assert await client.names() == ["a_rm"]
        assert made.net["a"].opened == 0
        assert "result" in await client.call("a_rm")


ENDED: dict[str, tuple[tuple[ServerConfig, ...], str]] = {
    "the tool is switched off": ((server("a", tools={"echo": ToolSwitch(enabled=False)}),), "The user disabled it"),
    "its server is disabled": ((server("a", disabled=True),), "The user disabled its server"),
    "its server is gone": ((server("b"),), "a_echo"),
}


@pytest.mark.requirement("call-disabled-refused")
@pytest.mark.parametrize("change", ENDED)
async def test_a_tool_that_was_called_often_is_refused_once_that_is_so(tmp_path: Path, change: str) -> None:
    """The cached route of a tool's calls must not outlive the change."""
    servers, words = ENDED[change]
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await made.ready()
        for _ in range(3):
            assert "result" in await client.call("a_echo")
        made.apply(*servers)
        assert words in (await client.call("a_echo"))["error"]["message"]


async def test_a_tool_that_was_called_often_is_called_where_its_server_is_now(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client, other = await made.ready(), await made.ready()
        for session in (client, client, client, other):
            assert "result" in await session.call("a_echo")
        opened = made.net["a"].opened
        made.net["a"].die()
        assert "result" in await client.call("a_echo")
        made.apply(server("a", args=("--new",)))
        assert "result" in await client.call("a_echo")
        assert "result" in await other.call("a_echo")
        assert made.net["a"].opened == opened + 2


async def test_a_second_call_under_an_id_that_is_open_is_refused_however_often_the_tool_was_called(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await made.ready()
        for _ in range(3):
            await client.call("a_echo")
        client.call_only("a_hold", 7, key="k")
        await made.net["a"].heard_of("held")
        client.call_only("a_echo", 7)
        assert "already in progress" in (await client.answer(7))["error"]["message"]
        await client.call("a_release", 8, key="k")
        with anyio.fail_after(10):
            while len(client.answers(7)) < 2:
                await settle()
        assert "result" in client.answers(7)[1]


async def test_a_timeout_that_is_changed_is_that_of_the_next_call_of_a_tool_called_often(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await made.ready()
        for key in "123":
            await client.call("a_release", key=key)
            assert "result" in await client.call("a_hold", key=key)
        made.apply(server("a", request_timeout=0.001))
        client.call_only("a_hold", 9, key="another")
        assert "did not answer within 0.001 s" in (await client.answer(9))["error"]["message"]


@pytest.mark.requirement("name-resolved")
@pytest.mark.parametrize("asked", ["echo", "a_echo", "mcp__a__echo", "a/echo", "A_ECHO", "a-echo"])
async def test_every_spelling_reaches_the_server_under_its_own_name_for_the_tool(tmp_path: Path, asked: str) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        assert "result" in await (await made.ready()).call(asked)
        assert (await made.net["a"].heard_of("tools/call"))["name"] == "echo"


async def test_a_name_that_means_two_tools_is_refused_with_both(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"), server("b"))
        error = (await (await made.ready()).call("echo"))["error"]
        assert (error["code"], error["data"]["code"]) == (INVALID_PARAMS, "ambiguous_tool")
        assert "a/echo, b/echo" in error["message"]


async def test_a_call_during_discovery_waits_for_its_own_server_only(tmp_path: Path) -> None:
    async with house(tmp_path) as made:

        async def never(number: int) -> None:
            await made.clock.sleep(10_000)

        made.net["slow"].before = never
        made.apply(server("slow", connect_timeout=3600), server("a"))
        made.start()
        client = await made.ready()
        assert "result" in await client.call("a_echo")
        assert made.clock.now() < 1_000 + FIRST_LIST_GRACE_S
