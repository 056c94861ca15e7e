"""A gateway in a temporary home, with a check that none of its processes is left after a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway
from tests.faults.world import stop_all
from tests.patience import stretched

HERE = Path(__file__).parent
HUNG_S = 60.0  # time limit of each test on an idle machine
HUNG_MOST_S = 115.0  # pytest ends the whole run after 120 s


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Set a longer time limit on a busy machine, because each of these tests starts dozens of processes."""
    limit_s = min(HUNG_MOST_S, stretched(HUNG_S))
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(limit_s))


@pytest.fixture
def gateway(home: Path) -> Iterator[Gateway]:
    """Yield a gateway that is not started yet. At the end, stop it and fail if a process of its home remains."""
    made = Gateway(home)
    yield made
    stop_all(made)


@pytest.fixture
def forked(gateway: Gateway) -> None:
    """Start the gateway as a fork, which is faster. Tests of its start, limits or signals must not use this."""
    gateway.forked = True
