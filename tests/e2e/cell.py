"""A cell of the test matrix: a client of one MCP revision with a server of the same or another revision."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from tests.e2e.client import Conversation, Message
from tests.patience import stretched

MODERN = "2026-07-28"
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN)
META = "io.modelcontextprotocol/"
PATIENCE_S = 20.0

# feature -> its first revision, and the sentence of the specification that introduced it
SINCE = {
    "elicitation_form": ("2025-06-18", "Key Changes of 2025-06-18: 'Add support for elicitation, enabling servers to "
                         "request additional information from users during interactions.'"),
    "elicitation_url": ("2025-11-25", "Key Changes of 2025-11-25: 'Support URL mode elicitation, allowing servers to "
                        "request sensitive user input via URL-based interactions.'"),
}  # fmt: skip
CAN: dict[str, Any] = {"sampling": {"tools": {}}, "roots": {"listChanged": True}}


def capabilities(revision: str) -> dict[str, Any]:
    """Return all capabilities that a client of this revision can have."""
    if revision < "2025-06-18":
        return CAN
    return {**CAN, "elicitation": {} if revision < "2025-11-25" else {"form": {}, "url": {}}}


@dataclass
class Cell:
    """A client of one revision, and the name of its server, which writes its notes to the file `notes`."""

    client: Conversation
    revision: str
    server: str
    notes: Path

    @property
    def modern(self) -> bool:
        return self.revision == MODERN

    @property
    def newer_server(self) -> bool:
        return self.server.endswith("2026-07-28")

    def params(self, params: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        """Return the params in the form that the client's revision requires."""
        stamps: dict[str, Any] = dict(meta)
        if self.modern:
            stamps[META + "protocolVersion"] = MODERN
            stamps[META + "clientCapabilities"] = capabilities(MODERN)
        return {**(params or {}), **({"_meta": stamps} if stamps else {})}

    async def request(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        """Send a request and return its result. Assert that its form fits the client's revision."""
        result = await self.client.request(method, self.params(params, **meta))
        assert ("resultType" in result) is self.modern, result
        return result

    async def call(self, tool: str, arguments: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        """Call a tool of the server and return its result."""
        return await self.request("tools/call", self.calling(tool, arguments), **meta)

    def calling(self, tool: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the params of a tool call."""
        return {"name": self.exposed(tool), "arguments": arguments or {}}

    def exposed(self, tool: str) -> str:
        """Return the name under which the client sees a tool."""
        return f"{self.server}_{tool}"

    async def ask(self, method: str, params: dict[str, Any] | None, reply: dict[str, Any]) -> dict[str, Any]:
        """Have the server question the client, answer with `reply`, and return the answer as the server received it."""
        arguments = {"method": method, **({} if params is None else {"params": params})}
        asked = self.calling("ask", arguments)
        if self.modern:
            first = await self.client.request("tools/call", self.params(asked))
            assert first["resultType"] == "input_required", first
            ((key, question),) = first["inputRequests"].items()
            again = {**asked, "inputResponses": {key: reply}, "requestState": first["requestState"]}
            last = await self.request("tools/call", again)
        else:
            waiting = self.client.ask("tools/call", asked)
            question = await self.question(waiting)
            self.client.send({"id": question["id"], "result": reply})
            with anyio.fail_after(stretched(PATIENCE_S)):
                answer = await waiting
            last = answer["result"]
        assert question["method"] == method
        self.look_at(question.get("params", {}), params or {})
        said: dict[str, Any] = json.loads(last["content"][0]["text"])
        if self.newer_server:
            assert said["state"] == "opaque é"
        result: dict[str, Any] = said["result"]
        return result

    def look_at(self, came: dict[str, Any], asked: dict[str, Any]) -> None:
        """Check that the question arrived unchanged."""
        assert {k: v for k, v in came.items() if k != "elicitationId"} == asked

    async def question(self, before: asyncio.Future[Message]) -> dict[str, Any]:
        """Return the gateway's next request. Assert that the answer `before` has not come first."""
        with anyio.fail_after(stretched(PATIENCE_S)):
            while not self.client.requests:
                assert not before.done(), f"nothing was asked; {said_by(before.result())}"
                await self.client.something()
        return self.client.requests.pop(0)

    async def noted(self, what: str, *wanted: Any) -> Any:
        """Wait until the server has noted `what`, with a wanted value if any is given. Return the newest such value."""
        with anyio.fail_after(stretched(PATIENCE_S)):
            while True:
                lines = self.notes.read_text(encoding="utf-8").splitlines() if self.notes.exists() else []
                values = [note["value"] for note in map(json.loads, lines) if note["what"] == what]
                if found := [value for value in values if value in wanted or not wanted]:
                    return found[-1]
                await anyio.sleep(0.01)  # polled, because the server is another process


def said_by(answer: Message) -> str:
    """Return the text of an answer that came instead of a question, from its first `error` on."""
    text = json.dumps(answer.get("error") or answer["result"]["content"][0])
    return text[text.find("error") :].replace("\\", "")


def impossible(client: str, server: str, feature: str) -> str:
    """Return the specification's reason why the feature cannot work, or an empty string if it must work."""
    since, why = SINCE.get(feature, ("", ""))
    return why if min(client, server) < since else ""
