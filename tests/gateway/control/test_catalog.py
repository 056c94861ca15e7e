"""Control requests about the catalog: the rows and texts that the command line prints, and what a project changes."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fixtures.clock import settle
from tests.fixtures.fake_transport import FakeServer
from tests.gateway.catalogue import CATALOGUE, offer_of, said, stocked
from tests.gateway.world import House, house, serve, server
from trayapp.config.layers.overlay import Overlay
from trayapp.gateway.control.catalog import PROJECT_WAIT_S
from trayapp.gateway.scopes.projects import ProjectFinding
from trayapp.model.config import Config, ServerConfig, Settings
from trayapp.model.errors import ConnectFailedError, Problem
from trayapp.wire import control
from trayapp.wire.messages import INVALID_PARAMS, RpcError

pytestmark = pytest.mark.anyio


async def asked(made: House, method: str, **params: Any) -> Any:
    return await made.control().result(method, params)


@pytest.mark.requirement("cli-search")
async def test_a_search_answers_with_rows_best_first_and_with_words_for_people(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        found = await asked(made, control.SEARCH, words="create issue github", limit=2)
        (rows,) = found["results"]
        assert rows[0].keys() == {"server", "name", "exposed_name", "score"}
        assert (rows[0]["server"], rows[0]["name"]) == ("github", "create_issue")
        assert len(rows) == 2
        assert rows[0]["score"] >= rows[1]["score"]
        assert found["hits"][0] == {
            "name": "github_create_issue",
            "description": "Open a new issue in one repository",
            "away": "",
        }
        assert found["missed"] == []
        assert made.net.open_now == 0  # listing tools starts no server


@pytest.mark.requirement("search-one-hit")
async def test_the_same_tool_on_another_server_is_named_in_the_hit_alone(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        for name in ("one", "two"):
            made.cache(server(name), offer_of("obsidian"))
        made.apply(server("one"), server("two"), settings=Settings(expose="search"))
        made.start()
        rows = (await asked(made, control.SEARCH, words="read note"))["results"][0]
        assert [(row["exposed_name"], row["also"]) for row in rows][:1] == [("one_read_note", ["two_read_note"])]
        client = await made.ready()
        assert "\n  The same: two_read_note" in await said(client, search="read note")


@pytest.mark.requirement("cli-search")
async def test_a_batch_answers_with_one_list_a_query_in_their_order(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        found = await asked(made, control.SEARCH, batch=["read note", "zzzzz", "", " ", "boot simulator"], limit=1)
        assert [[row["exposed_name"] for row in rows] for rows in found["results"]] == [
            ["obsidian_read_note"],
            [],
            [],
            [],
            ["xcodebuild_boot_sim"],
        ]


@pytest.mark.parametrize(
    "params",
    [{}, {"words": 5}, {"batch": "x"}, {"batch": [1]}, {"words": "x", "limit": 0}, {"words": "x", "limit": "2"}],
)
async def test_a_search_that_is_none_is_refused(tmp_path: Path, params: dict[str, Any]) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        assert (await made.control().error(control.SEARCH, params))["code"] == INVALID_PARAMS


@pytest.mark.requirement("cli-describe")
async def test_a_description_is_the_definition_and_a_text(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        found = await asked(made, control.DESCRIBE, tool="create-issue")
        assert (found["server"], found["name"], found["exposed_name"]) == (
            "github",
            "create_issue",
            "github_create_issue",
        )
        assert found["tool"]["name"] == "github_create_issue"
        assert "*required*" in found["text"]
        data = (await made.control().error(control.DESCRIBE, {"tool": "github_creat_issue"}))["data"]
        assert (data["code"], "github_create_issue" in data["hint"]) == ("tool_not_found", True)


@pytest.mark.requirement("cli-index")
async def test_the_index_holds_every_tool(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        text = (await asked(made, control.INDEX))["text"]
        assert all(f"`{server}_{tool}`" in text for server, tools in CATALOGUE.items() for tool in tools)


@pytest.mark.requirement("cli-tokens")
async def test_the_costs_say_what_each_way_costs_and_where_they_meet(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made, server("context7", direct_tools=True), settings=Settings(expose="auto", defer_above=5))
        found = await asked(made, control.COSTS)
        assert found["mode"] == "search"
        assert found["tools"]["count"] == 11
        assert found["search"]["direct"] == 1
        assert 150 < found["search"]["tokens"] < found["tools"]["tokens"]
        assert sum(row["tokens"] for row in found["servers"]) == found["tools"]["tokens"]
        each = found["tools"]["tokens"] / 11
        even = found["break_even"]["tools"]
        assert even - 1 < (found["search"]["tokens"] + found["search"]["answer_tokens"]) / each <= even


@pytest.mark.requirement("history-unused")
async def test_the_costs_name_tools_that_nobody_called(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"), server("b"))
        assert (await asked(made, control.COSTS))["unused"] == {"since": 0, "tools": [], "tokens": 0}
        await (await made.ready()).call("a_echo")
        await made.gateway.services.history.close()
        unused = (await asked(made, control.COSTS))["unused"]
        assert unused["since"] > 0
        names = [(one["server"], one["name"]) for one in unused["tools"]]
        assert ("b", "echo") in names
        assert ("a", "echo") not in names
        assert unused["tokens"] == sum(one["tokens"] for one in unused["tools"]) > 0


async def test_nothing_at_all_costs_only_the_one_tool(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.start()
        found = await asked(made, control.COSTS)
        assert (found["tools"], found["break_even"], found["servers"]) == ({"count": 0, "tokens": 0}, None, [])


@pytest.mark.requirement("resource-as-tool")
async def test_a_resource_can_be_called_by_hand(tmp_path: Path) -> None:
    async def read(params: dict[str, Any]) -> dict[str, Any]:
        return {"contents": [{"uri": params["uri"], "text": "body"}]}

    async with house(tmp_path) as made:
        serve(made.net["demo"], resources=({"uri": "u://g", "name": "Guide"},))
        made.net["demo"].replies["resources/read"] = read
        await made.known(server("demo"))
        found = await asked(made, control.CALL, tool="demo_read_guide", args={})
        assert found["result"] == {"content": [{"type": "resource", "resource": {"uri": "u://g", "text": "body"}}]}


@pytest.mark.requirement("resource-as-tool")
async def test_a_resource_that_cannot_be_read_is_in_the_history_as_a_read(tmp_path: Path) -> None:
    async def gone(_: dict[str, Any]) -> dict[str, Any]:
        raise RpcError(INVALID_PARAMS, "gone")

    async with house(tmp_path) as made:
        serve(made.net["demo"], resources=({"uri": "u://g", "name": "Guide"},))
        made.net["demo"].replies["resources/read"] = gone
        await made.known(server("demo"))
        await made.control().error(control.CALL, {"tool": "demo_read_guide", "args": {}})
        await made.gateway.services.history.close()
        (row,) = (await asked(made, control.HISTORY))["rows"]
        assert (row["tool"], row["outcome"], row["error"]) == ("resources/read u://g", "failed", "gone")


async def test_a_number_that_was_typed_where_text_is_wanted_is_that_text(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        params = {"tool": "github_create_issue", "args": {"repo": "a/b", "title": 5}, "typed": {"title": "5"}}
        await made.control().result(control.CALL, params)
        assert (await made.net["github"].heard_of("tools/call"))["arguments"] == {"repo": "a/b", "title": "5"}
        assert (await made.control().error(control.CALL, {**params, "typed": [1]}))["code"] == INVALID_PARAMS


async def test_arguments_that_do_not_fit_are_said_in_one_line_and_start_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        stocked(made)
        data = (await made.control().error(control.CALL, {"tool": "github_create_issue", "args": {"repo": "a/b"}}))[
            "data"
        ]
        assert "title" in data["hint"]
        assert "multi-mcp describe github_create_issue" in data["hint"]
        assert "\n" not in data["hint"]
        assert made.net.open_now == 0


# -- projects --------------------------------------------------------------------------------------------------------


def finding(folder: Path, user: Config) -> ProjectFinding:
    own = ServerConfig("db", command="/bin/sh")
    config = Config(user.settings, {**user.servers, "db": own})
    return ProjectFinding(Overlay(folder, config, ("db",), frozenset({"db"})))


@pytest.mark.requirement("cli-project")
async def test_a_project_that_is_named_is_seen_as_its_sessions_see_it_for_that_request(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.look = finding
        await made.known(server("user"))
        rows = await asked(made, control.LIST, project=str(tmp_path))
        assert {row["server"] for row in rows} == {"user", "db"}
        assert {row["server"] for row in await asked(made, control.LIST)} == {"user"}
        found = await asked(made, control.CALL, tool="db_echo", args={}, project=str(tmp_path))
        assert found["server"] == "db"
        (rows,) = (await asked(made, control.SEARCH, words="echo", project=str(tmp_path)))["results"]
        assert {row["server"] for row in rows} == {"user", "db"}
        await made.told()
        assert [c.name for c in made.gateway.services.pool] == ["user"]  # the project is no longer in use


@pytest.mark.requirement("cli-lacking")
async def test_a_projects_server_that_hangs_is_named_instead_of_waited_for_and_is_asked_to_its_end(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as made:
        made.look = finding
        made.net["mute"].before = lambda number: anyio.sleep_forever()
        made.apply(server("user"), server("mute", connect_timeout=3600))
        made.start()
        await made.told()
        slow = FakeServer()
        gate = slow.hold_start()
        made.net.servers = defaultdict(lambda: slow, made.net.servers)
        wire = made.control()
        wire.ask_only(1, control.LIST, {"project": str(tmp_path)})
        while PROJECT_WAIT_S not in made.clock.slept:  # a thread reads the project's file first
            await settle()
        await made.clock.pass_(PROJECT_WAIT_S * 0.9)
        assert wire.answers(1) == []
        await made.clock.pass_(PROJECT_WAIT_S * 0.2)
        assert {row["server"] for row in wire.answers(1)[0]["result"]} == {"user"}
        notes = [note["text"] for note in wire.told(control.NOTE)]
        assert [note.split(":")[0] for note in notes] == ["mute", "db"]
        assert all("still starting" in note for note in notes)
        gate.set()
        await made.told()
        assert {c.name for c in made.gateway.services.pool} == {"user", "mute"}  # the project is not in use
        rows = await asked(made, control.LIST, project=str(tmp_path))
        assert {row["server"] for row in rows} == {"user", "db"}
        assert slow.opened == 1  # the server was not started again, because its lists were kept


@pytest.mark.requirement("cli-lacking")
async def test_a_list_names_the_servers_of_which_nothing_is_known_and_says_why(tmp_path: Path) -> None:
    async with house(tmp_path) as made:

        async def fails(number: int) -> None:
            raise ConnectFailedError("bad", "Cannot start bad: no program x")

        made.net["bad"].before = fails
        await made.known(server("good"), server("bad"), server("off", disabled=True))
        for params, texts in (
            ({}, ["bad: its tools are not known: Cannot start bad: no program x"]),
            ({"server": "bad"}, ["bad: its tools are not known: Cannot start bad: no program x"]),
            ({"server": "good"}, []),
        ):
            wire = made.control()
            await wire.result(control.LIST, params)
            assert [note["text"] for note in wire.told(control.NOTE)] == texts


@pytest.mark.requirement("cli-lacking")
async def test_a_list_names_what_in_servers_yaml_keeps_servers_out_of_it(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        entry = Problem("s.yaml", 4, "bad has neither command nor url", "Add command or url", server="bad")
        whole = Problem("s.yaml", 7, "The file is not YAML")
        odd = Problem("s.yaml", 5, "Unknown key x", server="good", fatal=False)
        await made.known(server("good"))
        made.apply(server("good"), problems=(entry, odd))
        made.gateway.take_problem(whole)
        wire = made.control()
        await wire.result(control.LIST)
        assert [note["text"] for note in wire.told(control.NOTE)] == [
            "bad cannot be used: bad has neither command nor url (s.yaml:4)",
            "The file is not YAML (s.yaml:7)",
        ]


@pytest.mark.requirement("cli-project")
async def test_a_folder_without_a_trusted_project_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    problem = Problem("x/.mcp.json", 0, "x/.mcp.json is not trusted", "multi-mcp trust x", fatal=False)
    async with house(tmp_path) as made:
        await made.known(server("user"))
        error = await made.control().error(control.LIST, {"project": str(tmp_path)})
        assert "is not in a project" in error["message"]
        made.look = lambda folder, user: ProjectFinding(problems=(problem,))
        error = await made.control().error(control.LIST, {"project": str(tmp_path)})
        assert (error["message"], error["data"]["hint"]) == (problem.message, problem.hint)
        assert made.gateway.problems == ()


@pytest.mark.requirement("prompt-line")
async def test_a_prompt_is_filled_in_from_words_or_from_a_line(tmp_path: Path) -> None:
    async def filled(params: dict[str, Any]) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": {"type": "text", "text": str(params["arguments"])}}]}

    plan = {"name": "plan", "arguments": [{"name": "topic", "required": True}, {"name": "date"}]}
    async with house(tmp_path) as made:
        serve(made.net["board"], prompts=(plan,))
        made.net["board"].replies["prompts/get"] = filled
        await made.known(server("board"))
        for words in (["ai", "today"], "ai today", "today topic=ai", ["date=today", "ai"]):
            found = await asked(made, control.PROMPT, prompt="board_plan", words=words)
            text = found["result"]["messages"][0]["content"]["text"]
            assert text == "{'topic': 'ai', 'date': 'today'}"
        for params, words in (
            ({"prompt": "board_plan", "words": []}, "topic"),
            ({"prompt": "plam", "words": ""}, "plan"),
        ):
            error = await made.control().error(control.PROMPT, params)
            assert words in error["message"] + error["data"]["hint"]
