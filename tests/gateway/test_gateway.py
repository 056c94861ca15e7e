"""The gateway as a whole: isolated failures, correct snapshots, and many servers."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.clock import settle
from tests.fixtures.fake_transport import refused
from tests.gateway.world import BrokenClock, House, echo_of, house, offer, serve, server
from trayapp import __version__
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.gateway.services import BROADCAST_DELAY_S
from trayapp.model.config import Settings
from trayapp.model.errors import ConnectFailedError, Problem
from trayapp.model.lifecycle import State

pytestmark = pytest.mark.anyio
BAD: Any = {"name": "t", "x": {1, 2}}  # neither JSON nor the cache can hold a set


async def test_a_pool_task_that_fails_in_a_way_that_we_do_not_know_is_logged_and_the_gateway_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with house(tmp_path, BrokenClock) as made:
        made.net["a"].before = refused
        await made.known(server("a"), server("b"))
        clock = made.dependencies.clock
        assert isinstance(clock, BrokenClock)
        clock.broken = True
        made.gateway.services.pool.discover(["a"])
        await made.gateway.services.pool.settled()
        await settle()
        clock.broken = False
        assert "Unexpected error in Pool._discover" in caplog.text
        assert "ZeroDivisionError" in caplog.text
        client = await made.ready()
        assert "result" in await client.call("b_echo")
        made.net["a"].before = None
        await made.clock.pass_(61)
        assert "result" in await client.call("a_echo")


async def test_an_exposure_that_cannot_be_made_ends_neither_the_gateway_nor_its_telling(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await made.ready()
        snapshots: list[int] = []
        made.gateway.services.changes.listen(lambda: snapshots.append(1))
        made.gateway.services.listings.take(server("a"), offer("x", prompts=(BAD,)))
        made.apply(server("a", exclude_tools=("x",)))
        await made.told()
        assert "Unexpected error in ChangeFeed.broadcast" in caplog.text
        assert "error" in await client.ask("prompts/list")
        made.gateway.services.listings.take(server("a"), offer("y"))
        made.apply(server("a"))
        await made.clock.pass_(2)
        assert snapshots
        assert client.list_changes() == ["tools"]
        assert await client.names() == ["a_y"]


@pytest.mark.requirement("cli-json-shapes")
async def test_the_snapshot_has_the_documented_shape_and_the_truth(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"), server("b", lifecycle="eager"), server("off", disabled=True))
        client = await made.ready(name="agent")
        await client.call("a_echo")
        await made.clock.pass_(5)
        snapshot = snapshot_of(made.gateway).to_json()
        assert (snapshot["version"], snapshot["problems"]) == (1, [])
        gateway = snapshot["gateway"]
        assert gateway["sessions"] == (
            {"client": "agent", "transport": "stdio", "protocol": "2025-11-25", "expose": "tools"},
        )
        assert (gateway["state"], gateway["pid"], gateway["version"]) == ("running", os.getpid(), __version__)
        assert gateway["uptime_s"] == pytest.approx(made.clock.now() - 1_000)
        servers = {entry["name"]: entry for entry in snapshot["servers"]}
        assert list(servers) == ["a", "b", "off"]
        assert servers["a"] == {
            "name": "a",
            "state": "connected",
            "lifecycle": "lazy",
            "transport": "stdio",
            "protocol": "2025-11-25",
            "tools": {"total": 7, "enabled": 7, "stale": 0, "withheld": 0},
            "pid": 2,
            "error": None,
            "failed_s_ago": None,
            "last_used_s_ago": 5,
            "calls": 1,
        }
        assert (servers["b"]["state"], servers["b"]["last_used_s_ago"] is not None) == ("connected", True)
        assert (servers["off"]["state"], servers["off"]["pid"]) == ("disabled", None)


async def test_sessions_stand_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.start()
        clients = [await made.ready(name=f"c{n}") for n in range(20)]
        clients[3].end()
        await settle()
        names = [session.client for session in snapshot_of(made.gateway).gateway.sessions]
        assert names == [f"c{n}" for n in range(20) if n != 3]


async def test_a_failed_server_says_why_how_long_ago_and_no_secret(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        secret = "ghp_" + "a1B2c3D4e5" * 4

        async def fail(number: int) -> None:
            raise ConnectFailedError(
                "a", f"Cannot reach https://h/?token=abc123secret: Bearer {secret}", f"token={secret}"
            )

        made.net["a"].before = fail
        made.cache(server("a"), offer("x"))
        made.apply(server("a"))
        made.start()
        client = await made.ready()
        error = (await client.call("a_x"))["error"]
        await made.clock.pass_(12)
        (status,) = snapshot_of(made.gateway).servers
        assert (status.state, status.failed_s_ago) == (State.FAILED, 12)
        assert status.error is not None
        assert status.error["title"].startswith("Cannot reach https://h/?token=")
        control = made.control()
        answer = await control.error("call", {"tool": "a_x"})
        refreshed = await control.result("reconnect", {})
        for text in (json.dumps(error), json.dumps(status.error), json.dumps(answer), json.dumps(refreshed)):
            assert secret not in text
            assert "abc123secret" not in text


async def test_the_last_words_of_a_server_reach_no_client_with_a_secret_in_them(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await made.ready()
        client.call_only("a_hold", 1, key="k")
        await made.net["a"].heard_of("held")
        made.net["a"].epitaph = "exited with code 1: Invalid api_key=abcdef0123456789abcdef"
        made.net["a"].die()
        message = (await client.answer(1))["error"]["message"]
        assert "exited with code 1" in message
        assert "abcdef0123456789abcdef" not in message


async def test_a_file_that_cannot_be_used_leaves_what_runs_and_shows_why(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        minor = Problem("servers.yaml", 3, "unknown key", fatal=False)
        made.apply(server("a"), problems=(minor,))
        made.start()
        await made.gateway.services.pool.settled()
        made.gateway.take_problem(Problem("servers.yaml", 9, "broken"))
        made.gateway.take_problem(Problem("servers.yaml", 8, "broken elsewhere"))
        assert [problem.line for problem in made.gateway.problems] == [3, 8]
        assert "result" in await (await made.ready()).call("a_echo")
        made.apply(server("a"))
        assert made.gateway.problems == ()


@pytest.mark.requirement("file-unchanged-run-on", "file-applied-on-save")
async def test_a_new_configuration_leaves_what_it_does_not_change(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"), server("b"), server("gone"))
        client = await made.ready()
        client.call_only("a_hold", 1, key="k")
        await made.net["a"].heard_of("held")
        await client.call("gone_echo", 2)
        made.apply(server("new"), server("b", args=("x",)), server("a", idle_timeout=1), settings=Settings(linger=1))
        await made.gateway.services.pool.settled()
        await client.call("a_release", 3, key="k")
        assert "result" in await client.answer(1)
        assert made.net["gone"].open_now == 0
        assert [entry.name for entry in snapshot_of(made.gateway).servers] == ["new", "b", "a"]


async def test_watchers_are_called_once_for_many_changes_and_not_after_they_left(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        calls: list[int] = []
        leave = made.gateway.services.changes.listen(lambda: calls.append(1))
        for _ in range(50):
            made.gateway.services.changes.changed()
        await made.told()
        assert len(calls) == 1
        leave()
        made.gateway.services.changes.changed()
        await made.told()
        assert len(calls) == 1


async def test_nothing_is_computed_when_nobody_listens(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        before = made.gateway.servers.view.exposure()
        for _ in range(1_000):
            made.gateway.services.changes.changed()
        await made.clock.pass_(BROADCAST_DELAY_S * 3)
        assert made.gateway.servers.view.exposure() is before


def big(made: House, servers: int, each: int) -> None:
    entries = [server(f"s{n}") for n in range(servers)]
    for entry in entries:
        made.cache(entry, offer(*(f"tool_{n}" for n in range(each))))
    made.apply(*entries)


async def test_2000_tools_of_100_servers_are_listed_found_and_counted(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        big(made, 100, 20)
        made.start()
        client = await made.ready()
        assert len(await client.names()) == 2_000
        assert sum(entry.tools.enabled for entry in snapshot_of(made.gateway).servers) == 2_000
        assert "result" in await client.call("s42_tool_7")
        assert sum(made.net[f"s{n}"].opened for n in range(100)) == 1


async def test_a_log_level_reaches_a_server_that_does_not_answer_and_nothing_waits(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        serve(made.net["a"])
        echo_of(made.net["b"], "logging/setLevel")

        async def never(params: dict[str, Any]) -> dict[str, Any]:
            await made.clock.sleep(1e9)
            return {}

        made.net["a"].replies["logging/setLevel"] = never
        await made.known(server("a", lifecycle="eager"))
        client = await made.ready()
        assert await client.result("logging/setLevel", {"level": "debug"}) == {}
        assert "result" in await client.call("a_echo")


async def test_what_a_replaced_connection_still_reads_is_nobody_s(tmp_path: Path) -> None:
    """A save relaunches the server while the lists of the old process are still being read."""
    async with house(tmp_path) as made:
        await made.known(server("a"))
        old = made.gateway.services.pool.find("a")
        made.apply(server("a", args=("other",)))
        await made.gateway.services.pool.settled()
        assert made.gateway.services.pool.find("a") is not old
        now = made.gateway.services.listings.get("a")
        made.gateway.offer_fetched(old, offer("of_the_old_one"))
        assert made.gateway.services.listings.get("a") == now
        made.gateway.offer_fetched(made.gateway.services.pool.find("a"), offer("of_the_new_one"))
        assert made.gateway.services.listings.get("a") == offer("of_the_new_one")


@pytest.mark.requirement("history-harmless")
async def test_calls_that_are_written_while_the_gateway_ends_disturb_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        assert "result" in await (await made.ready()).call("a_echo")
    failures: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(str(context)))
    try:
        history = made.gateway.services.history
        await history.close()
        await settle()
        assert history.today is not None
        assert history.today.calls == 1
        assert failures == []
    finally:
        loop.set_exception_handler(None)
