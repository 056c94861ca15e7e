"""The table of figures as text."""

from __future__ import annotations

import pytest

from tests.benchmarks.figures import Figure, Target
from tests.benchmarks.table import number, table, wanted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.000"),
        (0.0514, "0.051"),
        (-0.25, "-0.250"),
        (3.364, "3.36"),
        (15.78, "15.8"),
        (221, "221"),
        (43892.4, "43,892"),
    ],
)
def test_numbers_have_three_digits_that_count(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (Target("added", 0.25), "added <= 0.250"),
        (Target("ratio", 2), "ratio <= 2.00"),
        (Target("value", 30_000, at_least=True), ">= 30,000"),
    ],
)
def test_a_target_in_words(target: Target, text: str) -> None:
    assert wanted(target) == text


def test_columns_are_aligned_a_miss_says_by_how_much_and_a_broken_way_why() -> None:
    call = Figure("call", "ms", {"direct": [0.1], "ours": [0.4]}, Target("added", 0.25))
    idle = Figure("idle", "%", {"ours": [0.05]}, Target("value", 0.5))
    call.fail("peer", "lost 3 answers")
    assert table([call, idle]).splitlines() == [
        "figure    way     median  rounds           added  ratio  target",
        "call, ms  direct   0.100  0.100 .. 0.100",
        "          ours     0.400  0.400 .. 0.400  +0.300   4.00  added <= 0.250  MISSED by 20%",
        "          peer                                                           broken: lost 3 answers",
        "idle, %   ours     0.050  0.050 .. 0.050                 <= 0.500        met",
    ]
