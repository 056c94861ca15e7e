"""Measurement results: rounds, medians, ratios of pairs, and whether targets are met."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal, Self

RISING = frozenset({"calls/s", "of the queries", "1/rank", "ok"})  # units in which more is better
OURS = "ours"  # prefix of the ways that have targets
Subject = Literal["value", "added", "ratio"]  # the value, the difference from the base, or the ratio to it


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile: the least value that at least `percent` percent of the values do not exceed.

    Raises ValueError if there are no values, or if `percent` is not above 0 and at most 100.
    """
    if not values or not 0 < percent <= 100:
        raise ValueError("a percentile wants values, and a percentage over 0 and at most 100")
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]


@dataclass(frozen=True, slots=True)
class Target:
    """The limit of a figure: a maximum, or a minimum if `at_least` is True."""

    subject: Subject
    limit: float
    at_least: bool = False

    def met(self, value: float) -> bool:
        """True if the value meets the target. A value equal to the limit does."""
        return value >= self.limit if self.at_least else value <= self.limit

    def missed_by(self, value: float) -> float:
        """Return how far the value misses the target, as a fraction of the limit (0.2 is 20 %), or 0 if it is met."""
        return 0.0 if self.met(value) else abs(value - self.limit) / self.limit


@dataclass(frozen=True, slots=True)
class Row:
    """One way's median in a figure, and its comparison with the base way: medians over pairs of rounds."""

    way: str
    value: float
    spread: tuple[float, float]  # smallest and largest value of a round
    added: float | None = None  # None for the base way, and if there is no base
    ratio: float | None = None

    def of(self, subject: Subject) -> float | None:
        """Return the number that a target with this subject limits."""
        return {"value": self.value, "added": self.added, "ratio": self.ratio}[subject]


@dataclass(slots=True)
class Figure:
    """A measurement for one or more ways, with one value per round, in the same order for all ways.

    The first way is the base of comparison, unless `compared` is False. `target` applies to our ways. `broken` maps the
    ways without a figure to the reasons.
    """

    name: str
    unit: str
    rounds: dict[str, list[float]] = field(default_factory=dict)
    target: Target | None = None
    compared: bool = True
    broken: dict[str, str] = field(default_factory=dict)

    def add(self, way: str, value: float) -> None:
        """Add a way's value of one round."""
        self.rounds.setdefault(way, []).append(value)

    def fail(self, way: str, why: str) -> None:
        """Drop the way's rounds, and record why it broke."""
        self.rounds.pop(way, None)
        self.broken[way] = why

    @property
    def more_is_better(self) -> bool:
        """True if larger values are better."""
        return self.target.at_least if self.target is not None else self.unit in RISING

    @property
    def rows(self) -> list[Row]:
        """The rows, with the base first. Raises ValueError if the rounds do not pair."""
        ways = list(self.rounds)
        return [self._row(way, ways[0] if self.compared and way != ways[0] else None) for way in ways]

    def _row(self, way: str, base: str | None) -> Row:
        mine = self.rounds[way]
        spread = (min(mine), max(mine))
        if base is None:
            return Row(way, median(mine), spread)
        pairs = list(zip(self.rounds[base], mine, strict=True))
        return Row(way, median(mine), spread, _over(pairs, lambda a, b: b - a), _over(pairs, _ratio))

    def judged(self, row: Row) -> tuple[bool, float] | None:
        """Return whether one of our rows meets its target, and the fraction of the limit by which it misses it.

        Return None for other rows, and if there is no target or value.
        """
        value = row.of(self.target.subject) if self.target is not None else None
        if self.target is None or value is None or not row.way.startswith(OURS):
            return None
        return self.target.met(value), self.target.missed_by(value)

    def as_json(self) -> dict[str, Any]:
        """Return the figure, with all rounds, as a JSON object for the file of a benchmark run."""
        target = self.target
        return {
            "name": self.name,
            "unit": self.unit,
            "compared": self.compared,
            "broken": self.broken,
            "target": {"subject": target.subject, "limit": target.limit, "at_least": target.at_least}
            if target is not None
            else None,
            "ways": [self._row_json(row) for row in self.rows],
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Restore a figure from the result of `as_json`. Raises KeyError."""
        rounds = {way["way"]: way["rounds"] for way in given["ways"]}
        target = Target(**given["target"]) if given["target"] else None
        return cls(given["name"], given["unit"], rounds, target, given["compared"], given["broken"])

    def _row_json(self, row: Row) -> dict[str, Any]:
        verdict = self.judged(row)
        return {
            "way": row.way,
            "median": row.value,
            "added": row.added,
            "ratio": row.ratio,
            "met": verdict[0] if verdict else None,
            "rounds": self.rounds[row.way],
        }


def _over(pairs: Sequence[tuple[float, float]], what: Callable[[float, float], float]) -> float:
    return median(what(base, mine) for base, mine in pairs)


def _ratio(base: float, mine: float) -> float:
    return mine / base if base else math.inf
