"""Requests of extensions, mainly about tasks that only one server process knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.calls.test_server_requests import ask_itself, older
from tests.gateway.world import House, house, server
from trayapp.wire import control
from trayapp.wire.capabilities import TASKS
from trayapp.wire.messages import INVALID_PARAMS, MISSING_CAPABILITY, RpcError

pytestmark = pytest.mark.anyio

TOLD = "notifications/tasks/status"


def with_tasks(made: House, key: str, ids: str | None = None, created: str | None = None) -> dict[str, dict[str, Any]]:
    """Make a fake process keep tasks of MCP 2025-11-25, and return them. A call without a task requests the roots.

    `ids`: the prefix of the tasks' ids, by default unique to the process. `created`: the creation time of all tasks.
    """
    fake = made.net[key]
    fake.capabilities = {**fake.capabilities, "tasks": {"list": {}, "requests": {"tools": {"call": {}}}}}
    tasks: dict[str, dict[str, Any]] = {}

    async def begin(params: dict[str, Any]) -> dict[str, Any]:
        if "task" not in params:
            assert fake.channel is not None
            return {"content": [{"type": "text", "text": json.dumps(await fake.channel.ask("roots/list", {}))}]}
        task = {"taskId": f"{ids or key}-{len(tasks)}", "status": "working", "statusMessage": key}
        task |= {"createdAt": created} if created else {}
        return {"task": tasks.setdefault(str(task["taskId"]), task)}

    async def get(params: dict[str, Any]) -> dict[str, Any]:
        if params["taskId"] not in tasks:
            raise RpcError(INVALID_PARAMS, "Task not found")
        return tasks[params["taskId"]]

    async def every(params: dict[str, Any]) -> dict[str, Any]:
        return {"tasks": list(tasks.values())}

    async def result(params: dict[str, Any]) -> dict[str, Any]:
        about = {"io.modelcontextprotocol/related-task": {"taskId": (await get(params))["taskId"]}}
        return {"content": [{"type": "text", "text": key}], "_meta": about}

    async def cancel(params: dict[str, Any]) -> dict[str, Any]:
        return {**await get(params), "status": "cancelled"}

    fake.replies |= {
        "tools/call": begin,
        "tasks/get": get,
        "tasks/list": every,
        "tasks/result": result,
        "tasks/cancel": cancel,
    }
    return tasks


@pytest.mark.requirement("extensions-outlive")
async def test_a_task_is_found_where_it_was_made_after_its_session_got_a_process_of_its_own(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        for key in ("a", "a#1"):
            with_tasks(made, key)
        await made.known(server("a"))
        client, other = await older(made, name="one"), await older(made, name="two")
        begin = {"name": "a_echo", "arguments": {}, "task": {}}
        first = (await client.result("tools/call", begin))["task"]["taskId"]
        foreign = (await other.result("tools/call", begin))["task"]["taskId"]
        await ask_itself(client, 9)  # from now on the session has its own process
        second = (await client.result("tools/call", begin))["task"]["taskId"]
        assert made.net["a#1"].methods().count("tools/call") == 1
        for handle in (first, second):
            assert (await client.result("tasks/get", {"taskId": handle}))["taskId"] == handle
        listed = [task["taskId"] for task in (await client.result("tasks/list"))["tasks"]]
        assert listed == [first, second]
        for key, handle in (("a", first), ("a", foreign), ("a#1", second)):
            channel = made.net[key].channel
            assert channel is not None
            channel.tell(0, None, TOLD, {"taskId": handle.rpartition("/")[2], "status": "working"})
        assert [params["taskId"] for params in client.told(TOLD)] == [first, second]
        assert [params["taskId"] for params in other.told(TOLD)] == [foreign]


@pytest.mark.requirement("extensions-outlive")
@pytest.mark.parametrize("ttl", [None, 1_200_000])
async def test_a_server_is_not_idle_while_it_works_on_a_task(tmp_path: Path, ttl: int | None) -> None:
    """The client need not poll the task. A task without a `ttl` counts as in progress for a day."""
    async with house(tmp_path) as made:
        tasks = with_tasks(made, "a")
        await made.known(server("a", idle_timeout=1))
        client = await older(made)
        begin = {"name": "a_echo", "arguments": {}, "task": {}}
        handle = (await client.result("tools/call", begin))["task"]["taskId"]
        for status in ("working", "completed"):
            await made.clock.pass_(600)
            assert made.net["a"].open_now == 1
            tasks["a-0"] |= {"status": status, "ttl": ttl}
            await client.result("tasks/get", {"taskId": handle})
        await made.clock.pass_(200)
        assert made.net["a"].open_now == 0
        await client.result("tools/call", begin)
        tasks["a-1"]["ttl"] = ttl
        await client.result("tasks/get", {"taskId": "multi-mcp://a/a-1"})
        await made.clock.pass_(1000)
        assert made.net["a"].open_now == 1
        await made.clock.pass_(24 * 3600)
        assert made.net["a"].open_now == 0


@pytest.mark.requirement("extensions-outlive")
@pytest.mark.parametrize("times", [(None, None), ("2026-01-01T00:00:00Z",) * 2, ("2026-01-01", "2026-01-02")])
async def test_tasks_of_two_processes_that_count_from_one_are_never_mixed_up(
    tmp_path: Path, times: tuple[str | None, str | None]
) -> None:
    async with house(tmp_path) as made:
        for key, created in zip(("a", "a#1"), times, strict=True):
            with_tasks(made, key, "task", created)
        await made.known(server("a"))
        client = await older(made)
        begin = {"name": "a_echo", "arguments": {}, "task": {}}
        shared = (await client.result("tools/call", begin))["task"]["taskId"]
        await ask_itself(client, 9)  # from now on the session has its own process
        own = (await client.result("tools/call", begin))["task"]["taskId"]
        assert shared != own
        for handle, key in ((shared, "a"), (own, "a#1"), (shared, "a")):
            task = await client.result("tasks/get", {"taskId": handle})
            assert (task["taskId"], task["statusMessage"]) == (handle, key)
            result = await client.result("tasks/result", {"taskId": handle})
            assert result["content"][0]["text"] == key
            assert result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"] == handle
        listed = (await client.result("tasks/list"))["tasks"]
        assert [(task["taskId"], task["statusMessage"]) for task in listed] == [(shared, "a"), (own, "a#1")]
        for key, handle in (("a#1", own), ("a", shared)):
            channel = made.net[key].channel
            assert channel is not None
            channel.tell(0, None, TOLD, {"taskId": "task-0", "status": "working"})
            assert client.told(TOLD)[-1]["taskId"] == handle


@pytest.mark.requirement("extensions-outlive")
@pytest.mark.parametrize("again", ["server", "gateway"])
@pytest.mark.parametrize("kept", [False, True])
async def test_a_handle_never_leads_to_another_task_that_got_its_id_after_a_restart(
    tmp_path: Path, again: str, kept: bool
) -> None:
    """If the server kept its tasks, the handle still leads to the same task."""
    async with house(tmp_path) as made:
        tasks = with_tasks(made, "a", "task", "2026-01-01T00:00:00Z")
        await made.known(server("a"))
        client = await older(made)
        begin = {"name": "a_echo", "arguments": {}, "task": {}}
        handle = (await client.result("tools/call", begin))["task"]["taskId"]
        if not kept:
            tasks.clear()
            tasks |= with_tasks(made, "a", "task", "2026-01-02T00:00:00Z")
        made.net["a"].die()
        await made.told()
        if again == "gateway":  # a new session has no record of the task
            client = await older(made, name="after")
        if not kept:
            new = (await client.result("tools/call", begin))["task"]["taskId"]
            assert (await client.result("tasks/get", {"taskId": new}))["taskId"] == new != handle
        for method in ("tasks/get", "tasks/result", "tasks/cancel", "tasks/get"):
            if kept:
                await client.result(method, {"taskId": handle})
            else:
                assert (await client.error(method, {"taskId": handle}))["code"] == INVALID_PARAMS
        assert made.net["a"].methods().count("tasks/cancel") == kept


@pytest.mark.requirement("extensions-outlive")
async def test_a_server_that_is_asked_whether_a_task_is_the_same_is_in_use(tmp_path: Path) -> None:
    """A gateway that has just started reads lists, and then closes servers that are not in use."""
    async with house(tmp_path) as made:
        with_tasks(made, "a", "task", "2026-01-01T00:00:00Z")
        await made.known(server("a"))
        begin = {"name": "a_echo", "arguments": {}, "task": {}}
        handle = (await (await older(made)).result("tools/call", begin))["task"]["taskId"]
        made.net["a"].die()
        await made.told()
        get, busy = made.net["a"].replies["tasks/get"], list[bool]()

        async def look(params: dict[str, Any]) -> dict[str, Any]:
            busy.append(made.gateway.services.pool.find("a").is_busy)
            return await get(params)

        made.net["a"].replies["tasks/get"] = look
        await (await older(made, name="after")).result("tasks/result", {"taskId": handle})
        assert busy == [True]


async def test_a_task_that_ends_without_a_result_was_not_cancelled(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        fake = made.net["a"]
        fake.modern = True

        async def begin(params: dict[str, Any]) -> dict[str, Any]:
            if TASKS not in json.dumps(params["_meta"]):
                needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
                raise RpcError(MISSING_CAPABILITY, "Only as a task", needed)
            return {"resultType": "task", "taskId": "1", "status": "working", "pollIntervalMs": 1, "ttlMs": None}

        async def get(_: dict[str, Any]) -> dict[str, Any]:
            return {"taskId": "1", "status": "completed"}

        fake.replies |= {"tools/call": begin, "tasks/get": get}
        await made.known(server("a"))
        error = await made.control().error(control.CALL, {"tool": "a_echo", "args": {}})
        assert error["message"] == "a ended the task without a result"
