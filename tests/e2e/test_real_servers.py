"""The six real reference servers behind one gateway, each compared with a direct connection to the same server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests import servers
from tests.e2e.client import RawClient, RpcFailure, client_of
from tests.e2e.gateway import Gateway, gateway_in
from tests.e2e.test_one_tool import mcp, said
from tests.fixtures.odd import until
from tests.patience import stretched
from tests.tools import require
from trayapp.gateway.exposure.exposure import INDEX_URI
from trayapp.service.command_line import own_command
from trayapp.wire.control import SETTLE

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]  # six servers take long to start


class Real:
    """The entries of the six servers, and a direct connection to any of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = folder / "files"
        self.files.mkdir()
        (self.files / "hello.txt").write_text("hello from a file\n")
        self.repository = folder / "repo"
        git(self.repository)
        self.memory = folder / "memory.json"

    def entries(self) -> dict[str, dict[str, Any]]:
        return {
            "everything": {"command": servers.everything()},
            "filesystem": {"command": servers.filesystem(self.files)},
            "memory": {"command": servers.memory(), "env": {"MEMORY_FILE_PATH": str(self.memory)}},
            "sequential-thinking": {"command": servers.sequential_thinking()},
            "time": {"command": [*servers.quick("mcp_server_time"), "--local-timezone", "UTC"]},
            "git": {"command": [*servers.quick("mcp_server_git"), "--repository", str(self.repository)]},
        }

    @asynccontextmanager
    async def direct(self, name: str) -> AsyncIterator[RawClient]:
        """Yield a client that is connected to that server without the gateway."""
        entry = self.entries()[name]
        env = {**os.environ, **entry.get("env", {})}
        async with client_of(entry["command"], env, self.folder) as client:
            yield client


def git(folder: Path) -> None:
    """Create a Git repository with one commit."""
    program = require("git")
    who = ("-c", "user.name=tester", "-c", "user.email=tester@example.test")
    for words in (("init", "-q", "."), (*who, "commit", "-q", "--allow-empty", "-m", "the first")):
        folder.mkdir(exist_ok=True)
        subprocess.run([program, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def real(tmp_path: Path) -> Real:
    return Real(tmp_path)


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, Real]]:
    """Yield one gateway for all tests of the six servers, because their start takes seconds of processor time."""
    real = Real(tmp_path_factory.mktemp("six"))
    with gateway_in(tmp_path_factory.mktemp("gateway"), forked=True) as gateway:
        gateway.write(real.entries(), expose="auto")
        gateway.start()
        gateway.control(SETTLE)
        yield gateway, real


# server, tool, arguments, a text that the answer must contain
CALLS: list[tuple[str, str, dict[str, Any], str]] = [
    ("everything", "echo", {"message": "hi"}, "hi"),
    ("everything", "get-sum", {"a": 2, "b": 40}, "42"),
    ("everything", "get-structured-content", {"location": "New York"}, "temperature"),
    ("everything", "get-annotated-message", {"messageType": "error", "includeImage": True}, "Error"),
    ("everything", "get-resource-links", {"count": 2}, "resource"),
    ("everything", "get-tiny-image", {}, "image"),
    ("filesystem", "read_text_file", {"path": "hello.txt"}, "hello from a file"),
    ("memory", "read_graph", {}, "entities"),
    (
        "sequential-thinking",
        "sequentialthinking",
        {"thought": "t", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": False},
        "thoughtNumber",
    ),
    ("time", "convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}, "21:00"),
    ("git", "git_log", {"repo_path": "{repository}"}, "the first"),
]


@pytest.mark.requirement("transport-real-servers", "call-no-field-lost", "transport-all-three")
async def test_all_six_are_listed_and_called_field_by_field_as_directly(six: tuple[Gateway, Real]) -> None:
    gateway, real = six
    async with client_of([*own_command(), "stdio", "--expose", "tools"], gateway.env, gateway.home) as client:
        listed = {tool["name"]: tool for tool in await client.all("tools")}
        exposed = {(row["server"], row["name"]): row["exposed_name"] for row in gateway.control("list")}
        shown = set()
        for name in real.entries():
            async with real.direct(name) as direct:
                for tool in await direct.all("tools"):
                    shown.add(exposed[name, tool["name"]])
                    assert {**listed[exposed[name, tool["name"]]], "name": tool["name"]} == tool
                for server, tool_name, arguments, text in CALLS:
                    if server == name:
                        through = await client.call(exposed[name, tool_name], **filled(arguments, real))
                        straight = await direct.call(tool_name, **filled(arguments, real))
                        assert without_era(through) == straight
                        assert text in str(through)
        assert set(listed) == shown
        assert len(listed) == len(shown) > 40
    assert {row["name"]: row["state"] for row in gateway.snapshot()["servers"]} == dict.fromkeys(
        real.entries(), "connected"
    )


@pytest.mark.requirement("one-tool-search", "one-tool-call", "resource-as-tool")
async def test_all_six_behind_the_one_tool(six: tuple[Gateway, Real]) -> None:
    gateway, real = six
    async with gateway.client() as client:
        assert await client.tools() == ["mcp"]
        assert "time_get_current_time(timezone: string)" in await said(client, search="what time is it in Tokyo")
        now = await mcp(client, tool="get_current_time", args={"timezone": "Asia/Tokyo"})
        assert json.loads(now["content"][0]["text"])["timezone"] == "Asia/Tokyo"
        arguments = {"path": str(real.files / "hello.txt")}
        read = await mcp(client, tool="filesystem_read_text_file", args=arguments)
        async with real.direct("filesystem") as direct:
            assert read == await direct.call("read_text_file", **arguments)
        image = await mcp(client, tool="everything_get-tiny-image")
        async with real.direct("everything") as direct:
            assert image == await direct.call("get-tiny-image")
        assert "everything_read_architecture_md" in await said(client, search="architecture document")
        document = await mcp(client, tool="everything_read_architecture_md")
        assert document["content"][0]["resource"]["uri"] == "demo://resource/static/document/architecture.md"


def without_era(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result without the members of revision 2026-07-28. The direct client uses 2025-11-25."""
    rest = {key: value for key, value in result.items() if key != "resultType"}
    meta = {key: value for key, value in rest.pop("_meta", {}).items() if key != "io.modelcontextprotocol/serverInfo"}
    return {**rest, "_meta": meta} if meta else rest


def filled(arguments: dict[str, Any], real: Real) -> dict[str, Any]:
    places = {"hello.txt": str(real.files / "hello.txt"), "{repository}": str(real.repository)}
    return {key: places.get(value, value) if isinstance(value, str) else value for key, value in arguments.items()}


@pytest.mark.requirement("call-features", "call-progress")
async def test_everything_that_server_everything_can_passes(gateway: Gateway, real: Real) -> None:
    """Prompts, resources, templates, completion, logging and progress work as over a direct connection."""
    gateway.write({"everything": real.entries()["everything"]})
    gateway.start()
    await gateway.known()
    async with gateway.client() as client, real.direct("everything") as direct:
        prompts = {prompt["name"]: prompt for prompt in await client.all("prompts")}
        for prompt in await direct.all("prompts"):
            assert {**prompts[f"everything_{prompt['name']}"], "name": prompt["name"]} == prompt
        got = await client.request(
            "prompts/get", {"name": "everything_args-prompt", "arguments": {"city": "Paris", "state": "F"}}
        )
        assert got == await direct.request(
            "prompts/get", {"name": "args-prompt", "arguments": {"city": "Paris", "state": "F"}}
        )

        resources = await direct.all("resources")
        assert resources
        listed = await client.all("resources")
        assert [resource for resource in listed if resource["uri"] != INDEX_URI] == resources
        templates = await direct.all("resourceTemplates", "resources/templates/list")
        assert templates
        assert await client.all("resourceTemplates", "resources/templates/list") == templates
        for uri in (resources[0]["uri"], "demo://resource/dynamic/text/3"):
            through = await client.request("resources/read", {"uri": uri})
            straight = await direct.request("resources/read", {"uri": uri})
            assert without_times(through) == without_times(straight)

        prompt = {"type": "ref/prompt", "name": "completable-prompt"}
        about: dict[str, Any] = {"argument": {"name": "department", "value": "E"}}
        through = await client.request(
            "completion/complete", {"ref": {**prompt, "name": "everything_completable-prompt"}, **about}
        )
        assert through == await direct.request("completion/complete", {"ref": prompt, **about})
        assert through["completion"]["values"]
        template = {"type": "ref/resource", "uri": templates[0]["uriTemplate"]}
        asked = {"ref": template, "argument": {"name": "resourceId", "value": "3"}}
        assert await client.request("completion/complete", asked) == await direct.request("completion/complete", asked)

        assert await client.request("logging/setLevel", {"level": "debug"}) == {}
        await client.call("everything_toggle-simulated-logging")
        messages = await client.heard("notifications/message")
        assert messages[0]["level"]

        params = {
            "name": "everything_trigger-long-running-operation",
            "arguments": {"duration": 0.3, "steps": 3},
            "_meta": {"progressToken": "mine"},
        }
        assert "completed" in str(await client.request("tools/call", params))
        steps = await client.heard("notifications/progress", 3)
        assert [(step["progressToken"], step["progress"], step["total"]) for step in steps] == [
            ("mine", number, 3) for number in (1, 2, 3)
        ]


def without_times(result: dict[str, Any]) -> Any:
    """Return the contents without the creation times that dynamic resources include."""
    return [{**content, "text": content["text"].split(" created at")[0]} for content in result["contents"]]


@contextmanager
def listening(argv: list[str], folder: Path) -> Iterator[int]:
    """Start a server on a free port and yield the port. Kill the server at the end."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        argv,
        env={**os.environ, "PORT": str(port)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield port
    finally:
        process.kill()
        process.wait()


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 0.2).close()
    except OSError:
        return False
    return True


@pytest.mark.requirement("transport-all-three", "transport-sse-fallback")
async def test_server_everything_over_http_and_sse_is_the_same_as_over_stdio(gateway: Gateway, real: Real) -> None:
    with (
        listening(servers.everything_http(), real.folder) as http,
        listening(servers.everything_sse(), real.folder) as sse,
    ):
        for port in (http, sse):
            await until(lambda port=port: accepts(port))
        gateway.write(
            {
                "http": {"url": f"http://127.0.0.1:{http}/mcp"},
                "sse": {"url": f"http://127.0.0.1:{sse}/sse"},
                "stdio": real.entries()["everything"],
            }
        )
        gateway.start()
        await gateway.known()
        async with gateway.client() as client:
            lists: dict[str, dict[str, Any]] = {}

            # true once the gateway has each server's list for a client without capabilities
            async def are_equal() -> bool:
                lists.update(http={}, sse={}, stdio={})
                for tool in await client.all("tools"):
                    server, _, name = tool["name"].partition("_")
                    lists[server][name] = {**tool, "name": name}
                return lists["http"] == lists["sse"] == lists["stdio"]

            with anyio.fail_after(stretched(20.0)):
                while not await are_equal():  # noqa: ASYNC110 (other processes send no event)
                    await anyio.sleep(0.1)
            assert len(lists["stdio"]) > 5
            for server in lists:
                assert "hi" in str(await client.call(f"{server}_echo", message="hi"))
                params = {
                    "name": f"{server}_trigger-long-running-operation",
                    "arguments": {"duration": 0.1, "steps": 2},
                    "_meta": {"progressToken": server},
                }
                assert "completed" in str(await client.request("tools/call", params))
            steps = await client.heard("notifications/progress", 6)
            assert sorted((step["progressToken"], step["progress"]) for step in steps) == [
                (server, number) for server in sorted(lists) for number in (1, 2)
            ]
            rows = {row["name"]: (row["state"], row["transport"]) for row in gateway.snapshot()["servers"]}
            assert rows == {server: ("connected", server) for server in lists}


async def test_a_killed_http_server_is_one_error_and_its_return_is_noticed(gateway: Gateway, real: Real) -> None:
    with listening(servers.everything_http(), real.folder) as port:
        await until(lambda: accepts(port))
        gateway.write({"web": {"url": f"http://127.0.0.1:{port}/mcp"}}, failure_backoff=0)
        gateway.start()
        await gateway.known()
        async with gateway.client() as client:
            assert "hi" in str(await client.call("web_echo", message="hi"))
    async with gateway.client() as client:
        with anyio.fail_after(stretched(5.0)), pytest.raises(RpcFailure):
            await client.call("web_echo", message="hi")
        assert "web_echo" in await client.tools()
