"""Many sessions make one server ask questions at the same moment: each question reaches its own session."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.e2e.cell import META, MODERN, capabilities
from tests.e2e.client import Conversation, RpcFailure, task_group
from tests.e2e.gateway import Gateway
from tests.e2e.http_client import http_client
from tests.e2e.test_sdk_clients import headers_of, url_of

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("bridge-who"), pytest.mark.timeout(300)]

SESSIONS = 24
QUESTIONS = 20  # concurrent questions in each session
OLDER = "2025-11-25"
FIXTURES = Path(__file__).parent.parent / "fixtures"


class Person:
    """One session, which answers every question with its own name."""

    def __init__(self, name: str, client: Conversation, revision: str) -> None:
        self.name, self.client, self.modern = name, client, revision == MODERN
        self.asked = self.answered = 0
        self.after = 0.0  # seconds that the tool works before it asks
        self.crossed: list[Any] = []
        self.failed: list[str] = []
        self.replies = math.inf  # number of questions that this session answers; later ones stay open
        self.unanswered = 0
        self.gone = anyio.Event()

    async def answer_questions(self) -> None:
        """Answer the questions of an older client, which arrive as requests."""
        while True:
            while self.client.requests:
                asked = self.client.requests.pop(0)
                if self.asked >= self.replies:
                    self.unanswered += 1
                    continue
                self.client.send({"id": asked["id"], "result": self.reply(asked)})
            await self.client.something()

    def reply(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return an answer in this session's name. Record the question if it was meant for another session."""
        if asked["method"] == "roots/list":
            return {"roots": []}  # server-everything requests roots on its own
        self.asked += 1
        if asked["params"]["message"] != self.name:
            self.crossed.append(asked)
        return {"action": "accept", "content": {"name": self.name}}

    async def call(self, server: str) -> None:
        """Call the tool so that it asks. Record the error if the call fails."""
        try:
            await self.be_asked(server)
        except (RpcFailure, TimeoutError, EOFError) as error:
            self.failed.append(f"{type(error).__name__}: {error}")

    def params(self, server: str, **arguments: Any) -> dict[str, Any]:
        """Return the params of a call to the tool that may ask."""
        params: dict[str, Any] = {"name": f"{server}_ask", "arguments": arguments}
        if self.modern:
            params["_meta"] = {
                META + "protocolVersion": MODERN, META + "clientCapabilities": capabilities(MODERN)
            }  # fmt: skip
        return params

    async def be_quiet(self, server: str) -> None:
        """Call the tool so that it does not ask."""
        assert await self.client.request("tools/call", self.params(server, quiet=True))

    async def be_asked(self, server: str) -> None:
        """Call the tool so that it asks. Record a result that does not hold this session's answer."""
        params = self.params(server, method="elicitation/create", params={"message": self.name}, after=self.after)
        result = await self.client.request("tools/call", params)
        while result.get("resultType") == "input_required":
            if self.asked >= self.replies:
                self.unanswered += 1
                await self.gone.wait()
                raise EOFError
            said = {key: self.reply(question) for key, question in result["inputRequests"].items()}
            again = {"inputResponses": said, "requestState": result["requestState"]}
            result = await self.client.request("tools/call", {**params, **again})
        got = json.loads(result["content"][0]["text"])
        if got.get("result", {}).get("content") != {"name": self.name}:
            self.crossed.append(got)
        self.answered += 1


@asynccontextmanager
async def people(
    gateway: Gateway, ways: list[tuple[str, str]], sessions: int = SESSIONS
) -> AsyncIterator[list[Person]]:
    """Yield sessions that alternate among these ways (shim, http or sse) and revisions."""
    url, headers = url_of(gateway), headers_of(gateway)
    async with AsyncExitStack() as stack:
        found: list[Person] = []
        for number in range(sessions):
            way, revision = ways[number % len(ways)]
            if way == "shim":
                entered: Any = gateway.client(None)
            else:
                address = url.replace("/mcp", "/sse") if way == "sse" else url
                entered = http_client(address, revision, headers, sse=way == "sse")
            client: Conversation = await stack.enter_async_context(entered)
            if revision != MODERN:
                await client.initialize(revision, **capabilities(revision))
            found.append(Person(f"person {number}", client, revision))
        yield found


async def all_at_once(everybody: list[Person], server: str, questions: int = QUESTIONS) -> None:
    """Let each client make the server ask `questions` times, all concurrently. Assert that each answer is right."""
    async with task_group() as tasks:
        async with task_group() as calls:
            for person in everybody:
                tasks.start_soon(person.answer_questions)
                for _ in range(questions):
                    calls.start_soon(person.call, server)
        tasks.cancel_scope.cancel()
    assert [(person.name, person.failed) for person in everybody if person.failed] == []
    assert [(person.name, person.crossed) for person in everybody if person.crossed] == []
    assert [person.asked for person in everybody] == [questions] * len(everybody)


@contextmanager
def served_over_http(revision: str, folder: Path, *options: str) -> Iterator[str]:
    """Start an HTTP server of this revision and yield its URL. Kill the server at the end."""
    argv = [sys.executable, "-I", "-S", str(FIXTURES / "era_http.py"), revision, str(folder / "http notes"), "0"]
    with subprocess.Popen([*argv, *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


@contextmanager
def served(kind: str, folder: Path, *more: str) -> Iterator[dict[str, Any]]:
    """Yield the entry of a server. `kind` names its transport and its era."""
    transport, era = kind.split()
    options = [*more, *(["--both"] if era == "both" else [])]
    revision = MODERN if era == "newer" else OLDER
    if transport == "stdio":
        program = str(FIXTURES / "era_server.py")
        yield {"command": [sys.executable, "-I", "-S", program, revision, str(folder / "notes"), *options]}
        return
    if transport == "sse":
        options.append("--sse")
    with served_over_http(revision, folder, *options) as url:
        yield {"url": url + ("/sse" if transport == "sse" else "/mcp"), "type": transport}


EVERY_WAY = [("shim", OLDER), ("http", MODERN), ("sse", OLDER), ("shim", MODERN), ("http", OLDER)]
KINDS = ["stdio older", "stdio both", "stdio newer", "http older", "http both", "http newer", "sse older"]


@pytest.mark.parametrize("kind", KINDS)
async def test_each_of_many_sessions_of_both_eras_is_asked_its_own_questions(
    gateway: Gateway, tmp_path: Path, kind: str
) -> None:
    """All sessions are asked concurrently. Before that, the gateway knows only the server's lists."""
    with served(kind, tmp_path) as entry:
        gateway.write({"s": entry}, http={"port": 0})
        gateway.start()
        await gateway.known()
        async with people(gateway, EVERY_WAY) as everybody:
            await all_at_once(everybody, "s")
        assert gateway.server_names() == ["s"]


@pytest.mark.parametrize(
    ("kind", "works_s", "known"),
    [("stdio older", 0, True), ("http older", 0, True), ("stdio older", 2, True), ("stdio older", 2, False)],
)
async def test_a_tool_that_sessions_have_used_quietly_or_that_works_for_seconds_first_asks_each_session_its_own(
    gateway: Gateway, tmp_path: Path, kind: str, works_s: float, known: bool
) -> None:
    """If `known`, all sessions have called the tool before without being asked."""
    with served(kind, tmp_path) as entry:
        gateway.write({"s": entry}, http={"port": 0})
        gateway.start()
        await gateway.known()
        async with people(gateway, EVERY_WAY, 5) as everybody:
            for person in everybody:
                person.after = works_s
                if known:
                    await person.be_quiet("s")
            await all_at_once(everybody, "s", 4)


async def test_a_legacy_sse_server_that_works_before_it_asks_asks_each_session_its_own_questions(
    gateway: Gateway, tmp_path: Path
) -> None:
    """All sessions have called the tool before without being asked. Only the transport shows that the server is old."""
    with served("sse older", tmp_path) as entry:
        gateway.write({"s": {"url": entry["url"]}}, http={"port": 0})
        gateway.start()
        await gateway.known()
        async with people(
            gateway, [("shim", OLDER), ("sse", OLDER), ("shim", MODERN), ("http", OLDER)], 8
        ) as everybody:
            for person in everybody:
                await person.be_quiet("s")
                person.after = 0.5
            await all_at_once(everybody, "s", 4)
