"""A server that cannot list one kind of item: its other items work, known items stay, and the reason is shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import mcp_types
import pydantic_core
import pytest

from tests.fixtures.clock import settle
from tests.fixtures.fake_transport import FakeServer
from tests.gateway.world import House, Message, house, offer, serve, server
from trayapp.backends import listing
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.gateway.exposure.listings import RETRY_S
from trayapp.model.offer import UNREAD
from trayapp.model.status import Snapshot
from trayapp.wire import control
from trayapp.wire.jsonio import dumps
from trayapp.wire.messages import CONNECTION_CLOSED, INTERNAL_ERROR, METHOD_NOT_FOUND, RpcError

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("cat-each-list-apart")]

METHODS = {"tools": "tools/list", "prompts": "prompts/list", "resources": "resources/list"}
METHODS |= {"templates": "resources/templates/list"}
PROMPT, RESOURCE, TEMPLATE = (
    {"name": "greet"},
    {"uri": "a://one", "name": "one"},
    {"uriTemplate": "a://{x}", "name": "x"},
)
Answer = Callable[[Message], Awaitable[Message]]


def refusing(code: int, why: str = "licence expired") -> Answer:
    async def answer(params: Message) -> Message:
        raise RpcError(code, why)

    return answer


async def hanging(params: Message) -> Message:
    await anyio.sleep_forever()
    return {}


async def garbage(params: Message) -> Message:
    return {name: {"not": "a list"} for name in ("tools", "prompts", "resources", "resourceTemplates")}


BAD = {"error": refusing(INTERNAL_ERROR), "closed": refusing(CONNECTION_CLOSED), "hang": hanging, "garbage": garbage}


@pytest.fixture(autouse=True)
def quick_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "HEAD_START_S", 0.05)
    monkeypatch.setattr(listing, "LIST_TIMEOUT_S", 0.3)


def full(fake: FakeServer) -> FakeServer:
    """Give a server one item of each kind besides its tools, and return the server."""
    fake.page = 100
    serve(fake, prompts=(PROMPT,), resources=(RESOURCE,), resourceTemplates=(TEMPLATE,))
    return fake


async def status(made: House, name: str = "a") -> dict[str, Any]:
    snapshot = snapshot_of(made.gateway).to_json()
    assert Snapshot.from_json(snapshot).to_json() == snapshot
    return next(one for one in snapshot["servers"] if one["name"] == name)


async def notes(made: House) -> str:
    wire = made.control()
    await wire.ask(control.LIST, {})
    return "\n".join(note["text"] for note in wire.told(control.NOTE))


@pytest.mark.parametrize("how", BAD)
@pytest.mark.parametrize("kind", ["prompts", "resources", "templates"])
async def test_a_list_that_cannot_be_had_takes_none_of_the_others_and_is_told(
    tmp_path: Path, kind: str, how: str
) -> None:
    async with house(tmp_path) as made:
        full(made.net["a"]).replies[METHODS[kind]] = BAD[how]
        await made.known(server("a"))
        client = await made.ready()
        assert "a_echo" in await client.names()
        assert "result" in await client.call("a_echo")
        for other, item in {"prompts": "a_greet", "resources": "a://one", "templates": "a://{x}"}.items():
            assert (item in str(await client.result(METHODS[other]))) is (other != kind), other
        shown = await status(made)
        assert "did not list its" in shown["error"]["title"]
        assert shown["unlisted"] == (kind,)
        assert "did not list its" in await notes(made)
        assert Snapshot.from_json(snapshot_of(made.gateway).to_json()).servers[0].ready
        for asked in ({}, {"server": "a"}):
            said = await client.result("tools/call", {"name": "mcp", "arguments": asked})
            assert "did not list its" in said["content"][0]["text"]


@pytest.mark.parametrize("kind", METHODS)
async def test_a_list_that_is_announced_and_unknown_is_an_empty_one(tmp_path: Path, kind: str) -> None:
    async with house(tmp_path) as made:
        full(made.net["a"]).replies[METHODS[kind]] = refusing(METHOD_NOT_FOUND, "Method not found")
        await made.known(server("a"))
        client = await made.ready()
        assert ("a_echo" in await client.names()) is (kind != "tools")
        shown = await status(made)
        assert (shown["error"], "unlisted" in shown) == (None, False)


@pytest.mark.parametrize("how", BAD)
async def test_a_server_that_cannot_list_its_tools_is_not_ready_and_says_why(tmp_path: Path, how: str) -> None:
    async with house(tmp_path) as made:
        made.net["a"].replies["tools/list"] = BAD[how]
        await made.known(server("a"), server("b"))
        shown = Snapshot.from_json(snapshot_of(made.gateway).to_json()).servers[0]
        assert not shown.ready
        assert shown.failed
        assert shown.error is not None
        assert "did not list its tools" in shown.error["title"]
        assert "a: it did not list its tools" in await notes(made)
        client = await made.ready()
        assert "did not list its tools" in str(await client.call("a_echo"))
        made.net["a"].page = 100
        del made.net["a"].replies["tools/list"]
        assert "result" in await client.call("a_echo")
        assert (await status(made))["error"] is None


async def test_prompts_of_a_server_without_tools_to_be_had_work(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        full(made.net["a"]).replies["tools/list"] = refusing(INTERNAL_ERROR)
        await made.known(server("a"))
        client = await made.ready()
        assert [item["name"] for item in (await client.result("prompts/list"))["prompts"]] == ["a_greet"]


@pytest.mark.parametrize("kind", METHODS)
async def test_what_was_known_of_a_list_stays_when_it_fails_later_and_after_a_restart(
    tmp_path: Path, kind: str
) -> None:
    async with house(tmp_path) as made:
        fake = full(made.net["a"])
        await made.known(server("a"))
        before = made.gateway.services.listings.get("a")
        assert before is not None
        assert before.failed == {}
        fake.replies[METHODS[kind]] = refusing(INTERNAL_ERROR)
        await made.gateway.services.pool.find("a").request("ping", None)
        fake.channel.tell(0, None, "notifications/tools/list_changed", None) if fake.channel else None
        await fake.heard_of(METHODS[kind], times=2)
        await anyio.sleep(0.1)
        after = made.gateway.services.listings.get("a")
        assert after is not None
        assert after.failed == {kind: "licence expired"}
        assert {name: getattr(after, name) for name in METHODS} == {name: getattr(before, name) for name in METHODS}
        assert snapshot_of(made.gateway).servers[0].ready
        await made.gateway.services.writer.written()
        assert not any(switch.stale for written in made.written for switch in written["a"].values())
    async with house(tmp_path) as made:
        full(made.net["a"])
        made.clock.jump(RETRY_S / 2)
        made.apply(server("a"))
        made.start()
        assert "licence expired" in (await status(made))["error"]["title"]
        client = await made.ready()
        assert "a_echo" in await client.names()
        assert made.net["a"].opened == 0
        await made.clock.pass_(RETRY_S + 1)
        assert "result" in await client.call("a_echo")  # the server now runs, so its lists are read again
        await made.net["a"].heard_of(METHODS[kind])
        await settle()
        await anyio.sleep(0.1)
        assert (await status(made))["error"] is None


async def test_pages_that_came_before_a_failing_cursor_count(tmp_path: Path) -> None:
    async with house(tmp_path) as made:

        async def broken(params: Message) -> Message:
            if "cursor" in params:
                raise RpcError(METHOD_NOT_FOUND, "no such cursor")
            return {"tools": [{"name": "first", "inputSchema": {"type": "object"}}], "nextCursor": "2"}

        made.net["a"].replies["tools/list"] = broken
        made.cache(server("a"), offer("first", "second"), age_s=10)
        made.apply(server("a"))
        made.start()
        client = await made.ready()
        with pytest.raises(Exception, match="no such cursor"):
            await made.gateway.services.pool.find("a").fetch()
        assert await client.names() == ["a_first", "a_second"]
        known = made.gateway.services.listings.get("a")
        assert known is not None
        assert "x-unknown" not in known.tools[0]  # this is the newer definition


async def test_tools_are_there_before_a_list_that_hangs_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "LIST_TIMEOUT_S", 60)
    async with house(tmp_path) as made:
        full(made.net["a"]).replies["prompts/list"] = hanging
        made.apply(server("a"))
        made.start()
        client = await made.ready()
        assert "result" in await client.call("a_echo")
        assert "a_echo" in await client.names()
        known = made.gateway.services.listings.get("a")
        assert known is not None
        assert known.failed == {"prompts": UNREAD}
        assert known.resources
        made.net["a"].tools.append({"name": "late", "inputSchema": {"type": "object"}})
        assert made.net["a"].channel is not None
        made.net["a"].channel.tell(0, None, "notifications/tools/list_changed", None)
        await made.net["a"].heard_of("tools/list", times=2)
        await anyio.sleep(0.3)
        assert "a_late" in await client.names()


async def test_a_server_that_ends_before_it_listed_its_tools_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's other lists have been read by then."""
    monkeypatch.setattr(listing, "LIST_TIMEOUT_S", 60)
    async with house(tmp_path) as made:
        full(made.net["a"]).replies["tools/list"] = hanging
        made.apply(server("a"))
        client = await made.ready()
        client.call_only("a_echo", 1)
        with anyio.fail_after(10):
            while made.gateway.services.listings.get("a") is None:
                await anyio.lowlevel.checkpoint()
        made.net["a"].die()
        assert "last words" in (await client.answer(1))["error"]["message"]


@pytest.mark.parametrize("kind", ["prompts", "resources", "templates"])
async def test_a_list_that_ends_its_server_takes_none_that_was_read_before(tmp_path: Path, kind: str) -> None:
    async with house(tmp_path) as made:

        async def dying(params: Message) -> Message:
            made.net["a"].die()
            return await hanging(params)

        full(made.net["a"]).replies[METHODS[kind]] = dying
        await made.known(server("a"))
        client = await made.ready()
        assert "a_echo" in await client.names()
        assert "result" in await client.call("a_echo")
        shown = await status(made)
        assert kind in shown["unlisted"]
        assert "last words" in shown["error"]["title"]


async def test_one_odd_entry_of_a_list_costs_only_itself(tmp_path: Path) -> None:
    deep: Any = {}
    for _ in range(5_000):
        deep = {"properties": {"x": deep}}
    odd: list[Any] = [
        None,
        "text",
        {},
        {"name": 7},
        {"name": "n" * 2_000},
        {"name": "list", "inputSchema": []},
        {"name": "deep", "inputSchema": deep},
        {"name": "text", "description": ["no", "text"], "annotations": "x", "inputSchema": {"type": "object"}},
        {"name": "half \ud800 a letter", "inputSchema": {"type": "object"}},
    ]
    async with house(tmp_path) as made:
        made.net["a"].page = 100
        made.net["a"].tools += odd
        await made.known(server("a"))
        client = await made.ready()
        names = await client.names()
        assert "a_echo" in names
        assert "result" in await client.call("a_echo")
        assert made.written


DEEP: Any = {"end": 1}
for _ in range(300):
    DEEP = {"a": DEEP}
ODD: list[dict[str, Any]] = [
    {"title": {}, "description": 9, "_meta": [1], "icons": "x"},
    {"title": "half \ud800", "description": "of a letter \udfff", "_meta": {"\udc00": DEEP}},
    {"icons": [{"src": 5}], "annotations": [1], "execution": []},
    {"icons": [{"src": "a:b", "sizes": "any"}], "execution": {"taskSupport": "perhaps"}},
    {"arguments": 5, "size": "many", "mimeType": 4, "annotations": {"audience": "user", "priority": "high"}},
    {"arguments": [5, {"name": 7}, {"name": "a", "required": "no", "description": []}], "size": 1.5},
    {"annotations": {"audience": ["nobody"], "priority": 2, "lastModified": 10**30}},
]


async def test_a_strict_client_takes_the_lists_of_all_servers_whatever_one_sends(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        net = made.net["a"]
        net.page = 100
        net.tools += [{**odd, "name": f"t{n}", "inputSchema": {"type": "object"}} for n, odd in enumerate(ODD)]
        resources = [{**odd, "uri": f"x://{n}", "name": f"r{n}"} for n, odd in enumerate(ODD)]
        resources += [{"uri": "x://nameless"}, {"uri": "x://half/\ud800"}, {"uri": "x://named", "name": []}]
        templates = [{**odd, "uriTemplate": f"y://{n}/{{a}}", "name": f"y{n}"} for n, odd in enumerate(ODD)]
        prompts = [{**odd, "name": f"p{n}"} for n, odd in enumerate(ODD)]
        templates += [{"uriTemplate": "z://{a}"}]
        serve(net, prompts=tuple(prompts), resources=tuple(resources), resourceTemplates=tuple(templates))
        await made.known(server("a"))
        client = await made.ready()
        for method, member, kind, least in (
            ("tools/list", "tools", mcp_types.Tool, len(ODD) + 1),
            ("prompts/list", "prompts", mcp_types.Prompt, len(ODD)),
            ("resources/list", "resources", mcp_types.Resource, len(ODD) + 3),
            ("resources/templates/list", "resourceTemplates", mcp_types.ResourceTemplate, len(ODD) + 1),
        ):
            entries = (await client.ask(method))["result"][member]
            assert len(entries) >= least
            for entry in entries:
                kind.model_validate(pydantic_core.from_json(dumps(entry)))
