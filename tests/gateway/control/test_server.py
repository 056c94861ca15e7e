"""Control requests: answers have the form that the command line reads, and errors have a hint and an exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fixtures.behaviour import tool
from tests.fixtures.clock import settle
from tests.fixtures.fake_transport import refused
from tests.gateway.world import House, Wire, house, offer, server
from tests.patience import stretched
from trayapp.backends.pool import AT_ONCE
from trayapp.gateway.control.server import BEAT_SHORTEST_S
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.model.config import Confine, Settings, ToolSwitch
from trayapp.model.errors import ExitCode, Problem
from trayapp.model.lifecycle import State
from trayapp.wire import control
from trayapp.wire.messages import INVALID_PARAMS, METHOD_NOT_FOUND, REQUEST_TIMEOUT, RpcError

pytestmark = pytest.mark.anyio

NOTHING_NEW: dict[str, Any] = {"state": "idle", "added": [], "gone": [], "back": [], "waiting": [], "error": None}


async def asked(made: House, method: str, **params: Any) -> Any:
    return await made.control().result(method, params)


async def refusal(made: House, method: str, **params: Any) -> tuple[str, str, int, str]:
    """Return the title, code, exit code and hint of the error that a request gets."""
    error = await made.control().error(method, params)
    data = error["data"]
    return error["message"], data["code"], data["exit_code"], data["hint"]


# -- snapshots and lists ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("cli-json-shapes")
async def test_a_snapshot_is_the_object_of_status(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        snapshot = await asked(made, control.SNAPSHOT)
        assert snapshot.keys() == {"version", "revision", "gateway", "servers", "problems"}
        later = await asked(made, control.SNAPSHOT)
        assert later["revision"] >= snapshot["revision"]


async def test_a_server_that_will_be_confined_is_not_said_to_be_unconfined(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.apply(server("jailed", confine=Confine()), server("free"))
        servers = {one["name"]: one.get("confinement") for one in (await asked(made, control.SNAPSHOT))["servers"]}
        assert servers == {"jailed": {"way": "", "why_open": "", "refused": []}, "free": None}


@pytest.mark.requirement("cli-json-shapes")
async def test_a_list_is_the_rows_of_all_servers_or_of_one(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.cache(server("a"), offer("x"))
        made.cache(server("b"), offer("y"))
        made.apply(server("a"), server("b", tools={"y": ToolSwitch(False)}))
        rows = await asked(made, control.LIST)
        assert [(row["server"], row["exposed_name"], row["enabled"]) for row in rows] == [
            ("a", "a_x", True),
            ("b", "b_y", False),
        ]
        assert await asked(made, control.LIST, server="b") == rows[1:]
        assert await asked(made, control.LIST, server=None) == rows
        assert rows[0].keys() == {"server", "name", "exposed_name", "enabled", "stale", "withheld", "description"}
        (row,) = await asked(made, control.LIST, server="a", classes=True)
        assert (row["class"], row["ask"]) == ("write", False)
        assert await asked(made, control.LIST, tools=[["b", "y"], ["b", "x"], ["c", "z"]]) == rows[1:]
        assert await asked(made, control.LIST, tools=[]) == []
        for wrong in (1, [1], [["a"]], [[[], "x"]]):
            assert "[server, name]" in (await made.control().error(control.LIST, {"tools": wrong}))["message"]


@pytest.mark.parametrize("method", [control.LIST, control.REFRESH, control.RECONNECT, control.CALL])
async def test_an_unknown_server_is_an_error_that_names_the_others(tmp_path: Path, method: str) -> None:
    async with house(tmp_path) as made:
        made.apply(server("a"))
        title, code, exit_code, hint = await refusal(made, method, server="nope", tool="x")
        assert (code, exit_code) == ("server_not_found", ExitCode.SERVER_UNAVAILABLE)
        assert ("nope" in title, "a" in hint) == (True, True)
        assert hint not in title
        error = await made.control().error(method, {"server": ["a"], "tool": "x"})
        assert error["code"] == INVALID_PARAMS
        made.apply(server("a"), problems=(Problem("servers.yaml", 7, "nope has both", "Keep one", server="nope"),))
        title, code, _, hint = await refusal(made, method, server="nope", tool="x")
        assert (title, code) == ("nope cannot be used: nope has both", "server_not_found")
        assert "servers.yaml, line 7. Keep one" in hint


async def test_an_unknown_request_is_no_method_and_the_connection_lives(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        wire = made.control()
        assert (await wire.error("nope"))["code"] == METHOD_NOT_FOUND
        assert await wire.result(control.SETTLE) == {}


# -- refresh and reconnect -------------------------------------------------------------------------------------------


@pytest.mark.requirement("merge-stale", "merge-kept")
async def test_a_refresh_tells_what_came_went_and_came_back_and_waits_until_it_is_noted(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        entry = server("a", tools={"x": ToolSwitch(), "back": ToolSwitch(False, True), "gone": ToolSwitch(False)})
        made.cache(entry, offer("x", "gone"))
        made.apply(entry, server("off", disabled=True))
        made.start()
        made.net["a"].tools = [tool("x"), tool("back"), tool("new")]
        answer = await asked(made, control.REFRESH)
        assert answer == {"servers": {"a": {**NOTHING_NEW, "added": ["new"], "gone": ["gone"], "back": ["back"]}}}
        assert made.written == [
            {"a": {"x": ToolSwitch(), "back": ToolSwitch(False), "gone": ToolSwitch(False, True), "new": ToolSwitch()}}
        ]


async def test_a_refresh_that_finds_nothing_else_says_so(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.cache(server("a"), offer("x"))
        made.apply(server("a", tools={"x": ToolSwitch()}))
        made.start()
        made.net["a"].tools = [tool("x")]
        answer = await asked(made, control.REFRESH, server="a")
        assert answer["servers"]["a"] == NOTHING_NEW
        assert made.written == []


@pytest.mark.requirement("merge-failed-refresh")
async def test_one_server_that_fails_leaves_the_outcome_of_the_others(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["bad"].before = refused

        async def no_list(params: dict[str, Any]) -> dict[str, Any]:
            raise RpcError(-32050, "not today")

        made.net["mute"].replies["tools/list"] = no_list
        made.apply(server("bad"), server("good"), server("mute"))
        made.start()
        await made.gateway.services.pool.settled()
        answer = (await asked(made, control.REFRESH))["servers"]
        assert list(answer) == ["bad", "good", "mute"]
        assert (answer["bad"]["state"], answer["bad"]["added"]) == ("failed", [])
        assert answer["bad"]["error"].keys() == {"title", "hint", "code", "exit_code"}
        assert (answer["bad"]["error"]["code"], answer["bad"]["error"]["exit_code"]) == ("connect_failed", 5)
        assert answer["good"]["error"] is None
        assert "not today" in answer["mute"]["error"]["title"]


async def test_a_refresh_of_all_starts_at_most_ten_at_once(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        entries = [server(f"s{n}") for n in range(25)]
        for entry in entries:
            made.cache(entry, offer("x"))
        made.apply(*entries)
        made.start()
        assert len((await asked(made, control.REFRESH))["servers"]) == 25
        assert made.net.most_opening <= AT_ONCE


@pytest.mark.requirement("life-backoff")
async def test_a_reconnect_ignores_the_backoff_and_tells_the_state(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["a"].before = refused
        await made.known(server("a"), server("off", disabled=True))
        assert made.state("a") is State.FAILED
        made.net["a"].before = None
        assert await asked(made, control.RECONNECT) == {"servers": {"a": {"state": "connected", "error": None}}}
        assert made.net["a"].opened == 2


@pytest.mark.requirement("reconnect-awake")
async def test_a_reconnect_of_all_wakes_no_server_that_sleeps(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["bad"].before = refused
        entries = [server("asleep"), server("used"), server("bad"), server("kept", lifecycle="keep-alive")]
        for entry in entries:
            made.cache(entry, offer("x"))
        made.apply(*entries)
        made.start()
        await made.gateway.services.pool.settled()
        await asked(made, control.RECONNECT, server="used")
        await asked(made, control.RECONNECT, server="bad")
        answer = (await asked(made, control.RECONNECT))["servers"]
        assert list(answer) == ["used", "bad", "kept"]
        assert (made.state("asleep"), made.net["asleep"].opened) == (State.IDLE, 0)
        assert made.net["used"].opened == 2


async def test_a_reconnect_of_a_disabled_server_says_how_to_enable_it(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.apply(server("a", disabled=True))
        outcome = (await asked(made, control.RECONNECT, server="a"))["servers"]["a"]
        assert (outcome["state"], outcome["error"]["code"]) == ("disabled", "server_disabled")
        assert outcome["error"]["hint"] == "Enable it with: multi-mcp enable a"


async def test_a_reload_reads_the_file_and_tells_its_problems(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.cache(server("a"), offer("x"))
        made.cache(server("b"), offer("x"))
        made.apply(server("a"), server("b"), settings=Settings(tool_prefix="none"))
        problems = (await asked(made, control.RELOAD))["problems"]
        assert made.reloads == 1
        assert [problem["server"] for problem in problems] == ["a", "b"]
        assert problems[0].keys() == {"file", "line", "column", "server", "message", "hint", "fatal"}


# -- call ------------------------------------------------------------------------------------------------------------


async def test_a_call_answers_with_server_tool_and_the_whole_result(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.cache(server("a"), offer("echo"))
        made.apply(server("a"))
        made.start()
        answer = await asked(made, control.CALL, tool="a_echo", args={"x": 1}, server=None)
        assert (answer["server"], answer["tool"]) == ("a", "echo")
        assert answer["result"]["structuredContent"]["got"] == {"name": "echo", "arguments": {"x": 1}}
        assert answer["result"]["x-unknown"] == [1]
        assert (await asked(made, control.CALL, tool="echo"))["result"]["structuredContent"]["got"]["arguments"] == {}


async def test_a_call_waits_for_servers_that_are_being_asked_for_the_first_time(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["my server"].tools = [tool("odd one")]
        made.apply(server("my server"))
        made.start()
        assert (await asked(made, control.CALL, tool="odd one"))["tool"] == "odd one"


async def test_a_call_that_names_its_server_asks_it_when_it_is_not_known(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["a"].before = refused
        await made.known(server("a"))
        await made.clock.pass_(61)
        made.net["a"].before = None
        assert (await asked(made, control.CALL, tool="echo", server="a"))["server"] == "a"


@pytest.mark.requirement("call-disabled-refused")
@pytest.mark.parametrize(
    ("tool_name", "code", "exit_code", "hint"),
    [
        ("a_nope", "tool_not_found", 1, "See: multi-mcp list"),
        ("a_eco", "tool_not_found", 1, "Did you mean a_echo?"),
        ("a_off", "tool_not_found", 1, "multi-mcp enable a/off"),
        ("same", "ambiguous_tool", 1, "a/same, b/same"),
        ("down_x", "server_backoff", 5, "multi-mcp reconnect down"),
    ],
)
async def test_a_call_that_cannot_be_made_says_why_and_what_to_do(
    tmp_path: Path, tool_name: str, code: str, exit_code: int, hint: str
) -> None:
    async with house(tmp_path) as made:
        made.net["down"].before = refused
        entries = [server("a", tools={"off": ToolSwitch(False)}), server("b"), server("down")]
        for entry, tools in zip(entries, ("echo off same", "same", "x"), strict=True):
            made.cache(entry, offer(*tools.split()))
        made.apply(*entries)
        made.start()
        await asked(made, control.RECONNECT, server="down")
        title, found, found_exit, found_hint = await refusal(made, control.CALL, tool=tool_name)
        assert (found, found_exit) == (code, exit_code)
        assert hint in found_hint
        assert found_hint not in title


@pytest.mark.parametrize("params", [{}, {"tool": 5}, {"tool": "a_echo", "args": [1]}, {"tool": "a_echo", "args": "x"}])
async def test_a_call_with_odd_params_is_refused(tmp_path: Path, params: dict[str, Any]) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        assert (await made.control().error(control.CALL, params))["code"] == INVALID_PARAMS


async def test_a_call_whose_server_dies_is_a_server_that_is_unavailable(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        wire = made.control()
        wire.ask_only(1, control.CALL, {"tool": "a_hold", "args": {"key": "k"}})
        await made.net["a"].heard_of("held")
        made.net["a"].die()
        error = (await wire.answer(1))["error"]
        assert (error["data"]["code"], error["data"]["exit_code"]) == ("connection_lost", 5)
        assert made.in_flight() == {}
        assert (await asked(made, control.CALL, tool="a_echo"))["server"] == "a"


async def test_a_call_by_command_line_takes_no_longer_than_request_timeout(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a", request_timeout=0.01))
        error = await made.control().error(control.CALL, {"tool": "a_hold", "args": {"key": "k"}})
        assert error["code"] == REQUEST_TIMEOUT
        await made.net["a"].cancelled_of("k")
        assert made.in_flight() == {}


async def test_a_command_line_that_goes_away_takes_its_call_with_it(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        wire = made.control()
        wire.ask_only(1, control.CALL, {"tool": "a_hold", "args": {"key": "k"}})
        await made.net["a"].heard_of("held")
        assert wire.dispatcher is not None
        wire.dispatcher.close()
        await made.net["a"].cancelled_of("k")
        await settle()
        assert made.in_flight() == {}


async def test_an_error_of_the_tool_s_server_comes_as_it_is(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        error = await made.control().error(control.CALL, {"tool": "a_fail"})
        assert error == {"code": -32050, "message": "it failed", "data": {"why": ["a", 1]}}


# -- watch, settle, stop ---------------------------------------------------------------------------------------------


def revisions(wire: Wire) -> list[int]:
    return [params["revision"] for params in wire.told(control.SNAPSHOT)]


async def test_a_watcher_gets_the_present_snapshot_and_then_the_newest_once_for_many_changes(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        wire = made.control()
        assert await wire.result(control.WATCH) == {}
        await settle()
        assert len(revisions(wire)) == 1
        for _ in range(50):
            made.gateway.services.changes.changed()
        await made.told()
        assert len(revisions(wire)) == 2
        assert revisions(wire)[-1] == snapshot_of(made.gateway).revision
        await made.clock.pass_(100)
        assert len(revisions(wire)) == 2
        made.apply(server("a", disabled=True))
        await made.told()
        assert wire.told(control.SNAPSHOT)[-1]["servers"][0]["state"] == "disabled"


async def test_a_watcher_that_does_not_read_gets_the_newest_alone_once_it_does(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        wire = made.control()
        await wire.result(control.WATCH, {"beat_s": 1})
        await settle()
        assert wire.link is not None
        wire.link.pause_writing()
        for _ in range(5):
            made.gateway.services.changes.changed()
            await made.told()
            await made.clock.pass_(1)
        assert len(revisions(wire)) <= 2  # one snapshot was already queued
        wire.link.resume_writing()
        await settle()
        assert revisions(wire)[-1] == snapshot_of(made.gateway).revision
        assert len(revisions(wire)) <= 3
        assert len(wire.told(control.BEAT)) <= 2


async def test_a_watcher_that_wants_signs_of_life_gets_them_and_others_none(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        beating, quiet = made.control(), made.control()
        assert await beating.result(control.WATCH, {"beat_s": 0.001}) == {control.BEAT: BEAT_SHORTEST_S}
        assert await quiet.result(control.WATCH) == {}
        await made.clock.pass_(3.5 * BEAT_SHORTEST_S)
        assert len(beating.told(control.BEAT)) == 3
        assert quiet.told(control.BEAT) == []
        assert beating.dispatcher is not None
        beating.dispatcher.close()
        await made.clock.pass_(1)
        assert len(beating.told(control.BEAT)) == 3


@pytest.mark.parametrize("beat_s", [0, -1, "2", True, []])
async def test_a_watcher_must_say_in_seconds_how_often_it_wants_signs_of_life(tmp_path: Path, beat_s: Any) -> None:
    async with house(tmp_path) as made:
        error = await made.control().error(control.WATCH, {"beat_s": beat_s})
        assert (error["code"], error["message"]) == (INVALID_PARAMS, "beat_s must be a number of seconds above 0")


async def test_two_watches_on_one_connection_are_both_served_and_end_with_it(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        wire = made.control()
        await wire.result(control.WATCH, number=1)
        await wire.result(control.WATCH, number=2)
        await settle()
        for _ in range(3):
            made.gateway.services.changes.changed()
            await made.told()
        assert len(revisions(wire)) == 8
        assert wire.dispatcher is not None
        wire.dispatcher.close()
        await settle()
        made.gateway.services.changes.changed()
        await made.told()
        assert len(revisions(wire)) == 8


async def test_settle_answers_once_nobody_is_being_asked_and_all_is_written(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        gate = made.net["a"].hold_start()
        made.net["a"].tools = [tool("x")]
        made.apply(server("a"))
        made.start()
        wire = made.control()
        wire.ask_only(1, control.SETTLE)
        await made.clock.pass_(1)
        assert wire.answers(1) == []
        gate.set()
        assert (await wire.answer(1))["result"] == {}
        assert made.written == [{"a": {"x": ToolSwitch()}}]


async def test_stop_is_answered_before_the_gateway_ends(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.start()
        wire = made.control()
        answers: list[bool] = []

        async def note_the_end() -> None:
            await made.gateway.stop_wanted.wait()
            answers.append(bool(wire.answers(1)))

        made.tasks.start_soon(note_the_end)
        assert await wire.result(control.STOP) == {}
        with anyio.fail_after(stretched(5.0)):
            await made.gateway.stop_wanted.wait()
        await settle()
        assert answers == [True]
