"""A raw MCP client over HTTP, of either era or of 2024-11-05's SSE. Keeps every frame as it came.

Never here: stdin and stdout (client.py), what a test expects.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urljoin

import anyio
import anyio.abc
import httpx2

from tests.e2e.cell import MODERN
from tests.e2e.client import PATIENCE_S, Conversation, Message, task_group
from tests.patience import stretched
from tests.tools import NO_CERTIFICATES

STREAMS = "application/json, text/event-stream"
# No connection is used again: the gateway ends idle ones, and a request of a slow test may meet that.
FRESH = httpx2.Limits(max_connections=100, max_keepalive_connections=0)
NAMED_BY = {  # what the header Mcp-Name repeats
    "tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId",
}  # fmt: skip


class HttpClient(Conversation):
    """One address at the other end. A request of 2026-07-28 is cancelled by the end of its stream."""

    def __init__(self, http: httpx2.AsyncClient, url: str, version: str, tasks: anyio.abc.TaskGroup) -> None:
        super().__init__()
        self._http, self._url, self._version, self._tasks = http, url, version, tasks
        self._headers: dict[str, str] = {}
        self._scopes: dict[Any, anyio.CancelScope] = {}  # of open POSTs, by their request's id
        self._standing = anyio.Event()

    def send(self, message: Message) -> None:
        """One frame, as a POST of its own."""
        if self._version == MODERN and message["method"] == "notifications/cancelled":
            self.drop(message["params"]["requestId"])
        else:
            self._tasks.start_soon(self._post, message)

    @property
    def session(self) -> str:
        """The session's id; KeyError before there is one."""
        return self._headers["Mcp-Session-Id"]

    def drop(self, request_id: Any) -> None:
        """Close the stream of a request's answer without a word."""
        self._scopes[request_id].cancel()

    async def initialize(self, version: str = "2025-11-25", **capabilities: Any) -> Message:
        """Return the handshake, and the stream for what belongs to no request."""
        result = await super().initialize(version, **capabilities)
        self._headers["Mcp-Protocol-Version"] = result["protocolVersion"]
        self._tasks.start_soon(self._listen)
        with anyio.move_on_after(stretched(PATIENCE_S)):
            await self._standing.wait()
        return result

    async def _post(self, message: Message) -> None:
        scope = anyio.CancelScope()
        if "method" in message and "id" in message:
            self._scopes[message["id"]] = scope
        headers = {**self._headers, **self._own_headers(message), "Accept": STREAMS}
        body = {"jsonrpc": "2.0", **message}
        with scope, suppress(httpx2.TransportError):
            async with self._http.stream("POST", self._url, json=body, headers=headers) as answer:
                if "mcp-session-id" in answer.headers:
                    self._headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
                await self._take_answer(answer, message)
        if "method" in message and not scope.cancel_called:
            self.broke_off(message.get("id"))

    def _own_headers(self, message: Message) -> dict[str, str]:
        """Return the headers of 2026-07-28, which repeat parts of the message for those who do not parse it."""
        if self._version != MODERN or "method" not in message:
            return {}
        told = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
        named = NAMED_BY.get(message["method"])
        return {**told, "Mcp-Name": message["params"][named]} if named else told

    async def _take_answer(self, answer: httpx2.Response, message: Message) -> None:
        kind = answer.headers.get("content-type", "")
        if kind.startswith("text/event-stream"):
            async for _, data in events(answer):
                if data:  # an empty one is for resuming
                    self.take(json.loads(data))
            return
        text = (await answer.aread()).decode()
        if kind.startswith("application/json") and text:
            self.take({"id": message.get("id"), **json.loads(text)})
        elif answer.status_code >= 400 and "id" in message:
            self.take({"id": message["id"], "error": {"code": 0, "message": f"HTTP {answer.status_code} {text}"}})

    async def _listen(self) -> None:
        headers = {**self._headers, "Accept": "text/event-stream"}
        with suppress(httpx2.TransportError):
            async with self._http.stream("GET", self._url, headers=headers) as answer:
                self._standing.set()
                if answer.status_code == 200:
                    await self._take_answer(answer, {})


class SseClient(Conversation):
    """Of 2024-11-05: everything comes by one stream, which says where to post."""

    def __init__(self, http: httpx2.AsyncClient, url: str, tasks: anyio.abc.TaskGroup) -> None:
        super().__init__()
        self._http, self._url, self._tasks = http, url, tasks
        self._where = ""
        self._known = anyio.Event()

    async def listen(self) -> None:
        """Read to the end."""
        with suppress(httpx2.TransportError):
            async with self._http.stream("GET", self._url, headers={"Accept": "text/event-stream"}) as answer:
                async for kind, data in events(answer):
                    if kind == "endpoint":
                        self._where = urljoin(self._url, data)
                        self._known.set()
                    else:
                        self.take(json.loads(data))
        self.ended()

    def send(self, message: Message) -> None:
        """One frame, as a POST of its own."""
        self._tasks.start_soon(self._post, message)

    async def _post(self, message: Message) -> None:
        await self._known.wait()
        with suppress(httpx2.TransportError):
            await self._http.post(self._where, json={"jsonrpc": "2.0", **message})


async def events(answer: httpx2.Response) -> AsyncIterator[tuple[str, str]]:
    """Kind and data of each event (WHATWG, server-sent events)."""
    kind, data = "message", [""][:0]
    async for line in answer.aiter_lines():
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            kind = value
        elif name == "data":
            data.append(value)
        elif not line and data:
            yield kind, "\n".join(data)
            kind, data = "message", []


@asynccontextmanager
async def http_client(
    url: str, version: str, headers: Mapping[str, str] | None = None, *, sse: bool = False
) -> AsyncIterator[HttpClient | SseClient]:
    """Yield a client that has said nothing yet. At the end its connections are closed at once, as if it was killed."""
    async with (
        httpx2.AsyncClient(
            headers=dict(headers or {}), timeout=None, trust_env=False, verify=NO_CERTIFICATES, limits=FRESH
        ) as http,
        task_group() as tasks,
    ):
        if sse:
            older = SseClient(http, url, tasks)
            tasks.start_soon(older.listen)
            yield older
        else:
            yield HttpClient(http, url, version, tasks)
        tasks.cancel_scope.cancel()
