"""Tests that sleep and network changes are noticed and reported once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.fixtures.clock import FakeClock, settle
from trayapp.backends.wake.watch import (
    GAP_S,
    ROUTE_LOOK_S,
    ROUTE_WAIT_S,
    TELL_DELAY_S,
    TICK_S,
    ClockReading,
    OnWake,
    Witness,
    await_route,
    has_route,
    missed_seconds,
    suspended_s,
    watch_wake,
)

HOUR = 3600.0
START = ClockReading(1_700_000_000.0, 500.0, 0.0)

# name, wall-clock seconds, running seconds, suspended seconds, expected sleep
GAPS: list[tuple[str, float, float, float, float]] = [
    ("nothing", TICK_S, TICK_S, 0, 0),
    ("8 h asleep, counted", 8 * HOUR + TICK_S, TICK_S, 8 * HOUR, 8 * HOUR),
    ("8 h asleep, not counted", 8 * HOUR + TICK_S, TICK_S, 0, 8 * HOUR),
    ("8 h asleep, the running clock went on", 8 * HOUR, 8 * HOUR, 0, 8 * HOUR - TICK_S),
    ("8 h asleep while the clock was set back", -HOUR, TICK_S, 8 * HOUR, 8 * HOUR),
    ("clock set 1 h back", TICK_S - HOUR, TICK_S, 0, 0),
    ("clock set 8 h forward", TICK_S + 8 * HOUR, TICK_S, 0, 8 * HOUR),
    ("clock corrected forward", TICK_S + 0.5, TICK_S, 0, 0),
    ("clock corrected by just the limit", TICK_S + GAP_S, TICK_S, 0, 0),
    ("clock corrected back", TICK_S - 128.0, TICK_S, 0, 0),
    ("clock slewed", TICK_S * 1.0005, TICK_S, 0, 0),
    ("stopped by a signal for 1 min", TICK_S + 60, TICK_S + 60, 0, 60),
    ("a tick that came late", TICK_S + 1.5, TICK_S + 1.5, 0, 0),
    ("5 s asleep", TICK_S + 5, TICK_S, 5, 5),
    ("1 s asleep", TICK_S + 1, TICK_S, 1, 0),
]


@pytest.mark.requirement("wake-noticed")
@pytest.mark.parametrize(("wall", "ran", "suspended", "expected"), [row[1:] for row in GAPS], ids=[r[0] for r in GAPS])
def test_a_gap_of_the_clocks_is_a_sleep(wall: float, ran: float, suspended: float, expected: float) -> None:
    after = ClockReading(START.wall + wall, START.ran + ran, START.suspended + suspended)
    assert missed_seconds(START, after) == pytest.approx(expected)


def test_the_machine_tells_how_long_it_was_suspended() -> None:
    first = suspended_s()
    assert 0 <= first <= suspended_s() + 0.001


class Machine(FakeClock):
    """The clock of a machine that can sleep. `told` holds the reasons passed to on_wake."""

    def __init__(self) -> None:
        super().__init__()
        self.wall_ahead = 0.0
        self.suspended = 0.0
        self.told: list[str] = []
        self.note: OnWake = lambda reason: None  # replaced when watch_wake starts the witness

    def time(self) -> float:
        return super().time() + self.wall_ahead

    async def witness(self, note: OnWake) -> None:
        self.note = note
        await anyio.sleep_forever()


@asynccontextmanager
async def watching(*more: Witness) -> AsyncIterator[Machine]:
    machine = Machine()
    async with anyio.create_task_group() as tasks:
        witnesses = [machine.witness, *more]
        tasks.start_soon(watch_wake, machine.told.append, machine, witnesses, lambda: machine.suspended)
        await settle()
        yield machine
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
@pytest.mark.requirement("wake-noticed")
async def test_a_sleep_is_told_within_a_tick_and_the_delay() -> None:
    async with watching() as machine:
        machine.wall_ahead = machine.suspended = 8 * HOUR
        await machine.pass_(TICK_S + TELL_DELAY_S)
        assert machine.told == ["the machine slept for 28800 s"]
        await machine.pass_(10 * TICK_S)
        assert len(machine.told) == 1


@pytest.mark.anyio
async def test_a_quiet_hour_tells_nothing_and_ticks_every_five_seconds() -> None:
    async with watching() as machine:
        await machine.pass_(HOUR)
        machine.wall_ahead = -HOUR
        await machine.pass_(TICK_S * 2)
        assert machine.told == []
        assert set(machine.slept) == {TICK_S}


@pytest.mark.anyio
async def test_many_signs_are_told_once_after_the_delay() -> None:
    async with watching() as machine:
        for reason in ("the network changed", "a network is up", "the network changed"):
            machine.note(reason)
            await machine.pass_(0.4)
        assert machine.told == []
        await machine.pass_(TELL_DELAY_S)
        assert machine.told == ["the network changed, a network is up"]
        machine.note("the network changed")
        await machine.pass_(TELL_DELAY_S)
        assert machine.told[1:] == ["the network changed"]


@pytest.mark.anyio
async def test_a_witness_that_fails_or_is_absent_silences_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(note: OnWake) -> None:
        raise ZeroDivisionError("broken on purpose")

    async def absent(note: OnWake) -> None:
        return

    async with watching(broken, absent) as machine:
        machine.note("the network changed")
        machine.suspended = HOUR
        await machine.pass_(TICK_S + TELL_DELAY_S)
        assert machine.told == ["the network changed", "the machine slept for 3600 s"]
    assert "broken on purpose" in caplog.text


def test_asking_for_a_route_sends_nothing_and_does_not_fail() -> None:
    assert has_route() in (True, False)


@pytest.mark.anyio
async def test_with_a_route_nobody_waits() -> None:
    clock = FakeClock()
    await await_route(clock, lambda: True)
    assert clock.slept == []


@pytest.mark.anyio
@pytest.mark.parametrize(("comes_after", "waited"), [(3.0, 3.0), (1000.0, ROUTE_WAIT_S)])
async def test_a_route_is_awaited_for_ten_seconds_at_most(comes_after: float, waited: float) -> None:
    clock = FakeClock()
    start = clock.now()
    ended: list[float] = []

    async def wait() -> None:
        await await_route(clock, lambda: clock.now() - start >= comes_after)
        ended.append(clock.now() - start)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await settle()
        await clock.pass_(60)
    assert ended == [pytest.approx(waited, abs=ROUTE_LOOK_S)]
