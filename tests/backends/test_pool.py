"""Tests of the server pool: automatic starts, concurrency, retries and changes of servers.yaml."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from tests.backends.test_connection import call, forever, refuse, refused
from tests.backends.world import bench, server
from tests.fixtures.clock import settle
from trayapp.backends.pool import AT_ONCE
from trayapp.model.config import ServerConfig, ToolSwitch
from trayapp.model.errors import ConnectFailedError, ServerError, ServerNotFoundError, SignInWantedError
from trayapp.model.lifecycle import State
from trayapp.wire.messages import INTERNAL_ERROR

pytestmark = pytest.mark.anyio


def test_a_lookup_of_a_server_that_is_not_there_names_the_others() -> None:
    async def main() -> None:
        async with bench() as made:
            made.apply(server("a"), server("b"))
            with pytest.raises(ServerNotFoundError, match=r"nope.*a, b"):
                made.pool.find("nope")

    anyio.run(main)


# -- automatic starts ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("life-eager")
async def test_what_starts_by_itself_is_eager_and_keep_alive() -> None:
    async with bench() as made:
        kinds = ("lazy", "eager", "keep-alive", "lazy-keep-alive")
        made.apply(*(server(kind, lifecycle=kind) for kind in kinds))
        await settle()
        assert {kind: made.net[kind].opened for kind in kinds} == {
            "lazy": 0,
            "eager": 1,
            "keep-alive": 1,
            "lazy-keep-alive": 0,
        }


@pytest.mark.requirement("life-eager")
async def test_at_most_ten_start_at_once() -> None:
    async with bench() as made:
        gates = [made.net[f"s{number}"].hold_start() for number in range(25)]
        made.apply(*(server(f"s{n}", lifecycle="eager" if n % 2 else "keep-alive") for n in range(25)))
        await settle()
        assert made.net.opening_now == AT_ONCE
        for gate in gates:
            gate.set()
            await settle()
        assert made.net.most_opening == AT_ONCE
        assert {made.state(f"s{n}") for n in range(25)} == {State.CONNECTED}


async def test_discovery_asks_everybody_at_most_ten_at_once_and_a_failure_stops_nobody() -> None:
    async with bench() as made:
        made.apply(*(server(f"s{n}") for n in range(25)))
        for n in range(0, 25, 3):
            made.net[f"s{n}"].before = refused
        made.pool.discover([f"s{n}" for n in range(25)])
        await made.pool.settled()
        assert made.net.most_opening <= AT_ONCE
        assert {name for name, _ in made.ear.offers} == {f"s{n}" for n in range(25) if n % 3}
        assert made.net.open_now == 0


async def test_a_failure_is_logged_once_however_often_servers_are_looked_for(caplog: pytest.LogCaptureFixture) -> None:
    """Each save of servers.yaml triggers another discovery of servers that are not known yet."""
    caplog.set_level("INFO")
    async with bench() as made:
        made.apply(server("a"))
        made.net["a"].before = refused
        for _ in range(3):
            made.pool.discover(["a"])
            await made.pool.settled()
        assert len([line for line in caplog.messages if line.startswith("Discovery")]) == 1


async def test_after_discovery_lazy_servers_are_closed_and_the_others_stay() -> None:
    async with bench() as made:
        made.apply(
            server("keep", lifecycle="keep-alive"),
            server("eager", lifecycle="eager"),
            server("lazy"),
            server("later", lifecycle="lazy-keep-alive"),
        )
        made.pool.discover(["keep", "eager", "lazy", "later"])
        await made.pool.settled()
        await settle()
        assert {name for name, _ in made.ear.offers} == {"keep", "eager", "lazy", "later"}
        states = {connection.name: connection.state for connection in made.pool}
        assert states == {
            "keep": State.CONNECTED,
            "eager": State.CONNECTED,
            "lazy": State.IDLE,
            "later": State.IDLE,
        }
        assert made.net["later"].opened == 1


async def test_a_server_that_was_called_during_its_discovery_stays_until_it_is_idle() -> None:
    async with bench() as made:
        gate = made.net["a"].hold("tools/list", {"tools": []})
        made.apply(server("a"))
        made.pool.discover(["a"])
        await made.net["a"].heard_of("tools/list")
        await call(made)
        gate.set()
        await made.pool.settled()
        assert made.state("a") is State.CONNECTED


async def test_a_server_that_is_read_twice_at_once_is_closed_after_both() -> None:
    async with bench() as made:
        gate = made.net["a"].hold("tools/list", {"tools": []})
        made.apply(server("a"))
        connection = made.pool.find("a")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(made.pool.refresh, connection)
            await made.net["a"].heard_of("tools/list")
            tasks.start_soon(made.pool.refresh, connection)
            await settle()
            gate.set()
        assert made.net["a"].opened == 1
        assert made.state("a") is State.IDLE


async def test_one_that_hangs_holds_up_nobody_s_discovery() -> None:
    async with bench() as made:
        made.net["hangs"].before = forever
        made.apply(server("hangs", connect_timeout=3600), server("a"), server("b"))
        made.pool.discover(["hangs", "a", "b"])
        await made.wait(lambda: made.ear.known("a") and made.ear.known("b"))
        assert made.pool.discovering == {"hangs"}


# -- keep-alive ------------------------------------------------------------------------------------------------------


def bare(waits: list[float]) -> list[float]:
    """Return the waits without their jitter."""
    series = (30.0, 60.0, 120.0, 240.0, 300.0)
    return [next(s for s in series if abs(s - wait) <= s * 0.1 + 1e-6) for wait in waits]


@pytest.mark.requirement("life-keep-alive", "life-keep-alive-backoff")
async def test_a_keep_alive_server_that_fails_is_tried_after_30_s_doubling_to_5_min() -> None:
    async with bench() as made:
        made.net["a"].before = refused
        made.apply(server("a", lifecycle="keep-alive"))
        await settle()
        for number in range(1, 7):
            assert made.net["a"].opened == number
            await made.clock.pass_(made.clock.slept[-1])
        assert bare(made.clock.slept[:6]) == [30, 60, 120, 240, 300, 300]


@pytest.mark.requirement("life-keep-alive-backoff")
async def test_a_success_resets_the_waits_and_the_first_reconnect_is_immediate() -> None:
    async with bench() as made:
        made.net["a"].before = refused
        made.apply(server("a", lifecycle="keep-alive"))
        await settle()
        await made.clock.pass_(34)
        await made.clock.pass_(68)
        made.net["a"].before = None
        await made.clock.pass_(135)
        assert made.state("a") is State.CONNECTED
        await made.clock.pass_(31)
        made.clock.slept.clear()
        made.net["a"].before = refused
        made.net["a"].die()
        await settle()
        assert made.state("a") is State.FAILED
        assert bare(made.clock.slept[-1:]) == [30]


@pytest.mark.requirement("life-keep-alive-backoff")
async def test_a_keep_alive_server_that_dies_right_after_its_start_is_not_restarted_in_a_loop() -> None:
    async with bench() as made:
        made.apply(server("a", lifecycle="keep-alive"))
        opened = []
        for _ in range(4):
            await made.states("a", State.CONNECTED)
            made.net["a"].die()
            await settle()
            opened.append(made.net["a"].opened)
            assert made.state("a") is State.FAILED
            await made.clock.pass_(made.clock.slept[-1])
        assert opened == [1, 2, 3, 4]


@pytest.mark.requirement("life-keep-alive")
async def test_a_failed_health_check_reconnects() -> None:
    async with bench() as made:
        made.apply(server("a", lifecycle="keep-alive"))
        await made.states("a", State.CONNECTED)
        made.net["a"].replies["ping"] = refuse(INTERNAL_ERROR, "sick")
        await made.clock.pass_(30)
        assert (State.FAILED) in [state for name, state in made.ear.states if name == "a"]
        assert made.state("a") is State.CONNECTED
        assert made.net["a"].opened == 2


async def test_ten_failed_attempts_are_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with bench() as made:
        made.net["a"].before = refused
        made.apply(server("a", lifecycle="keep-alive"))
        for _ in range(10):
            await made.clock.pass_(331)
        assert made.net["a"].opened >= 10
        warnings = [record for record in caplog.records if record.levelname == "WARNING"]
        assert len(warnings) == 1


@pytest.mark.requirement("life-keep-alive")
async def test_lazy_keep_alive_is_kept_from_its_first_call_on() -> None:
    async with bench() as made:
        made.apply(server("a", lifecycle="lazy-keep-alive"))
        await made.clock.pass_(3600)
        assert made.net["a"].opened == 0
        await call(made)
        await made.clock.pass_(3600)
        assert made.state("a") is State.CONNECTED
        assert made.net["a"].opened == 1
        made.net["a"].die()
        await made.wait(lambda: made.net["a"].opened == 2)
        await made.states("a", State.CONNECTED)


async def test_a_sign_in_is_not_wanted_again_in_the_background() -> None:
    async with bench() as made:
        made.net["a"].replies["initialize"] = made.net["a"].replies["server/discover"] = refuse(INTERNAL_ERROR)
        made.net["a"].refusal.status = 401
        made.apply(server("a", lifecycle="keep-alive"))
        await made.states("a", State.NEEDS_AUTH)
        await made.clock.pass_(86_400)
        assert made.net["a"].opened == 1
        with pytest.raises(SignInWantedError):
            await call(made)
        made.net["a"].replies.clear()
        made.net["a"].refusal.status = None
        await made.pool.reconnect(made.pool.find("a"))
        made.net["a"].die()
        await settle()
        await made.clock.pass_(34)
        assert made.state("a") is State.CONNECTED


async def test_a_keep_alive_server_is_reconnected_by_hand_at_once() -> None:
    async with bench() as made:
        made.net["a"].before = refused
        made.apply(server("a", lifecycle="keep-alive"))
        await settle()
        made.net["a"].before = None
        await made.pool.reconnect(made.pool.find("a"))
        assert made.state("a") is State.CONNECTED
        assert made.net["a"].open_now == 1


# -- changes of servers.yaml -----------------------------------------------------------------------------------------


@pytest.mark.requirement("file-unchanged-run-on")
async def test_untouched_servers_keep_their_connection_and_their_calls() -> None:
    async with bench() as made:
        made.apply(server("a"), server("b"), server("c"))
        kept = await made.pool.find("a").ensure()
        await call(made, "b")
        await call(made, "c")
        answers: list[dict[str, Any]] = []

        async def long() -> None:
            answers.append(await call(made, "a", "hold", key="x"))

        async with anyio.create_task_group() as callers:
            callers.start_soon(long)
            await made.net["a"].heard_of("held")
            tools = {"t": ToolSwitch(enabled=False)}
            made.apply(server("a", tools=tools, idle_timeout=1, line=9), server("b", args=("other",)))
            await settle()
            assert made.pool.find("a").live is kept
            assert made.net["b"].open_now == made.net["c"].open_now == 0
            await call(made, "a", "release", key="x")
        assert answers
        assert await call(made, "b")
        assert made.net["b"].opened == 2
        assert made.pool.get("c") is None


@pytest.mark.parametrize("change", ["removed", "changed"])
async def test_a_server_that_leaves_while_it_connects_leaves_nothing_behind(change: str) -> None:
    async with bench() as made:
        made.net["a"].before = forever
        made.apply(server("a", lifecycle="keep-alive"))
        await settle()
        assert made.net["a"].open_now == 1
        held = made.pool.find("a")
        made.net["a"].before = None
        made.apply(*([server("a", args=("x",))] if change == "changed" else []))
        await settle()
        assert made.net["a"].open_now == 0
        with pytest.raises(ServerError):
            await held.ensure(explicit=True)
        await made.clock.pass_(3600)
        assert made.net["a"].opened == 1


async def test_a_server_that_is_removed_while_it_waits_for_its_turn_is_never_started() -> None:
    async with bench() as made:
        names = [f"s{n}" for n in range(AT_ONCE)]
        for name in names:
            made.net[name].before = forever
        many = [server(name, lifecycle="eager") for name in names]
        made.apply(*many, server("eager", lifecycle="eager"), server("lazy"))
        made.pool.discover(["lazy"])
        await settle()
        made.apply(*many)
        made.apply()
        await settle()
        assert made.net["eager"].opened == made.net["lazy"].opened == 0
        assert made.net.open_now == 0


async def test_a_server_that_changes_while_it_is_discovered_is_discovered_as_it_is_then() -> None:
    async with bench() as made:
        made.net["a"].before = forever
        made.apply(server("a"))
        made.pool.discover(["a"])
        await settle()
        made.net["a"].before = None
        made.apply(server("a", args=("new",)))
        made.pool.discover(["a"])
        await made.pool.settled()
        assert made.ear.known("a")
        assert made.net["a"].open_now == 0


async def test_other_settings_start_no_dropped_eager_server_and_end_no_backoff() -> None:
    async with bench() as made:
        made.net["bad"].before = refused

        def entries(**more: Any) -> list[ServerConfig]:
            return [
                server("eager", lifecycle="eager", idle_timeout=1, **more),
                server("bad", lifecycle="keep-alive", **more),
            ]

        made.apply(*entries())
        await made.states("eager", State.CONNECTED)
        await made.clock.pass_(10)
        made.apply(*entries(tools={"t": ToolSwitch()}))
        await settle()
        assert made.net["bad"].opened == 1
        await made.clock.pass_(55)
        opened = made.net["bad"].opened
        assert made.state("eager") is State.IDLE
        made.apply(*entries(tools={"t": ToolSwitch(enabled=False)}))
        await settle()
        assert made.state("eager") is State.IDLE
        assert made.net["bad"].opened == opened


async def test_a_switch_to_disabled_closes_and_back_makes_available() -> None:
    async with bench() as made:
        made.apply(server("a"), server("k", lifecycle="keep-alive"))
        await call(made)
        made.apply(server("a", disabled=True), server("k", lifecycle="keep-alive", disabled=True))
        await made.states("a", State.DISABLED)
        await made.states("k", State.DISABLED)
        await made.clock.pass_(3600)
        assert made.net.open_now == 0
        made.apply(server("a"), server("k", lifecycle="keep-alive"))
        await made.states("a", State.IDLE)
        await made.states("k", State.CONNECTED)
        assert await call(made)


@pytest.mark.parametrize("flips", [2, 3])
async def test_switching_to_and_fro_while_it_closes_ends_as_the_file_says(flips: int) -> None:
    async with bench() as made:
        made.apply(server("a"))
        await call(made)
        gate = anyio.Event()
        made.net["a"].closing = gate.wait
        for flip in range(flips):
            made.apply(server("a", disabled=flip % 2 == 0))
            await settle()
        gate.set()
        await settle()
        assert made.state("a") is (State.DISABLED if flips % 2 else State.IDLE)


async def test_a_call_that_waits_for_a_close_meets_a_server_switched_off() -> None:
    async with bench() as made:
        made.apply(server("a"))
        await call(made)
        gate = anyio.Event()
        made.net["a"].closing = gate.wait
        connection = made.pool.find("a")
        errors: list[str] = []

        async def late() -> None:
            try:
                await call(made)
            except ServerError as error:
                errors.append(error.code)

        async with anyio.create_task_group() as callers:
            connection.begin_close()
            callers.start_soon(late)
            await settle()
            made.apply(server("a", disabled=True))
            await settle()
            gate.set()
        await settle()
        assert errors == ["server_disabled"]
        assert made.state("a") is State.DISABLED


async def test_a_changed_lifecycle_holds_at_once() -> None:
    async with bench() as made:
        made.apply(server("a"))
        made.apply(server("a", lifecycle="keep-alive"))
        await made.states("a", State.CONNECTED)
        made.apply(server("a", idle_timeout=1))
        await made.clock.pass_(61)
        assert made.state("a") is State.IDLE
        await made.clock.pass_(3600)
        assert made.net["a"].opened == 1


# -- isolation of servers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["offer", "notified", "connected", "failed", "connecting", "stopping", "idle"])
async def test_a_mistake_of_ours_over_one_server_harms_no_other(where: str) -> None:
    async with bench() as made:
        made.wants_offers = True
        made.apply(server("a"), server("b"))
        live = await made.pool.find("b").ensure()
        made.ear.crash = {("a", where)}
        made.pool.discover(["a"])
        await made.pool.settled()
        await call(made)
        await call(made, tool="notify", method="notifications/message")
        await made.pool.find("a").fetch()
        await made.pool.find("a").close()
        made.net["a"].before = refused
        with pytest.raises(ConnectFailedError):
            await call(made)
        made.net["a"].before = None
        assert made.pool.find("b").live is live
        assert await call(made, "b")
        made.ear.crash.clear()
        await made.pool.reconnect(made.pool.find("a"))
        assert await call(made)


async def test_stopping_closes_everybody_and_nothing_starts_afterwards() -> None:
    async with bench() as made:
        made.apply(
            *(server(f"s{n}", lifecycle="keep-alive") for n in range(5)), *(server(f"l{n}") for n in range(AT_ONCE + 5))
        )
        await made.states("s0", State.CONNECTED)
        for n in range(AT_ONCE):
            made.net[f"l{n}"].before = forever
        made.pool.discover([f"l{n}" for n in range(AT_ONCE + 5)])
        await settle()
        await made.pool.stop()
        opened = sum(made.net[connection.name].opened for connection in made.pool)
        await made.clock.pass_(86_400)
        assert made.net.open_now == 0
        assert sum(made.net[connection.name].opened for connection in made.pool) == opened


async def test_reconnecting_an_unreachable_server_says_why() -> None:
    async with bench() as made:
        made.net["a"].before = refused
        made.apply(server("a"))
        with pytest.raises(ConnectFailedError, match="ENOENT"):
            await made.pool.reconnect(made.pool.find("a"))
