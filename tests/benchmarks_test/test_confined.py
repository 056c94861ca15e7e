"""The benchmark of confinement, run once with real confinement."""

from __future__ import annotations

import pytest

from tests.benchmarks.confined import WAYS, measure_confined
from tests.benchmarks.figures import Figure
from tests.tools import missing


@pytest.mark.timeout(120)
def test_a_start_and_a_call_are_measured_confined_and_not() -> None:
    way, *figures = list(measure_confined(1))
    if not figures:
        missing(str(way))
    for figure in figures:
        assert isinstance(figure, Figure)
        assert list(figure.rounds) == list(WAYS)
        assert all(len(values) == 1 and values[0] > 0 for values in figure.rounds.values())
