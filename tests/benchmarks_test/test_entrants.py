"""Tests of peers that break: the reason is recorded and the others continue. A peer that cannot start is given up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.benchmarks.client import BrokenError
from tests.benchmarks.contest import boxed
from tests.benchmarks.entrants import CHANCES, Entrant, Standing, entrants, standing, turns, why
from tests.benchmarks.figures import Figure
from tests.benchmarks.peers import Reach
from tests.benchmarks.workloads import Workload, trivial


class Gate:
    """A peer that may be broken. It counts its starts and ends."""

    def __init__(self, broken: bool = False) -> None:
        self.broken = broken
        self.started = self.ended = 0

    @contextmanager
    def open(self, work: Workload, folder: Path) -> Iterator[Reach]:
        self.started += 1
        if self.broken:
            raise BrokenError("does not listen")
        try:
            yield Reach("gate", "http", (), {}, "", lambda server, tool: tool)
        finally:
            self.ended += 1


def entered(tmp_path: Path, **gates: Gate) -> tuple[list[Entrant], Workload]:
    return [Entrant(name, "http", gate.open) for name, gate in gates.items()], trivial(tmp_path / "lists")


def test_what_breaks_has_a_reason_is_ended_and_comes_back_for_the_next_figure(tmp_path: Path) -> None:
    good, bad = Gate(), Gate()
    those, work = entered(tmp_path, good=good, bad=bad)

    def measure(one: Standing) -> dict[str, float]:
        one.reach()
        if one.name == "bad" and bad.started == 1:
            raise BrokenError("hangs")
        return {"call": 1.0}

    with standing(those, work, tmp_path) as both:
        first, second = Figure("call", "ms"), Figure("call", "ms")
        turns(both, (first,), 2, measure)
        turns(both, (second,), 1, measure)
    assert (first.rounds, first.broken) == ({"good": [1.0] * 2}, {"bad": "hangs"})
    assert (second.rounds, second.broken) == ({"good": [1.0], "bad": [1.0]}, {})
    assert (good.started, good.ended, bad.started, bad.ended) == (1, 1, 2, 2)


def test_what_cannot_be_started_is_given_up_with_its_reason(tmp_path: Path) -> None:
    gate = Gate(broken=True)
    those, work = entered(tmp_path, gate=gate)
    figures = [Figure(f"{number}", "ms") for number in range(CHANCES + 2)]
    with standing(those, work, tmp_path) as all_of_them:
        for figure in figures:
            turns(all_of_them, (figure,), 1, lambda one: {"0": float(bool(one.reach()))})
    assert [figure.broken for figure in figures] == [{"gate": "does not listen"}] * len(figures)
    assert gate.started == CHANCES


def test_without_ours_or_the_direct_way_there_is_nothing_to_compare_with(tmp_path: Path) -> None:
    those, work = entered(tmp_path, direct=Gate(broken=True))
    with standing(those, work, tmp_path) as all_of_them, pytest.raises(BrokenError, match="listen"):
        turns(all_of_them, (Figure("call", "ms"),), 1, lambda one: {"call": float(bool(one.reach()))})


def test_the_direct_way_is_the_base() -> None:
    assert [one.name for one in entrants(with_peers=False)] == ["direct", "ours", "ours, HTTP"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("hangs", "hangs"),
        ('no result: {"error": {"code": -1, "message": "key is  not known"}}', "key is not known"),
        ('no result: {"content": [{"type": "text", "text": "too \\"large\\""}]}', 'too \\"large\\"'),
        ("", "BrokenError"),
        ("x" * 999, "x" * 160),
    ],
)
def test_a_reason_is_a_few_words(said: str, reason: str) -> None:
    assert why(BrokenError(said)) == reason


@pytest.mark.parametrize(("pace_s", "calls"), [(0.0001, 1000), (0.002, 150), (1.0, 5)])
def test_a_slow_one_has_fewer_calls(pace_s: float, calls: int) -> None:
    assert boxed(0.3, pace_s, 5, 1000) == calls
