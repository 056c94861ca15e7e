"""A server with several connections: messages and records name the server, never one of its connections."""

from __future__ import annotations

import json
import re
import sys
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import psutil
import pytest

from tests.cli.running import run_cli
from tests.e2e.cell import META, MODERN, capabilities
from tests.e2e.client import Conversation
from tests.e2e.gateway import Gateway
from tests.e2e.test_questions import FIXTURES, OLDER
from tests.fixtures.odd import until

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("one-name-of-a-server"), pytest.mark.timeout(120)]

LOUD = """
import runpy, sys
print("hello", file=sys.stderr)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
KEY = re.compile(r"(dual|mine)(#|_23_)")
ASKED = {"method": "elicitation/create", "params": {"message": "who?"}}


def loud(notes: Path, *options: str) -> list[str]:
    """Return the command of a server that reports its start on stderr."""
    program = str(FIXTURES / "era_server.py")
    return [sys.executable, "-I", "-S", "-c", LOUD, program, OLDER, str(notes), *options]


def noted(notes: Path, what: str) -> list[Any]:
    lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
    return [note["value"] for note in map(json.loads, lines) if note["what"] == what]


def params(modern: bool, name: str, **arguments: Any) -> dict[str, Any]:
    """Return the params of a tool call."""
    envelope = {META + "protocolVersion": MODERN, META + "clientCapabilities": capabilities(MODERN)}
    return {"name": name, "arguments": arguments, **({"_meta": envelope} if modern else {})}


async def be_asked(client: Conversation, modern: bool, name: str) -> None:
    """Call a tool that asks the client a question, and answer it."""
    given = params(modern, name, **ASKED)
    answer = client.ask("tools/call", given)
    if not modern:
        await until(lambda: client.requests)
        client.send({"id": client.requests.pop()["id"], "result": {"action": "accept", "content": {}}})
    result = (await answer)["result"]
    if result.get("resultType") == "input_required":
        said = {key: {"action": "accept", "content": {}} for key in result["inputRequests"]}
        again = {"inputResponses": said, "requestState": result["requestState"]}
        assert "content" in await client.request("tools/call", {**given, **again})


async def test_whatever_is_said_of_a_server_with_several_connections_names_the_server(
    gateway: Gateway, tmp_path: Path
) -> None:
    notes = {name: tmp_path / name for name in ("dual", "mine")}
    gateway.env["MULTI_MCP_LOG"] = "debug"
    gateway.write(
        {
            "dual": {"command": loud(notes["dual"], "--both")},
            "mine": {"command": loud(notes["mine"]), "scope": "session"},
        },
    )
    gateway.start()
    await gateway.known()
    heard: list[Any] = []
    async with AsyncExitStack() as stack:
        clients = [(await stack.enter_async_context(gateway.client(None)), modern) for modern in (False, True, False)]
        for client, modern in clients:
            if not modern:
                await client.initialize(OLDER, **capabilities(OLDER))
            for name in notes:
                await be_asked(client, modern, f"{name}_ask")
        status = gateway.snapshot()
        rows = {row["name"]: row for row in status["servers"]}
        assert set(rows) == set(notes)
        assert all(rows[name]["connections"] >= 2 for name in notes), rows
        everywhere = [(client, modern, name) for client, modern in clients for name in notes]
        held = [client.ask("tools/call", params(modern, f"{name}_hold")) for client, modern, name in everywhere]
        await until(lambda: sum(len(noted(file, "held")) for file in notes.values()) == len(held))
        for pid in (pid for file in notes.values() for pid in noted(file, "started")):
            if psutil.pid_exists(pid):
                psutil.Process(pid).kill()
        answers = [await one for one in held]
        assert all(
            re.search("Lost the connection to (dual|mine) during the call", json.dumps(one)) for one in answers
        ), answers
        heard += [status, answers, [client.told for client, _ in clients]]
    for verb in (
        ["reconnect", "nobody"],
        ["status"],
        ["status", "--json"],
        ["history", "--json"],
        ["logs"],
        ["logs", "dual"],
        ["logs", "mine"],
    ):
        done = await anyio.to_thread.run_sync(partial(run_cli, gateway.home, *verb))
        assert done.returncode == (5 if verb == ["reconnect", "nobody"] else 0), done
        heard.append([verb, done.stdout, done.stderr])
    files = [path for path in (gateway.home / "logs").rglob("*") if path.is_file()]
    logs = {path.name: path.read_text(encoding="utf-8") for path in files}
    assert {"dual.log", "mine.log"} <= set(logs)
    assert logs["mine.log"].count("hello") >= 3
    heard += logs.items()
    assert [one for one in heard if KEY.search(json.dumps(one))] == []
