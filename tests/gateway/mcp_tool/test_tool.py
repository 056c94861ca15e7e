"""The one tool in one session, from the request's frame to the answer's frame."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fixtures.behaviour import text
from tests.fixtures.clock import settle
from tests.gateway.catalogue import CATALOGUE, ONLY_SEARCH, mcp, names_in, refused, said, stocked
from tests.gateway.world import Client, house, offer, serve, server
from trayapp.catalog.tokens import tokens
from trayapp.gateway.exposure.list_results import DEFINITION
from trayapp.model.config import Settings, ToolSwitch
from trayapp.model.errors import ConnectFailedError
from trayapp.model.lifecycle import State
from trayapp.wire.messages import RpcError

pytestmark = pytest.mark.anyio


async def is_refused(client: Client, arguments: dict[str, Any], code: str, words: list[str]) -> None:
    """Assert that the call fails with `code`, and that the message contains all of these words."""
    found, message = await refused(client, **arguments)
    assert found == code
    assert [word for word in words if word not in message] == []


TOKENS_MOST = 300  # of the o200k encoding
MARGIN = 1.1  # the estimate may be 10 % too low


async def nothing_there(number: int) -> None:
    raise ConnectFailedError("xcodebuild", "Cannot start xcodebuild: spawn ENOENT")


async def not_at_first(number: int) -> None:
    if number == 1:
        await nothing_there(number)


# -- the definition --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("one-tool-definition")
def test_the_definition_is_small_and_names_every_mode() -> None:
    """The real encoding gives 252 tokens. The estimate differs by 3 %."""
    assert tokens(json.dumps(DEFINITION, separators=(",", ":"))) * MARGIN < TOKENS_MOST
    assert DEFINITION["inputSchema"]["properties"].keys() >= {"search", "describe", "tool", "args", "server", "result"}


@pytest.mark.requirement("one-tool-definition")
async def test_the_list_is_the_same_bytes_for_no_server_and_for_many(tmp_path: Path) -> None:
    frames = set()
    for names in ((), ("github",), tuple(CATALOGUE)):
        async with house(tmp_path / str(len(names))) as made:
            made.apply(settings=ONLY_SEARCH)
            stocked(made, names=names) if names else made.start()
            client = await made.ready()
            await client.result("tools/list", number="list")
            frames.add(client.frames[-1])
    assert len(frames) == 1


# -- status ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("one-tool-status")
async def test_without_servers_the_status_says_so(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.apply(settings=ONLY_SEARCH)
        made.start()
        assert await said(await made.ready()) == "MCP: 0/0 servers, 0 tools"


@pytest.mark.requirement("one-tool-status")
async def test_each_server_has_a_line_with_its_state_its_tools_and_why_not(tmp_path: Path) -> None:
    """The totals leave out disabled servers, but include cached tools, whatever the state of their server."""
    async with house(tmp_path) as made:
        stocked(made, server("off", disabled=True))
        made.net["xcodebuild"].before = nothing_there
        client = await made.ready()
        assert "result" in await client.call("github_list_issues")
        await refused(client, connect="xcodebuild")
        await made.clock.pass_(12)
        head, *lines = (await said(client)).splitlines()
        assert head == "MCP: 1/4 servers, 11 tools; 2 more start when called; failed 12s ago: xcodebuild; disabled: off"
        by_server = dict(line.split(": ", 1) for line in lines)
        assert by_server["github"] == "connected, 5 tools"
        assert by_server["obsidian"] == "cached, 3 tools"
        assert by_server["off"].startswith("disabled")
        assert by_server["xcodebuild"].startswith("failed 12s ago, 2 tools: Cannot start xcodebuild: spawn ENOENT")
        await made.clock.pass_(60)
        assert "xcodebuild: cached, 2 tools" in await said(client)  # after its backoff, the next call tries again


# -- list ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("one-tool-list")
async def test_a_cached_server_lists_its_tools_without_being_started(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        found = await said(await made.ready(), server="obsidian")
        assert found.splitlines()[0] == "obsidian: cached, 3 tools"
        assert "- obsidian_read_note: Return the body of one note" in found
        assert not [word for word in ("error", "not available") if word in found]
        assert made.net["obsidian"].opened == 0


@pytest.mark.requirement("one-tool-list")
async def test_a_list_comes_in_pages(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.cache(server("big"), offer(*(f"t{n:03d}" for n in range(120)), instructions="Mind the gap."))
        made.apply(server("big"), settings=ONLY_SEARCH)
        made.start()
        client = await made.ready()
        found: list[str] = []
        more: dict[str, Any] | None = {"server": "big"}
        pages = 0
        while more is not None:
            lines = (await said(client, **more)).splitlines()
            assert ("Mind the gap." in lines) == (pages == 0)
            found += [line.removeprefix("- big_") for line in lines if line.startswith("- ")]
            more = json.loads(lines[-1][lines[-1].index("{") :]) if "{" in lines[-1] else None
            pages += 1
        assert (found, pages) == ([f"t{n:03d}" for n in range(120)], 3)


@pytest.mark.requirement("one-tool-list")
@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        ("unknown", "not_found", ["unknown", "github"]),
        ("githb", "not_found", ["github"]),
        ("off", "server_disabled", ["The user disabled it", "enable"]),
    ],
)
async def test_a_server_that_cannot_be_listed_is_an_error_that_helps(
    tmp_path: Path, asked: str, code: str, words: list[str]
) -> None:
    async with house(tmp_path) as made:
        stocked(made, server("off", disabled=True))
        await is_refused(await made.ready(), {"server": asked}, code, words)


async def test_a_server_that_nobody_has_met_is_asked_when_its_list_is_wanted(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["new"].before = not_at_first
        await made.known(server("new"), settings=ONLY_SEARCH)
        client = await made.ready()
        assert (await refused(client, server="new"))[0] == "server_backoff"
        await made.clock.pass_(61)
        assert "new: connected, 7 tools" in await said(client, server="NEW")


# -- search and describe ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("one-tool-search")
async def test_a_search_names_the_best_tools_with_their_parameters(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        client = await made.ready()
        found = await said(client, search="create issue github")
        assert names_in(found)[0] == "github_create_issue"
        assert "repo" in found.splitlines()[0]
        assert "Open a new issue" in found
        assert len(names_in(await said(client, search="github", limit=2))) == 2
        assert '"description":"owner/name"' in await said(client, search="create issue", includeSchemas=True)
        assert names_in(await said(client, search="^xcodebuild_(list|boot)", regex=True)) != []


@pytest.mark.requirement("one-tool-search")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ({"search": ""}, "empty_query", []),
        ({"search": "   "}, "empty_query", []),
        ({"search": "[", "regex": True}, "invalid_pattern", ["["]),
        ({"search": "anything", "server": "nope"}, "not_found", ["nope", "github"]),
    ],
)
async def test_a_search_that_cannot_be_made_is_an_error(
    tmp_path: Path, arguments: dict[str, Any], code: str, words: list[str]
) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        await is_refused(await made.ready(), arguments, code, words)


@pytest.mark.requirement("one-tool-search")
async def test_a_search_without_words_lists_a_server_by_name_and_one_without_hits_says_so(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        client = await made.ready()
        everything = names_in(await said(client, search="", server="github"))
        assert everything == sorted(f"github_{name}" for name in CATALOGUE["github"])
        assert "zzz" in await said(client, search="zzz")


@pytest.mark.requirement("one-tool-search")
async def test_an_answer_stays_short_unless_more_is_asked_for(tmp_path: Path) -> None:
    properties = {f"parameter_number_{number}": {"type": "string"} for number in range(20)}
    tools = [{"name": f"plant_tree_{number}", "description": f"Plant tree {number}",
              "inputSchema": {"type": "object", "properties": properties}} for number in range(9)]  # fmt: skip
    async with house(tmp_path) as made:
        made.cache(server("garden"), replace(offer(), tools=tuple(tools)))
        made.apply(server("garden"), settings=Settings(expose="search"))
        made.start()
        client = await made.ready()
        assert len(names_in(await said(client, search="plant a tree"))) == 6
        assert len(names_in(await said(client, search="plant a tree", limit=9))) == 9
        assert len(names_in(await said(client, search="", server="garden"))) == 8


@pytest.mark.requirement("one-tool-search")
async def test_tools_of_a_server_in_its_backoff_are_found_and_marked(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        made.net["xcodebuild"].before = nothing_there
        client = await made.ready()
        await refused(client, connect="xcodebuild")
        await made.clock.pass_(20)
        found = await said(client, search="simulator")
        assert set(names_in(found)) >= {"xcodebuild_boot_sim", "xcodebuild_list_sims"}
        assert "[unavailable: failed 20s ago" in found
        assert "next try in 40s" in found


@pytest.mark.requirement("one-tool-describe")
async def test_a_description_has_every_parameter_and_a_wrong_name_the_nearest_ones(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        client = await made.ready()
        found = await said(client, describe="github-create-issue")
        assert all(
            word in found for word in ("github_create_issue", "Open a new issue", "repo", "owner/name", "labels")
        )
        for asked, near in (
            ("xcodebuild_boot", "xcodebuild_boot_sim"),
            ("xcodebuild_boot_simm", "xcodebuild_boot_sim"),
            ("github_serch", "github_search_repositories"),
        ):
            code, message = await refused(client, describe=asked)
            assert (code, near in message) == ("tool_not_found", True)


@pytest.mark.requirement("one-tool-warm-up")
async def test_search_and_describe_connect_lazy_servers_in_the_background(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        client = await made.ready()
        await said(client, describe="xcodebuild_boot_sim")
        await settle()
        assert made.state("xcodebuild") is State.CONNECTED
        await said(client, search="note")
        await settle()
        assert made.state("obsidian") is State.CONNECTED
        assert sum(made.state(name) is State.CONNECTED for name in CATALOGUE) <= 3
        assert made.state("context7") is State.IDLE
        await made.clock.pass_(11 * 60)
        assert made.net.open_now == 0  # warmed-up servers that get no call are closed like any idle server


@pytest.mark.requirement("one-tool-warm-up")
async def test_a_server_that_cannot_be_warmed_up_harms_nobody_and_is_not_tried_again_for_it(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        made.net["xcodebuild"].before = nothing_there
        client = await made.ready()
        for _ in range(3):
            await said(client, describe="xcodebuild_boot_sim")
            await settle()
        assert made.net["xcodebuild"].opened == 1
        assert "result" in await client.call("github_list_issues")


@pytest.mark.requirement("one-tool-search", "one-tool-describe")
@pytest.mark.parametrize("mode", ["search", "describe", "tool", "server", "connect", "result"])
async def test_a_long_question_does_not_come_back(tmp_path: Path, mode: str) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        result = await mcp(await made.ready(), **{mode: "x" * 50_000})
        assert len(json.dumps(result)) < 2_000


# -- calls -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("one-tool-call")
async def test_a_call_reaches_the_server_under_its_own_name_and_its_result_comes_back_whole(tmp_path: Path) -> None:
    """The parts keep their order, and flags and unknown members stay."""
    whole = {
        "content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": "QQ==", "mimeType": "image/png"},
            {"type": "audio", "data": "QQ==", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "u://1", "text": "x"}},
            {"type": "resource_link", "uri": "u://2", "name": "N"},
        ],
        "structuredContent": {"deep": [1, None]},
        "isError": True,
        "_meta": {"m": 1},
        "x-new": 1,
    }

    async def answer(params: dict[str, Any]) -> dict[str, Any]:
        return whole

    async with house(tmp_path) as made:
        stocked(made)
        made.net["xcodebuild"].replies["tools/call"] = answer
        client = await made.ready()
        arguments = {"tool": "xcodebuild_boot_sim", "args": {"simulatorId": "A", "server": "mine"}}
        params = {"name": "mcp", "arguments": arguments, "_meta": {"x": 1}, "task": {"ttl": 5}}
        assert await client.result("tools/call", params) == whole
        got = await made.net["xcodebuild"].heard_of("tools/call")
        assert got == {
            "name": "boot_sim",
            "arguments": {"simulatorId": "A", "server": "mine"},
            "_meta": {"x": 1},
            "task": {"ttl": 5},
        }


@pytest.mark.requirement("one-tool-call")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ({"tool": "zzz"}, "tool_not_found", ["zzz"]),
        ({"tool": "boot_sim", "server": "nope"}, "server_not_found", ["nope"]),
        ({"tool": "xcodebuild_boot_sim"}, "invalid_arguments", ["simulatorId"]),
        ({"tool": "xcodebuild_boot_sim", "args": "[1]"}, "invalid_arguments", ["simulatorId"]),
        ({"tool": "xcodebuild_boot_sim", "args": "{bad"}, "invalid_arguments", ["simulatorId"]),
        ({"tool": "xcodebuild_boot_sim", "args": 5}, "invalid_arguments", ["simulatorId"]),
        ({"tool": "xcodebuild_boot_sim", "args": {"simulatorId": 5}}, "invalid_arguments", ["simulatorId"]),
        ({"tool": "xcodebuild_boot_sim", "args": {"simulatorId": "A", "tool": "x"}}, "wrong_fields", ["tool"]),
        ({"tool": "xcodebuild_boot_sim", "simulatorId": "A"}, "wrong_fields", ["simulatorId", "args"]),
    ],
)
async def test_a_call_that_cannot_be_made_starts_nothing(
    tmp_path: Path, arguments: dict[str, Any], code: str, words: list[str]
) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        await is_refused(await made.ready(), arguments, code, words)
        assert made.net.open_now == 0


@pytest.mark.requirement("one-tool-call")
@pytest.mark.parametrize("args", ['{"simulatorId": "A"}', {"simulatorId": "A"}])
async def test_args_are_an_object_or_its_text(tmp_path: Path, args: Any) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        await mcp(await made.ready(), tool="xcodebuild_boot_sim", args=args)
        assert (await made.net["xcodebuild"].heard_of("tools/call"))["arguments"] == {"simulatorId": "A"}


@pytest.mark.requirement("one-tool-call")
async def test_a_failed_start_is_said_and_the_backoff_after_it(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        made.net["xcodebuild"].before = nothing_there
        client = await made.ready()
        arguments = {"tool": "xcodebuild_boot_sim", "args": {"simulatorId": "A"}}
        code, message = await refused(client, **arguments)
        assert (code, "xcodebuild" in message, "ENOENT" in message) == ("connect_failed", True, True)
        await made.clock.pass_(30)
        code, message = await refused(client, **arguments)
        assert (code, "30s" in message, '{"connect":"xcodebuild"}' in message) == ("server_backoff", True, True)
        assert made.net["xcodebuild"].opened == 1


@pytest.mark.requirement("one-tool-call")
async def test_a_tools_own_error_and_a_servers_error_pass_unchanged(tmp_path: Path) -> None:
    async def boom(params: dict[str, Any]) -> dict[str, Any]:
        return {**text("boom"), "isError": True}

    async with house(tmp_path) as made:
        await made.known(server("a"), server("b"), settings=ONLY_SEARCH)
        made.net["b"].replies["tools/call"] = boom
        client = await made.ready()
        assert await mcp(client, tool="b_echo") == {**text("boom"), "isError": True}
        params = {"name": "mcp", "arguments": {"tool": "a_fail"}}
        assert await client.error("tools/call", params) == {
            "code": -32050,
            "message": "it failed",
            "data": {"why": ["a", 1]},
        }


@pytest.mark.requirement("one-tool-call")
async def test_progress_and_cancellation_go_through(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"), settings=ONLY_SEARCH)
        client = await made.ready()
        params = {"name": "mcp", "arguments": {"tool": "a_progress"}, "_meta": {"progressToken": "mine"}}
        await client.result("tools/call", params)
        assert [told["progressToken"] for told in client.told("notifications/progress")] == ["mine"] * 3
        client.ask_only(7, "tools/call", {"name": "mcp", "arguments": {"tool": "a_hold", "args": {"key": "k"}}})
        await made.net["a"].heard_of("tools/call", 2)
        client.tell("notifications/cancelled", {"requestId": 7, "reason": "enough"})
        await made.net["a"].cancelled_of("k")
        assert client.answers(7) == []


@pytest.mark.requirement("one-tool-call")
async def test_a_call_that_waits_for_its_server_can_be_cancelled(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        made.net["github"].before = lambda number: anyio.sleep_forever()
        client = await made.ready()
        client.ask_only(7, "tools/call", {"name": "mcp", "arguments": {"tool": "github_list_issues"}})
        await settle()
        client.tell("notifications/cancelled", {"requestId": 7})
        await settle()
        assert client.answers(7) == []


@pytest.mark.requirement("one-tool-call")
async def test_twenty_calls_of_a_cold_server_start_it_once(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        client = await made.ready()
        for number in range(20):
            client.ask_only(number, "tools/call", {"name": "mcp", "arguments": {"tool": "github_list_issues"}})
        answers = [await client.answer(number) for number in range(20)]
        assert all("result" in answer for answer in answers)
        assert made.net["github"].opened == 1


@pytest.mark.requirement("one-tool-call")
async def test_a_name_of_two_tools_is_refused_until_the_server_is_said(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        for name in ("a", "b"):
            made.cache(server(name), offer("get"))
        made.apply(server("a"), server("b"), settings=Settings(tool_prefix="none", expose="search"))
        made.start()
        client = await made.ready()
        code, message = await refused(client, tool="get")
        assert (code, "server" in message, "b/get" in message) == ("ambiguous_tool", True, True)
        assert made.net.open_now == 0
        for arguments in ({"tool": "get", "server": "b"}, {"tool": "b/get"}, {"tool": "mcp__b__get"}):
            await mcp(client, **arguments)
        assert (made.net["a"].opened, made.net["b"].methods().count("tools/call")) == (0, 3)


@pytest.mark.requirement("one-tool-call")
async def test_a_tool_of_a_server_that_nobody_has_met_is_found_by_asking_it(tmp_path: Path) -> None:
    """The server whose name is the longest matching prefix is asked first."""
    async with house(tmp_path) as made:
        made.apply(server("a"), server("a-b"), settings=ONLY_SEARCH)
        made.gateway.state = "running"  # so that no server is started without a request
        client = await made.ready()
        assert "result" in await client.ask("tools/call", {"name": "mcp", "arguments": {"tool": "a-b_echo"}})
        assert (made.net["a-b"].opened, made.net["a"].opened) == (1, 0)


@pytest.mark.requirement("one-tool-call")
async def test_a_tool_that_its_server_no_longer_has_is_said_with_those_it_has(tmp_path: Path) -> None:
    async def no_such(params: dict[str, Any]) -> dict[str, Any]:
        raise RpcError(-32602, "Unknown tool: old")

    async with house(tmp_path) as made:
        made.cache(server("a"), offer("old"), age_s=2 * 3600)
        made.net["a"].replies["tools/call"] = no_such
        made.apply(server("a"), settings=ONLY_SEARCH)
        made.start()
        client = await made.ready()
        code, message = await refused(client, tool="a_old")  # its lists are old enough to be requested again
        assert (code, "a_echo" in message) == ("tool_not_found_after_reconnect", True)


@pytest.mark.requirement("filter-binds-calls")
async def test_a_tool_that_is_switched_off_is_neither_found_nor_called(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made, server("github", tools={"create_issue": ToolSwitch(enabled=False)}), settings=ONLY_SEARCH)
        client = await made.ready()
        code, message = await refused(client, tool="github_create_issue", args={"repo": "a/b", "title": "t"})
        assert (code, "The user disabled it" in message) == ("tool_not_found", True)
        assert "github_create_issue" not in names_in(await said(client, search="create issue"))
        assert (await refused(client, describe="github_create_issue"))[0] == "tool_not_found"
        assert made.net["github"].methods() == []


# -- connect ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("one-tool-connect")
async def test_connect_says_what_the_server_offers_and_ignores_the_backoff(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        made.net["xcodebuild"].before = not_at_first
        client = await made.ready()
        assert (await refused(client, connect="xcodebuild"))[0] == "connect_failed"
        found = await said(client, connect="xcodebuild")
        assert found.startswith("xcodebuild: connected, 2 tools")
        assert "xcodebuild_boot_sim" in found


@pytest.mark.requirement("one-tool-connect")
async def test_connect_tears_down_no_call_that_is_under_way(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"), settings=ONLY_SEARCH)
        client, other = await made.ready(), await made.ready()
        other.call_only("a_hold", 5, key="k")
        await made.net["a"].heard_of("tools/call")
        assert "connected, 7 tools" in await said(client, connect="a")
        assert "result" in await client.call("a_release", key="k")
        assert "result" in await other.answer(5)


@pytest.mark.requirement("one-tool-connect", "one-tool-warm-up")
async def test_a_server_of_the_sessions_own_is_the_one_that_is_warmed_up_called_and_connected(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made, server("github", scope="session"))
        client, other = await made.ready(), await made.ready()
        await said(client, describe="github_list_issues")
        await settle()
        assert made.state("github#1") is State.CONNECTED
        assert "github: connected, 5 tools" in await said(client)
        assert "github: cached, 5 tools" in await said(other)
        assert "result" in await client.ask("tools/call", {"name": "mcp", "arguments": {"tool": "github_list_issues"}})
        assert "connected, 5 tools" in await said(client, connect="github")
        assert made.state("github") is State.IDLE


# -- long results ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("one-tool-result-paging")
async def test_a_long_result_comes_in_pages_through_the_one_tool_and_whole_when_called_directly(tmp_path: Path) -> None:
    whole = "".join(f"{n:06d}\n" for n in range(20_000))

    async def long(params: dict[str, Any]) -> dict[str, Any]:
        return text(whole)

    async with house(tmp_path) as made:
        stocked(made)
        made.net["github"].replies["tools/call"] = long
        client = await made.ready()
        assert (await client.call("github_list_issues"))["result"] == text(whole)
        first = await mcp(client, tool="github_list_issues")
        found, note = (part["text"] for part in first["content"])
        while "More: " in note:
            more = json.loads(note[note.index("{") : note.index("}") + 1])
            page, _, note = (await said(client, **more)).rpartition("\n\n[")
            found += page
        assert found == whole
        assert (await refused(await made.ready(), result="r1"))[0] == "result_not_found"  # from another session


@pytest.mark.requirement("one-tool-result-file")
async def test_a_long_result_lies_in_a_file_until_its_session_ends(tmp_path: Path) -> None:
    async def long(params: dict[str, Any]) -> dict[str, Any]:
        return text("x" * 60_000)

    async with house(tmp_path) as made:
        stocked(made)
        made.net["github"].replies["tools/call"] = long
        client = await made.ready()
        shown, note = (part["text"] for part in (await mcp(client, tool="github_list_issues"))["content"])
        assert len(f"{shown}{note}".encode()) <= 51_200
        file = Path(note.partition("All of it: ")[2].removesuffix("]"))
        assert file.read_text() == "x" * 60_000
        client.end()
        await made.told()
        assert not file.exists()


@pytest.mark.requirement("one-tool-result-paging")
async def test_a_limit_of_0_passes_everything(tmp_path: Path) -> None:
    async def long(params: dict[str, Any]) -> dict[str, Any]:
        return text("x" * 200_000)

    async with house(tmp_path) as made:
        stocked(made, settings=Settings(expose="search", result_limit=0))
        made.net["github"].replies["tools/call"] = long
        assert await mcp(await made.ready(), tool="github_list_issues") == text("x" * 200_000)


@pytest.mark.requirement("one-tool-content")
async def test_an_older_client_gets_words_for_what_it_cannot_take(tmp_path: Path) -> None:
    async def parts(params: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "resource_link", "uri": "u://2", "name": "N"}, {"type": "weird", "foo": 1}]}

    async with house(tmp_path) as made:
        stocked(made)
        made.net["github"].replies["tools/call"] = parts
        link = {"type": "resource_link", "uri": "u://2", "name": "N"}
        words = [
            {"type": "text", "text": "[Resource Link: N]\nURI: u://2"},
            {"type": "text", "text": '{"type":"weird","foo":1}'},
        ]
        for protocol, expected in (("2025-03-26", words), ("2025-11-25", [link, words[1]])):
            client = await made.ready(protocol)
            assert (await mcp(client, tool="github_list_issues"))["content"] == expected


# -- resources as tools ----------------------------------------------------------------------------------------------

GUIDE = {"uri": "u://g", "name": "Guide Book", "description": "The guide"}


@pytest.mark.requirement("resource-as-tool")
async def test_a_resource_is_found_described_and_read_like_a_tool(tmp_path: Path) -> None:
    async def read(params: dict[str, Any]) -> dict[str, Any]:
        return {"contents": [{"uri": params["uri"], "text": "all of it"}], "_meta": {"x": 1}}

    async with house(tmp_path) as made:
        serve(made.net["demo"], resources=(GUIDE, {"uri": "u://s", "name": "simulators"}))
        made.net["demo"].replies["resources/read"] = read
        await made.known(server("demo"), settings=ONLY_SEARCH)
        client = await made.ready()
        assert "demo_read_guide_book" in names_in(await said(client, search="guide"))
        assert "- demo_read_guide_book: The guide" in await said(client, server="demo")
        assert "The guide" in await said(client, describe="demo_read_guide_book")
        for arguments in (
            {"tool": "demo_read_guide_book"},
            {"tool": "demo_get_guide_book"},
            {"tool": "demo-read-guide-book"},
            {"tool": "read_guide_book", "server": "demo"},
        ):
            result = await mcp(client, **arguments)
            assert result["content"] == [{"type": "resource", "resource": {"uri": "u://g", "text": "all of it"}}]
            assert result["_meta"] == {"x": 1}
        code, message = await refused(client, tool="demo_read_guide_bok")
        assert (code, "demo_read_guide_book" in message) == ("tool_not_found", True)


@pytest.mark.requirement("resource-as-tool")
async def test_a_server_that_keeps_its_resources_to_itself_has_no_such_tools(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        serve(made.net["demo"], resources=(GUIDE,))
        await made.known(server("demo", expose_resources=False), settings=ONLY_SEARCH)
        client = await made.ready()
        assert (await refused(client, tool="demo_read_guide_book"))[0] == "tool_not_found"
        assert "guide" not in (await said(client, server="demo")).lower()


@pytest.mark.requirement("one-tool-search")
async def test_one_server_beyond_those_that_are_listed_is_one(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        names = [f"s{number}" for number in range(7)]
        for name in names:
            made.net[name].before = nothing_there
        made.apply(*map(server, names))
        made.start()
        await made.gateway.services.pool.settled()
        answer = await (await made.ready()).call("mcp", search="issue")
        assert "1 more server cannot serve" in answer["result"]["content"][0]["text"]
