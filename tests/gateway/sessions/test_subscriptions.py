"""Updates of resources and changes of lists, to clients and from servers of both eras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fixtures.clock import settle
from tests.fixtures.fake_transport import refused
from tests.gateway.calls.test_server_requests import META, ask_itself, enveloped, older, tool_call
from tests.gateway.world import Client, House, echo_of, house, serve, server
from trayapp.backends.subscription import AGAIN_S, OVERLAP_S, OVERLAPS_MOST
from trayapp.model.config import Profile, Settings
from trayapp.model.lifecycle import RECONNECT_FIRST_S, State
from trayapp.wire.messages import INVALID_PARAMS, RpcError

pytestmark = pytest.mark.anyio

UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
X = {"uri": "res://x", "name": "x"}


def with_resources(made: House, name: str, *, modern: bool = False) -> None:
    """Make a fake server list one resource and accept subscriptions to it."""
    fake = made.net[name]
    serve(fake, resources=(X,))
    fake.capabilities = {**fake.capabilities, "resources": {"subscribe": True, "listChanged": True}}
    if modern:
        fake.modern, fake.versions = True, ()
    else:
        echo_of(fake, "resources/subscribe", "resources/unsubscribe")


def update(made: House, name: str, **more: Any) -> None:
    """Let the server report that its resource changed."""
    channel = made.net[name].channel
    assert channel is not None
    channel.tell(0, None, UPDATED, {"uri": "res://x", **more})


def listening(client: Client, number: int | str = 1, **wanted: Any) -> None:
    """Send a subscriptions/listen request for the notifications in `wanted`."""
    client.ask_only(number, "subscriptions/listen", enveloped({"notifications": wanted}))


async def told(client: Client, method: str, times: int = 1) -> list[dict[str, Any]]:
    """Wait until the client has received this notification `times` times, and return the params of each."""
    with anyio.fail_after(10):
        while len(client.told(method)) < times:
            await settle()
    return client.told(method)


@pytest.mark.requirement("subscribe-both-eras")
@pytest.mark.parametrize("modern", [False, True])
async def test_an_older_client_hears_of_what_it_subscribed_to_and_no_other_does(tmp_path: Path, modern: bool) -> None:
    async with house(tmp_path) as made:
        with_resources(made, "a", modern=modern)
        await made.known(server("a"))
        client, other = await older(made), await older(made)
        assert await client.result("resources/subscribe", {"uri": "res://x"}) == {}
        await made.net["a"].heard_of("subscriptions/listen" if modern else "resources/subscribe")
        update(made, "a", **{"x-kept": 1})
        assert await told(client, UPDATED) == [{"uri": "res://x", "x-kept": 1}]
        assert other.told(UPDATED) == []


@pytest.mark.requirement("filters-bind-servers-words")
@pytest.mark.parametrize("newer", [False, True])
async def test_a_session_hears_no_update_of_a_server_that_its_filter_leaves_out_now(
    tmp_path: Path, newer: bool
) -> None:
    async with house(tmp_path) as made:
        with_resources(made, "a")
        entries = [server("a", lifecycle="eager"), server("b")]
        profiles = [{"some": Profile(servers=names)} for names in (("a", "b"), ("b",))]
        await made.known(*entries, settings=Settings(profiles=profiles[0]))
        filtered = made.client(profile="some") if newer else await made.ready(profile="some")
        whole = await made.ready()
        assert await whole.result("resources/subscribe", {"uri": "res://x"}) == {}
        if newer:
            listening(filtered, resourceSubscriptions=["res://x"])
            await told(filtered, ACKNOWLEDGED)
        else:
            assert await filtered.result("resources/subscribe", {"uri": "res://x"}) == {}
        for times in (1, 2):
            update(made, "a")
            assert [len(filtered.told(UPDATED)), len(whole.told(UPDATED))] == [1, times]
            made.apply(*entries, settings=Settings(profiles=profiles[1]))


@pytest.mark.requirement("subscribe-both-eras")
@pytest.mark.parametrize("modern", [False, True])
async def test_a_newer_client_hears_of_it_where_it_listens(tmp_path: Path, modern: bool) -> None:
    async with house(tmp_path) as made:
        with_resources(made, "a", modern=modern)
        await made.known(server("a"))
        client = made.client()
        listening(client, "mine", resourceSubscriptions=["res://x", "res://none"], toolsListChanged=True)
        (acknowledged,) = await told(client, "notifications/subscriptions/acknowledged")
        assert acknowledged["notifications"]["toolsListChanged"] is True
        assert acknowledged["_meta"] == {META + "subscriptionId": "mine"}
        listens = "subscriptions/listen" if modern else "resources/subscribe"
        with anyio.fail_after(10):
            while "res://x" not in str([p for m, p in made.net["a"].heard if m == listens]):
                await settle()
        update(made, "a", _meta={META + "subscriptionId": 9})
        assert await told(client, UPDATED) == [{"uri": "res://x", "_meta": {META + "subscriptionId": "mine"}}]
        assert client.answers("mine") == []


@pytest.mark.requirement("subscribe-both-eras")
@pytest.mark.parametrize("modern", [False, True])
async def test_an_update_of_a_sub_resource_reaches_who_follows_the_resource_above(tmp_path: Path, modern: bool) -> None:
    """In MCP, an updated URI "might be a sub-resource of the one that the client actually subscribed to"."""
    async with house(tmp_path) as made:
        for name in ("a", "b"):  # their resources share a URI, so clients see the one of `a` under another URI
            with_resources(made, name, modern=modern)
        serve(made.net["a"], resources=(X, {"uri": "res://xyz", "name": "xyz"}))
        await made.known(server("a"), server("b"))
        below, other, new = await older(made), await older(made), made.client()
        await below.result("resources/subscribe", {"uri": "multi-mcp://a/res://x"})
        await other.result("resources/subscribe", {"uri": "res://xyz"})
        listening(new, "mine", resourceSubscriptions=["multi-mcp://a/res://x"])
        await told(new, ACKNOWLEDGED)
        for changed in ("res://x/part/1", "res://x/", "res://x?page=2", "res://xyz"):
            update(made, "a", uri=changed)
        await told(other, UPDATED)
        expected = [f"multi-mcp://a/res://x{rest}" for rest in ("/part/1", "/", "?page=2")]
        assert [params["uri"] for params in below.told(UPDATED)] == expected
        assert [params["uri"] for params in new.told(UPDATED)] == expected
        assert [params["uri"] for params in other.told(UPDATED)] == ["res://xyz"]


@pytest.mark.requirement("subscribe-both-eras")
@pytest.mark.parametrize("newer", [False, True])
async def test_a_subscription_follows_its_session_to_a_process_of_its_own(tmp_path: Path, newer: bool) -> None:
    async with house(tmp_path) as made:
        for key in ("a", "a#1", "a#2"):
            with_resources(made, key)
        await made.known(server("a"))
        one, two = await older(made, name="one"), await older(made, name="two")
        listener: Client = made.client() if newer else one
        await two.result("resources/subscribe", {"uri": "res://x"})
        if newer:
            listening(listener, "mine", resourceSubscriptions=["res://x"])
            await told(listener, ACKNOWLEDGED)
        else:
            await one.result("resources/subscribe", {"uri": "res://x"})
        await ask_itself(two, 9)  # from now on each session has its own process
        await (listener.result("tools/call", enveloped(tool_call("a_echo"))) if newer else listener.call("a_echo"))
        await made.net["a#1"].heard_of("resources/subscribe")
        update(made, "a#1")
        await told(listener, UPDATED)
        update(made, "a")
        await told(two, UPDATED)
        assert [len(listener.told(UPDATED)), len(two.told(UPDATED))] == [1, 1]
        await two.call("a_echo")
        update(made, "a#2")
        await told(two, UPDATED, 2)
        assert (await made.net["a"].heard_of("resources/unsubscribe"))["uri"] == "res://x"
        await two.result("resources/unsubscribe", {"uri": "res://x"})
        assert (await made.net["a#2"].heard_of("resources/unsubscribe"))["uri"] == "res://x"
        update(made, "a#1")
        await told(listener, UPDATED, 2)
        assert len(two.told(UPDATED)) == 2


async def test_a_newer_client_hears_of_changed_lists_only_where_it_listens_to_them(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        await made.known(server("a"))
        listens, deaf = made.client(), made.client()
        listening(listens, 1, toolsListChanged=True)
        listening(deaf, 1, promptsListChanged=True)
        for client in (listens, deaf):
            await told(client, "notifications/subscriptions/acknowledged")
        await made.known(server("a"), server("b"))
        await made.told()
        assert (await told(listens, "notifications/tools/list_changed"))[0]["_meta"] == {META + "subscriptionId": 1}
        assert deaf.list_changes() == []


async def test_unsubscribing_ends_it_at_the_server_once_nobody_is_left(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        with_resources(made, "a")
        await made.known(server("a"))
        one, two = await older(made), await older(made)
        for client in (one, two):
            await client.result("resources/subscribe", {"uri": "res://x"})
        assert made.net["a"].methods().count("resources/subscribe") == 1
        await one.result("resources/unsubscribe", {"uri": "res://x"})
        assert "resources/unsubscribe" not in made.net["a"].methods()
        update(made, "a")
        await told(two, UPDATED)
        assert one.told(UPDATED) == []
        two.end()
        assert (await made.net["a"].heard_of("resources/unsubscribe"))["uri"] == "res://x"


async def test_a_cancelled_listen_ends_its_subscription(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        with_resources(made, "a")
        await made.known(server("a"))
        client = made.client()
        listening(client, 1, resourceSubscriptions=["res://x"])
        await made.net["a"].heard_of("resources/subscribe")
        client.tell("notifications/cancelled", {"requestId": 1})
        await made.net["a"].heard_of("resources/unsubscribe")


async def test_a_server_that_was_lost_is_asked_again_when_it_is_back(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        with_resources(made, "a")
        await made.known(server("a"))
        client = await older(made)
        await client.result("resources/subscribe", {"uri": "res://x"})
        made.net["a"].die()
        await settle()
        await client.call("a_echo")
        await made.net["a"].heard_of("resources/subscribe", 2)


@pytest.mark.requirement("subscribe-both-eras")
async def test_a_lost_server_is_connected_again_while_a_session_follows_its_resources(tmp_path: Path) -> None:
    """The session makes no call. If the server is soon lost again, a pause prevents a loop of restarts."""
    async with house(tmp_path) as made:
        with_resources(made, "a")
        await made.known(server("a"))
        client = await older(made)
        await client.result("resources/subscribe", {"uri": "res://x"})
        made.net["a"].die()
        await made.net["a"].heard_of("resources/subscribe", 2)
        update(made, "a")
        assert len(await told(client, UPDATED)) == 1
        made.net["a"].die()
        await made.clock.pass_(RECONNECT_FIRST_S - 1)
        assert made.net["a"].open_now == 0
        await made.clock.pass_(1)
        await made.net["a"].heard_of("resources/subscribe", 3)
        await client.result("resources/unsubscribe", {"uri": "res://x"})
        made.net["a"].die()
        await made.clock.pass_(10 * RECONNECT_FIRST_S)
        assert made.net["a"].open_now == 0


@pytest.mark.requirement("subscribe-both-eras")
async def test_a_call_finds_a_server_that_is_back_although_it_could_not_be_restored_before(tmp_path: Path) -> None:
    """Failed attempts in the background do not delay a later call."""
    async with house(tmp_path) as made:
        with_resources(made, "a")
        await made.known(server("a"))
        client = await older(made)
        await client.result("resources/subscribe", {"uri": "res://x"})
        made.net["a"].before = refused
        made.net["a"].die()
        await made.clock.pass_(10 * AGAIN_S)
        assert made.state("a") is State.FAILED
        made.net["a"].before = None
        assert "result" in await client.call("a_echo")


async def test_a_subscription_keeps_its_server_from_being_idle(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        with_resources(made, "a")
        await made.known(server("a", idle_timeout=1))
        client = await older(made)
        await client.result("resources/subscribe", {"uri": "res://x"})
        await made.clock.pass_(600)
        assert made.net["a"].open_now == 1
        await client.result("resources/unsubscribe", {"uri": "res://x"})
        await made.clock.pass_(600)
        assert made.net["a"].open_now == 0


async def test_a_resource_that_nobody_has_cannot_be_subscribed_to(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        with_resources(made, "a")
        with_resources(made, "b")
        await made.known(server("a"), server("b"))
        assert "error" in await (await older(made)).ask("resources/subscribe", {"uri": "nowhere://x"})


async def test_a_refusal_of_the_server_is_the_answer(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        with_resources(made, "a")
        del made.net["a"].replies["resources/subscribe"]
        await made.known(server("a"))
        assert (await (await older(made)).error("resources/subscribe", {"uri": "res://x"}))["code"] == -32601


@pytest.mark.requirement("subscribe-confirmed")
async def test_an_older_server_confirms_before_any_of_its_clients_gets_a_confirmation(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        with_resources(made, "a")
        await made.known(server("a"))
        gate = made.net["a"].hold("resources/subscribe", {})
        one, two, new = await older(made), await older(made), made.client()
        for client in (one, two):
            client.ask_only("s", "resources/subscribe", {"uri": "res://x"})
        listening(new, "mine", resourceSubscriptions=["res://x"])
        await made.net["a"].heard_of("resources/subscribe")
        await settle()
        assert one.answers("s") == two.answers("s") == new.told(ACKNOWLEDGED) == []
        gate.set()
        assert [(await client.answer("s"))["result"] for client in (one, two)] == [{}, {}]
        assert (await told(new, ACKNOWLEDGED))[0]["notifications"] == {"resourceSubscriptions": ["res://x"]}
        assert made.net["a"].methods().count("resources/subscribe") == 1


@pytest.mark.requirement("subscribe-confirmed")
async def test_a_newer_server_confirms_before_any_of_its_clients_gets_a_confirmation(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        with_resources(made, "a", modern=True)
        gate = acknowledging_late(made, "a")
        await made.known(server("a"))
        old, new = await older(made), made.client()
        old.ask_only("s", "resources/subscribe", {"uri": "res://x"})
        listening(new, "mine", resourceSubscriptions=["res://x"])
        with anyio.fail_after(10):
            while "res://x" not in str([p for m, p in made.net["a"].heard if m == "subscriptions/listen"]):
                await settle()
        assert old.answers("s") == new.told(ACKNOWLEDGED) == []
        update(made, "a")  # sent before the acknowledgment, but delivered after it
        gate.set()
        assert (await old.answer("s"))["result"] == {}
        await told(new, UPDATED)
        methods = [message.get("method") for message in new.heard]
        assert methods.index(ACKNOWLEDGED) < methods.index(UPDATED)


@pytest.mark.requirement("subscribe-confirmed")
@pytest.mark.parametrize("modern", [False, True])
async def test_what_a_server_refuses_is_not_confirmed(tmp_path: Path, modern: bool) -> None:
    async with house(tmp_path) as made:
        with_resources(made, "a", modern=modern)

        async def refuse(params: dict[str, Any]) -> dict[str, Any]:
            raise RpcError(INVALID_PARAMS, "Not that one")

        made.net["a"].replies["subscriptions/listen" if modern else "resources/subscribe"] = refuse
        await made.known(server("a"))
        old, new = await older(made), made.client()
        assert (await old.error("resources/subscribe", {"uri": "res://x"}))["code"] == INVALID_PARAMS
        listening(new, "mine", resourceSubscriptions=["res://x"], toolsListChanged=True)
        assert (await told(new, ACKNOWLEDGED))[0]["notifications"] == {"toolsListChanged": True}
        assert made.gateway.session_dependencies.subscriptions.wanted("a") == frozenset()


@pytest.mark.requirement("subscribe-confirmed")
async def test_no_update_is_lost_while_a_newer_server_is_asked_for_more(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        with_resources(made, "a", modern=True)
        serve(made.net["a"], resources=(X, {"uri": "res://y", "name": "y"}))
        await made.known(server("a"))
        old = await older(made)
        await old.result("resources/subscribe", {"uri": "res://x"})
        gate = acknowledging_late(made, "a")
        old.ask_only("y", "resources/subscribe", {"uri": "res://y"})
        with anyio.fail_after(10):
            while "res://y" not in str([p for m, p in made.net["a"].heard if m == "subscriptions/listen"]):
                await settle()
        ended = made.net["a"].methods().count("notifications/cancelled")  # the first request, for lists only, has ended
        await settle()
        assert made.net["a"].methods().count("notifications/cancelled") == ended == 1  # the request for x is still open
        gate.set()
        assert (await old.answer("y"))["result"] == {}
        await made.clock.pass_(OVERLAP_S)
        await made.net["a"].heard_of("notifications/cancelled", 2)


@pytest.mark.requirement("subscribe-confirmed")
@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_each_update_comes_once_while_a_newer_server_is_asked_for_more(tmp_path: Path, kind: str) -> None:
    """For a moment the server has two open requests and sends each update for both, over HTTP in any order."""
    async with house(tmp_path) as made:
        with_resources(made, "a", modern=True)
        fake = made.net["a"]
        serve(fake, resources=(X, {"uri": "res://y", "name": "y"}))
        fake.kind, fake.says_whose = kind, kind == "http"
        await made.known(server("a"))
        gate = acknowledging_late(made, "a")
        gate.set()
        client = await older(made)
        await client.result("resources/subscribe", {"uri": "res://x"})
        channel = fake.channel
        assert channel is not None
        await made.clock.pass_(OVERLAP_S)  # ends the request for the lists alone
        assert len(channel.open_numbers()) == 1
        gate = acknowledging_late(made, "a")
        client.ask_only("y", "resources/subscribe", {"uri": "res://y"})
        with anyio.fail_after(10):
            while len(channel.open_numbers()) < 2:
                await settle()
        former, newer = channel.open_numbers()

        def sends(number: int) -> int:
            meta = {} if fake.says_whose else {"_meta": {META + "subscriptionId": number}}
            channel.tell(number, None, UPDATED, {"uri": "res://x", **meta})
            return len(client.told(UPDATED))

        assert [sends(former), sends(former)] == [1, 2]  # one before the server takes the second request, one after
        gate.set()
        assert (await client.answer("y"))["result"] == {}
        if kind == "http":
            assert [sends(newer), sends(newer), sends(former)] == [2, 2, 3]  # two repeated updates and a new one
            await made.clock.pass_(OVERLAP_S)
            assert former in channel.open_numbers()  # one update may be older than the second request
            assert [sends(former), sends(newer)] == [4, 4]
            await made.clock.pass_(OVERLAP_S * OVERLAPS_MOST)
        else:
            assert [sends(newer), sends(former), sends(newer)] == [3, 3, 4]
        assert former not in channel.open_numbers()
        late = {"uri": "res://x", "_meta": {META + "subscriptionId": former}}
        channel.tell(0, None, UPDATED, late)
        assert len(client.told(UPDATED)) == 4
        assert sends(newer) == 5


@pytest.mark.requirement("subscribe-confirmed")
async def test_what_a_newer_server_reports_goes_on_if_it_refuses_to_report_more(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        with_resources(made, "a", modern=True)
        serve(made.net["a"], resources=(X, {"uri": "res://y", "name": "y"}))
        await made.known(server("a"))
        acknowledging_late(made, "a").set()
        client = await older(made)
        await client.result("resources/subscribe", {"uri": "res://x"})
        channel = made.net["a"].channel
        assert channel is not None
        await made.clock.pass_(OVERLAP_S)
        (number,) = channel.open_numbers()
        taken = made.net["a"].replies["subscriptions/listen"]
        refusing = anyio.Event()

        async def listen(params: dict[str, Any]) -> Any:
            if "res://y" not in str(params):
                await refusing.wait()
                return await taken(params)
            raise RpcError(INVALID_PARAMS, "too many")

        made.net["a"].replies["subscriptions/listen"] = listen
        assert (await client.error("resources/subscribe", {"uri": "res://y"}))["message"] == "too many"
        assert number in channel.open_numbers()
        refusing.set()


def acknowledging_late(made: House, name: str) -> anyio.Event:
    """Make a newer server withhold its acknowledgments until the returned event is set."""
    gate = anyio.Event()

    async def listen(params: dict[str, Any]) -> dict[str, Any]:
        await gate.wait()
        channel = made.net[name].channel
        assert channel is not None
        channel.tell(0, None, ACKNOWLEDGED, {"notifications": params["notifications"]})
        await anyio.sleep_forever()
        return {}

    made.net[name].replies["subscriptions/listen"] = listen
    return gate
