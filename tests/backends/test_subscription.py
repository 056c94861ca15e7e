"""The subscription to a 2026-07-28 server's change notifications, and the ways in which it ends."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from tests.backends.test_connection import call
from tests.backends.world import Bench, bench, server
from tests.fixtures.clock import settle
from tests.fixtures.odd import until
from trayapp.backends.maintenance import REFETCH_DELAY_S
from trayapp.backends.subscription import ACKNOWLEDGED, AGAIN_MOST_S, AGAIN_S
from trayapp.wire.messages import CONNECTION_CLOSED, METHOD_NOT_FOUND, RpcError

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("subscribe-both-eras")]

LISTEN = "subscriptions/listen"


async def listened(made: Bench, *ends: int | None, calls: int = 1, takes: bool = False) -> None:
    """Start a 2026-07-28 server and make `calls` calls.

    Its listen requests end with `ends` in turn: an error code, or None for a result. The next request stays open.
    If `takes` is True, the server acknowledges each request before ending it.
    """
    left = list(ends)

    async def reply(params: dict[str, Any]) -> dict[str, Any]:
        if not left:
            await anyio.sleep_forever()
        if takes:
            made.pool.find("a").on_notification(ACKNOWLEDGED, {})
        code = left.pop(0)
        if code is not None:
            raise RpcError(code, "as it is")
        return {}

    made.hints["a"] = ""
    made.net["a"].modern = True
    made.net["a"].replies[LISTEN] = reply
    made.apply(server("a"))
    await made.pool.find("a").ensure()
    for _ in range(calls):
        assert await call(made)
    await settle()


def times(made: Bench, method: str) -> int:
    return made.net["a"].methods().count(method)


async def read_again_at_acknowledgement(made: Bench) -> None:
    read = times(made, "tools/list")
    made.pool.find("a").on_notification(ACKNOWLEDGED, {})
    with anyio.fail_after(10):
        while times(made, "tools/list") == read:
            await made.net["a"].something.wait()


@pytest.mark.parametrize("end", [CONNECTION_CLOSED, None], ids=["broke off", "was answered"])
async def test_what_ends_while_the_server_lives_is_asked_again_and_the_lists_are_read_again(end: int | None) -> None:
    """Over HTTP, the only sign of a server's restart is the end of its streams."""
    async with bench() as made:
        await listened(made, end)
        assert times(made, LISTEN) == 1
        await made.clock.pass_(AGAIN_S)
        assert times(made, LISTEN) == 2
        await read_again_at_acknowledgement(made)


async def test_what_ends_again_and_again_is_asked_ever_more_seldom() -> None:
    async with bench() as made:
        await listened(made, *[CONNECTION_CLOSED] * 100)
        await made.clock.pass_(10 * AGAIN_MOST_S)
        assert 10 <= times(made, LISTEN) < 20


async def test_a_server_that_is_started_anew_often_is_asked_as_soon_each_time_since_it_took_the_request() -> None:
    async with bench() as made:
        await listened(made, *[CONNECTION_CLOSED] * 100, takes=True)
        for count in range(1, 10):
            assert times(made, LISTEN) == count
            await made.clock.pass_(AGAIN_S)


async def test_a_server_that_refuses_is_not_asked_again() -> None:
    async with bench() as made:
        await listened(made, METHOD_NOT_FOUND)
        await made.clock.pass_(10 * AGAIN_MOST_S)
        assert times(made, LISTEN) == 1


async def test_the_first_acknowledgement_reads_no_list() -> None:
    async with bench() as made:
        await listened(made, calls=0)
        read = times(made, "tools/list")
        made.pool.find("a").on_notification(ACKNOWLEDGED, {})
        await made.clock.pass_(AGAIN_S)
        assert times(made, "tools/list") == read


async def readings(made: Bench, count: int) -> None:
    """Wait until the lists have been read `count` times, and assert that no further reading follows."""
    await until(lambda: len(made.ear.offers) >= count)
    await anyio.sleep(3 * REFETCH_DELAY_S)
    assert len(made.ear.offers) == count


async def test_lists_that_were_read_before_the_acknowledgement_are_read_again_once() -> None:
    async with bench() as made:
        made.wants_offers = True
        await listened(made, calls=0)
        await readings(made, 1)
        for _ in range(2):
            made.pool.find("a").on_notification(ACKNOWLEDGED, {})
        await readings(made, 2)


async def test_lists_of_a_server_that_acknowledges_at_once_are_read_once() -> None:
    async with bench() as made:
        made.wants_offers = True
        await listened(made, None, calls=0, takes=True)
        await readings(made, 1)


async def test_lists_are_read_again_if_a_call_may_have_changed_them_before_the_server_told() -> None:
    async with bench() as made:
        await listened(made)
        await read_again_at_acknowledgement(made)
