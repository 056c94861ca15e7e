"""Sessions in a project: only they get its trusted servers, and an unapproved file has no effect."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.behaviour import tool
from tests.fixtures.clock import settle
from tests.gateway.world import Client, House, house
from trayapp.backends.launch import StdioLaunch
from trayapp.config.layers.project import TrustStore, read_project
from trayapp.config.read.parse import parse
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.gateway.scopes.projects import LOOK_EVERY_S, ProjectFinding, look_with
from trayapp.model.config import Config
from trayapp.model.status import ServerStatus

pytestmark = pytest.mark.anyio

USER = "settings: {expose: tools}\nservers: {user: {command: /bin/sh}, both: {command: /bin/sh, args: [mine]}}"
SHOP = '{"mcpServers": {"db": {"command": "/bin/sh"}, "both": {"args": ["theirs"]}}}'


class Shops:
    """A gateway with project folders."""

    def __init__(self, made: House, folder: Path) -> None:
        self.made = made
        self.folder = folder.resolve()
        self.trust = TrustStore(folder / "trusted.json")
        made.look = look_with(self.trust, self.folder)

    def project(self, name: str, text: str = SHOP, *, approved: bool = True) -> Path:
        """Write a project's .mcp.json, approve it if `approved`, and return the folder."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / ".mcp.json").write_text(text, encoding="utf-8")
        if approved:
            self.approve(folder)
        return folder

    def approve(self, folder: Path) -> None:
        """Approve the project's file, as `multi-mcp trust` does."""
        file = read_project(folder / ".mcp.json")
        assert file is not None
        self.trust.approve(file)

    async def started(self, user: str = USER) -> None:
        """Start serving the user's servers, and wait until all have been discovered."""
        self.save(user)
        self.made.start()
        await self.made.gateway.services.pool.settled()
        await self.made.told()

    def save(self, user: str) -> None:
        """Apply the text as a saved servers.yaml."""
        self.made.gateway.take_config(parse(user, "servers.yaml"))

    async def look_again(self) -> None:
        """Reload all projects, as the command line can request."""
        await self.made.gateway.projects.refresh()
        await self.made.gateway.services.pool.settled()
        await self.made.told()

    def rows(self) -> dict[str, ServerStatus]:
        return {row.name: row for row in snapshot_of(self.made.gateway).servers}

    def problems(self) -> list[str]:
        return [problem.file for problem in self.made.gateway.problems]

    def key(self, name: str) -> str:
        """Return the key under which the project's only server of that name runs."""
        (key,) = (key for key in self.rows() if key.startswith(f"{name}@"))
        return key


@asynccontextmanager
async def shops(tmp_path: Path) -> AsyncIterator[Shops]:
    async with house(tmp_path / "house") as made:
        yield Shops(made, tmp_path)


async def names(client: Client) -> set[str]:
    return {name.rsplit("_", 1)[0] for name in await client.names()}


@pytest.mark.requirement("project-own-servers")
async def test_a_session_of_a_trusted_project_sees_its_servers_and_no_other_session_does(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        await made.started()
        folder = made.project("shop")
        (folder / "sub").mkdir()
        inside = await made.made.ready(cwd=str(folder / "sub"))
        outside = await made.made.ready(cwd=str(tmp_path))
        nowhere = await made.made.ready()
        assert await names(inside) == {"user", "both", "db"}
        assert await names(outside) == await names(nowhere) == {"user", "both"}
        assert "result" in await inside.call("db_echo")
        assert "error" in await outside.call("db_echo")
        assert made.problems() == []


@pytest.mark.requirement("project-own-servers")
async def test_what_the_project_starts_in_another_way_is_a_process_of_its_own(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        await made.started()
        folder = made.project("shop")
        inside, outside = await made.made.ready(cwd=str(folder)), await made.made.ready()
        assert "result" in await inside.call("both_echo")
        assert "result" in await outside.call("both_echo")
        assert "result" in await inside.call("user_echo")
        theirs, mine = made.made.net[made.key("both")], made.made.net["both"]
        for fake, words, cwd in ((theirs, "theirs", str(folder)), (mine, "mine", str(Path.home()))):
            launch = fake.launches[-1]
            assert isinstance(launch, StdioLaunch)
            assert launch.argv[1:] == (words,)
            assert launch.cwd == cwd
        assert made.rows()["user"].calls == 1
        assert (made.rows()["both"].calls, made.rows()[made.key("both")].calls) == (1, 1)


@pytest.mark.requirement("trust-ignored")
async def test_an_untrusted_file_starts_nothing_and_is_a_problem(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        await made.started()
        folder = made.project(
            "shop", '{"mcpServers": {"evil": {"command": "/bin/sh", "lifecycle": "eager"}}}', approved=False
        )
        client = await made.made.ready(cwd=str(folder))
        assert await names(client) == {"user", "both"}
        assert made.problems() == [str(folder / ".mcp.json")]
        assert f"multi-mcp trust {folder}" in made.made.gateway.problems[0].hint
        assert made.made.net.servers.keys() == {"user", "both"}
        client.end()
        await settle()
        assert made.problems() == []


@pytest.mark.requirement("trust-content")
async def test_an_approval_brings_the_servers_and_a_changed_file_takes_them_away(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        await made.started()
        folder = made.project("shop", approved=False)
        client = await made.made.ready(cwd=str(folder))
        await client.names()
        made.approve(folder)
        await made.look_again()
        assert client.list_changes() == ["tools"]
        assert await names(client) == {"user", "both", "db"}
        assert "result" in await client.call("db_echo")
        key = made.key("db")
        assert made.made.net[key].open_now == 1
        made.project("shop", SHOP + " ", approved=False)
        await made.look_again()
        assert made.made.net[key].open_now == 0
        assert await names(client) == {"user", "both"}
        assert "error" in await client.call("db_echo")
        assert made.problems() == [str(folder / ".mcp.json")]


@pytest.mark.requirement("trust-content")
async def test_a_changed_file_is_noticed_without_being_told(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        await made.started()
        folder = made.project("shop")
        client = await made.made.ready(cwd=str(folder))
        assert await names(client) == {"user", "both", "db"}
        made.project("shop", SHOP + " ", approved=False)
        await made.made.clock.pass_(LOOK_EVERY_S)
        for _ in range(1000):
            if made.problems():
                break
            await settle()
        assert await names(client) == {"user", "both"}


async def test_a_revoked_approval_takes_them_away(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        await made.started()
        folder = made.project("shop")
        client = await made.made.ready(cwd=str(folder))
        made.trust.revoke(folder / ".mcp.json")
        await made.look_again()
        assert await names(client) == {"user", "both"}
        assert not [name for name in made.rows() if "@" in name]


@pytest.mark.requirement("project-own-servers")
async def test_sessions_of_one_project_share_its_servers_and_two_projects_do_not(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        await made.started()
        one, two = made.project("one"), made.project("two")
        clients = [await made.made.ready(cwd=str(folder)) for folder in (one, one, two)]
        for client in clients:
            assert "result" in await client.call("db_echo")
        keys = [name for name in made.rows() if name.startswith("db@")]
        assert [made.made.net[key].opened for key in keys] == [2, 2]  # one start to read the lists, one for the call
        assert sorted(made.rows()[key].calls for key in keys) == [1, 2]
        assert {made.rows()[key].project for key in keys} == {str(one), str(two)}
        assert made.rows()["user"].project is None


async def test_a_projects_request_timeout_holds_for_its_sessions_at_the_users_own_process(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        await made.started()
        folder = made.project("shop", '{"mcpServers": {"user": {"request_timeout": 0.01}}}')
        inside, outside = await made.made.ready(cwd=str(folder)), await made.made.ready()
        error = (await inside.call("user_hold", 5, key="k"))["error"]
        assert "did not answer within 0.01 s" in error["message"]
        outside.send({"id": 6, "method": "tools/call", "params": {"name": "user_hold", "arguments": {"key": "l"}}})
        await made.made.net["user"].heard_of("held", 2)
        assert "result" in await outside.call("user_release", 7, key="l")
        assert "result" in await outside.answer(6)
        assert made.made.net["user"].open_now == 1


@pytest.mark.requirement("project-own-servers")
async def test_the_last_session_of_a_project_takes_its_servers_with_it(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        await made.started()
        folder = made.project("shop")
        first, second = [await made.made.ready(cwd=str(folder)) for _ in range(2)]
        assert "result" in await first.call("db_echo")
        key = made.key("db")
        first.end()
        await settle()
        assert made.made.net[key].open_now == 1
        assert "result" in await second.call("db_echo")
        second.end()
        await settle()
        assert made.made.net[key].open_now == 0
        assert made.rows().keys() == {"user", "both"}


async def test_the_first_list_waits_for_servers_of_the_project_that_are_not_known(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        await made.started()
        client = made.made.client(cwd=str(made.project("shop")))
        await client.shake_hands()
        assert await names(client) == {"user", "both", "db"}


async def test_tools_of_a_projects_server_are_not_written_into_servers_yaml(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        await made.started("servers: {user: {command: /bin/sh, tools: {}}}")
        await made.made.gateway.services.writer.written()
        before = list(made.made.written)
        assert [list(found) for found in before] == [["user"]]
        text = '{"mcpServers": {"db": {"command": "/bin/sh", "tools": {}}}}'
        await made.made.ready(cwd=str(made.project("shop", text)))
        await made.made.gateway.services.pool.settled()
        await made.made.gateway.services.writer.written()
        assert made.made.written == before
        assert made.rows()[made.key("db")].tools.total > 0


async def test_the_users_saved_changes_reach_the_sessions_of_a_project(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        await made.started()
        client = await made.made.ready(cwd=str(made.project("shop")))
        assert "result" in await client.call("db_echo")
        opened = made.made.net[made.key("db")].opened
        made.save(
            "settings: {expose: tools}\nservers: {other: {command: /bin/sh}, both: {command: /bin/sh, args: [mine]}}"
        )
        await made.look_again()
        assert await names(client) == {"other", "both", "db"}
        assert "result" in await client.call("db_echo")
        assert made.made.net[made.key("db")].opened == opened


async def test_a_user_server_that_the_project_switches_off_is_off_there_alone(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        await made.started()
        folder = made.project("shop", '{"mcpServers": {"user": {"disabled": true}}}')
        inside, outside = await made.made.ready(cwd=str(folder)), await made.made.ready()
        assert await names(inside) == {"both"}
        assert await names(outside) == {"user", "both"}
        assert "error" in await inside.call("user_echo")
        assert "result" in await outside.call("user_echo")


async def test_what_a_projects_server_says_by_itself_stays_in_the_project(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        await made.started()
        inside, outside = await made.made.ready(cwd=str(made.project("shop"))), await made.made.ready()
        await inside.call("db_echo")
        channel = made.made.net[made.key("db")].channel
        assert channel is not None
        channel.tell(0, None, "notifications/acme/news", {"uri": "db://x"})
        assert inside.told("notifications/acme/news")
        assert not outside.told("notifications/acme/news")


async def test_changes_of_a_projects_lists_are_told_to_its_sessions_alone(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        await made.started()
        inside, outside = await made.made.ready(cwd=str(made.project("shop"))), await made.made.ready()
        assert {*await names(inside), *await names(outside)} == {"user", "both", "db"}
        fake = made.made.net[made.key("db")]
        fake.tools = [tool("new")]
        await made.made.gateway.services.pool.refresh(made.made.gateway.services.pool.find(made.key("db")))
        await made.made.told()
        assert (inside.list_changes(), outside.list_changes()) == (["tools"], [])
        assert "db_new" in await inside.names()


async def test_a_problem_in_a_trusted_file_is_shown_and_the_rest_of_it_runs(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        await made.started()
        folder = made.project("shop", '{"mcpServers": {"db": {"command": "/bin/sh"}, "bad": {}}}')
        client = await made.made.ready(cwd=str(folder))
        assert await names(client) == {"user", "both", "db"}
        assert made.problems() == [str(folder / ".mcp.json")]


@pytest.mark.parametrize("cwd", ["", "relative", "/nowhere/at/all", "/a\0b", None, 5, ["/"]])
async def test_a_session_that_says_nothing_useful_of_its_folder_belongs_to_no_project(tmp_path: Path, cwd: Any) -> None:
    async with shops(tmp_path) as made:
        await made.started()
        assert await names(await made.made.ready(cwd=cwd)) == {"user", "both"}


# -- looking into a project folder -------------------------------------------------------------------------------------


@pytest.mark.requirement("idle-quiet")
async def test_what_has_not_changed_is_not_laid_over_the_users_servers_again(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        folder, user = made.project("shop"), parse(USER, "servers.yaml")
        look = made.made.look
        first = look(folder, user)
        assert look(folder, user) is first
        assert look(folder, parse(USER, "servers.yaml")) is not first
        made.project("shop", SHOP + " ")
        assert look(folder, user) is not first
        made.trust.revoke(folder / ".mcp.json")
        assert look(folder, user).overlay is None


async def test_a_look_that_fails_is_no_project_and_goes_into_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with shops(tmp_path) as made:
        await made.started()

        def broken(folder: Path, user: Config) -> ProjectFinding:
            raise ZeroDivisionError("broken on purpose")

        made.made.look = broken
        assert await names(await made.made.ready(cwd=str(tmp_path))) == {"user", "both"}
    assert "broken on purpose" in caplog.text


async def test_a_folder_that_hangs_holds_its_session_for_a_moment_only(tmp_path: Path) -> None:
    gate = threading.Event()

    def hanging(folder: Path, user: Config) -> ProjectFinding:
        gate.wait(30)
        return ProjectFinding()

    async with shops(tmp_path) as made:
        await made.started()
        made.made.look = hanging
        made.made.gateway.projects.looks.limit_s = 0.05
        try:
            first = await made.made.ready(cwd=str(tmp_path))
            second = await made.made.ready(cwd=str(tmp_path))
            assert await names(first) == await names(second) == {"user", "both"}
        finally:
            gate.set()


async def test_two_sessions_that_come_at_once_both_have_the_project(tmp_path: Path) -> None:
    async with shops(tmp_path) as made:
        await made.started()
        folder = str(made.project("shop"))
        clients = [made.made.client(cwd=folder) for _ in range(2)]
        for client in clients:
            await client.shake_hands()
            assert await names(client) == {"user", "both", "db"}


@pytest.mark.requirement("filters-bind-servers-words")
async def test_what_a_projects_server_tells_is_heard_in_that_project_alone(tmp_path: Path) -> None:
    async with shops(tmp_path) as all_:
        await all_.started()
        inside = await all_.made.ready(cwd=str(all_.project("shop")))
        outside, elsewhere = await all_.made.ready(), await all_.made.ready(cwd=str(all_.project("other")))
        for client, name in ((inside, "db_echo"), (outside, "user_echo"), (elsewhere, "user_echo")):
            assert "result" in await client.call(name)
        (key,) = [key for key, fake in all_.made.net.servers.items() if key.startswith("db@") and fake.open_now]
        channel = all_.made.net[key].channel
        assert channel is not None
        for method in ("notifications/message", "notifications/x-odd"):
            channel.tell(0, None, method, {"level": "error", "data": "of the shop"})
            assert [len(client.told(method)) for client in (inside, outside, elsewhere)] == [1, 0, 0]
