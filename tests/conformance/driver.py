"""The program that the suite starts as its client.

It adds the scenario's server to a running gateway and, as a client of that gateway, does what the scenario tests.

`python -m tests.conformance.driver ADDRESS` needs the environment of the suite and of the gateway's home. With `--cold
ADDRESS`, the gateway connects to the server before it has a client.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from tests.e2e.client import Message, RawClient, RpcFailure, client_of
from trayapp.service.command_line import own_command
from trayapp.wire.control import LOGIN, LOGIN_WAIT, REFRESH, SETTLE, SNAPSHOT, ControlClient, ControlError
from trayapp.wire.rundir import run_dir

SIGN_INS = 3  # the most sign-ins that are tried
ALL_S = 50.0  # less than the suite's limit, after which the suite waits forever for its client to exit
PATIENCE_S = 40.0  # dozens of scenarios run concurrently on a small machine
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
CAPABILITIES: Message = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}


@dataclass
class Client:
    """A client of the gateway, connected through a shim, in the scenario's era."""

    raw: RawClient
    revision: str
    server: str

    @property
    def modern(self) -> bool:
        return self.revision == MODERN

    async def introduce(self) -> None:
        """Perform the handshake of the client's era."""
        if self.modern:
            await self.request("server/discover", {})
        else:
            await self.raw.initialize(self.revision, **CAPABILITIES)

    async def request(self, method: str, params: Message) -> Message:
        """Send a request, with the metadata that the newer era requires, and return its result."""
        if self.modern:
            info = {"name": "driver", "version": "1"}
            about = {"protocolVersion": MODERN, "clientCapabilities": CAPABILITIES, "clientInfo": info}
            params = {**params, "_meta": {META + key: value for key, value in about.items()}}
        return await self.raw.request(method, params)

    async def tools(self) -> dict[str, Message]:
        """Refresh the scenario's server and return its tools by their original names."""
        await self.listed()
        listed = (await self.request("tools/list", {}))["tools"]
        start = f"{self.server}_"
        return {tool["name"].removeprefix(start): tool for tool in listed if tool["name"].startswith(start)}

    async def listed(self) -> None:
        """Have the gateway read the server's lists again, as if they had expired. Raises RpcFailure if that fails."""
        outcome = (await control(REFRESH, server=self.server))["servers"][self.server]
        if outcome.get("error"):
            raise RpcFailure(outcome["error"])

    async def call(self, tool: str, arguments: Message, **more: Any) -> Message:
        """Call a tool and return its result."""
        name = f"mcp__{self.server}__{tool}"
        return await self.request("tools/call", {"name": name, "arguments": arguments, **more})

    async def answer(self) -> None:
        """Answer requests from the gateway until cancelled."""
        while True:
            await self.raw.something()
            while self.raw.requests:
                question = self.raw.requests.pop(0)
                self.raw.send({"id": question["id"], "result": taken(question)})


def taken(question: Message) -> Message:
    """Return the answer of a person who accepts a form: the defaults, and True for booleans without a default."""
    fields = question.get("params", {}).get("requestedSchema", {}).get("properties", {})
    proposed = {name: field["default"] for name, field in fields.items() if "default" in field}
    yes = {name: True for name, field in fields.items() if name not in proposed and field.get("type") == "boolean"}
    return {"action": "accept", "content": {**proposed, **yes}}


# -- what the client does in each scenario ---------------------------------------------------------------------------


async def use(client: Client) -> None:
    """Call the first tool, if there is one."""
    tools = await client.tools()
    if tools:
        await client.call(next(iter(tools)), {})


async def add(client: Client) -> None:
    await client.call("add_numbers", {"a": 5, "b": 3})


async def call_every_tool(client: Client) -> None:
    for name in await client.tools():
        await client.call(name, {"region": "eu", "value": "x"})


async def look(client: Client) -> None:
    await client.tools()


async def everything_by_name(client: Client) -> None:
    await call_every_tool(client)
    for resource in (await client.request("resources/list", {}))["resources"]:
        if not resource["uri"].startswith("multi-mcp:"):
            await client.request("resources/read", {"uri": resource["uri"]})
    await client.request("prompts/get", {"name": f"{client.server}_test_prompt"})


async def calls_of_the_scenario(client: Client) -> None:
    for wanted in context()["toolCalls"]:
        await client.call(wanted["name"], wanted["arguments"])


async def carry_on(client: Client) -> None:
    """Call each tool, make an unrelated call, and then answer the tool's questions."""
    for tool in ("test_mrtr_echo_state", "test_mrtr_no_state"):
        asked = await client.call(tool, {})
        await client.call("test_mrtr_unrelated", {})
        answers = {key: taken(question) for key, question in asked["inputRequests"].items()}
        state = {"requestState": asked["requestState"]} if "requestState" in asked else {}
        await client.call(tool, {}, inputResponses=answers, **state)
    await client.call("test_mrtr_no_result_type", {})


async def send_back_a_schema(client: Client) -> None:
    tools = await client.tools()
    await client.call("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"]["inputSchema"]})


WORK: dict[str, Callable[[Client], Awaitable[None]]] = {
    "tools_call": add,
    "initialize": look,
    "request-metadata": look,
    "json-schema-ref-no-deref": look,
    "http-standard-headers": everything_by_name,
    "http-custom-headers": calls_of_the_scenario,
    "http-invalid-tool-headers": call_every_tool,
    "sep-2322-client-request-state": carry_on,
    "json-schema-2020-12-preservation": send_back_a_schema,
}


def context() -> Message:
    """Return the suite's data about the scenario."""
    found: Message = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    return found


# -- the gateway and its user ----------------------------------------------------------------------------------------


async def control(method: str, **params: Any) -> Any:
    """Send the gateway a control request, as the command line does. Raises ControlError."""

    def ask() -> Any:
        with ControlClient(run_dir(os.environ), PATIENCE_S) as client:
            return client.call(method, params)

    return await anyio.to_thread.run_sync(ask, abandon_on_cancel=True)


async def configure(server: str, address: str) -> None:
    """Add the scenario's server, with its registered client if it has one."""
    entry: Message = {"name": server, "url": address, "type": "http"}
    known = context()
    entry |= {key: known[key] for key in ("client_id", "client_secret") if key in known}
    await manage("POST", "", entry)


async def manage(verb: str, path: str, body: Message | None = None) -> None:
    """Send a management request over HTTP."""
    base = str((await control(SNAPSHOT))["gateway"]["http_url"]).removesuffix("/mcp")
    request = urllib.request.Request(f"{base}/mcp_servers{path}", method=verb)
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    await anyio.to_thread.run_sync(lambda: urllib.request.urlopen(request, timeout=PATIENCE_S).close())


async def wants_sign_in(failure: RpcFailure | ControlError, server: str) -> bool:
    """True if an error's text, or the server's state, requires a sign-in."""
    words = str(failure.error) if isinstance(failure, RpcFailure) else failure.hint
    if f"multi-mcp auth {server}" in words:
        return True
    rows = (await control(SNAPSHOT))["servers"]
    return any(row["name"] == server and row["state"] == "needs_auth" for row in rows)


async def sign_in(server: str) -> None:
    """Sign in as a user whose browser follows redirects. Raises ControlError if it fails."""
    begun = await control(LOGIN, server=server)

    def browse() -> None:
        with suppress(urllib.error.HTTPError):
            urllib.request.urlopen(begun["url"], timeout=PATIENCE_S).close()

    await anyio.to_thread.run_sync(browse)
    await control(LOGIN_WAIT, server=server)


async def until_it_works(client: Client, work: Callable[[Client], Awaitable[None]]) -> None:
    """Run `work`. If an error requires a sign-in, sign in and retry, up to SIGN_INS times. Raises the last error."""
    for left in range(SIGN_INS, -1, -1):
        try:
            return await work(client)
        except (RpcFailure, ControlError) as failure:
            if not left or not await wants_sign_in(failure, client.server):
                raise
        await sign_in(client.server)


async def run(address: str, *, cold: bool) -> None:
    """Run one scenario with a server that is removed afterwards."""
    scenario, revision = os.environ["MCP_CONFORMANCE_SCENARIO"], os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    server = f"s{os.getpid()}"  # short, so that the tools' names are not shortened
    with anyio.fail_after(ALL_S):
        try:
            if cold:
                await configure(server, address)
                await control(SETTLE)
            await carry_out(scenario, revision, server, None if cold else address)
        finally:
            with anyio.CancelScope(shield=True):
                await manage("DELETE", f"/{server}")  # the suite waits until every connection has ended


async def carry_out(scenario: str, revision: str, server: str, address: str | None) -> None:
    """Connect a client and run the scenario. First add the server at `address`, unless that is None."""
    async with client_of([*own_command(), "stdio"], os.environ, Path.cwd(), None) as raw:
        client = Client(raw, revision, server)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.answer)
            await client.introduce()
            if address is not None:
                await configure(server, address)
            await until_it_works(client, WORK.get(scenario, use))
            tasks.cancel_scope.cancel()


def main() -> int:
    """Run the client. Return 1 if the scenario failed."""
    try:
        anyio.run(partial(run, sys.argv[-1], cold=sys.argv[1] == "--cold"))
    except BaseException:  # noqa: BLE001 (the boundary of this process, which says what it was)
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # immediately, without waiting for threads
