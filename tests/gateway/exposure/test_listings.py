"""The known lists of each server: read from the cache or from the server, and written to disk."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fixtures.behaviour import tool
from tests.fixtures.clock import settle
from tests.fixtures.fake_transport import refused
from tests.gateway.world import Switches, house, offer, serve, server
from trayapp.catalog.cache import CacheEntry, load, save
from trayapp.gateway.control.catalog import tool_rows
from trayapp.gateway.exposure import listings
from trayapp.gateway.exposure.listings import RECHECK_S, Listings, ListingWriter
from trayapp.gateway.exposure.served_tools import ServedOffer
from trayapp.model.config import Config, ServerConfig, Settings, ToolSwitch, launch_hash
from trayapp.model.errors import StorageError
from trayapp.model.offer import Offer, ServerTraits
from trayapp.model.redact import KNOWN
from trayapp.wire.capabilities import ClientKind

pytestmark = pytest.mark.anyio
NOW = 1_700_000_000.0
DAY_S = 86_400.0


class Shelf:
    """The listings of a cache folder, with a configuration and a time that tests set."""

    def __init__(self, folder: Path, *servers: ServerConfig) -> None:
        self.folder = folder
        self.now = NOW
        self.written: list[Switches] = []
        self.write: Callable[[Switches], None] = self.written.append
        self.writer = ListingWriter(folder, lambda found: self.write(found), lambda: None)
        self.offers = Listings(folder, self.writer, lambda: self.now)
        self.configure(*servers)

    def configure(self, *servers: ServerConfig, settings: Settings | None = None) -> None:
        self.config = Config(settings or Settings(), {entry.name: entry for entry in servers})
        self.offers.take_config(self.config)

    def cached(self, entry: ServerConfig, known: Offer, age_s: float = 0.0) -> None:
        save(self.folder, CacheEntry(entry.name, launch_hash(entry), self.now - age_s, known))
        # Listings reads files only for new servers, so this server is removed and added again.
        for config in (Config(), Config(Settings(), {entry.name: entry}), self.config):
            self.offers.take_config(config)

    async def write_all(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.writer.keep_writing)
            with anyio.fail_after(10):
                await self.writer.written()
            tasks.cancel_scope.cancel()


# -- from the cache --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("cat-entry-used")
@pytest.mark.parametrize(
    ("now", "used"),
    [
        ({}, True),
        ({"lifecycle": "eager"}, True),
        ({"request_timeout": 5}, True),
        ({"direct_tools": True}, True),
        ({"disabled": True}, True),
        ({"include_tools": ("x",)}, True),
        ({"tools": {"x": ToolSwitch(enabled=False)}}, True),
        ({"env": {"A": "1"}}, False),
        ({"cwd": "/"}, False),
        ({"args": ("x",)}, False),
    ],
    ids=str,
)
def test_a_cached_offer_is_used_while_the_launch_settings_are_the_same(
    tmp_path: Path, now: dict[str, Any], used: bool
) -> None:
    shelf = Shelf(tmp_path, server("a", **now))
    shelf.cached(server("a"), offer("x"))
    assert (shelf.offers.get("a") is not None) is used
    assert shelf.offers.missing() == ([] if used or now.get("disabled") else ["a"])


@pytest.mark.requirement("cat-entry-used")
@pytest.mark.parametrize(
    ("age_s", "ttl_ms", "served", "expired", "asked"),
    [
        (0, None, True, False, False),
        (RECHECK_S + 1, None, True, False, True),
        (6.9 * DAY_S, None, True, False, True),
        (7.1 * DAY_S, None, True, True, True),
        (0, 0, True, False, True),
        (7_200, 3_600_000, True, False, True),
        (3_599, 3_600_000, True, False, False),
        (0, -5, True, False, True),
        (0, 10**400, True, False, False),
        (8 * DAY_S, 30 * 86_400_000, True, True, True),
        (-DAY_S, None, True, True, True),
        (-1, None, True, True, True),
    ],
)
def test_an_old_offer_is_served_and_asked_for_again(
    tmp_path: Path, age_s: float, ttl_ms: int | None, served: bool, expired: bool, asked: bool
) -> None:
    """A negative age means an entry dated in the future, as after the clock was set back."""
    shelf = Shelf(tmp_path, server("a"))
    shelf.cached(server("a"), offer("x", ttl_ms=ttl_ms), age_s)
    assert (shelf.offers.get("a") is not None) is served
    assert shelf.offers.expired() == (["a"] if expired else [])
    assert shelf.offers.worth_asking("a") is asked
    assert shelf.offers.missing() == []


def test_a_server_that_is_not_configured_or_disabled_is_never_asked(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, server("off", disabled=True))
    shelf.cached(server("off"), offer("x"), 30 * DAY_S)
    shelf.cached(server("gone"), offer("x"), 30 * DAY_S)
    assert (shelf.offers.missing(), shelf.offers.expired()) == ([], [])
    assert shelf.offers.get("gone") is None
    assert shelf.offers.worth_asking("unknown")


def test_settings_that_are_changed_and_changed_back_find_their_offer_again(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, server("a"))
    shelf.cached(server("a"), offer("x"))
    shelf.configure(server("a", args=("--other",)))
    assert shelf.offers.get("a") is None
    assert shelf.offers.protocol_hint("a") == "2025-11-25"
    shelf.configure(server("a"))
    assert shelf.offers.get("a") == offer("x")


@pytest.mark.requirement("cat-corrupt")
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"version": 99}', b"\xff\xfe", b'{"version":1,"server":"a"}'])
async def test_a_corrupt_cache_file_is_as_none_and_is_replaced(tmp_path: Path, data: bytes) -> None:
    async with house(tmp_path) as made:
        made.cache(server("a"), offer("x"))
        (file,) = made.folder.iterdir()
        file.write_bytes(data)
        await made.known(server("a"))
        assert "a_echo" in await (await made.ready()).names()
        assert load(made.folder, "a") is not None


# -- from the server -------------------------------------------------------------------------------------------------


async def test_what_was_fetched_holds_at_once_and_is_on_disk_soon(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, server("a"))
    assert shelf.offers.take(server("a"), offer("x"))
    assert shelf.offers.get("a") == offer("x")
    assert not shelf.offers.worth_asking("a")
    await shelf.write_all()
    entry = load(tmp_path, "a")
    assert entry is not None
    assert (entry.offer, entry.saved_at, entry.hash) == (offer("x"), NOW, launch_hash(server("a")))
    assert not shelf.offers.take(server("a"), offer("x"))


@pytest.mark.requirement("merge-kept", "merge-stale", "cat-found-tools-written", "merge-no-tools-key")
@pytest.mark.parametrize(
    ("before", "more", "found", "written", "change"),
    [
        (None, {}, "x y", {"x": ToolSwitch(), "y": ToolSwitch()}, ("x y", "", "")),
        (None, {}, "", None, ("", "", "")),
        ({}, {}, "", None, ("", "", "")),
        ({"x": (True, False)}, {}, "x", None, ("", "", "")),
        ({"x": (False, False)}, {}, "x", None, ("", "", "")),
        ({"x": (False, False)}, {}, "", {"x": ToolSwitch(False, True)}, ("", "x", "")),
        ({"x": (True, False)}, {}, "y", {"x": ToolSwitch(True, True), "y": ToolSwitch()}, ("y", "x", "")),
        ({"x": (False, True)}, {}, "", None, ("", "", "")),
        ({"x": (False, True)}, {}, "x", {"x": ToolSwitch(False, False)}, ("", "", "x")),
        (
            {"x": (True, False)},
            {"new_tools": "disabled"},
            "x y",
            {"x": ToolSwitch(), "y": ToolSwitch(False)},
            ("y", "", ""),
        ),
    ],
)
async def test_the_file_is_written_only_when_a_fetch_found_something_else(
    tmp_path: Path,
    before: dict[str, tuple[bool, bool]] | None,
    more: dict[str, Any],
    found: str,
    written: dict[str, ToolSwitch] | None,
    change: tuple[str, str, str],
) -> None:
    tools = None if before is None else {name: ToolSwitch(*said) for name, said in before.items()}
    entry = server("a", tools=tools, **more)
    shelf = Shelf(tmp_path, entry)
    shelf.offers.take(entry, offer(*found.split()))
    await shelf.write_all()
    assert shelf.written == ([] if written is None else [{"a": written}])
    seen = shelf.offers.changes["a"]
    assert (seen.added, seen.gone, seen.back) == tuple(tuple(names.split()) for names in change)


def test_a_tool_is_new_once_even_if_the_file_that_names_it_was_not_read_again_in_between(tmp_path: Path) -> None:
    entry = server("a")
    shelf = Shelf(tmp_path, entry)
    shelf.offers.take(entry, offer("x", "y"))
    shelf.offers.take(entry, offer("x", "z"))
    seen = shelf.offers.changes["a"]
    assert (seen.added, seen.gone, seen.back) == (("z",), ("y",), ())


@pytest.mark.requirement("merge-stale")
@pytest.mark.parametrize("written", [False, True])
async def test_a_tool_that_went_and_came_back_before_the_file_was_read_again_is_not_marked_stale(
    tmp_path: Path, written: bool
) -> None:
    entry = server("a", tools={"x": ToolSwitch(), "y": ToolSwitch()})
    shelf = Shelf(tmp_path, entry)
    shelf.offers.take(entry, offer("x"))
    if written:
        await shelf.write_all()
    shelf.offers.take(entry, offer("x", "y"))
    shelf.offers.take(entry, offer("x", "y"))
    await shelf.write_all()
    assert shelf.written[-1] == {"a": {"x": ToolSwitch(), "y": ToolSwitch()}}
    shelf.offers.take_config(Config(Settings(), {"a": entry}))  # the written file has been read
    shelf.offers.take(entry, offer("x", "y"))
    await shelf.write_all()
    assert len(shelf.written) == 1 + written


async def test_many_fetches_before_a_write_are_one_write_of_the_newest(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, server("a"), server("b"))
    for known in (offer("x"), offer("y")):
        shelf.offers.take(server("a"), known)
        shelf.offers.take(server("b"), known)
    await shelf.write_all()
    assert shelf.written == [{"a": {"y": ToolSwitch()}, "b": {"y": ToolSwitch()}}]
    entry = load(tmp_path, "a")
    assert entry is not None
    assert entry.offer == offer("y")


@pytest.mark.requirement("file-write-tools")
async def test_all_tools_of_a_refresh_are_one_write(tmp_path: Path) -> None:
    entries = [server(name) for name in "abc"]
    shelf = Shelf(tmp_path, *entries)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shelf.writer.keep_writing)
        with shelf.writer.one_write():
            for entry in entries:
                shelf.offers.take(entry, offer("x"))
                await settle()
            assert shelf.written == []
        await shelf.writer.written()
        assert shelf.written == [{name: {"x": ToolSwitch()} for name in "abc"}]
        tasks.cancel_scope.cancel()


async def test_two_refreshes_at_once_are_written_when_the_last_one_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listings, "ONE_WRITE_S", 1e9)
    shelf = Shelf(tmp_path, server("a"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shelf.writer.keep_writing)
        with shelf.writer.one_write():
            shelf.offers.take(server("a"), offer("x"))
            await settle()
            with shelf.writer.one_write():
                await settle()
            assert shelf.written == []
        with anyio.fail_after(10):
            await shelf.writer.written()
        assert shelf.written == [{"a": {"x": ToolSwitch()}}]
        tasks.cancel_scope.cancel()


async def test_a_write_that_somebody_waits_for_is_made_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "WRITING_REST", 1e9)
    shelf = Shelf(tmp_path, server("a"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shelf.writer.keep_writing)
        for names in (["x"], ["x", "y"]):  # the second offer comes during the pause after the first write
            shelf.offers.take(server("a"), offer(*names))
            with anyio.fail_after(10):
                await shelf.writer.written()
        assert len(shelf.written) == 2
        tasks.cancel_scope.cancel()


@pytest.mark.requirement("file-write-tools")
@pytest.mark.parametrize(
    ("tools", "more", "found", "written", "change"),
    [
        (None, {}, "x y", None, "x y|"),  # the server is listed for the first time
        ({"x": ToolSwitch(False)}, {}, "x y z", None, "z|"),  # y was known before, but not written
        ({"x": ToolSwitch(False)}, {}, "y", {"x": ToolSwitch(False, stale=True)}, "|x"),
        (None, {"new_tools": "disabled"}, "x y", {"x": ToolSwitch(), "y": ToolSwitch()}, "x y|"),
        ({"x": ToolSwitch()}, {"new_tools": "disabled"}, "x y", None, "|"),
    ],
)
async def test_with_write_tools_switched_only_what_differs_is_written(
    tmp_path: Path, tools: Any, more: dict[str, Any], found: str, written: Any, change: str
) -> None:
    entry = server("a", tools=tools, **more)
    shelf = Shelf(tmp_path, entry)
    shelf.configure(entry, settings=Settings(write_tools="switched"))
    if tools:
        shelf.cached(entry, offer("x", "y"))
    shelf.offers.take(entry, offer(*found.split()))
    await shelf.write_all()
    assert shelf.written == ([] if written is None else [{"a": written}])
    seen = shelf.offers.changes["a"]
    assert "|".join(map(" ".join, (seen.added, seen.gone))) == change


@pytest.mark.requirement("fault-disk-full")
@pytest.mark.parametrize(
    "failure", [StorageError("The disk is full", "Free some space"), ZeroDivisionError("a mistake")]
)
async def test_a_write_of_the_file_that_fails_is_logged_and_the_rest_is_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, failure: Exception
) -> None:
    shelf = Shelf(tmp_path, server("a"), server("b"))

    def fail(found: Switches) -> None:
        raise failure

    shelf.write = fail
    shelf.offers.take(server("a"), offer("x"))
    shelf.offers.take(server("b"), offer("y"))
    await shelf.write_all()
    assert "Cannot write the tools to servers.yaml" in caplog.text
    assert shelf.offers.get("a") == offer("x")
    assert {name: load(tmp_path, name) is not None for name in ("a", "b")} == {"a": True, "b": True}
    shelf.write = shelf.written.append
    shelf.offers.take(server("a"), offer("x"))
    await shelf.write_all()
    assert shelf.written == [{"a": {"x": ToolSwitch()}}]


@pytest.mark.requirement("fault-disk-full")
async def test_a_cache_that_cannot_be_written_is_logged_and_the_offer_holds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the folder's place")
    shelf = Shelf(blocked, server("a"))
    shelf.offers.take(server("a"), offer("x"))
    await shelf.write_all()
    assert "Cannot write the cached catalog of a" in caplog.text
    assert shelf.offers.get("a") == offer("x")
    assert shelf.written == [{"a": {"x": ToolSwitch()}}]


# -- in a whole gateway ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("cat-first-run", "cat-found-tools-written")
async def test_on_the_first_run_all_are_asked_their_tools_noted_and_lazy_ones_closed(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        for name in ("a", "b"):
            made.net[name].tools = [tool("x")]
        await made.known(server("a", lifecycle="keep-alive"), server("b"), server("off", disabled=True))
        noted = {name: found for job in made.written for name, found in job.items()}
        assert noted == {"a": {"x": ToolSwitch()}, "b": {"x": ToolSwitch()}}
        assert (made.net["a"].open_now, made.net["b"].open_now, made.net["off"].opened) == (1, 0, 0)


@pytest.mark.requirement("merge-failed-refresh", "merge-kept")
async def test_a_failed_refresh_changes_nothing_and_the_tools_stay_listed(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        entry = server("a", tools={"echo": ToolSwitch(), "rm": ToolSwitch(enabled=False)})
        made.cache(entry, offer("echo", "rm"))
        made.apply(entry)
        made.start()
        made.net["a"].before = refused
        control = made.control()
        answer = await control.result("refresh", {"server": "a"})
        assert answer["servers"]["a"]["error"]["code"] == "connect_failed"
        await made.gateway.services.writer.written()
        assert made.written == []
        assert await (await made.ready()).names() == ["a_echo"]
        made.net["a"].before = None
        made.net["a"].tools = [tool("echo"), tool("rm")]
        assert (await control.result("refresh", {"server": "a"}))["servers"]["a"]["error"] is None
        await made.gateway.services.writer.written()
        assert made.written == []
        assert await (await made.ready()).names() == ["a_echo"]


async def test_an_offer_of_a_server_that_was_removed_meanwhile_is_dropped(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        gate = made.net["a"].hold("tools/list", {"tools": []})
        made.apply(server("a"))
        made.start()
        await made.net["a"].heard_of("tools/list")
        made.apply()
        gate.set()
        await settle()
        await made.gateway.services.writer.written()
        assert (made.written, tool_rows(made.gateway.servers.view.catalog)) == ([], [])


@pytest.mark.requirement("file-unchanged-run-on", "cat-first-run")
async def test_a_server_that_is_added_later_is_asked_and_its_tools_are_told(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a", lifecycle="eager"))
        client = await made.ready()
        made.apply(server("a", lifecycle="eager"), server("b"))
        await made.gateway.services.pool.settled()
        await made.told()
        assert client.list_changes() == ["tools"]
        assert "b_echo" in await client.names()
        assert made.net["a"].opened == 1


@pytest.mark.requirement("cat-no-secrets")
async def test_a_secret_in_a_definition_is_served_approved_and_cached_without(tmp_path: Path) -> None:
    secret = "plum-tree-4-lantern"
    KNOWN.note([secret])
    tool = {
        "name": "odd",
        "description": f"Signed in with {secret[:5]}\u200b{secret[5:]}",
        "inputSchema": {"type": "object", "properties": {secret: {"default": [secret], "description": secret}}},
    }
    for _ in range(2):
        async with house(tmp_path) as made:
            serve(made.net["a"], tools=(tool,), prompts=({"name": "p", "description": secret},))
            await made.known(server("a"))
            client = await made.ready()
            listed = await client.result("tools/list")
            assert [item["name"] for item in listed["tools"]] == ["a_odd"]
            assert secret not in str(listed)
            await made.gateway.services.writer.written()
            files = [path.read_text() for path in tmp_path.rglob("*.json")]
            assert len(files) >= 2
            assert not any(secret in text.replace("\\u200b", "").replace("\u200b", "") for text in files)


@pytest.mark.requirement("cat-no-secrets")
async def test_neither_log_nor_cache_holds_the_value_of_a_variable(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with house(tmp_path) as made:
        await made.known(server("a", env={"TOKEN": "very-secret-value"}))
        assert "result" in await (await made.ready()).call("a_echo")
    assert "very-secret-value" not in caplog.text
    assert all("very-secret-value" not in file.read_text() for file in made.folder.iterdir())


# -- sound definitions -----------------------------------------------------------------------------------------------

SOUND = tool("sound")
ODD = {"name": "odd", "inputSchema": {"properties": {"a": {"type": "str"}}}}


@pytest.mark.requirement("expose-sound")
async def test_tools_that_need_no_repair_are_marked_in_the_cache_and_served_without_a_look(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, server("a"))
    offered = Offer((SOUND, ODD), capabilities={})
    shelf.offers.take(server("a"), offered)
    assert shelf.offers.sound("a", offered) == frozenset()  # not checked yet
    await shelf.write_all()
    next_start = Shelf(tmp_path, server("a"))
    known = next_start.offers.get("a")
    assert known == offered
    assert next_start.offers.sound("a", known) == {0}
    assert next_start.offers.sound("a", offered) == frozenset()  # equal to the marked offer, but another object
    served = [
        one.served("x")
        for sound in (frozenset[int](), next_start.offers.sound("a", known))
        for one in ServedOffer(known, sound=sound).tools.values()
    ]
    assert served[:2] == served[2:]
    assert served[1]["inputSchema"]["properties"] == {"a": {"type": "string"}}


@pytest.mark.requirement("expose-sound")
async def test_an_entry_that_nobody_has_looked_over_by_todays_rules_is_marked_after_the_start(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, server("a"))
    shelf.cached(server("a"), Offer((SOUND,), capabilities={}), age_s=60)
    before = load(tmp_path, "a")
    assert before is not None
    assert before.sound is None
    await shelf.write_all()
    after = load(tmp_path, "a")
    assert after is not None
    assert after == before._replace(sound=frozenset({0}))


@pytest.mark.requirement("call-list-changed")
def test_the_same_tools_in_another_order_are_no_news(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, server("a"))
    shelf.offers.take(server("a"), offer("x", "y"))
    assert not shelf.offers.take(server("a"), offer("y", "x"))
    assert shelf.offers.get("a") == offer("x", "y")


# -- kinds of clients ------------------------------------------------------------------------------------------------

NEWER = ClientKind(newer=True)


def newer_offer(*tools: str, **more: Any) -> Offer:
    """Return the offer of a server in the newer era."""
    return replace(offer(*tools, **more), protocol="2026-07-28")


@pytest.mark.requirement("lists-for-each-kind")
def test_a_server_with_another_name_in_each_era_is_the_same_version(tmp_path: Path) -> None:
    shelf, entry = Shelf(tmp_path, server("a")), server("a")
    shelf.offers.take(entry, newer_offer("x", "new", server_info={"name": "newer"}), NEWER)
    shelf.offers.take(entry, offer("x", server_info={"name": "older"}), probed=True)
    assert len(shelf.offers.variants("a")) == 2
    shelf.offers.take(entry, newer_offer("x", server_info={"name": "newer", "version": "2"}), NEWER)
    assert [one.kind for one in shelf.offers.variants("a")] == [NEWER]


@pytest.mark.requirement("lists-for-each-kind")
def test_a_cached_list_of_one_kind_stays_what_that_kind_is_listed(tmp_path: Path) -> None:
    shelf, entry = Shelf(tmp_path, server("a")), server("a")
    shelf.cached(entry, newer_offer("x", "new"))
    assert [kind.newer for kind in shelf.offers.kinds("a")] == [True]
    shelf.offers.take(entry, offer("x"))
    assert {one.kind.newer: sorted(one.names["tools"]) for one in shelf.offers.variants("a")} == {
        True: ["new", "x"], False: ["x"],
    }  # fmt: skip


@pytest.mark.requirement("lists-for-each-kind")
def test_what_was_listed_in_an_era_that_the_server_no_longer_speaks_is_forgotten(tmp_path: Path) -> None:
    shelf, entry = Shelf(tmp_path, server("a")), server("a")
    shelf.cached(entry, newer_offer("x", "new"))
    shelf.offers.note_traits("a", ServerTraits(older=True, newer=False))
    shelf.offers.take(entry, offer("x"))
    assert [kind.newer for kind in shelf.offers.kinds("a")] == [False]
    known = shelf.offers.get("a")
    assert known is not None
    assert [item["name"] for item in known.tools] == ["x"]


@pytest.mark.requirement("lists-for-each-kind")
def test_a_connection_that_announces_less_takes_nothing_from_what_others_are_listed(tmp_path: Path) -> None:
    """A connection that sessions share does not announce a capability that its server is known to use."""
    shelf, entry = Shelf(tmp_path, server("a")), server("a")
    able = ClientKind(able=frozenset({"elicitation", "roots"}))
    less = ClientKind(able=frozenset({"elicitation"}))
    shelf.offers.take(entry, offer("x", "asks for roots"), able)
    shelf.offers.take(entry, offer("x"), ClientKind(), probed=True)
    shelf.offers.take(entry, offer("x"), less)
    assert {one.kind: sorted(one.names["tools"]) for one in shelf.offers.variants("a")} == {
        able: ["asks for roots", "x"], less: ["x"], ClientKind(): ["x"],
    }  # fmt: skip
    known = shelf.offers.get("a")
    assert known is not None
    assert [item["name"] for item in known.tools] == ["x", "asks for roots"]
