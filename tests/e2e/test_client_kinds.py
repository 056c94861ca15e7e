"""Each client sees the lists that its server would send it directly, which depend on its era and its capabilities."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests import servers
from tests.e2e.cell import META, MODERN
from tests.e2e.client import RpcFailure, client_of
from tests.e2e.gateway import Gateway
from tests.e2e.test_one_name import params
from tests.e2e.test_questions import EVERY_WAY, OLDER, Person, people, served
from tests.fixtures.era_server import TOOLS

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("lists-for-each-kind"), pytest.mark.timeout(120)]

ABLE: dict[str, Any] = {"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": True}}
APPS, CHARTS = "io.modelcontextprotocol/ui", "com.example/charts"
DIRECT: dict[str, set[str]] = {}  # command and client capabilities -> the tools that the server lists directly
# The capability of a client that runs servers' requests as tasks (MCP 2025-11-25).
TASKS: dict[str, Any] = {"requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}}}


async def listed(client: Any, params: dict[str, Any] | None = None) -> set[str]:
    """Return the names of the tools that a client sees."""
    return {tool["name"] for tool in (await client.request("tools/list", params or {}))["tools"]}


async def definitions(gateway: Gateway, revision: str) -> set[str]:
    """Return the descriptions of the server's tools that a client of this revision sees."""
    envelope = {"_meta": {META + "protocolVersion": MODERN, META + "clientCapabilities": ABLE}}
    async with gateway.client(None) as client:
        if revision != MODERN:
            await client.initialize(revision, **ABLE)
        found = await client.request("tools/list", envelope if revision == MODERN else {})
        return {tool["description"] for tool in found["tools"]}


async def instructions(gateway: Gateway, revision: str) -> str:
    """Return the instructions that a client of this revision gets when it connects."""
    envelope = {"_meta": {META + "protocolVersion": MODERN, META + "clientCapabilities": ABLE}}
    async with gateway.client(None) as client:
        if revision == MODERN:
            return str((await client.request("server/discover", envelope))["instructions"])
        return str((await client.initialize(revision, **ABLE))["instructions"])


async def older(gateway: Gateway, capabilities: dict[str, Any]) -> set[str]:
    """Return the names of the tools that a client of the older era sees."""
    async with gateway.client(None) as client:
        await client.initialize(OLDER, **capabilities)
        return {name.removeprefix("e_") for name in await listed(client)}


async def newer(gateway: Gateway) -> set[str]:
    """Return the names of the tools that a client of the newer era sees."""
    envelope = {"_meta": {META + "protocolVersion": MODERN, META + "clientCapabilities": ABLE}}
    async with gateway.client(None) as client:
        return {name.removeprefix("e_") for name in await listed(client, envelope)}


async def direct(gateway: Gateway, argv: list[str], capabilities: dict[str, Any]) -> set[str]:
    """Return and cache the names of the tools that the server itself lists to a client with these capabilities."""
    key = json.dumps([argv, capabilities])
    if key not in DIRECT:
        async with client_of(argv, gateway.env, gateway.home, None) as client:
            await client.initialize(OLDER, **capabilities)
            DIRECT[key] = await listed(client)
            client.process.kill()  # otherwise, the server would wait for the roots that it requested
    return DIRECT[key]


async def test_server_everything_lists_by_what_its_client_can_do(gateway: Gateway) -> None:
    argv = servers.everything()
    able, weak = await direct(gateway, argv, ABLE), await direct(gateway, argv, {})
    assert len(able) > len(weak)
    gateway.write({"e": {"command": argv}})
    gateway.start()
    await gateway.known()
    assert await older(gateway, {}) == weak
    assert await older(gateway, ABLE) == able
    async with gateway.client(None) as client:
        await client.initialize(OLDER)
        assert await client.request("tools/call", {"name": "e_echo", "arguments": {"message": "x"}})
        assert await older(gateway, ABLE) == able
        assert await older(gateway, {}) == weak
    gateway.stop()
    gateway.start()
    assert await older(gateway, {}) == weak
    assert await older(gateway, ABLE) == able


@pytest.mark.parametrize(
    "able", [("elicitation",), ("roots", "sampling"), ("roots",), ("elicitation", "sampling", "tasks")], ids="-".join
)
async def test_the_first_list_of_a_client_that_can_do_some_of_it_is_its_own_and_stays(
    gateway: Gateway, able: tuple[str, ...]
) -> None:
    """No client with these capabilities has connected before, and no call changes what this client sees."""
    argv, capabilities = servers.everything(), {name: ABLE.get(name, TASKS) for name in able}
    expected = await direct(gateway, argv, capabilities)
    assert expected != await direct(gateway, argv, ABLE)
    gateway.write({"e": {"command": argv}})
    gateway.start()
    await gateway.known()
    async with gateway.client(None) as client:
        await client.initialize(OLDER, **capabilities)
        assert {name.removeprefix("e_") for name in await listed(client)} == expected
        found = await client.request("tools/call", {"name": "mcp", "arguments": {"search": "trigger sampling request"}})
        hits = found["content"][0]["text"]
        assert ("e_trigger-sampling-request" in hits) is ("trigger-sampling-request" in expected)
        assert await client.request("tools/call", {"name": "e_echo", "arguments": {"message": "x"}})
        assert {name.removeprefix("e_") for name in await listed(client)} == expected
        await anyio.sleep(0.5)  # by now, the gateway would have read a change that the server announced at its start
        assert [told["method"] for told in client.told if told["method"].endswith("/list_changed")] == []


@pytest.mark.parametrize("kind", ["stdio both", "http both"])
async def test_a_server_of_both_eras_lists_to_each_its_own(gateway: Gateway, tmp_path: Path, kind: str) -> None:
    """In each era, the server describes itself differently, as the TypeScript reference server does."""
    with served(kind, tmp_path) as entry:
        gateway.write({"e": entry})
        gateway.start()
        await gateway.known()
        direct = set(TOOLS)
        assert await older(gateway, ABLE) == direct
        assert await newer(gateway) == {*direct, "newer_only"}
        async with gateway.client(None) as client:  # the lists stay the same while an older client uses the server
            await client.initialize(OLDER, **ABLE)
            assert await client.request("tools/call", {"name": "e_echo", "arguments": {}})
            assert await newer(gateway) == {*direct, "newer_only"}
        gateway.stop()
        gateway.start()
        assert await newer(gateway) == {*direct, "newer_only"}
        assert await older(gateway, ABLE) == direct


@pytest.mark.parametrize("revision", [OLDER, MODERN])
@pytest.mark.parametrize("kind", ["stdio both", "http both"])
async def test_a_tool_that_each_era_defines_otherwise_is_defined_to_each_client_as_in_its_own(
    gateway: Gateway, tmp_path: Path, kind: str, revision: str
) -> None:
    """The order of the clients, their calls, a refresh and a restart make no difference."""
    both = {OLDER: {"Of 2025"}, MODERN: {"Of 2026"}}
    order = [revision, next(other for other in both if other != revision)]
    with served(kind, tmp_path) as entry:
        gateway.write({"e": entry})
        gateway.start()
        await gateway.known()
        for each in order * 2:
            assert await definitions(gateway, each) == both[each]
        for user in order:
            async with gateway.client(None) as client:
                if user != MODERN:
                    await client.initialize(user, **ABLE)
                envelope = {"_meta": {META + "protocolVersion": MODERN, META + "clientCapabilities": ABLE}}
                meta = envelope if user == MODERN else {}
                assert await client.request("tools/call", {"name": "e_echo", "arguments": {}, **meta})
                await gateway.ask("refresh", server="e")
                for each in order:
                    assert await definitions(gateway, each) == both[each]
                    assert f"Written in {each[:4]}" in await instructions(gateway, each)
        gateway.stop()
        gateway.start()
        for each in order:
            assert await definitions(gateway, each) == both[each]
            assert f"Written in {each[:4]}" in await instructions(gateway, each)


CALLS = 1_000
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")


async def lists(person: Person) -> list[str]:
    """Return the answers to all list requests as text, in which the order of members counts."""
    meta = {key: value for key, value in params(person.modern, "").items() if key == "_meta"}
    return [json.dumps(await person.client.request(method, meta)) for method in LISTS]


async def call_at_random(person: Person, some: random.Random, tools: tuple[str, ...]) -> None:
    """Make a random request, valid or not: a call by name or with the tool `mcp`, a search, a read or a prompt."""
    given = {"arguments": {"who": "you"}}
    requests: list[tuple[str, dict[str, Any]]] = [
        ("tools/call", params(person.modern, some.choice(tools), message="x")),
        ("tools/call", params(person.modern, "mcp", tool=some.choice(tools), args={})),
        ("tools/call", params(person.modern, "mcp", **some.choice(({"search": "echo"}, {"describe": "e_echo"}, {})))),
        ("resources/read", {**params(person.modern, ""), "uri": some.choice(("multi-mcp://one/era://x", "era://y"))}),
        ("prompts/get", {**params(person.modern, some.choice(("one_greet", "none"))), **given}),
    ]
    if some.random() < 0.2:
        await person.call(some.choice(("one", "two")))
        return
    with suppress(RpcFailure):
        await person.client.request(*some.choice(requests))
        person.answered += 1


@pytest.mark.requirement("lists-steady")
@pytest.mark.timeout(300)
async def test_a_thousand_random_calls_of_clients_of_every_kind_leave_the_lists_of_each_as_they_were(
    gateway: Gateway, tmp_path: Path
) -> None:
    """The servers' lists differ by the client's era and by its capabilities."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    with served("stdio both", tmp_path / "one") as one, served("http both", tmp_path / "two") as two:
        entries = {"one": one, "two": two, "e": {"command": servers.everything()}}
        gateway.write(entries, http={"port": 0}, expose="tools")
        gateway.start()
        await gateway.known()
        async with people(gateway, EVERY_WAY, len(EVERY_WAY)) as everybody, gateway.client(OLDER) as unable:
            everybody.append(Person("unable", unable, OLDER))
            before = [await lists(person) for person in everybody]
            # one for each era, and one for the client without capabilities
            assert len({tuple(found) for found in before}) == 3
            async with anyio.create_task_group() as tasks:
                for person in everybody:
                    tasks.start_soon(person.answer_questions)
                await _call_often(everybody, CALLS, ("one_echo", "two_echo", "echo", "none"))
                assert sum(person.answered for person in everybody) > CALLS / 2  # most requests are not refused
                told = [one["method"] for person in everybody for one in person.client.told]
                assert [method for method in told if method.endswith("/list_changed")] == []
                assert [await lists(person) for person in everybody] == before
                # When it starts, server-everything announces changed tools. Even then no list may change.
                await _call_often(everybody, CALLS // 10, ("e_echo",))
                assert [await lists(person) for person in everybody] == before
                tasks.cancel_scope.cancel()


async def _call_often(everybody: list[Person], number: int, tools: tuple[str, ...]) -> None:
    """Make about `number` random calls in all, divided among concurrent clients."""

    async def call(person: Person, some: random.Random) -> None:
        for _ in range(number // len(everybody) + 1):
            await call_at_random(person, some, tools)

    async with anyio.create_task_group() as calls:
        for place, person in enumerate(everybody):
            calls.start_soon(call, person, random.Random(place))


@pytest.mark.parametrize(
    ("kind", "extension", "first"),
    [
        ("stdio older", APPS, "rich"),
        ("stdio older", CHARTS, "plain"),
        ("stdio newer", APPS, "plain"),
        ("stdio both", APPS, "rich"),
        ("stdio both", CHARTS, "plain"),
        ("http older", APPS, "plain"),
        ("http newer", CHARTS, "rich"),
        ("sse older", APPS, "rich"),
    ],
)
async def test_a_server_that_lists_by_its_clients_extensions_shows_each_client_its_own_tools(
    gateway: Gateway, tmp_path: Path, kind: str, extension: str, first: str
) -> None:
    """The order of the clients and a restart make no difference, and each client can call the tools that it sees."""
    able = {**ABLE, "extensions": {extension: {"mimeTypes": ["text/html;profile=mcp-app"]}}}

    async def check(tool: str, modern: bool) -> None:
        capabilities = able if tool == "rich" else ABLE
        meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": capabilities}
        envelope = {"_meta": meta} if modern else {}
        async with gateway.client(None) as client:
            if not modern:
                await client.initialize(OLDER, **capabilities)
            names = {name.removeprefix("e_") for name in await listed(client, envelope)}
            assert names & {"rich", "plain"} == {tool}, (tool, modern)
            result = await client.request("tools/call", {"name": f"e_{tool}", "arguments": {}, **envelope})
            assert [part["text"] for part in result["content"]] == [tool]

    with served(kind, tmp_path, f"--lists-by={extension}") as entry:
        gateway.write({"e": entry})
        gateway.start()
        await gateway.known()
        tools = [first, "plain" if first == "rich" else "rich"]
        for again in (True, False):
            for tool in tools:
                for modern in (False, True):
                    await check(tool, modern)
            gateway.stop()
            if again:
                gateway.start()


@pytest.mark.requirement("call-list-changed")
@pytest.mark.parametrize("kind", ["stdio newer", "http newer"])
async def test_a_tool_that_came_before_the_server_acknowledged_the_subscription_is_listed(
    gateway: Gateway, tmp_path: Path, kind: str
) -> None:
    """No call is made, because a call would also cause the lists to be read again."""
    with served(kind, tmp_path, "--grow-first") as entry:
        gateway.write({"e": {**entry, "lifecycle": "keep-alive"}})
        gateway.start()
        await gateway.known()
        async with gateway.client(None) as client:
            await client.initialize(OLDER, **ABLE)
            changes = 0
            while "e_early" not in await listed(client):
                changes += 1
                await client.heard("notifications/tools/list_changed", changes)
