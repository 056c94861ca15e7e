"""The reference server over stdio or Streamable HTTP, and the changes to its lists.

`python -m tests.conformance.reference.server --stdio | --older | --http` runs one server. `--older` is stdio without
the newer era. With `--http`, the first line of output is the URL.

`--forks SOCKET` forks a stdio server for each connection, because the imports take a second and a session may need its
own process.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import sys
import warnings
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from tests.conformance.reference.asking import Asking, InputWanted
from tests.conformance.reference.offers import PROMPTS, RESOURCES, TEMPLATES, completed, read
from tests.conformance.reference.samples import Json
from tests.conformance.reference.tools import TOOLS, said, tool

RETRY_MS = 100  # the delay before a client resumes a closed stream
Context = ServerRequestContext[Any, Any]
CACHED = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")


class Events(EventStore):
    """All events of this process, so that clients can resume their streams."""

    def __init__(self) -> None:
        self._events: list[tuple[StreamId, types.JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: StreamId, message: types.JSONRPCMessage | None) -> EventId:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        number = int(last_event_id)
        stream_id = self._events[number - 1][0]
        for later, (stream, message) in enumerate(self._events[number:], number + 1):
            if stream == stream_id and message is not None:
                await send_callback(EventMessage(message, str(later)))
        return stream_id


class Reference(Server[Any]):
    """The reference server. `dynamic` holds the kinds of list (tools, prompts) that now have an additional entry."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.dynamic: set[str] = set()
        super().__init__(
            "reference",
            version="1.0.0",
            cache_hints={method: CacheHint(ttl_ms=1000, scope="private") for method in CACHED},  # type: ignore[misc]
            on_list_tools=self._list_tools,
            on_call_tool=self._call,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_list_resources=_list_resources,
            on_list_resource_templates=_list_templates,
            on_read_resource=_read,
            on_subscribe_resource=_accept,
            on_unsubscribe_resource=_accept,
            on_subscriptions_listen=ListenHandler(self.bus),
            on_completion=_complete,
            on_set_logging_level=_accept,
        )

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *args: Any, **more: Any
    ) -> InitializationOptions:
        """Declare `listChanged` for all kinds of lists."""
        return super().create_initialization_options(NotificationOptions(True, True, True), *args, **more)

    async def change(self, kind: str, asking: Asking) -> None:
        """Add the additional entry to a list, or remove it, and notify the clients."""
        self.dynamic ^= {kind}
        await self.bus.publish(ToolsListChanged() if kind == "tools" else PromptsListChanged())
        if not asking.modern:
            notification = types.ToolListChangedNotification if kind == "tools" else types.PromptListChangedNotification
            await asking.context.session.send_notification(notification())

    async def _list_tools(self, context: Context, params: Any) -> Any:
        return complete({"tools": [definition for definition, _ in TOOLS.values()] + self._more("tools")})

    async def _list_prompts(self, context: Context, params: Any) -> Any:
        return complete({"prompts": [definition for definition, _ in PROMPTS.values()] + self._more("prompts")})

    def _more(self, kind: str) -> list[Json]:
        schema = {"inputSchema": {"type": "object"}} if kind == "tools" else {}
        one: Json = {"name": f"dynamic_{kind}", "description": "Comes and goes", **schema}
        return [one] if kind in self.dynamic else []

    async def _call(self, context: Context, params: types.CallToolRequestParams) -> Any:
        asking = Asking(context)
        if params.name in CHANGES:
            await self.change(CHANGES[params.name], asking)
            return complete(said("Changed"))
        return await _carry_out(TOOLS, params.name, asking)

    async def _get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> Any:
        return await _carry_out(PROMPTS, params.name, Asking(context))


def complete(result: Json) -> Json:
    """Return a complete result in the newer era's form. The SDK converts it for the older era."""
    return {"resultType": "complete", **result}


async def _carry_out(known: Any, name: str, asking: Asking) -> Any:
    if name not in known:
        raise MCPError(types.INVALID_PARAMS, f"Unknown name: {name}")
    try:
        return complete(await known[name][1](asking))
    except InputWanted as wanted:
        return wanted.result


@tool("Changes the list of tools")
async def test_trigger_tool_change(asking: Asking) -> Json:
    raise AssertionError("the server itself carries it out")


@tool("Changes the list of prompts")
async def test_trigger_prompt_change(asking: Asking) -> Json:
    raise AssertionError("the server itself carries it out")


CHANGES = {test_trigger_tool_change.__name__: "tools", test_trigger_prompt_change.__name__: "prompts"}


async def _list_resources(context: Context, params: Any) -> Any:
    return complete({"resources": RESOURCES})


async def _list_templates(context: Context, params: Any) -> Any:
    return complete({"resourceTemplates": TEMPLATES})


async def _read(context: Context, params: types.ReadResourceRequestParams) -> Any:
    return complete(read(str(params.uri)))


async def _accept(context: Context, params: Any) -> Any:
    return {}


async def _complete(context: Context, params: types.CompleteRequestParams) -> Any:
    return complete(completed(params.argument.value))


async def _over_stdio(server: Reference) -> None:
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


async def _over_stdio_as_of_2025(server: Reference) -> None:
    """Serve the older era only, over stdio."""
    async with stdio_server() as (read_stream, write_stream):
        await serve_loop(server, read_stream, write_stream, lifespan_state={})


async def _over_http(server: Reference) -> None:
    app = server.streamable_http_app(event_store=Events(), retry_interval=RETRY_MS)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
        # httptools keeps the blanks after a header's value
        config = uvicorn.Config(app, log_level=logging.CRITICAL, http="h11")
        await uvicorn.Server(config).serve([listener])


def serve_forks(path: str) -> None:
    """Fork a stdio server for each client. The client (start.py) sends the kind of server and its standard streams."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that the kernel reaps the children
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        print(path, flush=True)
        while True:
            asking = listener.accept()[0]
            if os.fork() == 0:
                break
            asking.close()
    # `asking` stays open, so that the client sees when this process ends
    way, ends, _, _ = socket.recv_fds(asking, 100, 3)
    for number, end in enumerate(ends):
        os.dup2(end, number)
        os.close(end)
    serve(way.decode())
    os._exit(0)


def serve(way: str) -> None:
    """Run one server until its client is gone."""
    ways = {"--stdio": _over_stdio, "--older": _over_stdio_as_of_2025, "--http": _over_http}
    anyio.run(ways[way], Reference())


def main() -> None:
    """Run the server that the command line describes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=("--stdio", "--older", "--http", "--forks"))
    parser.add_argument("socket", nargs="?")
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    chosen = parser.parse_args(["--", *sys.argv[1:]])
    if chosen.way == "--forks":
        serve_forks(chosen.socket)
    else:
        serve(chosen.way)


if __name__ == "__main__":
    main()
