"""Fixtures of the command line's tests. Never here: fakes (running)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import run_cli


@pytest.fixture
def started(home: Path) -> Iterator[Path]:
    """A home with a gateway in the background."""
    done = run_cli(home, "start", "--detach")
    assert done.returncode == 0, done.stderr
    yield home
    run_cli(home, "stop")
