"""Batches: several messages in one POST, as MCP 2025-03-26 allows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.http_client import STREAMS
from tests.gateway.http.place import Place, place
from tests.gateway.world import serve, server
from trayapp.gateway.http.streamable import MOST

pytestmark = pytest.mark.anyio

OLD, NEW = "2025-03-26", "2025-06-18"
TOLD = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}


def ask(request_id: Any, method: str = "ping", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, **({"params": params} if params else {})}


async def posted(at: Place, batch: Any, **more: str) -> httpx2.Response:
    """Post `batch` in a new session and return the gateway's response."""
    async with at.http(Accept=STREAMS) as http:
        params = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
        opened = await http.post("/mcp", json=ask(0, "initialize", **params))
        headers = {"Mcp-Session-Id": opened.headers["mcp-session-id"], **more}
        await http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
        return await http.post("/mcp", json=batch, headers=headers)


def answers_in(response: httpx2.Response) -> dict[Any, Any]:
    """Return the answers in an event stream by their ids."""
    assert response.headers["content-type"].startswith("text/event-stream")
    data = [line.removeprefix("data:").strip() for line in response.text.splitlines() if line.startswith("data:")]
    return {message.get("id"): message for message in map(json.loads, filter(None, data))}


async def test_each_request_of_a_batch_is_answered_whatever_the_others_are(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        serve(at.made.net["a"])
        await at.made.known(server("a"))
        call = ask("c", "tools/call", name="a_echo", arguments={"x": 1}, _meta={"progressToken": 5})
        batch = [ask(1), TOLD, call, ask(2, "tools/list"), {**ask(3), "params": []}, ask(4, "nowhere/there")]
        answers = answers_in(await posted(at, batch))
        assert {key for key, message in answers.items() if "result" in message} == {1, 2, "c"}
        assert {key for key, message in answers.items() if "error" in message} == {3, 4}
        assert json.loads(answers["c"]["result"]["content"][0]["text"])["arguments"] == {"x": 1}


async def test_a_batch_without_requests_is_accepted_and_one_of_no_messages_is_not(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        await at.made.known(server("a"))
        accepted = await posted(at, [TOLD, {"jsonrpc": "2.0", "id": 9, "result": {}}])
        assert (accepted.status_code, accepted.content) == (202, b"")
        assert (await posted(at, [])).status_code == 400
        assert "error" in answers_in(await posted(at, [5]))[None]
        too_many = await posted(at, [TOLD] * (MOST + 1))
        assert (too_many.status_code, too_many.json()["error"]["code"]) == (400, -32600)


async def test_later_revisions_know_no_batches(tmp_path: Path) -> None:
    async with place(tmp_path) as at:
        await at.made.known(server("a"))
        refused = await posted(at, [ask(1)], **{"Mcp-Protocol-Version": NEW})
        assert refused.status_code == 400
