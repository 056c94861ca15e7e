"""Tests of beats: shared moments for all periodic checks."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.backends.clock import EARLY, SystemClock, beat_after, next_beat


@given(st.floats(0, 1e9), st.floats(0.05, 1e5))
def test_a_beat_is_ahead_by_a_period_at_most(now: float, period_s: float) -> None:
    ahead = beat_after(now, period_s) - now
    assert 0 < ahead <= period_s * (1 + 2 * EARLY)


@pytest.mark.parametrize(
    ("now", "period_s", "expected"),
    [
        (0, 5, 5),
        (4.9, 5, 5),
        (4.9999999, 5, 10),
        (5, 5, 10),
        (1003, 5, 1005),
        (1003, 10, 1010),
        (1000.1, 0.25, 1000.25),
    ],
)
def test_a_beat_is_the_next_multiple_of_its_period(now: float, period_s: float, expected: float) -> None:
    assert beat_after(now, period_s) == pytest.approx(expected)


@pytest.mark.parametrize(("now", "expected"), [(0, 30), (4.9, 30), (5, 35), (1001, 1030)])
def test_who_waits_for_long_waits_until_the_last_beat_within_that_time(now: float, expected: float) -> None:
    assert beat_after(now, 5, 30) == pytest.approx(expected)


@pytest.mark.anyio
@pytest.mark.requirement("idle-quiet")
async def test_who_waits_for_a_beat_is_woken_together_with_all_others() -> None:
    first, second = (asyncio.create_task(work) for work in (next_beat(0.125), SystemClock().beat(0.125)))
    await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
    assert first.done() == second.done() is True


@pytest.mark.anyio
async def test_who_no_longer_waits_leaves_no_timer_behind() -> None:
    waiting = asyncio.create_task(next_beat(3600))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert all(timer.cancelled() for timer in asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]
