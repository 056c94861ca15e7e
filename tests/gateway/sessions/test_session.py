"""One client's session: handshake, ids, lists, refusals and notifications."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.abc
import pytest

from tests.fixtures.clock import settle
from tests.fixtures.fake_transport import FakeServer, refused
from tests.gateway.calls.test_server_requests import enveloped
from tests.gateway.world import BrokenClock, Client, House, Message, house, offer, serve, server
from trayapp.backends.connection import NOTICE_S
from trayapp.gateway.control.snapshot import snapshot_of
from trayapp.gateway.exposure.exposure import INDEX
from trayapp.gateway.scopes.view import FIRST_LIST_GRACE_S
from trayapp.wire.jsonio import loads
from trayapp.wire.messages import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from trayapp.wire.revisions import HANDSHAKE_VERSIONS, LIST_TTL_MS, SERVER_INFO

pytestmark = pytest.mark.anyio
TEMPLATES = ({"uriTemplate": "x://{y}"},)
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")


# -- handshake -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", HANDSHAKE_VERSIONS)
async def test_each_revision_of_the_handshake_is_agreed_to(tmp_path: Path, revision: str) -> None:
    async with house(tmp_path) as made:
        made.start()
        client = await made.ready(revision, name="agent")
        assert client.answers("init")[0]["result"]["protocolVersion"] == revision
        (session,) = snapshot_of(made.gateway).gateway.sessions
        assert (session.client, session.transport, session.protocol) == ("agent", "stdio", revision)


@pytest.mark.parametrize("revision", ["2026-07-28", "1999-01-01", "", None, 7, ["2025-11-25"]])
async def test_an_unknown_revision_is_answered_with_the_newest_that_we_have(tmp_path: Path, revision: object) -> None:
    """MCP's version negotiation requires this."""
    async with house(tmp_path) as made:
        made.start()
        result = await made.client().result("initialize", {"protocolVersion": revision, "clientInfo": "odd"})
        assert result["protocolVersion"] == HANDSHAKE_VERSIONS[-1]
        assert result["serverInfo"]["name"] == "multi-mcp"
        assert result["capabilities"]["tools"] == {"listChanged": True}


async def test_the_instructions_of_the_servers_come_with_the_handshake(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.cache(server("a"), offer("x", instructions="Be kind."))
        made.apply(server("a"), server("b"))
        made.start()
        assert (await made.client().result("initialize", {}))["instructions"] == "# a\nBe kind."


async def test_without_instructions_there_is_no_member_for_them(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.start()
        assert "instructions" not in await made.client().result("initialize")


@pytest.mark.requirement("call-ping")
async def test_a_ping_is_answered_without_any_server(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.apply(server("a"))
        client = made.client()
        assert await client.result("ping") == {}
        assert made.net.open_now == 0


async def test_requests_before_initialize_are_answered_and_break_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = made.client()
        for method in LISTS:
            assert "result" in await client.ask(method)
        assert "result" in await client.call("a_echo", 5)
        assert (await client.shake_hands())["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("method", ["nope", "sampling/createMessage", "server/discover", "", "tools/List"])
async def test_an_unknown_method_is_no_method(tmp_path: Path, method: str) -> None:
    async with house(tmp_path) as made:
        made.start()
        client = await made.ready()
        assert (await client.error(method, {"a": 1}))["code"] == METHOD_NOT_FOUND
        assert await client.result("ping") == {}


@pytest.mark.requirement("wire-id-kept")
@pytest.mark.parametrize("number", [0, -5, 2**40, "7", "", "ä\u2028", "a" * 300])
async def test_every_kind_of_request_is_answered_under_the_client_s_own_id(tmp_path: Path, number: int | str) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await made.ready()
        for method in (*LISTS, "ping", "nope", "initialize"):
            assert (await client.ask(method, {}, number))["id"] == number
        assert (await client.call("a_echo", number))["id"] == number
        assert (await client.call("b_echo", number))["id"] == number


@pytest.mark.parametrize("params", [None, {}, {"name": 5}, {"name": None}, {"arguments": {}}])
async def test_a_call_without_a_name_is_refused(tmp_path: Path, params: object) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await made.ready()
        assert (await client.error("tools/call", params))["code"] == INVALID_PARAMS


# -- ids of open requests --------------------------------------------------------------------------------------------


async def test_an_id_that_is_under_way_cannot_be_used_again(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await made.ready()
        client.call_only("a_hold", 1, key="k")
        await made.net["a"].heard_of("held")
        client.call_only("a_echo", 1)
        assert (await client.answer(1))["error"]["code"] == INVALID_REQUEST
        client.call_only("a_release", 2, key="k")
        await client.answer(2)
        await settle()
        assert [("result" in message) for message in client.answers(1)] == [False, True]
        assert made.in_flight() == {}
        assert "result" in await client.call("a_echo", 1)


async def test_an_id_whose_server_is_being_started_cannot_be_used_again(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        client, gate = await made.starting()
        for _ in range(3):
            client.call_only("a_echo", "x")
        await settle()
        assert [message["error"]["code"] for message in client.answers("x")] == [INVALID_REQUEST] * 2
        gate.set()
        await settle()
        assert "result" in client.answers("x")[-1]
        assert made.net["a"].methods().count("tools/call") == 1
        assert made.in_flight() == {}


async def test_the_number_1_and_the_text_1_are_two_ids(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await made.ready()
        client.call_only("a_hold", 1, key="n")
        client.call_only("a_hold", "1", key="t")
        await made.net["a"].heard_of("held", 2)
        client.tell("notifications/cancelled", {"requestId": "1"})
        await made.net["a"].cancelled_of("t")
        await client.call("a_release", 2, key="n")
        assert "result" in await client.answer(1)
        assert client.answers("1") == []


# -- lists -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("cat-first-run", "call-list-changed")
async def test_on_the_first_run_a_list_waits_a_moment_for_what_is_being_asked(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        gate = made.net["a"].hold_start()
        made.apply(server("a"))
        made.start()
        client = await made.ready()
        client.ask_only(7, "tools/list")
        await made.clock.pass_(FIRST_LIST_GRACE_S / 2)
        assert client.answers(7) == []
        gate.set()
        assert "a_echo" in [item["name"] for item in (await client.answer(7))["result"]["tools"]]


@pytest.mark.requirement("call-list-changed")
async def test_a_client_whose_list_waits_is_told_of_no_change_that_the_list_will_have(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        gate, slow_gate = made.net["a"].hold_start(), made.net["slow"].hold_start()
        made.apply(server("slow"), server("a"))
        made.start()
        client = await made.ready()
        client.ask_only(7, "tools/list")
        await settle()
        gate.set()
        await settle()
        await made.told()
        assert (client.answers(7), client.list_changes()) == ([], [])
        slow_gate.set()
        assert "slow_echo" in [item["name"] for item in (await client.answer(7))["result"]["tools"]]
        await made.told()
        assert "tools" not in client.list_changes()
        made.apply(server("a"))
        await made.told()
        assert client.list_changes().count("tools") == 1


@pytest.mark.requirement("cat-first-run", "life-hang-in-box", "call-list-changed")
async def test_no_list_waits_longer_than_the_grace_and_the_rest_follows_as_list_changed(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        gate = made.net["slow"].hold_start()
        made.apply(server("slow"), server("a"))
        made.start()
        client = await made.ready()
        for number, method in enumerate(LISTS):
            client.ask_only(number, method)
        await made.clock.pass_(FIRST_LIST_GRACE_S - 0.01)
        assert client.answers(0) == []
        await made.clock.pass_(0.02)
        names = [item["name"] for item in client.answers(0)[0]["result"]["tools"]]
        assert "a_echo" in names
        assert "slow_echo" not in names
        assert all(client.answers(number) for number in range(4))
        client.heard.clear()
        gate.set()
        await settle()
        await made.told()
        assert client.list_changes() == ["tools"]
        assert "slow_echo" in await client.names()


async def test_a_list_after_the_grace_does_not_wait_whatever_is_being_asked(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["a"].before = lambda number: anyio.sleep_forever()
        made.apply(server("a", connect_timeout=3600))
        made.start()
        await made.clock.pass_(FIRST_LIST_GRACE_S)
        client = await made.ready()
        client.ask_only(1, "tools/list")
        assert client.answers(1)[0]["result"] == {"tools": []}


async def test_a_list_does_not_wait_for_servers_that_are_known(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["new"].before = lambda number: anyio.sleep_forever()
        made.cache(server("a"), offer("x"))
        made.cache(server("new"), offer("y"), age_s=8 * 86_400)
        made.apply(server("a"), server("new"))
        made.start()
        client = await made.ready()
        client.ask_only(1, "tools/list")
        assert [item["name"] for item in client.answers(1)[0]["result"]["tools"]] == ["a_x", "new_y"]
        client.ask_only(2, "tools/list")
        assert len(client.answers(2)) == 1


async def test_a_list_does_not_wait_for_servers_that_have_failed(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["bad"].before = refused
        made.apply(server("bad"))
        made.start()
        client = await made.ready()
        assert (await client.ask("tools/list"))["result"] == {"tools": []}
        assert made.clock.now() == 1_000.0


async def test_without_anything_configured_lists_are_empty_at_once(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.start()
        client = await made.ready()
        assert [await client.result(method) for method in LISTS] == [
            {"tools": []},
            {"prompts": []},
            {"resources": [INDEX]},
            {"resourceTemplates": []},
        ]


async def test_a_list_that_waits_can_be_cancelled_and_its_id_used_again(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.net["a"].before = lambda number: anyio.sleep_forever()
        made.apply(server("a"))
        made.start()
        client = await made.ready()
        client.ask_only(1, "tools/list")
        client.ask_only(1, "tools/list")
        await settle()
        assert [message["error"]["code"] for message in client.answers(1)] == [INVALID_REQUEST]
        client.tell("notifications/cancelled", {"requestId": 1})
        await settle()
        client.ask_only(1, "tools/list")
        await made.clock.pass_(FIRST_LIST_GRACE_S)
        assert [("result" in message) for message in client.answers(1)] == [False, True]


@pytest.mark.requirement("cat-cache-first", "cat-entry-used")
async def test_lists_come_from_the_cache_without_any_process_even_when_it_is_old(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        entries = [server(f"s{n}") for n in range(5)]
        for entry in entries:
            made.cache(entry, offer("x"), age_s=8 * 86_400)
        made.apply(*entries)
        made.start()
        await settle()
        assert sum(made.net[entry.name].opened for entry in entries) == 0
        client = await made.ready()
        await settle()
        assert sum(made.net[entry.name].opened for entry in entries) == 0
        assert await client.names() == [f"s{n}_x" for n in range(5)]
        await made.gateway.services.pool.settled()
        assert [made.net[entry.name].opened for entry in entries] == [1] * 5


async def test_the_first_list_asks_old_servers_again_also_when_it_had_to_wait(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.cache(server("old"), offer("x"), age_s=8 * 86_400)
        made.apply(server("old"), server("new"))
        made.start()
        client = await made.ready()
        await client.names()
        await made.gateway.services.pool.settled()
        assert made.net["old"].opened == 1
        assert "old_echo" in await client.names()


# -- notifications to a session --------------------------------------------------------------------------------------


async def two_ready(made: House) -> tuple[Client, Client]:
    return await made.ready(name="one"), await made.ready(name="two")


@pytest.mark.requirement("call-list-changed")
async def test_list_changed_comes_for_the_list_that_differs_and_no_other(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        serve(made.net["a"])
        await made.known(server("a"))
        clients = await two_ready(made)
        serve(made.net["a"], prompts=({"name": "p"},))
        await made.gateway.services.pool.refresh(made.gateway.services.pool.find("a"))
        await made.told()
        assert [client.list_changes() for client in clients] == [["prompts"], ["prompts"]]
        serve(made.net["a"], prompts=({"name": "p"},), resources=({"uri": "x://1"},))
        await made.gateway.services.pool.refresh(made.gateway.services.pool.find("a"))
        await made.told()
        assert clients[0].list_changes() == ["prompts", "resources"]
        serve(made.net["a"], prompts=({"name": "p"},), resources=({"uri": "x://1"},), resourceTemplates=TEMPLATES)
        await made.gateway.services.pool.refresh(made.gateway.services.pool.find("a"))
        await made.told()
        assert clients[0].list_changes() == ["prompts", "resources", "resources"]


@pytest.mark.requirement("call-list-changed")
async def test_what_changes_no_list_is_told_to_nobody(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"), server("b"))
        client = await made.ready()
        await made.gateway.services.pool.refresh(made.gateway.services.pool.find("a"))
        await client.call("a_echo")
        made.apply(server("a", idle_timeout=5), server("b"))
        await made.told()
        assert client.list_changes() == []


@pytest.mark.requirement("call-list-changed")
async def test_many_changes_at_once_are_told_once(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await made.ready()
        made.apply(server("a", disabled=True))
        made.apply(server("a", exclude_tools=("echo",)))
        made.apply(server("a", exclude_tools=("hold",)))
        await made.told()
        assert client.list_changes() == ["tools"]


@pytest.mark.requirement("call-list-changed")
async def test_nothing_is_told_before_the_client_is_initialized_and_then_it_is_told(tmp_path: Path) -> None:
    """According to MCP's lifecycle, a server waits for `notifications/initialized`."""
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = made.client()
        await client.result("initialize", {})
        await client.names()
        made.apply(server("a", exclude_tools=("echo",)))
        await made.told()
        assert client.list_changes() == []
        client.tell("notifications/initialized")
        await settle()
        assert client.list_changes() == ["tools"]


@pytest.mark.requirement("call-list-changed")
async def test_a_client_that_came_after_the_change_is_not_told_of_it(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        early = await made.ready()
        made.apply(server("a", exclude_tools=("echo",)))
        late = await made.ready()
        await late.names()
        await made.told()
        assert (early.list_changes(), late.list_changes()) == (["tools"], [])


@pytest.mark.requirement("call-list-changed")
async def test_a_client_that_has_listed_since_the_change_is_not_told_of_it(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client, other = await two_ready(made)
        made.apply(server("a", exclude_tools=("echo",)))
        assert "a_echo" not in await client.names()
        await made.told()
        assert (client.list_changes(), other.list_changes()) == ([], ["tools"])


# -- internal errors affect only their request -----------------------------------------------------------------------


@pytest.mark.parametrize("live", [True, False])
async def test_a_request_that_fails_in_a_way_that_we_do_not_know_costs_itself_only(tmp_path: Path, live: bool) -> None:
    async with house(tmp_path, BrokenClock) as made:
        made.cache(server("a"), offer("echo"))
        made.apply(server("a"))
        made.start()
        client = await made.ready()
        if live:
            await client.call("a_echo")
        clock = made.dependencies.clock
        assert isinstance(clock, BrokenClock)
        clock.broken = True
        assert (await client.call("a_echo", 1))["error"]
        clock.broken = False
        assert made.in_flight() == {}
        assert await client.result("ping") == {}


async def test_answers_are_frames_of_one_line_each(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await made.ready()
        await client.names()
        assert all(loads(frame)["jsonrpc"] == "2.0" for frame in client.frames)


@pytest.mark.requirement("lists-whole")
async def test_what_servers_say_beside_a_list_reaches_clients_merged_with_the_smallest_ttl(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        for name, ttl in (("a", 60_000), ("b", 90_000)):
            more = {"x-of-list": {name: 1}, "_meta": {"acme/of": name, SERVER_INFO: {"name": name}}, "ttlMs": ttl}

            async def listed(params: Message, name: str = name, more: Message = more) -> Message:
                return {"tools": [{"name": name, "inputSchema": {"type": "object"}}], **more}

            made.net[name].replies["tools/list"] = listed
        await made.known(server("a"), server("b"))
        older = await (await made.ready()).result("tools/list")
        assert (older["x-of-list"], older["_meta"]) == ({"a": 1, "b": 1}, {"acme/of": "a"})
        assert "ttlMs" not in older
        newer = await made.client().result("tools/list", enveloped({}))
        assert (newer["x-of-list"], newer["ttlMs"]) == ({"a": 1, "b": 1}, 60_000)
        assert newer["_meta"]["acme/of"] == "a"
        assert newer["_meta"][SERVER_INFO]["name"] == "multi-mcp"
        assert [tool["name"] for tool in newer["tools"]] == ["a_a", "b_b"]


@pytest.mark.requirement("lists-whole")
async def test_a_server_that_names_no_ttl_is_looked_at_again_as_soon_as_before(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        assert (await made.client().result("tools/list", enveloped({})))["ttlMs"] == LIST_TTL_MS


@pytest.mark.requirement("list-changed-told")
async def test_a_list_that_a_call_says_has_changed_is_told_so_even_if_it_is_the_same(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        caller, other = await made.ready(), await made.ready()
        newer, one_tool = made.client(), await made.ready(expose="search")
        newer.ask_only("l", "subscriptions/listen", enveloped({"notifications": {"toolsListChanged": True}}))
        for client in (caller, other, one_tool):
            await client.names()
        await other.call("a_notify", method="notifications/tools/list_changed", params={})  # starts the server
        await other.names()
        await made.told()
        assert other.list_changes() == []  # the announcement may belong to the server's start
        for client in (caller, one_tool):
            await client.call("a_notify", method="notifications/tools/list_changed", params={})
        with anyio.fail_after(10):
            while not (caller.list_changes() and newer.list_changes()):
                await made.told()
        assert [client.list_changes() for client in (caller, newer, other, one_tool)] == [["tools"], ["tools"], [], []]


@pytest.mark.requirement("lists-current")
async def test_right_after_a_call_that_changed_the_lists_they_are_the_new_ones(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        net = made.net["a"]
        serve(net, prompts=({"name": "p"},))
        await made.known(server("a"))
        client, one_tool = await made.ready(), await made.ready(expose="search")
        await client.names()

        async def gains(*tools: str) -> None:
            net.tools = [*net.tools, *({"name": name, "inputSchema": {"type": "object"}} for name in tools)]
            await client.call("a_notify", method="notifications/tools/list_changed", params={})

        await gains("listed")
        assert "a_listed" in await client.names()
        await gains("called")
        assert "result" in await client.call("a_called")
        await gains("searched_for")
        assert "searched_for" in str(await one_tool.call("mcp", search="searched for"))
        await gains("called_through_it")
        assert "isError" not in (await one_tool.call("mcp", tool="a_called_through_it"))["result"]
        serve(net, prompts=({"name": "p"}, {"name": "of_late"}))
        await client.call("a_notify", method="notifications/prompts/list_changed", params={})
        answer = await client.ask("prompts/get", {"name": "a_of_late"})
        assert answer["error"]["code"] == METHOD_NOT_FOUND  # from the server, so the request reached it


def waits(client: Client) -> bool:
    """True if a list would wait for a change of a server's lists."""
    assert client.session is not None
    return bool(client.session.behind())


def announces_late(net: FakeServer, tasks: anyio.abc.TaskGroup) -> None:
    """Make the server announce changed tools shortly after its answer to `notify`, as Go's SDK does."""

    async def call(params: Message) -> Message:
        async def announce() -> None:
            await anyio.sleep(0.01)
            assert net.channel is not None
            net.channel.tell(0, None, "notifications/tools/list_changed", {})

        if params["name"] == "notify":
            tasks.start_soon(announce)
        return {"content": []}

    net.replies["tools/call"] = call


@pytest.mark.requirement("lists-current")
async def test_a_change_that_is_announced_shortly_after_the_answer_is_waited_for(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        net = made.net["a"]
        await made.known(server("a"))
        announces_late(net, made.tasks)
        client, one_tool = await made.ready(), await made.ready(expose="search")

        async def gains(caller: Client, tool: str) -> None:
            net.tools = [*net.tools, {"name": tool, "inputSchema": {"type": "object"}}]
            if caller is client:
                await client.call("a_notify")
            else:
                await one_tool.call("mcp", tool="a_notify")

        await gains(client, "listed")
        assert "a_listed" in await client.names()
        await gains(client, "called")
        assert "result" in await client.call("a_called")
        await gains(one_tool, "searched_for")
        assert "searched_for" in str(await one_tool.call("mcp", search="searched for"))
        await gains(one_tool, "called_through_it")
        assert "isError" not in (await one_tool.call("mcp", tool="a_called_through_it"))["result"]


@pytest.mark.requirement("lists-current")
async def test_only_a_list_of_a_session_that_called_the_server_waits_for_an_announcement(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        caller, other = await made.ready(), await made.ready()
        await caller.call("a_echo")
        assert [waits(client) for client in (caller, other)] == [True, False]
        made.clock.jump(NOTICE_S)
        assert not waits(caller)
        await caller.call("a_notify", method="notifications/tools/list_changed", params={})
        await caller.names()
        assert not waits(caller)  # the announced change has arrived


@pytest.mark.requirement("list-changed-told")
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("started", [False, True])
async def test_a_client_that_lists_at_once_is_told_once_of_the_change_as_well(
    tmp_path: Path, late: bool, started: bool
) -> None:
    async with house(tmp_path) as made:
        net = made.net["a"]
        await made.known(server("a"))
        caller, other = await made.ready(), await made.ready()
        for client in (caller, other):
            await client.names()
        if started:
            await caller.call("a_echo")
        if late:
            announces_late(net, made.tasks)
        net.tools = [*net.tools, {"name": "new", "inputSchema": {"type": "object"}}]
        await caller.call("a_notify", method="notifications/tools/list_changed", params={})
        assert "a_new" in await caller.names()
        await made.told()
        await made.told()
        assert [client.list_changes() for client in (caller, other)] == [["tools"], ["tools"]]


@pytest.mark.requirement("list-changed-told")
async def test_a_change_during_a_list_request_that_its_client_cancels_is_told(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await made.ready()
        await client.names()

        async def hang(params: Message) -> Message:
            await anyio.sleep_forever()
            return {}

        made.net["a"].replies["tools/list"] = hang
        await client.call("a_notify", method="notifications/tools/list_changed", params={})
        client.ask_only("cancelled", "tools/list")
        made.apply(server("a", exclude_tools=("echo",)))
        await made.told()
        assert client.list_changes() == []  # the pending answer will contain the change
        client.tell("notifications/cancelled", {"requestId": "cancelled"})
        await made.told()
        await made.told()
        assert client.list_changes() == ["tools"]


@pytest.mark.requirement("lists-current")
async def test_a_server_that_announces_a_change_and_hangs_holds_up_one_list_alone(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        client = await made.ready()
        known = await client.names()

        async def hang(params: Message) -> Message:
            await anyio.sleep_forever()
            return {}

        made.net["a"].replies["tools/list"] = hang
        await client.call("a_notify", method="notifications/tools/list_changed", params={})
        assert await client.names() == known
        made.clock.jump(NOTICE_S)
        assert not waits(client)


@pytest.mark.requirement("lists-current")
async def test_a_server_that_announces_a_change_whenever_it_is_read_is_read_less_and_less(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        net = made.net["a"]
        await made.known(server("a"))
        client, readings = await made.ready(), 0

        async def announce(params: Message) -> Message:
            nonlocal readings
            readings += 1
            assert net.channel is not None
            net.channel.tell(0, None, "notifications/tools/list_changed", {})
            return {"tools": net.tools}

        net.replies["tools/list"] = announce
        await client.call("a_notify", method="notifications/tools/list_changed", params={})
        await anyio.sleep(1.6)
        assert 0 < readings <= 7  # a constant pause would give 16
        net.tools = [*net.tools, {"name": "new", "inputSchema": {"type": "object"}}]
        assert "a_new" in await client.names()  # a list does not wait for the pauses to end


@pytest.mark.requirement("list-changed-told")
async def test_a_list_that_has_changed_is_told_once_to_every_session(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        caller, other = await made.ready(), await made.ready()
        for client in (caller, other):
            await client.names()
        made.net["a"].tools = [*made.net["a"].tools, {"name": "more", "inputSchema": {"type": "object"}}]
        await caller.call("a_notify", method="notifications/tools/list_changed", params={})
        with anyio.fail_after(10):
            while not other.list_changes():
                await made.told()
        assert [client.list_changes() for client in (caller, other)] == [["tools"], ["tools"]]
