"""The fixture for the end-to-end tests: a gateway in its own home."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway, gateway_in


@pytest.fixture
def gateway(home: Path) -> Iterator[Gateway]:
    """Yield a gateway that has not been started yet."""
    with gateway_in(home, forked=True) as made:
        yield made
