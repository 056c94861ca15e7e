"""Clients that lack an extension: tasks are plain calls for them, skills are read by the one tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cell import MODERN
from tests.e2e.client import Message, RpcFailure
from tests.e2e.extension_scenario import Visitor
from tests.e2e.gateway import Gateway
from tests.e2e.test_extensions import NAMES, OLDER, entries
from tests.fixtures.odd import until

pytestmark = [pytest.mark.anyio]


class Bare(Visitor):
    """A client that has no extension at all."""

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
