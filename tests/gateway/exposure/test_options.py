"""Options of a session: their effect on lists and calls, and how open sessions are notified of changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.gateway.catalogue import CATALOGUE, mcp, names_in, refused, said, stocked
from tests.gateway.world import House, house, offer, serve, server
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.gateway.exposure.exposure import Choice, SessionOptions, choose, session_options
from trayapp.model.config import Config, Profile, ServerConfig, Settings, ToolSwitch

pytestmark = pytest.mark.anyio

WORK = Profile(
    servers=("github", "obsidian"), expose="tools", include_tools=("*_note", "create_*"), exclude_tools=("write_*",)
)
PROFILES = {"work": WORK, "quiet": Profile(servers=("context7",)), "all": Profile()}
SERVERS = {name: ServerConfig(name, command="x") for name in CATALOGUE}


# -- options and the resulting choice --------------------------------------------------------------------------------


@pytest.mark.requirement("session-options")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, SessionOptions()),
        ({"cwd": "/x", "pid": "5", "token": "secret"}, SessionOptions()),
        ({"expose": "tools"}, SessionOptions("tools")),
        ({"expose": ""}, SessionOptions()),
        ({"servers": "a,b"}, SessionOptions(servers=("a", "b"))),
        ({"servers": " a , ,b,"}, SessionOptions(servers=("a", "b"))),
        ({"profile": "work"}, SessionOptions(profile="work")),
        ({"expose": 5, "profile": None, "sessionId": "x", "api_key": "y"}, SessionOptions()),
    ],
)
def test_options_are_read_alike_from_a_shim_and_from_a_url(given: dict[str, Any], expected: SessionOptions) -> None:
    assert session_options(given) == expected


@pytest.mark.requirement("session-options")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Choice("auto", 15)),
        ({"expose": "search"}, Choice("search", 15)),
        ({"servers": "github,nope"}, Choice("auto", 15, frozenset({"github", "nope"}), unknown=("nope",))),
        ({"profile": "all"}, Choice("auto", 15)),
        (
            {"profile": "work"},
            Choice("tools", 15, frozenset({"github", "obsidian"}), WORK.include_tools, WORK.exclude_tools),
        ),
        (
            {"profile": "work", "expose": "search", "servers": "obsidian,context7"},
            Choice("search", 15, frozenset({"obsidian"}), WORK.include_tools, WORK.exclude_tools),
        ),
    ],
)
def test_a_sessions_own_word_counts_more_than_its_profile_and_both_can_only_narrow(
    given: dict[str, Any], expected: Choice
) -> None:
    assert choose(session_options(given), Config(Settings(profiles=PROFILES), SERVERS)) == expected


@pytest.mark.requirement("session-options")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"expose": "everything"}, ["everything", "auto, tools, search"]),
        ({"profile": "wrk"}, ["wrk", "work"]),
        ({"servers": ""}, ["servers is empty", "leave it out"]),
        ({"servers": " , ,"}, ["servers is empty"]),
        ({"servers": ["github"]}, ["servers is empty"]),
        ({"profile": ""}, ["profile is empty"]),
        ({"profile": " ", "servers": "github"}, ["profile is empty"]),
        ({"server": "github"}, ["server is not an option", "servers"]),
        ({"Servers": "github"}, ["Servers is not an option", "servers"]),
        ({"profil": "work"}, ["profil is not an option", "profile"]),
        ({"profile": "zzzzzz"}, ["zzzzzz", "work, quiet, all"]),
    ],
)
async def test_options_that_cannot_be_followed_show_nothing_and_say_why(
    tmp_path: Path, given: dict[str, Any], words: list[str]
) -> None:
    async with house(tmp_path) as made:
        stocked(made, settings=Settings(profiles=PROFILES))
        client = made.client(**given)
        message = (await client.error("initialize", {}))["message"]
        assert [word for word in words if word not in message] == []
        assert await client.names() in ([], ["mcp"])
        assert (await client.call("github_list_issues"))["error"]
        assert (await refused(client, search="issue"))[0] == "unknown_options"
        assert made.net.open_now == 0


async def test_servers_that_do_not_exist_are_named_in_the_status_and_the_others_serve(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        client = await made.ready(servers="obsidian,nope")
        found = await said(client)
        assert found.startswith("MCP: 0/1 servers, 3 tools")
        assert "nope" in found.splitlines()[-1]


# -- listed tools ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("expose-modes")
@pytest.mark.parametrize(
    ("tools", "above", "deferred"), [(15, 15, False), (16, 15, True), (0, 15, False), (1, 0, True), (0, 0, False)]
)
async def test_auto_lists_every_tool_up_to_a_number_and_the_one_tool_above_it(
    tmp_path: Path, tools: int, above: int, deferred: bool
) -> None:
    """Search mode begins with one tool more than `defer_above`."""
    async with house(tmp_path) as made:
        made.cache(server("a"), offer(*(f"t{n}" for n in range(tools))))
        made.apply(server("a"), settings=Settings(defer_above=above))
        made.start()
        names = await (await made.ready()).names()
        assert names == (["mcp"] if deferred else [f"a_t{n}" for n in range(tools)])


@pytest.mark.requirement("expose-modes")
async def test_tools_that_are_switched_off_do_not_count(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        switches = {f"t{n}": ToolSwitch(enabled=n > 0) for n in range(16)}
        made.cache(server("a"), offer(*switches))
        made.apply(server("a", tools=switches), settings=Settings())
        made.start()
        assert len(await (await made.ready()).names()) == 15


@pytest.mark.requirement("expose-modes", "session-options")
async def test_each_session_sees_what_it_asked_for_and_the_status_says_so(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made, settings=Settings(profiles=PROFILES, expose="auto", defer_above=5))
        expected: dict[str, tuple[dict[str, str], list[str], str]] = {
            "plain": ({}, ["mcp"], "search"),
            "tools": ({"expose": "tools"}, [f"{s}_{t}" for s, tools in CATALOGUE.items() for t in tools], "tools"),
            "servers": ({"servers": "obsidian"}, [f"obsidian_{t}" for t in CATALOGUE["obsidian"]], "tools"),
            "profile": (
                {"profile": "work"},
                ["github_create_issue", "github_create_pull_request", "obsidian_read_note"],
                "tools",
            ),
            "both": ({"profile": "work", "expose": "search"}, ["mcp"], "search"),
        }
        for name, (options, names, _) in expected.items():
            assert await (await made.ready(name=name, **options)).names() == names
        shown = {session.client: session.expose for session in snapshot_of(made.gateway).gateway.sessions}
        assert shown == {name: mode for name, (_, _, mode) in expected.items()}


@pytest.mark.requirement("expose-direct")
@pytest.mark.parametrize(
    ("direct", "names"),
    [
        (True, [f"github_{name}" for name in CATALOGUE["github"]]),
        (("create_issue",), ["github_create_issue"]),
        (("github_list_*", "nothing"), ["github_list_issues"]),
        (False, []),
        ((), []),
    ],
)
async def test_direct_tools_are_listed_beside_the_one_tool(tmp_path: Path, direct: Any, names: list[str]) -> None:
    async with house(tmp_path) as made:
        stocked(made, server("github", direct_tools=direct))
        client = await made.ready()
        assert await client.names() == ["mcp", *names]
        assert "result" in await client.call("obsidian_read_note")  # tools that are not listed can be called


@pytest.mark.requirement("expose-modes")
async def test_the_one_tool_is_listed_at_once_on_the_very_first_run(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["slow"].before = lambda number: anyio.sleep_forever()
        made.apply(server("slow"), settings=Settings(expose="search"))
        made.start()
        client = await made.ready()
        assert await client.names() == ["mcp"]  # the clock has not moved, so the list did not wait
        assert (await said(client)).splitlines()[1] == "slow: connecting, 0 tools"


# -- filters also apply to calls -------------------------------------------------------------------------------------


@pytest.mark.requirement("filter-binds-calls", "session-options")
async def test_what_a_session_does_not_see_it_can_neither_call_nor_find_nor_read(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        for name in ("a", "b"):
            serve(made.net[name], prompts=({"name": "p"},), resources=({"uri": f"x://{name}", "name": "r"},))
        await made.known(server("a"), server("b"))
        client = await made.ready(servers="a")
        assert {name.split("_")[0] for name in await client.names()} == {"a"}
        prompts = await client.result("prompts/list")
        assert [prompt["name"] for prompt in prompts["prompts"]] == ["a_p"]
        uris = [item["uri"] for item in (await client.result("resources/list"))["resources"]]
        assert uris == ["x://a", "multi-mcp://index"]
        for method, params in (
            ("tools/call", {"name": "b_echo"}),
            ("prompts/get", {"name": "b_p"}),
            ("resources/read", {"uri": "x://b"}),
        ):
            assert (await client.ask(method, params))["error"]
        assert (await refused(client, tool="b_echo"))[0] == "tool_not_found"
        assert (await refused(client, tool="b_read_r"))[0] == "tool_not_found"
        assert (await refused(client, server="b"))[0] == "not_found"
        assert (await refused(client, connect="b"))[0] == "not_found"
        assert not [name for name in names_in(await said(client, search="echo")) if name.startswith("b")]
        assert "b" not in {line.split(":")[0] for line in (await said(client)).splitlines()}
        assert [method for method in made.net["b"].methods() if method in ("tools/call", "resources/read")] == []


# -- changes ---------------------------------------------------------------------------------------------------------


def crowd(made: House, tools: int) -> None:
    made.cache(server("a"), offer(*(f"t{n}" for n in range(tools))))


@pytest.mark.requirement("expose-changes-told")
async def test_sessions_hear_of_changes_to_what_they_see_and_of_nothing_else(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made, settings=Settings(defer_above=11))
        plain, search = await made.ready(), await made.ready(expose="search")
        notes, everything = await made.ready(servers="obsidian"), await made.ready(expose="tools")
        for client in (plain, search, notes, everything):
            await client.names()
        entries = {name: server(name) for name in CATALOGUE}
        off = {"create_issue": ToolSwitch(enabled=False)}
        made.apply(*{**entries, "github": server("github", tools=off)}.values())
        await made.told()
        told = [client.list_changes().count("tools") for client in (plain, search, notes, everything)]
        assert told == [1, 0, 0, 1]
        assert len(await plain.names()) == 10
        made.apply(*entries.values(), settings=Settings(defer_above=10))  # now auto crosses its threshold
        await made.told()
        told = [client.list_changes().count("tools") for client in (plain, search, notes, everything)]
        assert told == [2, 0, 0, 2]
        assert await plain.names() == ["mcp"]


@pytest.mark.requirement("expose-changes-told")
async def test_a_profile_that_changes_or_goes_changes_its_sessions(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made, settings=Settings(profiles=PROFILES))
        client = await made.ready(profile="work")
        assert len(await client.names()) == 3
        entries = [server(name) for name in CATALOGUE]
        made.apply(*entries, settings=Settings(profiles={"work": Profile(servers=("context7",))}))
        await made.told()
        assert client.list_changes() == ["tools"]
        assert await client.names() == ["context7_resolve-library-id"]
        made.apply(*entries, settings=Settings())
        await made.told()
        assert await client.names() == []  # an unknown profile allows nothing
        assert (await client.call("github_list_issues"))["error"]


@pytest.mark.requirement("expose-shared")
async def test_sessions_with_the_same_options_share_what_was_computed_for_them(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        alike = [await made.ready(servers="github", expose="tools") for _ in range(20)]
        other = await made.ready(servers="obsidian")
        views = {client.session.seen for client in alike if client.session}
        assert len(views) == 1
        assert other.session is not None
        assert other.session.seen not in views
        exposure = next(iter(views)).exposure
        assert exposure.catalog is other.session.seen.exposure.catalog


# -- the index -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("index-resource")
async def test_the_index_is_a_resource_that_lists_what_its_session_may_call(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made, server("obsidian", title="Notes"), server("off", disabled=True))
        client = await made.ready(servers="obsidian,context7,off")
        listed = (await client.result("resources/list"))["resources"]
        assert [(item["uri"], item["mimeType"]) for item in listed] == [("multi-mcp://index", "text/markdown")]
        (content,) = (await client.result("resources/read", {"uri": "multi-mcp://index"}))["contents"]
        assert (content["uri"], content["mimeType"]) == ("multi-mcp://index", "text/markdown")
        assert content["text"].startswith(
            "# 4 tools of 2 servers\n\n## obsidian (Notes)\n\n- `obsidian_global_search`: Look"
        )
        assert "github" not in content["text"]


async def test_a_servers_own_tool_named_mcp_does_not_take_the_place_of_the_one_tool(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.cache(server("a"), offer("mcp", "x"))
        made.apply(server("a"), settings=Settings(tool_prefix="none", expose="tools"))
        made.start()
        client = await made.ready()
        names = await client.names()
        assert "mcp" not in names
        assert (await said(client)).startswith("MCP: 0/1 servers, 2 tools")
        await mcp(client, tool=next(name for name in names if name.startswith("mcp_")))
        assert (await made.net["a"].heard_of("tools/call"))["name"] == "mcp"


# -- no call changes a list ------------------------------------------------------------------------------------------


@pytest.mark.requirement("expose-steady")
@pytest.mark.parametrize("expose", ["auto", "search"])
@pytest.mark.parametrize("through_the_one_tool", [True, False])
async def test_a_call_changes_no_sessions_list(tmp_path: Path, through_the_one_tool: bool, expose: Any) -> None:
    async with house(tmp_path) as made:
        stocked(made, settings=Settings(expose=expose, defer_above=5))
        client = await made.ready()
        before = await client.result("tools/list")
        for tool in ("obsidian_read_note", "github_list_issues", "obsidian_read_note"):
            answer = await (client.call("mcp", tool=tool) if through_the_one_tool else client.call(tool))
            assert "isError" not in answer["result"]
            await made.told()
        assert await client.result("tools/list") == before
        assert [item["name"] for item in before["tools"]] == ["mcp"]
        assert client.list_changes() == []
