"""The time that a list waits while servers are read for its kind of client."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from tests.fixtures.behaviour import tool
from tests.fixtures.clock import settle
from tests.gateway.calls.test_server_requests import older
from tests.gateway.world import House, house, offer, server
from trayapp.catalog.cache import CacheEntry, save
from trayapp.gateway.scopes.variant_probes import LIST_WAITS_S, REACHED_S
from trayapp.model.config import ServerConfig, Settings, launch_hash
from trayapp.model.offer import ServerTraits
from trayapp.wire.revisions import MODERN_VERSIONS

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("lists-wait-for-no-address")]

REMOTE = ServerConfig("a", url="http://127.0.0.1:9/mcp", type="http")


def read_by_a_newer_client(made: House, entry: ServerConfig) -> None:
    """Cache lists that an earlier run read in the newer era. Whether the server supports the older era is unknown."""
    known = replace(offer("echo"), protocol=MODERN_VERSIONS[-1])
    at = made.clock.time()
    save(made.folder, CacheEntry(entry.name, launch_hash(entry), at, known, traits=ServerTraits(newer=True)))


async def test_a_list_waits_a_moment_for_an_address_that_does_not_answer_and_the_next_one_not_at_all(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as made:
        read_by_a_newer_client(made, REMOTE)
        made.net["a#older"].hold_start()  # like a network that drops every packet
        made.apply(REMOTE)
        made.start()
        client = await older(made)
        client.ask_only(1, "tools/list")
        await made.clock.pass_(REACHED_S * 0.9)
        assert client.answers(1) == []
        await made.clock.pass_(REACHED_S * 0.2)
        assert [item["name"] for item in client.answers(1)[0]["result"]["tools"]] == ["a_echo"]
        another = await older(made)
        for one in (client, another):
            one.ask_only(2, "tools/list")
            await settle()
            assert len(one.answers(2)) == 1


async def test_one_that_answers_is_waited_for_and_no_address_that_does_not_holds_it_up(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        silent = [ServerConfig(name, url=f"http://127.0.0.1:9/{name}", type="http") for name in ("b", "c", "d")]
        for entry in (*silent, REMOTE):
            read_by_a_newer_client(made, entry)
        for entry in silent:
            made.net[f"{entry.name}#older"].hold_start()
        answers = made.net["a#older"]
        gate = answers.hold_start()
        made.apply(*silent, REMOTE)
        made.start()
        client = await older(made)
        client.ask_only(1, "tools/list")
        await made.clock.pass_(REACHED_S / 2)
        assert answers.opened == 1
        listing = answers.hold("tools/list", {"tools": answers.tools})
        gate.set()
        await made.clock.pass_(REACHED_S * 2)
        assert client.answers(1) == []
        listing.set()
        assert "a_hold" in [item["name"] for item in (await client.answer(1))["result"]["tools"]]


@pytest.mark.requirement("lists-for-each-kind")
async def test_what_a_clients_kind_is_listed_is_no_change_of_what_it_never_had(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        at, known = made.clock.time(), offer("echo", "able")
        traits = ServerTraits(older=True, newer=False, asks=frozenset({"roots"}))
        save(made.folder, CacheEntry("a", launch_hash(server("a")), at, known, traits=traits))
        weak, of_kind = made.net["a#older-weak"], made.net["a#older-roots"]
        weak.tools, of_kind.tools = [tool("echo")], [tool("echo"), tool("rooted")]
        gate = of_kind.hold_start()
        made.apply(server("a"))
        made.start()
        client = await older(made, {"roots": {}})
        client.ask_only(1, "tools/list")
        await made.told()
        assert (weak.opened, of_kind.opened, client.list_changes()) == (1, 1, [])
        gate.set()
        listed = (await client.answer(1))["result"]["tools"]
        assert [item["name"] for item in listed] == ["a_echo", "a_rooted"]
        await made.told()
        assert client.list_changes() == []
        another = await older(made, {"roots": {}})  # a client that never requests a list
        of_kind.tools = [*of_kind.tools, tool("later")]
        await made.gateway.services.pool.refresh(made.gateway.services.pool.find("a#older-roots"))
        await made.told()
        assert [client.list_changes(), another.list_changes()] == [["tools"], ["tools"]]


@pytest.mark.requirement("lists-for-each-kind")
async def test_what_a_server_of_the_newer_era_alone_lists_when_it_is_tried_in_the_older_one_replaces_nothing(
    tmp_path: Path,
) -> None:
    """The first connection reports changes. The connection in the older era ends before the server has more to list."""
    async with house(tmp_path) as made:
        first, tried = made.net["a"], made.net["a#older"]
        for backend in (first, tried):
            backend.modern, backend.versions = True, ()
        tried.tools = [tool("echo")]
        first.tools = [*tried.tools, tool("later")]
        made.apply(server("a"))
        made.start()
        client = await older(made)
        with anyio.fail_after(10):
            while not tried.opened:
                await made.told()
                await client.result("tools/list")
        await made.told()
        listed = (await client.result("tools/list"))["tools"]
        assert [item["name"] for item in listed] == ["a_echo", "a_later"]


@pytest.mark.requirement("lists-for-each-kind")
async def test_only_a_server_that_announces_an_extension_or_has_apps_is_read_for_clients_with_and_without_it(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as made:
        charts, apps = "com.example/charts", "io.modelcontextprotocol/ui"
        at, plain = made.clock.time(), replace(offer("echo"), protocol="2025-11-25", capabilities={"tools": {}})
        with_app = {**tool("show"), "_meta": {"ui": {"resourceUri": "ui://c/x"}}}
        offers = {
            "a": plain,
            "b": replace(plain, capabilities={"tools": {}, "extensions": {charts: {}}}),
            "c": replace(plain, tools=(*plain.tools, with_app)),
        }
        for name, known in offers.items():
            entry = CacheEntry(name, launch_hash(server(name)), at, known, traits=ServerTraits(older=True, newer=False))
            save(made.folder, entry)
        expected = {"b": f"b#older-extensions.{charts}", "c": "c#older-weak"}
        for name, key in expected.items():
            made.net[key].tools = list(offers[name].tools)
        made.apply(*map(server, offers))
        made.start()
        client = await older(made, {"extensions": {charts: {}, apps: {}}})
        await client.result("tools/list")
        await client.result("tools/list")
        another = await older(made, {})
        await another.result("tools/list")
        await made.told()
        probes = [name for name, backend in made.net.servers.items() if "#" in name and backend.opened]
        assert probes == list(expected.values())


async def test_a_server_that_starts_here_is_waited_for_as_a_client_waits_for_its_start(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        read_by_a_newer_client(made, server("a"))
        made.net["a#older"].hold_start()
        made.apply(server("a"))
        made.start()
        client = await older(made)
        client.ask_only(1, "tools/list")
        await made.clock.pass_(LIST_WAITS_S * 0.9)
        assert client.answers(1) == []
        await made.clock.pass_(LIST_WAITS_S * 0.2)
        assert len(client.answers(1)) == 1


async def test_a_list_of_the_one_tool_waits_for_nothing_and_its_first_search_finds_the_lists_read(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as made:
        read_by_a_newer_client(made, server("a"))
        of_era = made.net["a#older"]
        of_era.tools = [tool("only_older")]
        gate = of_era.hold_start()
        made.apply(server("a"), settings=Settings(defer_above=0))
        made.start()
        client = await older(made)
        client.ask_only(1, "tools/list")
        await settle()
        assert [item["name"] for item in client.answers(1)[0]["result"]["tools"]] == ["mcp"]
        assert of_era.opened == 1
        client.ask_only(2, "tools/call", {"name": "mcp", "arguments": {"search": "older"}})
        await settle()
        assert client.answers(2) == []
        gate.set()
        assert "only_older" in str((await client.answer(2))["result"])


@pytest.mark.requirement("one-request-one-answer")
@pytest.mark.parametrize("regex", [False, True])
async def test_a_first_search_that_waits_for_its_kinds_lists_and_then_for_the_index_is_answered(
    tmp_path: Path, regex: bool
) -> None:
    async with house(tmp_path) as made:
        read_by_a_newer_client(made, server("a"))
        gate = made.net["a#older"].hold_start()
        made.apply(server("a"), settings=Settings(expose="search"))
        made.start()
        client = await older(made)
        client.ask_only(1, "tools/call", {"name": "mcp", "arguments": {"search": "echo", "regex": regex}})
        await settle()
        client.ask_only(1, "ping")
        assert "already in progress" in (await client.answer(1))["error"]["message"]
        gate.set()
        with anyio.fail_after(10):
            while len(client.answers(1)) < 2:
                await settle()
        assert "a_echo" in client.answers(1)[1]["result"]["content"][0]["text"]
        assert (await client.ask("ping", number=1))["result"] == {}  # the id is free again
