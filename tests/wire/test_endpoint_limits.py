"""Tests of connections that have not sent their first line: they are limited in number and in time."""

from __future__ import annotations

import anyio
import pytest

from trayapp.wire.endpoint import PLACES_MOST, PendingConnections, places

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("safe-flood")]


async def test_one_too_many_ends_the_oldest() -> None:
    ended = list[int]()
    pending = PendingConnections(3)
    for number in range(5):
        pending.add(number, lambda number=number: ended.append(number))  # type: ignore[misc]
    assert (ended, len(pending)) == ([0, 1], 3)


async def test_one_that_identified_itself_stays() -> None:
    ended = list[int]()
    pending = PendingConnections(2)
    for number in range(9):
        pending.add(number, lambda number=number: ended.append(number))  # type: ignore[misc]
        pending.discard(number)
    assert (ended, len(pending)) == ([], 0)


async def test_one_that_says_nothing_ends_by_itself() -> None:
    ended = anyio.Event()
    pending = PendingConnections(2, 0.01)
    pending.add("one", ended.set)
    with anyio.fail_after(10):
        await ended.wait()
    assert len(pending) == 0


@pytest.mark.parametrize(("descriptors", "room"), [(10, 2), (64, 8), (1024, 128), (1 << 20, PLACES_MOST)])
def test_a_process_with_few_descriptors_has_few_places(descriptors: int, room: int) -> None:
    assert places(descriptors) == room
