"""A gateway in a home of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway, gateway_in


@pytest.fixture
def gateway(home: Path) -> Iterator[Gateway]:
    """Return a gateway that is not started yet."""
    with gateway_in(home, forked=True) as made:
        yield made
