"""Percentiles, medians, ratios of pairs and targets."""

from __future__ import annotations

import json
import math

import pytest

from tests.benchmarks.figures import Figure, Target, percentile


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([7], 1, 7),
        ([7], 100, 7),
        ([3, 1, 2], 50, 2),
        ([4, 1, 3, 2], 50, 2),
        (range(1, 101), 99, 99),
        (range(1, 101), 99.5, 100),
        (range(1, 1001), 99, 990),
        (range(1, 51), 99, 50),
        ([5, 5, 5, 9], 75, 5),
    ],
)
def test_a_percentile_is_the_value_of_nearest_rank(values: list[float], percent: float, expected: float) -> None:
    assert percentile(values, percent) == expected


@pytest.mark.parametrize(("values", "percent"), [([], 50), ([1], 0), ([1], 101)])
def test_a_percentile_of_nothing_or_beyond_all_is_refused(values: list[float], percent: float) -> None:
    with pytest.raises(ValueError, match="percent"):
        percentile(values, percent)


def figure(direct: list[float], ours: list[float], target: Target | None = None) -> Figure:
    return Figure("call", "ms", {"direct": direct, "ours": ours}, target)


def test_added_and_ratio_are_medians_of_pairs_and_not_of_all() -> None:
    direct, ours = figure([1, 10, 2], [4, 20, 8]).rows
    assert (direct.value, direct.spread, direct.added, direct.ratio) == (2, (1, 10), None, None)
    assert (ours.value, ours.spread, ours.added, ours.ratio) == (8, (4, 20), 6, 4)


def test_every_way_is_compared_with_the_first() -> None:
    measured = Figure("call", "ms")
    for way, value in (("direct", 2.0), ("ours", 4.0), ("another", 8.0)):
        measured.add(way, value)
    assert [row.ratio for row in measured.rows] == [None, 2, 4]


def test_ways_that_are_not_compared_stand_alone() -> None:
    measured = Figure("start", "ms", {"a": [1], "b": [2]}, compared=False)
    assert [row.ratio for row in measured.rows] == [None, None]


def test_a_lost_round_is_noticed() -> None:
    with pytest.raises(ValueError, match="shorter"):
        _ = figure([1, 2], [1]).rows


def test_a_base_of_nothing_makes_an_endless_ratio() -> None:
    assert figure([0], [1]).rows[1].ratio == math.inf


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (Target("added", 2.0), (True, 0.0)),
        (Target("added", 1.0), (False, 1.0)),
        (Target("ratio", 3.0), (True, 0.0)),
        (Target("ratio", 2.5), (False, pytest.approx(0.2))),
        (Target("value", 2.0), (False, 0.5)),
        (Target("value", 4.0, at_least=True), (False, 0.25)),
        (Target("value", 3.0, at_least=True), (True, 0.0)),
    ],
)
def test_a_target_is_judged_by_its_own_subject(target: Target, expected: tuple[bool, float]) -> None:
    measured = figure([1], [3], target)
    assert measured.judged(measured.rows[1]) == expected


def test_only_ways_of_ours_are_judged() -> None:
    measured = Figure("call", "ms", {"direct": [9], "ours": [1], "ours, -I -S": [9]}, Target("value", 2))
    verdicts = [measured.judged(row) for row in measured.rows]
    assert [verdict and verdict[0] for verdict in verdicts] == [None, True, False]


def test_a_way_that_breaks_has_no_figure_any_more() -> None:
    measured = figure([1, 2], [2])  # ours broke in the second round
    measured.fail("ours", "hangs")
    assert [row.way for row in measured.rows] == ["direct"]
    assert Figure.from_json(measured.as_json()).broken == {"ours": "hangs"}


def test_the_json_form_keeps_every_round() -> None:
    form = json.loads(json.dumps(figure([1, 2], [2, 5], Target("ratio", 2)).as_json()))
    assert form["target"] == {"subject": "ratio", "limit": 2, "at_least": False}
    assert form["ways"][1] == {
        "way": "ours", "median": 3.5, "added": 2, "ratio": 2.25, "met": False, "rounds": [2, 5],
    }  # fmt: skip
