"""The timing of broadcasts: soon after a change, but never for more than a tenth of the time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fixtures.clock import FakeClock
from tests.gateway.world import house, server
from trayapp.gateway.services import BROADCAST_DELAY_S, BROADCAST_REST

pytestmark = pytest.mark.anyio


@dataclass
class SlowClock:
    """A clock that is `spent` seconds ahead of `whole`, as if slow work had taken that long."""

    whole: FakeClock
    spent: float = 0.0

    def now(self) -> float:
        return self.whole.now() + self.spent

    def time(self) -> float:
        return self.whole.time() + self.spent

    async def sleep(self, seconds: float) -> None:
        await self.whole.sleep(seconds)

    async def beat(self, period_s: float, within_s: float = 0.0) -> None:
        await self.whole.beat(period_s, within_s)


@pytest.mark.requirement("expose-changes-told")
async def test_telling_that_takes_long_is_followed_by_a_longer_rest(tmp_path: Path) -> None:
    clocks: list[SlowClock] = []

    def slow(whole: FakeClock) -> SlowClock:
        clocks.append(SlowClock(whole))
        return clocks[-1]

    told: list[float] = []
    async with house(tmp_path, slow) as made:
        made.start()
        await made.told()
        cost_s = 1.0

        def watcher() -> None:
            told.append(made.clock.now())
            clocks[0].spent += cost_s

        made.gateway.services.changes.listen(watcher)
        for number in range(40):  # servers appear one by one
            made.apply(*(server(f"s{n}") for n in range(number)))
            await made.clock.pass_(1.0)
        assert len(told) <= 2 + 40 / (cost_s * BROADCAST_REST)
        cost_s = 0.0
        await made.clock.pass_(cost_s + BROADCAST_REST + BROADCAST_DELAY_S)
        before = len(told)
        for number in range(3):
            made.apply(*(server(f"t{n}") for n in range(number)))
            await made.clock.pass_(BROADCAST_REST + BROADCAST_DELAY_S)
        assert len(told) >= before + 2  # after quick broadcasts, the pauses are short again
