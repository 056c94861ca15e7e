"""SDK clients of both eras over HTTP, against a gateway with fake servers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types import ElicitResult, ListRootsResult

from tests.fixtures.clock import settle
from tests.gateway.http.place import Place, place, until
from tests.gateway.world import serve, server
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.wire.messages import METHOD_NOT_FOUND

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("http-both-eras")]

MODES = ["legacy", "2026-07-28", "sse"]


def first_text(result: Any) -> str:
    text: str = result.content[0].text
    return text


def texts_of(result: Any) -> list[str]:
    return [part.text for part in result.content]


async def known(at: Place, **more: Any) -> None:
    """Configure server `a` and wait until its tools are listed."""
    serve(at.made.net["a"])
    await at.made.known(server("a", **more))


@pytest.mark.parametrize("mode", MODES)
async def test_lists_calls_and_errors(tmp_path: Path, mode: str) -> None:
    async with place(tmp_path) as at:
        await known(at)
        async with at.client(mode) as client:
            assert "a_echo" in [tool.name for tool in (await client.list_tools()).tools]
            result = await client.call_tool("a_echo", {"x": [1, None]})
            assert json.loads(first_text(result))["arguments"] == {"x": [1, None]}
            assert result.structured_content is not None
            with pytest.raises(Exception, match="it failed"):
                await client.call_tool("a_fail", {})
            with pytest.raises(Exception, match="nowhere"):
                await client.call_tool("nowhere", {})


@pytest.mark.parametrize("mode", MODES)
async def test_progress_reaches_the_request_it_belongs_to(tmp_path: Path, mode: str) -> None:
    async with place(tmp_path) as at:
        await known(at)
        steps: list[float] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            steps.append(progress)

        async with at.client(mode) as client:
            await client.call_tool("a_progress", {}, progress_callback=on_progress)
        assert steps == [1, 2, 3]


@pytest.mark.parametrize("mode", MODES)
async def test_questions_of_an_older_server_reach_the_client(tmp_path: Path, mode: str) -> None:
    async with place(tmp_path) as at:
        await known(at)

        async def elicit(context: Any, params: Any) -> ElicitResult:
            return ElicitResult(action="accept", content={"said": params.message})

        async def roots(context: Any) -> ListRootsResult:
            return ListRootsResult.model_validate({"roots": [{"uri": "file:///r"}]})

        async with at.client(mode, elicitation_callback=elicit, list_roots_callback=roots) as client:
            asked = {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}
            result = await client.call_tool("a_ask", {"method": "elicitation/create", "params": asked})
            assert json.loads(first_text(result))["content"] == {"said": "who?"}
            result = await client.call_tool("a_ask", {"method": "roots/list"})
            assert json.loads(first_text(result))["roots"][0]["uri"] == "file:///r"


@pytest.mark.parametrize("mode", MODES)
async def test_giving_up_a_request_cancels_it_at_the_server(tmp_path: Path, mode: str) -> None:
    async with place(tmp_path) as at:
        await known(at)
        async with at.client(mode) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "a_hold", {"key": "k"})
            await at.made.net["a"].heard_of("held")
            tasks.cancel_scope.cancel()
        await at.made.net["a"].cancelled_of("k")


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_query_chooses_what_the_session_sees(tmp_path: Path, mode: str) -> None:
    async with place(tmp_path) as at:
        await at.made.known(server("a"), server("b"))
        async with at.client(mode, "?servers=b&expose=tools") as client:
            names = {tool.name.partition("_")[0] for tool in (await client.list_tools()).tools}
            assert names == {"b"}
        async with at.client(mode, "?expose=search") as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["mcp"]


async def test_an_older_session_hears_of_changed_lists_and_is_in_the_status_until_it_ends(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        await known(at)
        heard: list[str] = []

        async def on_message(message: Any) -> None:
            heard.append(type(getattr(message, "root", message)).__name__)

        async with at.client("legacy", message_handler=on_message) as client:
            await client.list_tools()
            (status,) = snapshot_of(at.made.gateway).gateway.sessions
            assert (status.transport, status.protocol) == ("http", "2025-11-25")
            await at.made.known(server("a"), server("b"))
            with anyio.fail_after(10):
                while "ToolListChangedNotification" not in heard:
                    await at.made.told()
                    await anyio.sleep(0.01)
            assert "_shutdown_watcher" not in functions_of_tasks()  # sse-starlette's task would wake twice a second
        await until(lambda: not at.made.gateway.sessions)


def functions_of_tasks() -> set[str]:
    """Return the names of the functions that this loop's tasks run."""
    return {frame.f_code.co_name for task in asyncio.all_tasks() for frame in task.get_stack(limit=1)}


async def test_newer_requests_leave_no_session_behind(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        await known(at)
        async with at.client("2026-07-28") as client:
            for _ in range(3):
                await client.call_tool("a_echo", {})
            await settle()
            assert at.made.gateway.sessions == {}


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "no/method"])
async def test_what_the_newer_era_does_not_have_is_not_found(tmp_path: Path, method: str) -> None:
    key = "io.modelcontextprotocol/"
    meta = {f"{key}protocolVersion": "2026-07-28", f"{key}clientCapabilities": {}}
    headers = {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        "Accept": "application/json, text/event-stream",
    }
    async with place(tmp_path) as at, at.http(**headers) as http:
        request = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {"_meta": meta}}
        answer = await http.post("/mcp", json=request)
        assert (answer.status_code, answer.json()["id"], answer.json()["error"]["code"]) == (404, 7, METHOD_NOT_FOUND)


async def test_many_calls_of_many_clients_at_once_get_their_own_answers(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        await known(at)

        async def one(mode: str, number: int) -> None:
            async with at.client(mode) as client:
                for count in range(10):
                    mine = f"{number}-{count}"
                    assert mine in first_text(await client.call_tool("a_echo", {"mine": mine}))

        async with anyio.create_task_group() as tasks:
            for number in range(6):
                tasks.start_soon(one, MODES[number % 3], number)


@pytest.mark.parametrize("mode", MODES)
async def test_a_large_answer_arrives_whole(tmp_path: Path, mode: str) -> None:
    async with place(tmp_path) as at:
        await known(at)
        async with at.client(mode) as client:
            result = await client.call_tool("a_echo", {"x": "ü" * 100_000})
            assert json.loads(first_text(result))["arguments"]["x"] == "ü" * 100_000


@pytest.mark.requirement("one-tool-result-paging")
@pytest.mark.parametrize("mode", MODES)
async def test_the_pages_of_a_long_result_come_whichever_request_asks_for_them(tmp_path: Path, mode: str) -> None:
    """In 2026-07-28, which has no sessions, every page is an independent request."""
    sent = "".join(f"{number:06d} é " for number in range(12_000))
    async with place(tmp_path) as at:
        await known(at)
        async with at.client(mode, "?expose=search") as client:
            first = await client.call_tool("mcp", {"tool": "a_echo", "args": {"x": sent}})
            found, note = texts_of(first)
            pages = 1
            while "More: " in note:
                more = json.loads(note[note.index("{") : note.index("}") + 1])
                page, _, note = first_text(await client.call_tool("mcp", more)).rpartition("\n\n[")
                found, pages = found + page, pages + 1
            assert json.JSONDecoder().raw_decode(found)[0]["arguments"]["x"] == sent
            assert pages > 3
