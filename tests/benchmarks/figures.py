"""What was measured, as values: rounds, medians, ratios of pairs, targets and whether they are met."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal, Self

RISING = frozenset({"calls/s", "of the queries", "1/rank", "ok"})  # units of which more is better
OURS = "ours"  # how the names of the ways begin that the targets are for
Subject = Literal["value", "added", "ratio"]  # a target is about the way's own figure, its difference, or its ratio


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest of the values that at least `percent` per cent of all do not exceed (nearest rank).

    Raises ValueError without values, or for a percentage that is not over 0 and at most 100.
    """
    if not values or not 0 < percent <= 100:
        raise ValueError("a percentile wants values, and a percentage over 0 and at most 100")
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure should be: at most `limit`, or at least."""

    subject: Subject
    limit: float
    at_least: bool = False

    def met(self, value: float) -> bool:
        """Return True if a value keeps it; the limit itself does."""
        return value >= self.limit if self.at_least else value <= self.limit

    def missed_by(self, value: float) -> float:
        """Return how far the value is on the wrong side, as a part of the limit: 0.2 is 20 %; 0 when it is met."""
        return 0.0 if self.met(value) else abs(value - self.limit) / self.limit


@dataclass(frozen=True, slots=True)
class Row:
    """One way's median in a figure, and what it is against the base way's: medians over the rounds' pairs."""

    way: str
    value: float
    spread: tuple[float, float]  # the least and the largest round
    added: float | None = None  # None: this is the base, or there is none
    ratio: float | None = None

    def of(self, subject: Subject) -> float | None:
        """Return the number that a target with that subject is about."""
        return {"value": self.value, "added": self.added, "ratio": self.ratio}[subject]


@dataclass(slots=True)
class Figure:
    """One thing measured for one or more ways, a value a round each, in the same order of rounds.

    The first way is the base that the others are compared with, unless `compared` is False. `target` is for the ways
    that are ours. `broken`: the ways that gave no figure, with the reason.
    """

    name: str
    unit: str
    rounds: dict[str, list[float]] = field(default_factory=dict)
    target: Target | None = None
    compared: bool = True
    broken: dict[str, str] = field(default_factory=dict)

    def add(self, way: str, value: float) -> None:
        """Add one more round of a way."""
        self.rounds.setdefault(way, []).append(value)

    def fail(self, way: str, why: str) -> None:
        """Drop the way's figure: its rounds say nothing."""
        self.rounds.pop(way, None)
        self.broken[way] = why

    @property
    def more_is_better(self) -> bool:
        """Whether a larger value is the better one."""
        return self.target.at_least if self.target is not None else self.unit in RISING

    @property
    def rows(self) -> list[Row]:
        """The base first, then every other way. Raises ValueError when the rounds do not pair."""
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
        """Return whether the row meets the target, and by which part of the limit it misses; None without a target."""
        value = row.of(self.target.subject) if self.target is not None else None
        if self.target is None or value is None or not row.way.startswith(OURS):
            return None
        return self.target.met(value), self.target.missed_by(value)

    def as_json(self) -> dict[str, Any]:
        """Return everything for the --json file, each round included."""
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
        """Return what `as_json` made. Raises KeyError."""
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
