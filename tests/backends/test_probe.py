"""Tests of probing after a sleep or network change: which servers are pinged, dropped, retried or left alone."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import pytest

from tests.backends.test_connection import call, refused
from tests.backends.world import Bench, bench, server
from tests.fixtures.clock import settle
from trayapp.backends.maintenance import PROBE_JITTER_S
from trayapp.model.config import ServerConfig
from trayapp.model.errors import ConnectFailedError
from trayapp.model.lifecycle import RECONNECT_FIRST_S, State
from trayapp.wire.messages import REQUEST_TIMEOUT, RpcError

pytestmark = pytest.mark.anyio

REMOTE = "https://mcp.example.test/mcp"


def silent(made: Bench, name: str, method: str = "ping") -> None:
    """Make requests of `method` to the server time out."""

    async def nothing(params: dict[str, Any]) -> dict[str, Any]:
        raise RpcError(REQUEST_TIMEOUT, f"No answer to {method} within 10 s")

    made.net[name].replies[method] = nothing


async def probed(made: Bench) -> None:
    made.pool.probe()
    await made.clock.pass_(PROBE_JITTER_S)


@pytest.mark.requirement("wake-probe")
async def test_every_live_server_is_asked_once_and_no_other_is_started() -> None:
    async with bench() as made:
        made.apply(server("live"), server("kept", lifecycle="keep-alive"), server("lazy"), server("off", disabled=True))
        await made.pool.find("live").ensure()
        await settle()
        await probed(made)
        asked = {name: made.net[name].methods().count("ping") for name in ("live", "kept", "lazy", "off")}
        assert asked == {"live": 1, "kept": 1, "lazy": 0, "off": 0}
        assert {name: made.net[name].opened for name in asked} == {"live": 1, "kept": 1, "lazy": 0, "off": 0}
        assert made.state("live") is State.CONNECTED


@pytest.mark.requirement("wake-probe")
async def test_a_silent_keep_alive_server_is_reconnected_at_once_even_if_it_was_new() -> None:
    async with bench() as made:
        made.apply(server("kept", lifecycle="keep-alive"))
        await settle()
        await made.clock.pass_(RECONNECT_FIRST_S / 3)
        silent(made, "kept")
        await probed(made)
        await made.states("kept", State.CONNECTED)
        assert made.net["kept"].opened == 2
        assert made.net["kept"].open_now == 1


@pytest.mark.requirement("wake-probe")
async def test_a_silent_lazy_server_is_dropped_and_the_next_call_starts_it() -> None:
    async with bench() as made:
        made.apply(server("lazy"), server("other"))
        await made.pool.find("lazy").ensure()
        await made.pool.find("other").ensure()
        silent(made, "lazy")
        await probed(made)
        assert made.state("lazy") is State.FAILED
        assert "sleep" in str(made.pool.find("lazy").error)
        assert made.net["lazy"].opened == 1
        await made.pool.find("lazy").ensure()  # starts without a backoff
        assert made.state("lazy") is State.CONNECTED
        assert (made.state("other"), made.net["other"].opened) == (State.CONNECTED, 1)


@pytest.mark.requirement("wake-probe")
async def test_a_keep_alive_server_that_waits_for_its_next_try_is_tried_at_once() -> None:
    async with bench() as made:
        made.net["kept"].before = refused
        made.apply(server("kept", lifecycle="keep-alive"))
        await settle()
        assert (made.state("kept"), made.net["kept"].opened) == (State.FAILED, 1)
        made.net["kept"].before = None
        await made.clock.pass_(1.0)
        await probed(made)
        assert (made.state("kept"), made.net["kept"].opened) == (State.CONNECTED, 2)


async def test_a_try_that_fails_after_waking_begins_the_waits_anew() -> None:
    async with bench() as made:
        made.net["kept"].before = refused
        made.apply(server("kept", lifecycle="keep-alive"))
        await made.clock.pass_(RECONNECT_FIRST_S * 4)  # long enough for the waits between retries to grow
        opened = made.net["kept"].opened
        await probed(made)
        assert made.net["kept"].opened == opened + 1
        await made.clock.pass_(RECONNECT_FIRST_S * 1.11)
        assert made.net["kept"].opened == opened + 2


async def test_a_failed_lazy_server_is_left_alone() -> None:
    async with bench() as made:
        made.net["lazy"].before = refused
        made.apply(server("lazy"))
        with pytest.raises(ConnectFailedError):
            await made.pool.find("lazy").ensure()
        await probed(made)
        assert (made.state("lazy"), made.net["lazy"].opened) == (State.FAILED, 1)


@pytest.mark.requirement("wake-probe")
async def test_a_process_that_is_busy_with_a_call_is_not_asked_but_a_busy_address_is() -> None:
    async with bench() as made:
        made.apply(server("busy"), ServerConfig("far", url=REMOTE))
        made.net["far"].kind = "http"
        async with anyio.create_task_group() as tasks:
            for name in ("busy", "far"):
                tasks.start_soon(partial(call, made, name, "hold", key=name))
                await made.net[name].heard_of("held")
            await probed(made)
            assert "ping" not in made.net["busy"].methods()
            assert "ping" in made.net["far"].methods()
            tasks.cancel_scope.cancel()


async def test_a_probe_during_a_probe_asks_nobody_twice() -> None:
    async with bench() as made:
        made.apply(server("a"))
        await made.pool.find("a").ensure()
        made.pool.probe()
        await settle()
        await probed(made)
        assert made.net["a"].methods().count("ping") == 1


async def test_a_connection_that_is_closed_while_it_is_asked_is_not_failed() -> None:
    async with bench() as made:
        made.apply(server("a"))
        await made.pool.find("a").ensure()

        async def never(params: dict[str, Any]) -> dict[str, Any]:
            await anyio.sleep_forever()
            return {}

        made.net["a"].replies["ping"] = never
        await probed(made)
        await made.net["a"].heard_of("ping")
        await made.pool.find("a").close()
        await settle()
        assert made.state("a") is State.IDLE


# -- offline -----------------------------------------------------------------------------------------------------------


def offline(made: Bench) -> anyio.Event:
    """Simulate a missing network route until the returned event is set."""
    made.routed = anyio.Event()
    return made.routed


@pytest.mark.requirement("wake-offline")
async def test_while_there_is_no_route_no_address_is_asked_or_failed_but_processes_are() -> None:
    async with bench() as made:
        made.apply(ServerConfig("far", url=REMOTE, lifecycle="keep-alive"), server("here"))
        made.net["far"].kind = "http"
        await settle()
        await made.pool.find("here").ensure()
        routed = offline(made)
        silent(made, "far")  # requests time out without a network
        await probed(made)
        await made.clock.pass_(60)  # long enough for a health check to be due
        assert (made.state("far"), made.net["far"].opened) == (State.CONNECTED, 1)
        assert "ping" not in made.net["far"].methods()
        assert "ping" in made.net["here"].methods()
        del made.net["far"].replies["ping"]
        routed.set()
        await settle()
        assert "ping" in made.net["far"].methods()
        assert (made.state("far"), made.net["far"].opened) == (State.CONNECTED, 1)


@pytest.mark.requirement("wake-offline")
@pytest.mark.parametrize("lifecycle", ["keep-alive", "eager"])
async def test_a_start_without_a_network_waits_for_it(lifecycle: Any) -> None:
    async with bench() as made:
        routed = offline(made)
        made.net["far"].kind = "http"
        made.apply(ServerConfig("far", url=REMOTE, lifecycle=lifecycle), server("here", lifecycle=lifecycle))
        await settle()
        assert (made.net["far"].opened, made.net["here"].opened) == (0, 1)
        routed.set()
        await made.states("far", State.CONNECTED)
