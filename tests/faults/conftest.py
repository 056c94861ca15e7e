"""A gateway in a home of its own, of which nothing is left at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway
from tests.faults.world import stop_all
from tests.patience import stretched

HERE = Path(__file__).parent
HUNG_S = 60.0  # as everywhere, on a quiet machine
HUNG_MOST_S = 115.0  # pytest gives the whole run up after 120


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """These tests start dozens of processes each: a busy machine is given its time."""
    limit_s = min(HUNG_MOST_S, stretched(HUNG_S))
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(limit_s))


@pytest.fixture
def gateway(home: Path) -> Iterator[Gateway]:
    """Yield a gateway that is not started yet. At the end no process of that home may be left, no matter who started
    it.
    """
    made = Gateway(home)
    yield made
    stop_all(made)


@pytest.fixture
def forked(gateway: Gateway) -> None:
    """Start that gateway in a fork: for files of many tests that are not about a start, a limit or a signal of it."""
    gateway.forked = True
