"""The life cycle of one server's connection, with a fake transport and a fake clock."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import anyio
import pytest

from tests.backends.world import Bench, bench, server
from tests.fixtures.behaviour import MODERN, text
from tests.fixtures.clock import settle
from tests.fixtures.fake_transport import Awaiting
from trayapp.backends.connection import DOUBT_AGAIN_S
from trayapp.backends.maintenance import HEALTH_TIMEOUT_S
from trayapp.model.config import Settings
from trayapp.model.errors import (
    ConnectFailedError,
    ConnectionLostError,
    MissingVariableError,
    ServerBackoffError,
    ServerDisabledError,
    ServerError,
    SignInWantedError,
)
from trayapp.model.lifecycle import State
from trayapp.wire.messages import CONNECTION_CLOSED, INTERNAL_ERROR, METHOD_NOT_FOUND, RpcError

pytestmark = pytest.mark.anyio


async def forever(number: int) -> None:
    await anyio.sleep_forever()


async def refused(number: int) -> None:
    raise ConnectFailedError("a", "Cannot start a: spawn ENOENT", "Install it")


async def call(made: Bench, name: str = "a", tool: str = "echo", **args: Any) -> dict[str, Any]:
    return await made.pool.find(name).request("tools/call", {"name": tool, "arguments": args})


# -- single flight ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("life-single-flight")
async def test_twenty_at_once_start_one() -> None:
    async with bench() as made:
        made.apply(server("a"))
        gate = made.net["a"].hold_start()
        answers: list[dict[str, Any]] = []

        async def one() -> None:
            answers.append(await call(made))

        async with anyio.create_task_group() as callers:
            for _ in range(20):
                callers.start_soon(one)
            await settle()
            gate.set()
        assert len(answers) == 20
        assert made.net["a"].opened == 1
        assert made.net["a"].methods().count("initialize") == 1


async def test_all_who_wait_get_the_one_failure() -> None:
    async with bench() as made:
        made.apply(server("a"))
        made.net["a"].before = refused
        errors: list[ServerError] = []

        async def one() -> None:
            try:
                await call(made)
            except ServerError as error:
                errors.append(error)

        async with anyio.create_task_group() as callers:
            for _ in range(20):
                callers.start_soon(one)
        assert [error.code for error in errors] == ["connect_failed"] * 20
        assert made.net["a"].opened == 1


async def test_a_waiter_that_gives_up_does_not_stop_the_start_for_the_others() -> None:
    async with bench() as made:
        made.apply(server("a"))
        gate = made.net["a"].hold_start()
        async with anyio.create_task_group() as callers:
            scope = anyio.CancelScope()

            async def impatient() -> None:
                with scope:
                    await call(made)

            callers.start_soon(impatient)
            callers.start_soon(call, made)
            await settle()
            scope.cancel()
            await settle()
            gate.set()
        assert made.net["a"].opened == 1
        assert made.state("a") is State.CONNECTED


# -- failure and backoff ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("life-backoff")
async def test_in_the_backoff_calls_fail_at_once_saying_how_long_ago_and_why() -> None:
    async with bench() as made:
        made.apply(server("a"))
        made.net["a"].before = refused
        with pytest.raises(ConnectFailedError, match=r"a: spawn ENOENT"):
            await call(made)
        assert made.state("a") is State.FAILED
        await made.clock.pass_(30)
        with pytest.raises(ServerBackoffError, match=r"a failed 30s ago: .*ENOENT") as caught:
            await call(made)
        assert caught.value.code == "server_backoff"
        assert made.net["a"].opened == 1
        await made.clock.pass_(31)
        with pytest.raises(ConnectFailedError):
            await call(made)
        assert made.net["a"].opened == 2


@pytest.mark.requirement("life-backoff")
async def test_an_explicit_wish_ignores_the_backoff() -> None:
    async with bench() as made:
        made.apply(server("a"))
        made.net["a"].before = refused
        with pytest.raises(ConnectFailedError):
            await call(made)
        await made.clock.pass_(5)
        made.net["a"].before = None
        await made.pool.reconnect(made.pool.find("a"))
        assert made.state("a") is State.CONNECTED
        assert await call(made)


async def test_a_server_that_is_lost_has_no_backoff_and_the_next_call_starts_it() -> None:
    async with bench() as made:
        made.apply(server("a", lifecycle="eager"))
        await made.states("a", State.CONNECTED)
        made.net["a"].die()
        await made.states("a", State.FAILED)
        assert isinstance(made.pool.find("a").error, ConnectionLostError)
        await made.clock.pass_(3600)
        assert made.net["a"].opened == 1
        assert await call(made)
        assert made.net["a"].opened == 2


async def test_a_death_gives_the_call_one_error_that_says_how_and_nothing_is_replayed() -> None:
    async with bench() as made:
        made.apply(server("a"), server("b"))
        other = await made.pool.find("b").ensure()
        connection = made.pool.find("a")
        live = await connection.ensure()
        waiting = Awaiting()
        connection.begin()
        live.channel.relay("tools/call", {"name": "hold", "arguments": {"key": "x"}}, waiting)
        await made.net["a"].heard_of("held")
        made.net["a"].die()
        message = await waiting.message()
        connection.end()
        assert message["error"]["code"] == CONNECTION_CLOSED
        assert "code 9: last words" in message["error"]["message"]
        await made.states("a", State.FAILED)
        assert "code 9: last words" in str(connection.error)
        assert made.net["a"].opened == 1
        assert await call(made)
        assert made.net["a"].methods().count("held") == 1
        assert made.pool.find("b").live is other
        assert waiting.answers == 1


async def test_a_server_that_hangs_fails_alone_after_its_own_timeout() -> None:
    async with bench() as made:
        made.apply(server("a", connect_timeout=0.05), server("b"))
        made.net["a"].before = forever
        with pytest.raises(ConnectFailedError, match=r"a did not finish its handshake within 0\.05 s"):
            await call(made)
        assert made.net["a"].open_now == 0
        assert await call(made, "b")


async def test_while_a_lost_server_is_still_stopping_callers_wait_without_spinning() -> None:
    async with bench() as made:
        made.apply(server("a"))
        await call(made)
        gate = anyio.Event()
        made.net["a"].closing = gate.wait
        made.net["a"].die()
        await settle()
        async with anyio.create_task_group() as callers:
            callers.start_soon(call, made)
            await settle()
            quiet = is_quiet()
            gate.set()
        assert quiet
        assert made.net["a"].opened == 2


def is_quiet() -> bool:
    """True if the event loop is idle. A spinning task always leaves a ready callback in the loop."""
    loop = asyncio.get_running_loop()
    ready = loop._ready  # type: ignore[attr-defined]
    return not ready


async def test_sign_in_wanted_is_told_to_every_call_and_not_tried_again() -> None:
    async with bench() as made:
        made.apply(server("a"))
        made.net["a"].versions = ()
        made.net["a"].replies["initialize"] = made.net["a"].replies["server/discover"] = refuse(INTERNAL_ERROR)
        made.net["a"].refusal.status = 401
        for _ in range(3):
            with pytest.raises(SignInWantedError):
                await call(made)
        assert made.state("a") is State.NEEDS_AUTH
        assert made.net["a"].opened == 1
        made.net["a"].replies.clear()
        made.net["a"].versions = ("2025-11-25",)
        await made.pool.reconnect(made.pool.find("a"))
        assert made.state("a") is State.CONNECTED


def refuse(code: int, words: str = "no") -> Any:
    async def reply(params: dict[str, Any]) -> dict[str, Any]:
        raise RpcError(code, words)

    return reply


def always(result: dict[str, Any]) -> Any:
    async def reply(params: dict[str, Any]) -> dict[str, Any]:
        return result

    return reply


async def test_a_sign_in_that_becomes_wanted_later_is_shown() -> None:
    async with bench() as made:
        made.apply(server("a"))
        await call(made)
        made.net["a"].refusal.status = 401
        made.net["a"].die()
        await made.states("a", State.NEEDS_AUTH)
        with pytest.raises(SignInWantedError):
            await call(made)


@pytest.mark.requirement("var-missing")
async def test_a_missing_variable_is_named_before_anything_is_opened() -> None:
    async with bench() as made:
        made.apply(server("a", env={"T": "${NOT_SET_ANYWHERE}"}))
        with pytest.raises(ServerError, match=r"a.*NOT_SET_ANYWHERE"):
            await call(made)
        assert made.net["a"].opened == 0
        assert MissingVariableError.code == "missing_variable"


async def test_a_disabled_server_is_not_started() -> None:
    async with bench() as made:
        made.apply(server("a", disabled=True, lifecycle="keep-alive"))
        await settle()
        with pytest.raises(ServerDisabledError):
            await call(made)
        assert made.net["a"].opened == 0


# -- idleness --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("life-idle-close")
async def test_an_idle_server_is_closed_after_its_timeout_and_started_by_the_next_call() -> None:
    async with bench() as made:
        made.apply(server("a"))
        await call(made)
        await made.clock.pass_(599)
        assert made.state("a") is State.CONNECTED
        await made.clock.pass_(2)
        assert made.state("a") is State.IDLE
        assert made.net["a"].open_now == 0
        assert await call(made)
        assert made.net["a"].opened == 2


@pytest.mark.requirement("life-idle-close")
async def test_a_long_call_is_neither_cut_nor_followed_by_a_close() -> None:
    async with bench() as made:
        made.apply(server("a"))
        answers: list[dict[str, Any]] = []

        async def long() -> None:
            answers.append(await call(made, tool="hold", key="x"))

        async with anyio.create_task_group() as callers:
            callers.start_soon(long)
            await made.net["a"].heard_of("held")
            await made.clock.pass_(900)
            assert made.state("a") is State.CONNECTED
            made.net["a"]._held["x"].set()
        assert answers == [text("released x")]
        await made.clock.pass_(590)
        assert made.state("a") is State.CONNECTED
        await made.clock.pass_(1200)
        assert made.state("a") is State.IDLE
        assert made.net["a"].opened == 1


@pytest.mark.requirement("life-idle-close")
async def test_use_puts_the_close_off() -> None:
    async with bench() as made:
        made.apply(server("a", idle_timeout=1))
        for _ in range(5):
            await call(made)
            await made.clock.pass_(50)
        assert made.net["a"].opened == 1
        await made.clock.pass_(61)
        assert made.state("a") is State.IDLE


async def test_a_call_that_comes_while_an_idle_server_is_closed_gets_a_new_one() -> None:
    async with bench() as made:
        made.apply(server("a", idle_timeout=1))
        await call(made)
        gate = anyio.Event()
        made.net["a"].closing = gate.wait
        await made.clock.pass_(61)
        during = (made.state("a"), made.pool.find("a").live)
        async with anyio.create_task_group() as callers:
            callers.start_soon(call, made)
            await settle()
            opened = made.net["a"].opened
            gate.set()
        assert during == (State.STOPPING, None)
        assert opened == 1
        assert made.net["a"].opened == 2


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param({"settings": Settings(idle_timeout=0)}, {"settings": Settings(idle_timeout=1)}, id="never-to-1"),
        pytest.param({"settings": Settings(idle_timeout=60)}, {"settings": Settings(idle_timeout=1)}, id="60-to-1"),
        pytest.param({"idle_timeout": 60.0}, {"idle_timeout": 1.0}, id="own-60-to-1"),
    ],
)
async def test_another_idle_timeout_holds_at_once(first: dict[str, Any], then: dict[str, Any]) -> None:
    async with bench() as made:
        for more in (first, then):
            own = {name: value for name, value in more.items() if name != "settings"}
            made.apply(server("a", **own), settings=more.get("settings"))
            if more is first:
                await call(made)
                await made.clock.pass_(30)
        await made.clock.pass_(31)
        assert made.state("a") is State.IDLE


@pytest.mark.requirement("life-eager")
async def test_an_eager_server_is_closed_only_when_told_so() -> None:
    async with bench() as made:
        made.apply(server("a", lifecycle="eager"), server("b", lifecycle="eager", idle_timeout=5))
        await made.states("a", State.CONNECTED)
        await made.states("b", State.CONNECTED)
        await made.clock.pass_(301)
        assert made.state("b") is State.IDLE
        await made.clock.pass_(86_400)
        assert made.state("a") is State.CONNECTED
        assert made.net["b"].opened == 1


# -- health ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("life-keep-alive")
async def test_only_keep_alive_servers_are_asked_for_a_sign_of_life() -> None:
    async with bench() as made:
        made.apply(server("a", lifecycle="keep-alive"), server("b", lifecycle="eager"))
        await made.states("a", State.CONNECTED)
        await made.states("b", State.CONNECTED)
        for _ in range(3):
            await made.clock.pass_(30)
        assert made.net["a"].methods().count("ping") == 3
        assert "ping" not in made.net["b"].methods()


async def test_a_server_that_knows_no_ping_is_alive() -> None:
    async with bench() as made:
        made.apply(server("a", lifecycle="keep-alive"))
        made.net["a"].replies["ping"] = refuse(METHOD_NOT_FOUND)
        await made.states("a", State.CONNECTED)
        await made.clock.pass_(300)
        assert made.net["a"].opened == 1


async def test_a_busy_server_is_not_asked() -> None:
    async with bench() as made:
        made.apply(server("a", lifecycle="keep-alive"))
        await made.states("a", State.CONNECTED)
        made.pool.find("a").begin()
        await made.clock.pass_(300)
        assert "ping" not in made.net["a"].methods()


async def test_a_2026_server_is_asked_with_discover() -> None:
    async with bench() as made:
        made.hints["a"] = ""
        made.net["a"].modern = True
        made.apply(server("a", lifecycle="keep-alive"))
        await made.states("a", State.CONNECTED)
        before = made.net["a"].methods().count("server/discover")
        await made.clock.pass_(30)
        assert made.net["a"].methods().count("server/discover") == before + 1
        assert "ping" not in made.net["a"].methods()
        assert HEALTH_TIMEOUT_S < 30


# -- lists -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("life-slow-list")
@pytest.mark.parametrize("slow", [True, False], ids=["slow", "failing"])
async def test_a_bad_list_leaves_the_server_connected(slow: bool) -> None:
    async with bench() as made:
        made.wants_offers = True

        async def wait(params: dict[str, Any]) -> dict[str, Any]:
            await anyio.sleep_forever()
            return {}

        made.net["a"].replies["tools/list"] = wait if slow else refuse(INTERNAL_ERROR)
        made.apply(server("a"))
        assert await call(made)
        await settle()
        assert made.state("a") is State.CONNECTED
        assert made.pool.find("a").error is None
        assert all(not offer.tools for _, offer in made.ear.offers)


async def test_a_failed_list_is_an_error_for_who_asked_and_is_told_as_failed() -> None:
    async with bench() as made:
        made.net["a"].replies["tools/list"] = refuse(INTERNAL_ERROR, "broken today")
        made.apply(server("a"))
        with pytest.raises(ServerError, match="broken today"):
            await made.pool.find("a").fetch()
        assert [(offer.tools, offer.failed) for _, offer in made.ear.offers] == [((), {"tools": "broken today"})]


async def test_lists_that_a_sign_out_cuts_short_are_not_told() -> None:
    """Reporting partial lists would hide that the server needs a sign-in."""
    async with bench() as made:

        async def half(params: dict[str, Any]) -> dict[str, Any]:
            if "cursor" not in params:
                return {"tools": [{"name": "x"}], "nextCursor": "more"}
            made.net["a"].refusal.unauthorized = True
            raise RpcError(INTERNAL_ERROR, "a needs a sign-in (HTTP 401)")

        made.net["a"].replies["tools/list"] = half
        made.apply(server("a"))
        with pytest.raises(ServerError):
            await made.pool.find("a").fetch()
        assert made.ear.offers == []


async def test_all_who_wait_for_a_list_that_fails_are_told_so_by_one_request() -> None:
    async with bench() as made:
        asked, answer = anyio.Event(), anyio.Event()

        async def fail(params: dict[str, Any]) -> dict[str, Any]:
            asked.set()
            await answer.wait()
            raise RpcError(INTERNAL_ERROR, "broken today")

        async def fetch() -> None:
            with pytest.raises(ServerError, match="broken today"):
                await made.pool.find("a").fetch()

        made.net["a"].replies["tools/list"] = fail
        made.apply(server("a"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fetch)
            await asked.wait()
            tasks.start_soon(fetch)
            tasks.start_soon(fetch)
            await settle()
            answer.set()
        assert made.net["a"].methods().count("tools/list") == 1
        await fetch()  # a later caller sends a new request
        assert made.net["a"].methods().count("tools/list") == 2


async def test_only_announced_lists_are_asked_for_and_once() -> None:
    async with bench() as made:
        made.wants_offers = True
        made.net["a"].page = 100
        made.apply(server("a"))
        await made.pool.find("a").fetch()
        await settle()
        assert [method for method in made.net["a"].methods() if method.endswith("/list")] == ["tools/list"]


async def test_a_server_that_ended_by_itself_is_asked_for_its_lists_at_its_next_start() -> None:
    """The server may have been updated. A server that ends repeatedly is not queried at each start."""
    async with bench() as made:
        made.apply(server("a"))
        read = []
        for pause_s in (0.0, 1.0, 1.0, DOUBT_AGAIN_S, 1.0):
            await made.clock.pass_(pause_s)
            assert await call(made)
            await settle()
            read.append(made.net["a"].methods().count("tools/list"))
            made.net["a"].die()
            await settle()
        assert read == [0, 3, 3, 6, 6]  # each read takes three pages
        await made.pool.find("a").ensure()
        await made.pool.find("a").close()
        assert await call(made)
        await settle()
        assert made.net["a"].methods().count("tools/list") == 6


async def test_a_closed_connection_keeps_nothing_of_what_served_it() -> None:
    async with bench() as made:
        made.apply(server("a"))
        assert await call(made)
        connection = made.pool.find("a")
        duties = weakref.ref(connection._maintenance)
        await connection.close()
        gc.collect()
        assert duties() is None


async def test_all_pages_are_read() -> None:
    async with bench() as made:
        made.apply(server("a"))
        offer = await made.pool.find("a").fetch()
        assert [tool["name"] for tool in offer.tools] == [tool["name"] for tool in made.net["a"].tools]
        assert made.net["a"].methods().count("tools/list") == 3


async def test_pages_that_never_end_are_cut() -> None:
    async with bench() as made:
        made.net["a"].replies["tools/list"] = always({"tools": [{"name": "x"}], "nextCursor": "again"})
        made.apply(server("a"))
        offer = await made.pool.find("a").fetch()
        assert len(offer.tools) == 2


async def test_a_list_that_changed_is_read_again_once_for_many_announcements() -> None:
    async with bench() as made:
        made.net["a"].page = 100
        made.apply(server("a"))
        await made.pool.find("a").fetch()
        for _ in range(5):
            await call(made, tool="notify", method="notifications/tools/list_changed")
        await made.net["a"].heard_of("tools/list", times=2)
        await anyio.sleep(0.2)
        assert made.net["a"].methods().count("tools/list") == 2
        assert made.ear.told == []


async def test_a_change_by_the_call_that_starts_the_server_is_not_one_of_its_start() -> None:
    async with bench() as made:
        made.wants_offers = True

        async def wait(params: dict[str, Any]) -> dict[str, Any]:
            await anyio.sleep_forever()
            return {}

        made.net["a"].replies["tools/list"] = wait
        made.apply(server("a"))
        await call(made, tool="notify", method="notifications/tools/list_changed")
        assert not made.pool.find("a").changes_at_start


async def test_other_notifications_go_to_the_observer_with_every_field() -> None:
    async with bench() as made:
        made.apply(server("a"))
        params = {"level": "info", "data": {"x": [1]}, "x-unknown": True}
        await call(made, tool="notify", method="notifications/message", params=params)
        assert made.ear.told == [("a", "notifications/message", params)]


# -- eras ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("transport-both-eras")
@pytest.mark.parametrize(
    ("hint", "modern", "versions", "asked", "protocol"),
    [
        ("", False, ("2024-11-05",), ["server/discover", "initialize"], "2024-11-05"),
        ("", False, ("2025-11-25",), ["server/discover", "initialize"], "2025-11-25"),
        ("", True, (), ["server/discover"], MODERN),
        ("", True, ("2025-11-25",), ["server/discover"], MODERN),
        ("2025-06-18", False, ("2025-06-18",), ["initialize"], "2025-06-18"),
        ("2025-06-18", True, ("2025-06-18",), ["initialize"], "2025-06-18"),
        ("2025-06-18", True, (), ["initialize", "server/discover"], MODERN),
        (MODERN, True, (), ["server/discover"], MODERN),
        (MODERN, False, ("2025-11-25",), ["server/discover", "initialize"], "2025-11-25"),
    ],
)
async def test_the_era_is_found_and_the_hint_saves_the_probe(
    hint: str, modern: bool, versions: tuple[str, ...], asked: list[str], protocol: str
) -> None:
    async with bench() as made:
        made.hints["a"] = hint
        made.net["a"].modern, made.net["a"].versions = modern, versions
        made.apply(server("a"))
        live = await made.pool.find("a").ensure()
        assert live.peer.protocol == protocol
        assert [m for m in made.net["a"].methods() if m in ("server/discover", "initialize")] == asked
        assert made.net["a"].channel is not None
        assert made.net["a"].channel.protocol == protocol
        result = await call(made)
        stamped = "io.modelcontextprotocol/protocolVersion" in result["structuredContent"]["got"].get("_meta", {})
        assert stamped == (protocol == MODERN)


@pytest.mark.requirement("transport-both-eras")
async def test_a_server_that_dies_of_the_probe_is_started_again_and_initialized() -> None:
    async with bench() as made:
        made.hints["a"] = ""

        async def die(params: dict[str, Any]) -> dict[str, Any]:
            made.net["a"].die()
            raise RpcError(INTERNAL_ERROR, "dead")

        made.net["a"].replies["server/discover"] = die
        made.apply(server("a"))
        live = await made.pool.find("a").ensure()
        assert live.peer.protocol == "2025-11-25"
        assert made.net["a"].opened == 2


async def test_a_known_server_that_dies_at_the_handshake_is_not_started_twice() -> None:
    async with bench() as made:

        async def die(params: dict[str, Any]) -> dict[str, Any]:
            made.net["a"].die()
            raise RpcError(INTERNAL_ERROR, "dead")

        made.net["a"].replies["initialize"] = die
        made.apply(server("a"))
        with pytest.raises(ConnectFailedError, match="last words"):
            await call(made)
        assert made.net["a"].opened == 1


async def test_a_server_of_no_revision_that_we_speak_is_refused_with_its_name() -> None:
    async with bench() as made:
        made.net["a"].replies["initialize"] = always({"protocolVersion": "1999-01-01", "capabilities": {}})
        made.apply(server("a"))
        with pytest.raises(ConnectFailedError, match=r"a.*1999-01-01"):
            await call(made)


# -- closing and changing --------------------------------------------------------------------------------------------


async def test_closing_while_connecting_leaves_nothing_and_tells_who_waits() -> None:
    async with bench() as made:
        made.apply(server("a"))
        made.net["a"].before = forever
        errors: list[str] = []

        async def one() -> None:
            try:
                await call(made)
            except ServerError as error:
                errors.append(str(error))

        async with anyio.create_task_group() as callers:
            callers.start_soon(one)
            await settle()
            await made.pool.find("a").close()
        assert errors
        assert "stopped while it was starting" in errors[0]
        assert made.net["a"].open_now == 0
        assert made.state("a") is State.IDLE


async def test_closing_answers_the_calls_under_way_with_one_error() -> None:
    async with bench() as made:
        made.apply(server("a"))
        live = await made.pool.find("a").ensure()
        waiting = Awaiting()
        live.channel.relay("tools/call", {"name": "hold", "arguments": {"key": "x"}}, waiting)
        await made.net["a"].heard_of("held")
        await made.pool.find("a").close()
        assert (await waiting.message())["error"]["code"] == CONNECTION_CLOSED
        assert waiting.answers == 1
