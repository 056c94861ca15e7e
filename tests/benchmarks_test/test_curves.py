"""Growth curves: the exponent, and the verdicts "worse than linear" and "not flat"."""

from __future__ import annotations

import pytest

from tests.benchmarks.curves import Curve, slope

SIZES = (10, 30, 100, 300, 1000, 3000, 10_000)


def curve(cost: dict[int, float], flat: bool = False) -> Curve:
    return Curve("tools", "list", "ms", cost, flat)


def test_the_slope_is_the_power_of_the_size() -> None:
    for power in (0.0, 0.5, 1.0, 2.0):
        assert slope({size: 3 * size**power for size in SIZES}) == pytest.approx(power)


def test_a_slope_wants_two_sizes() -> None:
    with pytest.raises(ValueError, match="two sizes"):
        slope({10: 1.0})


def test_a_fixed_cost_hides_no_growth() -> None:
    squared = curve({size: 50 + (size / 100) ** 2 for size in SIZES})
    assert squared.exponent == pytest.approx(2.0, abs=0.01)
    assert not squared.holds
    assert squared.verdict == "WORSE THAN LINEAR"


def test_linear_and_n_log_n_with_a_fixed_cost_hold() -> None:
    assert curve({size: 5 + 0.02 * size for size in SIZES}).holds
    assert curve({size: 25 + 0.001 * size * (size**0.1) for size in SIZES}).holds
    assert not curve({size: 25 + 0.0004 * size**1.4 for size in SIZES}).holds
    assert curve(dict.fromkeys(SIZES, 20.0)).verdict == "at most linear"


def test_what_should_be_flat_is_measured_against_the_smallest_size() -> None:
    assert curve({10: 1.0, 10_000: 1.2}, flat=True).verdict == "flat"
    rising = curve({10: 1.0, 10_000: 1.5}, flat=True)
    assert rising.verdict == "NOT FLAT: 1.50 times"
    assert not rising.holds


def test_two_sizes_are_enough_for_a_quick_run() -> None:
    assert curve({10: 1.0, 100: 10.0}).exponent == pytest.approx(1.0)


def test_a_curve_comes_back_from_its_json() -> None:
    made = curve({10: 1.5, 100: 2.5}, flat=True)
    assert Curve.from_json(made.as_json()) == made
