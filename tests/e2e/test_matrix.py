"""Clients of every MCP revision with servers of every revision, for every feature, in real processes.

Where a revision lacks a feature, SINCE gives the reason, and the test checks what happens instead.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.e2e.cell import META, MODERN, PATIENCE_S, REVISIONS, SINCE, Cell, capabilities, impossible
from tests.e2e.client import RpcFailure
from tests.e2e.gateway import Gateway, gateway_in
from tests.patience import stretched

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("matrix")]

# -- the features ----------------------------------------------------------------------------------------------------


async def tools(cell: Cell) -> None:
    listed = await cell.request("tools/list")
    assert f"{cell.server}_echo" in [tool["name"] for tool in listed["tools"]]
    result = await cell.call("echo", {"x": [1, None]})
    assert result["structuredContent"] == {"got": {"x": [1, None]}}
    assert result["x-kept"] == {"deep": [None]}
    assert result["content"] == [{"type": "text", "text": "echo", "x-in-content": 1}]
    with pytest.raises(RpcFailure, match="nowhere"):
        await cell.request("tools/call", {"name": "nowhere", "arguments": {}})


async def resources(cell: Cell) -> None:
    # All five servers have this resource, so its address contains the server's name.
    uri = f"multi-mcp://{cell.server}/era://x"
    (listed,) = [item for item in (await cell.request("resources/list"))["resources"] if item["uri"] == uri]
    assert listed["x-kept"] == [1]
    read = await cell.request("resources/read", {"uri": uri})
    assert read["contents"][0]["text"] == "read"
    assert read["contents"][0]["x-kept"] is None
    templates = (await cell.request("resources/templates/list"))["resourceTemplates"]
    assert f"multi-mcp://{cell.server}/era://t/{{n}}" in [item["uriTemplate"] for item in templates]


async def subscribe(cell: Cell) -> None:
    uri = f"multi-mcp://{cell.server}/era://x"
    if cell.modern:
        cell.client.ask(
            "subscriptions/listen", cell.params({"notifications": {"resourceSubscriptions": [uri]}}), "updates"
        )
        await cell.client.heard("notifications/subscriptions/acknowledged")
    else:
        await cell.request("resources/subscribe", {"uri": uri})
    with anyio.fail_after(stretched(PATIENCE_S)):
        while not [m for m in cell.client.told if m["method"] == "notifications/resources/updated"]:
            await cell.call("touch")  # repeated until the subscription has reached the server
    told = (await cell.client.heard("notifications/resources/updated"))[0]
    stamp = {"_meta": {META + "subscriptionId": "updates"}} if cell.modern else {}
    assert told == {"uri": uri, **stamp}


async def prompts(cell: Cell) -> None:
    listed = (await cell.request("prompts/list"))["prompts"]
    assert f"{cell.server}_greet" in [prompt["name"] for prompt in listed]
    got = await cell.request("prompts/get", {"name": f"{cell.server}_greet", "arguments": {"who": "you"}})
    assert got["messages"][0]["content"]["text"] == "Hello you"
    assert got["x-kept"] == 1


async def completion(cell: Cell) -> None:
    ref = {"type": "ref/prompt", "name": f"{cell.server}_greet"}
    result = await cell.request("completion/complete", {"ref": ref, "argument": {"name": "who", "value": "y"}})
    assert result["completion"] == {"values": ["y!"], "total": 1}


async def sampling(cell: Cell) -> None:
    asked = {"messages": [], "maxTokens": 3, "tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    reply = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m", "x-kept": 1}
    assert await cell.ask("sampling/createMessage", asked, reply) == reply


async def elicitation_form(cell: Cell) -> None:
    asked = {"message": "who?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
    reply = {"action": "accept", "content": {"a": "b"}}
    assert await cell.ask("elicitation/create", asked, reply) == reply


async def elicitation_url(cell: Cell) -> None:
    asked = {"mode": "url", "message": "go there", "url": "https://example.test/x"}
    assert await cell.ask("elicitation/create", asked, {"action": "accept"}) == {"action": "accept"}


async def roots(cell: Cell) -> None:
    reply = {"roots": [{"uri": "file:///mine", "name": "mine"}]}
    assert await cell.ask("roots/list", None, reply) == reply


async def progress(cell: Cell) -> None:
    await cell.call("progress", progressToken="my token")
    told = await cell.client.heard("notifications/progress", 3)
    assert told == [{"progressToken": "my token", "progress": n, "x-kept": n} for n in (1, 2, 3)]


async def cancel(cell: Cell) -> None:
    params = cell.params({"name": f"{cell.server}_hold", "arguments": {}})
    waiting = cell.client.ask("tools/call", params, "held")
    await cell.noted("held")
    cell.client.send({"method": "notifications/cancelled", "params": {"requestId": "held", "reason": "enough"}})
    await cell.noted("cancelled", "tools/call")
    await cell.call("echo")
    assert not waiting.done()


async def logging(cell: Cell) -> None:
    meta: dict[str, Any] = {}
    if cell.modern:
        meta[META + "logLevel"] = "info"
    else:
        await cell.request("logging/setLevel", {"level": "info"})
    await cell.call("log", **meta)
    told = await cell.client.heard("notifications/message")
    assert told == [{"level": "warning", "logger": "era", "data": {"kept": [1]}}]
    assert await cell.noted("level") == "info"


async def list_changed(cell: Cell) -> None:
    if cell.modern:
        cell.client.ask("subscriptions/listen", cell.params({"notifications": {"toolsListChanged": True}}), "changes")
        await cell.client.heard("notifications/subscriptions/acknowledged")
    await cell.request("tools/list")
    grown = f"{cell.server}_extra0"
    names: list[str] = []
    with anyio.fail_after(stretched(PATIENCE_S)):
        while grown not in names:  # the first announced change may be another server's
            await cell.call("grow")  # repeated until the gateway listens to a newer server
            await anyio.sleep(0.05)
            if [m for m in cell.client.told if m["method"] == "notifications/tools/list_changed"]:
                names = [tool["name"] for tool in (await cell.request("tools/list"))["tools"]]


Feature = Callable[[Cell], Awaitable[None]]
FEATURES: tuple[Feature, ...] = (
    tools, resources, subscribe, prompts, completion, sampling, elicitation_form, elicitation_url, roots, progress,
    cancel, logging, list_changed,
)  # fmt: skip


PAIRS = [(client, server) for client in REVISIONS for server in REVISIONS]


# -- the gateway and its clients -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Yield one gateway with a server of each revision. Each client has its own server processes."""
    folder = tmp_path_factory.mktemp("matrix")
    program = str(Path(__file__).parent.parent / "fixtures" / "era_server.py")
    with gateway_in(folder) as made:
        made.write(
            {
                f"era{revision}": {
                    "command": [sys.executable, "-I", "-S", program, revision, "${NOTES}"],
                    "scope": "session",
                }
                for revision in REVISIONS
            }
        )
        made.env["NOTES"] = "notes"  # relative, so that each session's server writes into its own folder
        made.start()
        made.control("settle")
        yield made


@asynccontextmanager
async def cell_of(site: Gateway, folder: Path, client: str, server: str) -> AsyncIterator[Cell]:
    """Yield a cell whose client runs in its own folder."""
    site_of_client = Gateway(site.home)
    site_of_client.home = folder  # affects only the shim's working folder
    async with site_of_client.client(None) as raw:
        cell = Cell(raw, client, f"era{server}", folder / "notes")
        if client != MODERN:
            await raw.initialize(client, **capabilities(client))
        yield cell


@pytest.mark.parametrize(("client", "server"), PAIRS)
async def test_each_feature(site: Gateway, tmp_path: Path, client: str, server: str) -> None:
    """One session uses all features in turn, because a process for each would take most of the time."""
    async with cell_of(site, tmp_path, client, server) as cell:
        for feature in FEATURES:
            cell.client.told.clear()  # each feature waits for its own notifications
            await use(feature, cell, client, server)


async def use(feature: Feature, cell: Cell, client: str, server: str) -> None:
    """Use a feature. If only the client's revision lacks it, assert a refusal. If the server's does, do nothing."""
    if not impossible(client, server, feature.__name__):
        await feature(cell)
    elif client < SINCE[feature.__name__][0] and server >= SINCE[feature.__name__][0]:
        # The server knows that this client lacks the feature. A request would fail and never reach the client.
        with pytest.raises((RpcFailure, KeyError)):
            await feature_refused(cell, feature)
        assert cell.client.requests == []


async def feature_refused(cell: Cell, feature: Feature) -> None:
    """Have the server ask a client that lacks the feature. Raises RpcFailure or KeyError if that is refused."""
    mode = {"mode": "url", "url": "https://example.test"} if feature is elicitation_url else {}
    arguments = {"method": "elicitation/create", "params": {"message": "?", **mode}}
    result = await cell.call("ask", arguments)
    json.loads(result["content"][0]["text"])["result"]
