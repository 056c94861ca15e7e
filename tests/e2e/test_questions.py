"""Many sessions that make one server ask at the same moment: each question reaches its own session, or nobody."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.e2e.cell import META, MODERN, capabilities
from tests.e2e.client import Conversation
from tests.e2e.gateway import Gateway
from tests.e2e.http_client import http_client
from tests.e2e.test_sdk_clients import headers_of, url_of

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("bridge-who"), pytest.mark.timeout(300)]

SESSIONS = 12
QUESTIONS = 5  # of each session, at once
OLDER = "2025-11-25"
FIXTURES = Path(__file__).parent.parent / "fixtures"


class Person:
    """One session, which answers every question with its own name."""

    def __init__(self, name: str, client: Conversation, revision: str) -> None:
        self.name, self.client, self.modern = name, client, revision == MODERN
        self.refused = 0
        self.crossed: list[Any] = []

    async def answer_questions(self) -> None:
        """What an older client is asked comes as requests."""
        while True:
            while self.client.requests:
                asked = self.client.requests.pop(0)
                self.client.send({"id": asked["id"], "result": self.reply(asked)})
            await self.client.something()

    def reply(self, asked: dict[str, Any]) -> dict[str, Any]:
        """An answer in this session's name; a question of another one's is noted."""
        if asked["params"]["message"] != self.name:
            self.crossed.append(asked)
        return {"action": "accept", "content": {"name": self.name}}

    async def be_asked(self, server: str) -> None:
        """Call the tool that asks; the answer that it got is this session's own, or a refusal."""
        asked = {"method": "elicitation/create", "params": {"message": self.name}}
        params: dict[str, Any] = {"name": f"{server}_ask", "arguments": asked}
        if self.modern:
            params["_meta"] = {
                META + "protocolVersion": MODERN, META + "clientCapabilities": capabilities(MODERN)
            }  # fmt: skip
        result = await self.client.request("tools/call", params)
        while result.get("resultType") == "input_required":
            said = {key: self.reply(question) for key, question in result["inputRequests"].items()}
            again = {"inputResponses": said, "requestState": result["requestState"]}
            result = await self.client.request("tools/call", {**params, **again})
        got = json.loads(result["content"][0]["text"])
        if "error" in got:
            assert "the server does not say to whose it belongs" in got["error"]["message"]
            self.refused += 1
        elif got["result"]["content"] != {"name": self.name}:
            self.crossed.append(got)


@asynccontextmanager
async def people(gateway: Gateway, ways: list[tuple[str, str]]) -> AsyncIterator[list[Person]]:
    """Sessions in turn by these ways: shim or http, and a revision."""
    url, headers = url_of(gateway), headers_of(gateway)
    async with AsyncExitStack() as stack:
        found: list[Person] = []
        for number in range(SESSIONS):
            way, revision = ways[number % len(ways)]
            entered = gateway.client(None) if way == "shim" else http_client(url, revision, headers)
            client: Conversation = await stack.enter_async_context(entered)
            if revision != MODERN:
                await client.initialize(revision, **capabilities(revision))
            found.append(Person(f"person {number}", client, revision))
        yield found


async def all_at_once(everybody: list[Person], server: str) -> None:
    """Each makes the server ask so many times, all at the same moment."""
    async with anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as calls:
            for person in everybody:
                tasks.start_soon(person.answer_questions)
                for _ in range(QUESTIONS):
                    calls.start_soon(person.be_asked, server)
        tasks.cancel_scope.cancel()
    assert [person.crossed for person in everybody if person.crossed] == []


@contextmanager
def served_over_http(revision: str, folder: Path) -> Iterator[str]:
    """The address of a server of that revision."""
    argv = [sys.executable, "-I", "-S", str(FIXTURES / "era_http.py"), revision, str(folder / "http notes"), "0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


MIXED = [("shim", OLDER), ("http", OLDER), ("shim", MODERN), ("http", MODERN)]
SAME_ERA = {OLDER: [("shim", OLDER), ("http", OLDER)], MODERN: MIXED}


@pytest.mark.parametrize("ways", [[("shim", OLDER)], MIXED], ids=["shims", "mixed"])
async def test_of_a_stdio_server_that_does_not_say_whose_it_asks_no_question_goes_astray(
    gateway: Gateway, tmp_path: Path, ways: list[tuple[str, str]]
) -> None:
    command = [sys.executable, "-I", "-S", str(FIXTURES / "era_server.py"), OLDER, str(tmp_path / "notes")]
    gateway.write({"s": {"command": command}}, http={"port": 0})
    gateway.start()
    await gateway.known()
    async with people(gateway, ways) as everybody:
        await all_at_once(everybody, "s")
        log = (gateway.home / "logs" / "gateway.log").read_text(encoding="utf-8")
        assert log.count("Set `scope: session` for s") == (1 if sum(person.refused for person in everybody) else 0)
        if ways != MIXED:
            for person in everybody:  # one after the other there is no doubt
                before = person.refused
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(person.answer_questions)
                    await person.be_asked("s")
                    tasks.cancel_scope.cancel()
                assert person.refused == before


@pytest.mark.parametrize(("transport", "revision"), [("http", OLDER), ("http", MODERN), ("stdio", MODERN)])
async def test_where_it_is_known_whose_question_it_is_each_session_answers_its_own(
    gateway: Gateway, tmp_path: Path, transport: str, revision: str
) -> None:
    with served_over_http(revision, tmp_path) as url:
        program = str(FIXTURES / "era_server.py")
        command = [sys.executable, "-I", "-S", program, revision, str(tmp_path / "notes")]
        gateway.write({"s": {"url": url} if transport == "http" else {"command": command}}, http={"port": 0})
        gateway.start()
        await gateway.known()
        async with people(gateway, SAME_ERA[revision]) as everybody:
            await all_at_once(everybody, "s")
        assert sum(person.refused for person in everybody) == 0
