"""The benchmark of starts with many servers runs and measures what it claims to."""

from __future__ import annotations

import sys

import pytest

from tests.benchmarks.exposure import EACH
from tests.benchmarks.growth import figures


@pytest.mark.skipif(sys.platform == "win32", reason="the process that is started is not the gateway itself there")
def test_a_first_run_and_a_later_start_are_measured() -> None:
    found = figures([2 * EACH])
    assert [figure.name for figure in found] == ["40 tools: first run", "40 tools: later start"]
    assert all(row.value > 0 for figure in found for row in figure.rows)
