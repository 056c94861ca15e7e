"""50 sessions on one gateway make random interleaved calls: each message reaches its own session and no other."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cell import META, MODERN, capabilities
from tests.e2e.client import RawClient, task_group
from tests.e2e.gateway import Gateway

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("many-sessions"), pytest.mark.timeout(300)]

SESSIONS = 50
CALLS = 10_000
SEED = 20_260_728
AT_ONCE = 8  # concurrent calls in each session
# On a shared connection, progress and results name their request, but log lines and questions of an older stdio
# server do not. For those, each session has its own server processes.
SHARED, OWN = ("old", "new"), ("mine", "mine-new")


class Member:
    """One session, which checks that the messages it receives are its own."""

    def __init__(self, number: int, client: RawClient, modern: bool) -> None:
        self.number = number
        self.client = client
        self.modern = modern
        self.calls = 0

    def params(self, tool: str, **arguments: Any) -> dict[str, Any]:
        meta: dict[str, Any] = {"progressToken": f"{self.number}-{self.calls}"}
        if self.modern:
            meta |= {META + "protocolVersion": MODERN, META + "clientCapabilities": capabilities(MODERN)}
            meta[META + "logLevel"] = "info"
        return {"name": tool, "arguments": arguments, "_meta": meta}

    async def one(self, chance: random.Random) -> None:
        """Make one random call."""
        self.calls += 1
        mine = f"{self.number}/{self.calls}"
        kind = chance.choice(("echo", "echo", "progress", "log", "ask"))
        if kind == "echo":
            await self.echo(chance.choice(SHARED), mine)
        elif kind == "progress":
            await self.progress(chance.choice(SHARED))
        elif kind == "log":
            await self.log(chance.choice(OWN), mine)
        else:
            await self.ask(chance.choice((*OWN, "new")), mine)

    async def echo(self, server: str, mine: str) -> None:
        result = await self.client.request("tools/call", self.params(f"{server}_echo", mine=mine))
        assert result["structuredContent"] == {"got": {"mine": mine}}

    async def progress(self, server: str) -> None:
        params = self.params(f"{server}_progress")
        token = params["_meta"]["progressToken"]
        await self.client.request("tools/call", params)
        steps = [told["params"]["progress"] for told in self.heard("notifications/progress", token)]
        assert steps == [1, 2, 3]

    def heard(self, method: str, token: str) -> list[dict[str, Any]]:
        told = [m for m in self.client.told if m["method"] == method]
        return [m for m in told if m["params"]["progressToken"] == token]

    async def log(self, server: str, mine: str) -> None:
        await self.client.request("tools/call", self.params(f"{server}_log", data=mine))

    async def ask(self, server: str, mine: str) -> None:
        asked = self.params(f"{server}_ask", method="roots/list", params={"mine": mine})
        if not self.modern:
            result = await self.client.request("tools/call", asked)
        else:
            result = await self.client.request("tools/call", asked)
            while result["resultType"] == "input_required":
                # An older server's question may belong to another open call, but only of this session.
                questions = {key: question["params"]["mine"] for key, question in result["inputRequests"].items()}
                assert all(theirs.startswith(f"{self.number}/") for theirs in questions.values()), questions
                said = {key: self.reply(theirs) for key, theirs in questions.items()}
                again = {"inputResponses": said, "requestState": result["requestState"]}
                result = await self.client.request("tools/call", {**asked, **again})
        assert json.loads(result["content"][0]["text"])["result"] == self.reply(mine)

    def reply(self, mine: str) -> dict[str, Any]:
        return {"roots": [], "mine": mine}

    async def answer_questions(self) -> None:
        """Answer the questions to an older client. Assert that they belong to this session."""
        while True:
            while self.client.requests:
                question = self.client.requests.pop(0)
                mine = question["params"]["mine"]
                assert mine.startswith(f"{self.number}/"), mine
                self.client.send({"id": question["id"], "result": self.reply(mine)})
            await self.client.something()

    def check(self) -> None:
        """Assert that the client has received nothing of another session."""
        for told in self.client.told:
            if told["method"] == "notifications/progress":
                assert str(told["params"]["progressToken"]).startswith(f"{self.number}-")
            elif told["method"] == "notifications/message":
                assert str(told["params"]["data"]).startswith(f"{self.number}/")
        assert self.client.stray == []


@asynccontextmanager
async def members(gateway: Gateway, folder: Path) -> AsyncIterator[list[Member]]:
    """Yield all sessions. Every other session is of the newer era."""
    async with AsyncExitStack() as stack:
        found: list[Member] = []
        for number in range(SESSIONS):
            client = await stack.enter_async_context(gateway.client(None))
            modern = number % 2 == 1
            if not modern:
                await client.initialize("2025-11-25", **capabilities("2025-11-25"))
                await client.request("logging/setLevel", {"level": "info"})
            found.append(Member(number, client, modern))
        yield found


async def test_nothing_reaches_another_session(gateway: Gateway, tmp_path: Path) -> None:
    program = str(Path(__file__).parent.parent / "fixtures" / "era_server.py")

    def server(revision: str, **more: Any) -> dict[str, Any]:
        notes = str(tmp_path / "notes")
        return {"command": [sys.executable, "-I", "-S", program, revision, notes], **more}

    gateway.write(
        {
            "old": server("2025-11-25"),
            "new": server(MODERN),
            "mine": server("2025-11-25", scope="session"),
            "mine-new": server(MODERN, scope="session"),
        }
    )
    gateway.start()
    await gateway.known()
    async with members(gateway, tmp_path) as everybody, task_group() as tasks:
        for member in everybody:
            if not member.modern:
                tasks.start_soon(member.answer_questions)
        async with task_group() as calls:
            for member in everybody:
                for lane in range(AT_ONCE):
                    chance = random.Random(f"{SEED}-{member.number}-{lane}")
                    calls.start_soon(_some, member, chance, CALLS // SESSIONS // AT_ONCE)
        tasks.cancel_scope.cancel()
        assert sum(member.calls for member in everybody) == CALLS
        for member in everybody:
            member.check()


async def _some(member: Member, chance: random.Random, calls: int) -> None:
    for _ in range(calls):
        await member.one(chance)
