"""Per-session server processes (`scope: session`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.clock import settle
from tests.gateway.calls.test_server_requests import older, question, said, tool_call
from tests.gateway.world import house, server
from trayapp.backends.launch import StdioLaunch
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.gateway.scopes.connection_keys import folder_of
from trayapp.model.config import ServerConfig

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("scope-session")]


async def test_each_session_has_a_process_of_its_own_with_its_folder_and_its_capabilities(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a", scope="session"))
        (folder := tmp_path / "one").mkdir()
        one, two = made.client(cwd=str(folder)), await older(made, {"sampling": {}})
        await one.result("initialize", {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}}, "init")
        for client in (one, two):
            await client.call("a_echo")
        assert made.net["a"].open_now == 0
        first, second = made.net["a#1"], made.net["a#2"]
        assert (first.open_now, second.open_now) == (1, 1)
        assert (await first.heard_of("initialize"))["capabilities"] == {"roots": {}}
        assert (await second.heard_of("initialize"))["capabilities"] == {"sampling": {}}
        launch = first.launches[0]
        assert isinstance(launch, StdioLaunch)
        assert launch.cwd == str(folder)


async def test_it_ends_with_its_session_and_no_other_does(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a", scope="session"))
        one, two = await older(made), await older(made)
        for client in (one, two):
            await client.call("a_echo")
        one.end()
        while made.net["a#1"].open_now:
            await settle()
        assert made.net["a#2"].open_now == 1
        assert "result" in await two.call("a_echo", 2)


async def test_questions_reach_the_session_whose_server_it_is(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a", scope="session"))
        clients = [await older(made) for _ in range(5)]
        for client in clients:
            client.ask_only(1, "tools/call", tool_call("a_ask", method="roots/list"))
        for number, client in enumerate(clients):
            asked = await question(client, "roots/list")
            client.send({"id": asked["id"], "result": {"roots": [number]}})
        answers: list[Any] = [said(await client.answer(1)) for client in clients]
        assert answers == [{"roots": [number]} for number in range(5)]


async def test_it_is_one_server_in_the_list_and_in_the_status(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a", scope="session"))
        client = await older(made)
        names = await client.names()
        await client.call("a_echo")
        assert await client.names() == names
        (row,) = snapshot_of(made.gateway).servers
        assert (row.name, row.state, row.calls) == ("a", "connected", 1)


async def test_calls_of_sessions_that_have_ended_still_count(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a", scope="session"), server("b"))
        for _ in range(2):
            client = await older(made)
            await client.call("a_echo")
            await client.call("b_echo", 2)
            client.end()
            await settle()
        assert [connection.key for connection in made.gateway.services.pool] == ["a", "b"]
        assert {row.name: row.calls for row in snapshot_of(made.gateway).servers} == {"a": 2, "b": 2}
        await made.known(server("b"))
        await made.known(server("a", scope="session"), server("b"))
        assert {row.name: row.calls for row in snapshot_of(made.gateway).servers} == {"a": 0, "b": 2}


async def test_its_lists_are_read_once_for_all(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a", scope="session"))
        for _ in range(3):
            await (await older(made)).call("a_echo")
        assert all("tools/list" not in made.net[f"a#{number}"].methods() for number in (1, 2, 3))


async def test_a_changed_entry_starts_each_anew(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a", scope="session"))
        client = await older(made)
        await client.call("a_echo")
        await made.known(server("a", scope="session", args=("--other",)))
        await client.call("a_echo", 2)
        assert made.net["a#1"].opened == 2


@pytest.mark.requirement("life-folder")
@pytest.mark.parametrize(
    ("cwd", "said", "folder"),
    [
        (None, "/src/shop", "/src/shop"),
        ("/srv", "/src/shop", "/srv"),
        ("~/srv", "/src/shop", "~/srv"),
        ("./srv", "/src/shop", "/src/shop/srv"),
        (None, "/", None),
        ("./srv", "/", "./srv"),
        (None, "", None),
        (None, "relative", None),
        (None, ["/"], None),
    ],
)
def test_its_folder_is_the_sessions_unless_the_entry_names_one(cwd: str | None, said: Any, folder: str | None) -> None:
    assert folder_of(ServerConfig("a", command="x", cwd=cwd), said) == folder
