"""A raw MCP client for Streamable HTTP (either era) and the HTTP+SSE of 2024-11-05. It keeps each frame as received."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urljoin, urlsplit

import anyio
import anyio.abc

from tests.e2e.cell import MODERN
from tests.e2e.client import PATIENCE_S, Conversation, Message, task_group
from tests.patience import stretched

STREAMS = "application/json, text/event-stream"
BROKEN = (OSError, asyncio.IncompleteReadError)
NAMED_BY = {  # method -> the parameter that the header Mcp-Name repeats
    "tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId",
}  # fmt: skip


class Answer:
    """An HTTP response whose body may arrive in parts."""

    def __init__(self, head: bytes, reader: asyncio.StreamReader) -> None:
        first, *lines = head.decode().splitlines()
        self.status = int(first.split()[1])
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self._reader = reader

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the parts of the body as they arrive."""
        if "chunked" in self.headers.get("transfer-encoding", ""):
            while size := int(await self._reader.readuntil(b"\r\n"), 16):
                yield (await self._reader.readexactly(size + 2))[:-2]
        elif "content-length" in self.headers:
            yield await self._reader.readexactly(int(self.headers["content-length"]))
        else:
            while data := await self._reader.read(1 << 16):
                yield data

    async def lines(self) -> AsyncIterator[str]:
        """Yield each line of the body once it is complete."""
        rest = b""
        async for data in self.parts():
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                yield line.removesuffix(b"\r").decode()


@asynccontextmanager
async def answer_to(
    verb: str, url: str, headers: Mapping[str, str], message: Message | None = None
) -> AsyncIterator[Answer]:
    """Send a request and yield its response. Raises the exceptions in BROKEN.

    Each request has its own connection, because the gateway may close an idle one just when a slow test uses it. An
    HTTP library would be too slow: for hundreds of clients, it took as much time as the gateway.
    """
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    try:
        body = b"" if message is None else json.dumps({"jsonrpc": "2.0", **message}).encode()
        own = {"Host": parts.netloc, "Connection": "close", **headers}
        if message is not None:
            own |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        head = "".join(f"{line}\r\n" for line in (f"{verb} {path} HTTP/1.1", *map(": ".join, own.items()), ""))
        writer.write(head.encode() + body)
        yield Answer(await reader.readuntil(b"\r\n\r\n"), reader)
    finally:
        writer.close()


class HttpClient(Conversation):
    """A conversation over Streamable HTTP. In 2026-07-28, closing a request's stream cancels the request."""

    def __init__(self, url: str, headers: Mapping[str, str], version: str, tasks: anyio.abc.TaskGroup) -> None:
        super().__init__()
        self._url, self._version, self._tasks = url, version, tasks
        self._given, self._headers = dict(headers), dict[str, str]()
        self._scopes: dict[Any, anyio.CancelScope] = {}  # request id -> the scope of its open POST
        self._standing = anyio.Event()

    def send(self, message: Message) -> None:
        """Send a message as a POST. In 2026-07-28, a cancellation closes the request's stream instead."""
        if self._version == MODERN and message["method"] == "notifications/cancelled":
            self.drop(message["params"]["requestId"])
        else:
            self._tasks.start_soon(self._post, message)

    @property
    def session(self) -> str:
        """The session's id. Raises KeyError before there is a session."""
        return self._headers["Mcp-Session-Id"]

    def drop(self, request_id: Any) -> None:
        """Close the stream of a request's answer without sending a cancellation."""
        self._scopes[request_id].cancel()

    async def initialize(self, version: str = "2025-11-25", **capabilities: Any) -> Message:
        """Perform the handshake and return its result. Open the stream for messages that belong to no request."""
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
        headers = {**self._given, **self._headers, **self._own_headers(message), "Accept": STREAMS}
        with scope, suppress(*BROKEN):
            async with answer_to("POST", self._url, headers, message) as answer:
                if "mcp-session-id" in answer.headers:
                    self._headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
                await self._take_answer(answer, message)
        if "method" in message and not scope.cancel_called:
            self.broke_off(message.get("id"))

    def _own_headers(self, message: Message) -> dict[str, str]:
        """Return the headers that 2026-07-28 requires for proxies that ignore the body: version, method and name."""
        if self._version != MODERN or "method" not in message:
            return {}
        told = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
        named = NAMED_BY.get(message["method"])
        return {**told, "Mcp-Name": message["params"][named]} if named else told

    async def _take_answer(self, answer: Answer, message: Message) -> None:
        kind = answer.headers.get("content-type", "")
        if kind.startswith("text/event-stream"):
            async for _, data in events(answer.lines()):
                if data:  # an empty event only gives an id for resumption
                    self.take(json.loads(data))
            return
        text = b"".join([part async for part in answer.parts()]).decode()
        if kind.startswith("application/json") and text:
            self.take({"id": message.get("id"), **json.loads(text)})
        elif answer.status >= 400 and "id" in message:
            self.take({"id": message["id"], "error": {"code": 0, "message": f"HTTP {answer.status} {text}"}})

    async def _listen(self) -> None:
        headers = {**self._given, **self._headers, "Accept": "text/event-stream"}
        with suppress(*BROKEN):
            async with answer_to("GET", self._url, headers) as answer:
                self._standing.set()
                if answer.status == 200:
                    await self._take_answer(answer, {})


class SseClient(Conversation):
    """A conversation over the HTTP+SSE of 2024-11-05. All answers arrive on one stream, which names the POST URL."""

    def __init__(self, url: str, headers: Mapping[str, str], tasks: anyio.abc.TaskGroup) -> None:
        super().__init__()
        self._url, self._given, self._tasks = url, dict(headers), tasks
        self._where = ""
        self._known = anyio.Event()

    async def listen(self) -> None:
        """Read the stream to its end."""
        with suppress(*BROKEN):
            async with answer_to("GET", self._url, {**self._given, "Accept": "text/event-stream"}) as answer:
                async for kind, data in events(answer.lines()):
                    if kind == "endpoint":
                        self._where = urljoin(self._url, data)
                        self._known.set()
                    else:
                        self.take(json.loads(data))
        self.ended()

    def send(self, message: Message) -> None:
        self._tasks.start_soon(self._post, message)

    async def _post(self, message: Message) -> None:
        await self._known.wait()
        with suppress(*BROKEN):
            async with answer_to("POST", self._where, self._given, message) as answer:
                async for _ in answer.parts():
                    pass


async def events(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, str]]:
    """Yield the type and data of each event (WHATWG, server-sent events)."""
    kind, data = "message", [""][:0]
    async for line in lines:
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
    """Yield a client that has sent nothing yet. At the end, close its connections abruptly, as if it were killed."""
    given = headers or {}
    async with task_group() as tasks:
        if sse:
            older = SseClient(url, given, tasks)
            tasks.start_soon(older.listen)
            yield older
        else:
            yield HttpClient(url, given, version, tasks)
        tasks.cancel_scope.cancel()
