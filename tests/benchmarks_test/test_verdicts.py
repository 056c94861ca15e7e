"""The results of behavior tests as tables."""

from __future__ import annotations

from tests.benchmarks.backends import KINDS, STDIO
from tests.benchmarks.behaviour import ORDER, Row, Verdict
from tests.benchmarks.figures import OURS
from tests.benchmarks.verdicts import NOT_OFFERED, green, markdown, reds, timings

NAME = ORDER[0]


def row(verdict: Verdict, way: str = OURS, seconds: float | None = 0.002, name: str = NAME) -> Row:
    return Row(way, name, STDIO, KINDS[1], verdict, "as it was", seconds)


def test_a_cell_says_on_how_many_of_the_offered_transports_it_is_green() -> None:
    assert green([row("green"), row("green"), row("not offered")]) == "2/2"
    assert green([row("green"), row("red")]) == "**1/2**"
    assert green([row("not offered")]) == NOT_OFFERED
    assert green([]) == NOT_OFFERED


def test_each_red_behaviour_of_a_way_is_told_once() -> None:
    assert reds([row("red"), row("red"), row("green", "other")]).splitlines() == [
        f"- {OURS}, {NAME}: as it was ({STDIO} to {KINDS[1]})"
    ]
    assert reds([row("green")]) == ""


def test_times_are_medians_in_milliseconds() -> None:
    table = timings([row("green", seconds=0.001), row("green", seconds=0.003), row("red", seconds=None)])
    assert table.splitlines()[2].startswith(f"| {STDIO} | 2.00 |")


def test_the_report_has_the_ways_then_what_is_red_then_our_times() -> None:
    parts = list(markdown([row("green"), row("red", "other")]))
    assert len(parts) == 3
    assert "| other |" in parts[0]
    assert parts[1].startswith("- other")
