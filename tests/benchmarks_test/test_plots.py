"""The plots of a run: their files, and how they show a target."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.benchmarks.curves import Curve
from tests.benchmarks.figures import OURS, Figure, Target
from tests.benchmarks.run import Chapter, Run

MOST = Figure("call", "ms", {"direct": [1.0], OURS: [2.0], "peer": [90.0]}, Target("ratio", 4.0), broken={"b": "gone"})
LEAST = Figure("rate", "calls/s", {OURS: [10.0]}, Target("value", 30, at_least=True))


@pytest.fixture
def plots() -> ModuleType:
    """Import and return the plots module. A top-level import of matplotlib would cost each test process 0.3 s."""
    from tests.benchmarks import plots

    return plots


def test_a_run_has_a_picture_of_targets_of_each_part_with_several_ways_and_of_each_axis(
    plots: ModuleType, tmp_path: Path
) -> None:
    curve = Curve("tools", "list", "ms", {10: 1.0, 100: 9.0})
    run = Run(0.0, "", False, [Chapter("calls", "Calls", [MOST, LEAST]), Chapter("growth", "Growth", [curve])])
    names = {"": ["targets.png"], "calls": ["calls.png"], "growth": ["growth-tools.png"]}
    assert plots.draw(run, tmp_path) == names
    for name in (name for some in names.values() for name in some):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("figure", "part", "said"),
    [
        (MOST, 0.5, "2.00 times the base, wanted at most 4.00"),
        (LEAST, 3.0, "10.0 calls/s, wanted at least 30.0"),
    ],
)
def test_a_target_is_met_up_to_one_part_of_its_limit(plots: ModuleType, figure: Figure, part: float, said: str) -> None:
    row = next(row for row in figure.rows if row.way == OURS)
    assert plots.part_of_limit(figure, row) == part
    assert plots.against_limit(figure, row) == said
