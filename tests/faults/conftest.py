"""A gateway in a home of its own, of which nothing is left at the end. Never here: faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway
from tests.faults.world import stop_all


@pytest.fixture
def gateway(home: Path) -> Iterator[Gateway]:
    """Not started yet. At the end no process of that home may be left, whoever started it."""
    made = Gateway(home)
    yield made
    stop_all(made)
