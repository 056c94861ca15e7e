"""Clients that lack an extension: their tasks are plain calls, and they read skills with the tool `mcp`."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cell import MODERN
from tests.e2e.client import Conversation, Message, RpcFailure, client_of
from tests.e2e.extension_scenario import Visitor, event, task_until
from tests.e2e.gateway import Gateway
from tests.e2e.http_client import http_client
from tests.e2e.test_extensions import NAMES, OLDER, entries
from tests.e2e.test_sdk_clients import headers_of, url_of
from tests.faults.world import LONG
from tests.fixtures import era_server
from tests.fixtures.extension_server import UNKNOWN
from tests.fixtures.odd import until
from trayapp.service.command_line import own_command

pytestmark = [pytest.mark.anyio]


class Bare(Visitor):
    """A client without extensions."""

    def params(self, params: Message, capabilities: Message | None = None) -> Message:
        return super().params(params, {"elicitation": {"form": {}}})

    async def introduce(self) -> Message:
        if self.modern:
            return await super().introduce()
        found: Message = await self.client.initialize(self.revision, elicitation={"form": {}})
        return found


def notes(folder: Path, server: str, what: str) -> list[Any]:
    lines = (folder / server / "notes").read_text(encoding="utf-8").splitlines()
    return [found["value"] for line in lines if (found := json.loads(line))["what"] == what]


@pytest.mark.requirement("extensions-bridged")
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("server_revision", [OLDER, MODERN])
async def test_a_tool_that_runs_as_a_task_alone_is_a_plain_call_for_an_older_client(
    gateway: Gateway, tmp_path: Path, server_revision: str, transport: str
) -> None:
    with entries(NAMES[:2], server_revision, tmp_path, transport) as servers:
        gateway.write(servers)
        gateway.start()
        await gateway.known()
        async with gateway.client(None) as client:
            visitor = Bare(client, OLDER, "two_", "two")
            await visitor.introduce()
            failed = await visitor.call("failing_job", seconds=0.2)
            through = await visitor.request(
                "tools/call", name="mcp", arguments={"tool": "failing_job", "server": "two", "args": {"seconds": 0.2}}
            )
        said = (await gateway.ask("call", tool="two_failing_job", args={"seconds": 0.2}))["result"]
        assert [said["content"][0]["text"], said["isError"]] == ["It failed", True]
        assert [failed["content"][0]["text"], failed["isError"]] == ["It failed", True]
        assert [through["content"][0]["text"], through["isError"]] == ["It failed", True]


@pytest.mark.requirement("extensions-bridged")
async def test_a_client_that_gives_up_a_call_cancels_its_task_and_meanwhile_hears_of_progress(
    gateway: Gateway, tmp_path: Path
) -> None:
    with entries(NAMES[:1], MODERN, tmp_path, "stdio") as servers:
        gateway.write(servers)
        gateway.start()
        await gateway.known()
        async with gateway.client(None) as client:
            visitor = Bare(client, OLDER, "one_", "one")
            await visitor.introduce()
            params = {"name": "one_failing_job", "arguments": {"seconds": 600}, "_meta": {"progressToken": "p"}}
            call = client.ask("tools/call", params, 500)
            told = await client.heard("notifications/progress", 3)
            client.send({"method": "notifications/cancelled", "params": {"requestId": 500}})
            await until(lambda: notes(tmp_path, "one", "task cancelled"))
        assert [one["progressToken"] for one in told[:3]] == ["p"] * 3
        assert [one["progress"] for one in told[:3]] == [1, 2, 3]
        assert told[0]["message"] == "at one"
        assert not call.done() or call.exception() is not None


@pytest.mark.requirement("extensions-bridged")
async def test_a_2026_client_hears_which_capability_a_tool_needs_and_the_one_tool_needs_none(
    gateway: Gateway, tmp_path: Path
) -> None:
    with entries(NAMES[:1], MODERN, tmp_path, "stdio") as servers:
        gateway.write(servers)
        gateway.start()
        await gateway.known()
        async with gateway.client(None) as client:
            visitor = Bare(client, MODERN, "one_", "one")
            await visitor.introduce()
            with pytest.raises(RpcFailure) as caught:
                await visitor.call("failing_job")
            through = await visitor.request("tools/call", name="mcp", arguments={"tool": "one_failing_job"})
        assert caught.value.error["code"] == -32021
        assert through["content"][0]["text"] == "It failed"
        assert through["resultType"] == "complete"


@pytest.mark.requirement("extensions-bridged")
async def test_a_client_without_skills_reads_them_and_their_files_by_the_one_tool(
    gateway: Gateway, tmp_path: Path
) -> None:
    with entries(NAMES[:2], MODERN, tmp_path, "stdio") as servers:
        gateway.write(servers, expose="search")
        gateway.start()
        await gateway.known()
        async with gateway.client(None) as client:
            visitor = Bare(client, OLDER, "two_", "two")
            await visitor.introduce()
            found = await visitor.request("tools/call", name="mcp", arguments={"search": "skill demo how to use"})
            read = await visitor.request("tools/call", name="mcp", arguments={"tool": "two_read_demo"})
            own = read["content"][0]["resource"]["uri"]
            more = own.replace("SKILL.md", "references/MORE.md")
            file = await visitor.request("tools/call", name="mcp", arguments={"tool": more})
        assert "two_read_demo" in found["content"][0]["text"]
        assert "How to use two" in read["content"][0]["resource"]["text"]
        assert file["content"][0]["resource"]["text"] == "More about it.\n"


@pytest.mark.requirement("extensions-apps")
async def test_tools_with_a_user_interface_stand_beside_the_one_tool_for_clients_that_show_apps(
    gateway: Gateway, tmp_path: Path
) -> None:
    with entries(NAMES[:2], MODERN, tmp_path, "stdio") as servers:
        gateway.write(servers, expose="search")
        gateway.start()
        await gateway.known()
        for revision in (OLDER, MODERN):
            async with gateway.client(None) as client:
                visitor = Visitor(client, revision)
                await visitor.introduce()
                tools = (await visitor.request("tools/list"))["tools"]
                assert [tool["name"] for tool in tools] == ["mcp", "one_show", "two_show"]
                address = tools[2]["_meta"]["ui"]["resourceUri"]
                read = await visitor.request("resources/read", uri=address)
                assert read["contents"][0]["text"] == "ui://shared/app of two"
            async with gateway.client(None) as client:
                bare = Bare(client, revision)
                await bare.introduce()
                assert [tool["name"] for tool in (await bare.request("tools/list"))["tools"]] == ["mcp"]


CHANGED = "---\nname: demo\ndescription: How to use it now\n---\nDo it in another way.\n"
HIDDEN = "---\nname: demo\ndescription: How to use it\u202e\n---\nPlain.\n"
HIDDEN_INSIDE = "---\nname: demo\ndescription: How to use it\n---\nPlain.\U000e0049\U000e0067\U000e006e\U000e006f\n"
DEMO = "skill://demo/SKILL.md"


async def skills_of(visitor: Visitor) -> list[str]:
    return [skill["uri"] for skill in (await visitor.request("skills/list"))["skills"]]


@pytest.mark.requirement("extensions-skills-eyes")
async def test_a_changed_skill_is_held_back_until_it_is_approved(gateway: Gateway, tmp_path: Path) -> None:
    with entries(NAMES[:1], MODERN, tmp_path, "stdio") as servers:
        gateway.write(servers)
        gateway.start()
        await gateway.known()
        async with gateway.client(None) as client:
            visitor = Visitor(client, MODERN)
            await visitor.introduce()
            assert DEMO in await skills_of(visitor)
            await visitor.request("skills/get", uri=DEMO)
            (tmp_path / "one" / "notes.skill").write_text(CHANGED, encoding="utf-8")
            for method in ("resources/read", "skills/get", "resources/read"):
                with pytest.raises(RpcFailure, match="approve"):
                    await visitor.request(method, uri=DEMO)
            assert DEMO not in await skills_of(visitor)
            waiting = gateway.control("approvals")["rows"]
            assert [one["tool"] for one in waiting] == [f"(skill) {DEMO}"]
            row = {key: waiting[0][key] for key in ("server", "tool", "hash")}
            gateway.control("approve", tools=[row])
            assert DEMO in await skills_of(visitor)
            read = await visitor.request("resources/read", uri=DEMO)
            assert read["contents"][0]["text"] == CHANGED


@pytest.mark.requirement("extensions-skills-eyes")
@pytest.mark.parametrize("text", [HIDDEN, HIDDEN_INSIDE], ids=["entry", "file"])
async def test_a_skill_that_hides_text_reaches_no_client(gateway: Gateway, tmp_path: Path, text: str) -> None:
    with entries(NAMES[:1], MODERN, tmp_path, "stdio") as servers:
        (tmp_path / "one" / "notes.skill").write_text(text, encoding="utf-8")
        gateway.write(servers)
        gateway.start()
        await gateway.known()
        async with gateway.client(None) as client:
            visitor = Visitor(client, MODERN)
            await visitor.introduce()
            with pytest.raises(RpcFailure, match="held back"):
                await visitor.request("resources/read", uri=DEMO)
            assert (DEMO in await skills_of(visitor)) is (text == HIDDEN_INSIDE)


@pytest.mark.requirement("extensions-filtered")
async def test_what_is_switched_off_has_no_skills_events_or_tasks(gateway: Gateway, tmp_path: Path) -> None:
    with entries(NAMES[:2], MODERN, tmp_path, "stdio") as servers:
        gateway.write(servers)
        gateway.start()
        await gateway.known()
        async with gateway.client(None) as client:
            visitor = Visitor(client, MODERN, "two_", "two")
            await visitor.introduce()
            task = await visitor.call("slow_compute", seconds=600)
            gateway.write({**servers, "two": {**servers["two"], "disabled": True}})
            await until(lambda: gateway.server("two")["state"] == "disabled")
            assert len(await skills_of(visitor)) == 2
            assert len((await visitor.request("events/list"))["events"]) == 1
            for method in ("tasks/get", "tasks/cancel"):
                with pytest.raises(RpcFailure, match="Task not found"):
                    await visitor.request(method, taskId=task["taskId"])
            gateway.write({name: {**entry, "disabled": True} for name, entry in servers.items()})
            await until(lambda: gateway.server("one")["state"] == "disabled")
            found = await visitor.introduce()
            assert "extensions" not in found
            for method in ("skills/list", "events/list", "tasks/get"):
                with pytest.raises(RpcFailure, match="No enabled server announces support for it"):
                    await visitor.request(method)


@pytest.mark.requirement("filters-bind-servers-words")
async def test_events_and_tasks_that_a_session_follows_are_not_told_once_its_filter_leaves_their_server_out(
    gateway: Gateway, tmp_path: Path
) -> None:
    with entries(NAMES[:2], MODERN, tmp_path, "stdio") as servers:
        gateway.write(servers, profiles={"some": {"servers": [*servers]}})
        gateway.start()
        await gateway.known()
        shim = [*own_command(), "stdio", "--profile", "some"]
        async with client_of(shim, gateway.env, gateway.home, None) as client, gateway.client(None) as other:
            whole, filtered = Visitor(other, MODERN, "two_", "two"), Visitor(client, MODERN, "two_", "two")
            tasks = [await follow(visitor) for visitor in (whole, filtered)]
            assert [counted(visitor) for visitor in (whole, filtered)] == [(0, 0), (0, 0)]
            await whole.call("fire", mark=1)
            for visitor in (whole, filtered):
                await visitor.client.heard(EVENT)
            gateway.write(servers, profiles={"some": {"servers": ["one"]}})
            await filtered.client.heard("notifications/tools/list_changed")
            await whole.call("fire", mark=2)
            for task in reversed(tasks):
                await whole.request("tasks/cancel", taskId=task)
            await whole.client.heard(EVENT, 2)
            await whole.client.heard(TASK)
            assert [counted(visitor) for visitor in (whole, filtered)] == [(2, 1), (1, 0)]


EVENT, TASK = "notifications/events/event", "notifications/tasks"


async def follow(visitor: Visitor) -> str:
    """Follow an event and a new task, and return the task's handle."""
    await visitor.introduce()
    await visitor.request("tools/list")
    name = await event(visitor)
    visitor.client.ask("events/stream", visitor.params({"name": name, "arguments": {}}), "stream")
    await visitor.client.heard("notifications/events/active")
    task: str = (await visitor.call("slow_compute", seconds=600))["taskId"]
    wanted = {"notifications": {"taskIds": [task], "toolsListChanged": True}}
    visitor.client.ask("subscriptions/listen", visitor.params(wanted), "listen")
    await visitor.client.heard("notifications/subscriptions/acknowledged")
    return task


def counted(visitor: Visitor) -> tuple[int, int]:
    """Return the numbers of events and of task changes that the client has received."""
    told = [one["method"] for one in visitor.client.told]
    return told.count(EVENT), told.count(TASK)


@pytest.mark.requirement("extensions-unknown")
@pytest.mark.parametrize("revision", [OLDER, MODERN])
async def test_an_extension_nobody_knows_is_routed_to_the_server_that_has_it_and_refused_where_two_have(
    gateway: Gateway, tmp_path: Path, revision: str
) -> None:
    """The gateway announces the extension while exactly one server has it."""
    plain = [sys.executable, "-I", "-S", era_server.__file__, revision, str(tmp_path / "notes")]
    with entries(NAMES[:2], revision, tmp_path, "stdio") as servers:
        gateway.write({"one": servers["one"], "plain": {"command": plain}})
        gateway.start()
        await gateway.known()
        async with gateway.client(None) as client:
            visitor = Visitor(client, revision)
            assert (await visitor.introduce())["extensions"][UNKNOWN] == {"x": [1]}
            assert (await visitor.request("acme/run", x=1))["by"] == "one"
        gateway.write({**servers, "plain": {"command": plain}})
        await until(lambda: "two" in gateway.server_names())
        await gateway.known()
        async with gateway.client(None) as client:
            visitor = Visitor(client, revision)
            assert UNKNOWN not in (await visitor.introduce())["extensions"]
            with pytest.raises(RpcFailure, match="the request does not say which") as caught:
                await visitor.request("acme/run", x=1)
            assert caught.value.error["code"] == -32601
            address = "multi-mcp://two/doc://shared/readme"
            assert (await visitor.request("acme/run", x=2, uri=address))["by"] == "two"


KILLS = 25 if LONG else 2  # for each combination of client, transport and revision
WAYS = [
    *(("shim", transport, revision) for transport in ("stdio", "http") for revision in (OLDER, MODERN)),
    ("http", "stdio", OLDER),
    ("http", "stdio", MODERN),
    ("sse", "http", OLDER),
]


@asynccontextmanager
async def entered(gateway: Gateway, way: str, revision: str) -> AsyncIterator[Conversation]:
    """Yield a client over the shim, Streamable HTTP or SSE, which has sent nothing yet."""
    if way == "shim":
        async with gateway.client(None) as by_shim:
            yield by_shim
        return
    url = url_of(gateway).replace("/mcp", "/sse" if way == "sse" else "/mcp")
    async with http_client(url, revision, headers_of(gateway), sse=way == "sse") as by_http:
        yield by_http


@pytest.mark.requirement("extensions-outlive")
@pytest.mark.timeout(110 if LONG else 60)
@pytest.mark.parametrize(("way", "transport", "revision"), WAYS)
async def test_no_task_is_lost_when_the_gateway_is_killed(
    gateway: Gateway, tmp_path: Path, way: str, transport: str, revision: str
) -> None:
    """The three servers give out the same task ids, and tasks outlive their server's process."""
    tasks: dict[str, str] = {}
    with entries(NAMES, revision, tmp_path, transport) as servers:
        gateway.write(servers, http={"port": 0})
        for round_ in range(KILLS):
            gateway.start()
            async with entered(gateway, way, revision) as client:
                visitor = Visitor(client, revision)
                await visitor.introduce()
                for name in NAMES:
                    visitor.prefix = f"{name}_"
                    made = await visitor.call("slow_compute", as_task=True, seconds=0.1 * (round_ % 3))
                    tasks[(made if visitor.modern else made["task"])["taskId"]] = name
            assert gateway.process is not None
            gateway.process.kill()
            gateway.process.wait()
        assert len(tasks) == 3 * KILLS
        gateway.start()
        async with entered(gateway, way, revision) as client:
            visitor = Visitor(client, revision)
            await visitor.introduce()
            for handle, name in tasks.items():
                if visitor.modern:
                    found = (await task_until(visitor, {"taskId": handle}))["result"]
                else:
                    found = await visitor.request("tasks/result", taskId=handle)
                assert f"slow_compute by {name}:" in found["content"][0]["text"]
