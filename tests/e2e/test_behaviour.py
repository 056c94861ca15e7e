"""The benchmark's rows about failures and questions, for a client of each kind with a server of each kind.

These tests cover the transports. test_matrix covers the revisions' features over stdio, and tests/faults covers
servers' faults.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.benchmarks.backends import KINDS, Backend, Kind, one_of_each, running
from tests.benchmarks.behaviour import hung_rows, of_kind
from tests.benchmarks.doors import Ours, Place
from tests.benchmarks.pairs import Limits
from tests.patience import stretched

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("behaviour-every-transport")]

# The benchmark checks one-second limits on a quiet machine. These tests only check what happens in the end.
PATIENT = Limits(hung=10, death=5, row=25, left=30)
HUNG_S = 60.0  # the usual limit, on a quiet machine
HUNG_MOST_S = 115.0  # pytest ends the whole run after 120 s


@pytest.fixture(scope="module")
def backends(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Backend]]:
    """Yield a server of each kind, all running."""
    made = one_of_each(tmp_path_factory.mktemp("behaviour"))
    with running(made):
        yield made


@pytest.fixture(scope="module")
def place(backends: list[Backend]) -> Iterator[Place]:
    """Yield one gateway for all these servers."""
    with Ours().set(backends) as made:
        yield made


@pytest.mark.timeout(min(HUNG_MOST_S, stretched(HUNG_S)))
@pytest.mark.parametrize("kind", KINDS, ids=str)
async def test_every_row_is_green(place: Place, backends: list[Backend], kind: Kind) -> None:
    rows = await of_kind(Ours(), place, kind, backends, PATIENT)
    assert [row for row in rows if row.verdict != "green"] == []
    assert len(rows) == 8 * len(KINDS)


async def test_servers_that_hang_hold_up_nobody_and_are_said_to_be_connecting(tmp_path: Path) -> None:
    rows = await hung_rows(Ours(), KINDS[0], tmp_path, PATIENT)
    assert [row for row in rows if row.verdict != "green" or "it is connecting" not in row.seen] == []
    assert len(rows) == len(KINDS)
