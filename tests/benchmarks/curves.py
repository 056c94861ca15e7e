"""What start, list, call, search and memory cost as tools, servers and sessions grow, and how fast each grows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Self

LINEAR_MOST = 1.15  # an exponent above is worse than linear: this much is noise
FLAT_MOST = 1.25  # times the smallest size's call: this much is noise
FITTED_LEAST = 3  # points of a fit
GROWN_LEAST = 1.5  # times the smallest size's cost: less may be noise


@dataclass(slots=True)
class Curve:
    """One cost by size: `points`: the cost by size, in rising order. `flat`: it should not grow at all."""

    axis: str  # what grows: "tools"
    name: str  # what it costs: "start"
    unit: str
    points: dict[int, float] = field(default_factory=dict)
    flat: bool = False

    @property
    def exponent(self) -> float:
        """Of the size, in the upper half of the sizes, and there of what is above the smallest size's cost.

        What is fixed would hide the growth. Where too little is above it, the whole cost counts.
        """
        sizes = list(self.points)
        upper = sizes[min(len(sizes) // 2, max(0, len(sizes) - FITTED_LEAST)) :]
        fixed = self.points[sizes[0]]
        above = {size: self.points[size] - fixed for size in upper if self.points[size] >= fixed * GROWN_LEAST}
        return slope(above if len(above) > 1 else {size: self.points[size] for size in upper})

    @property
    def rise(self) -> float:
        """The cost of the largest size as a multiple of the smallest size's."""
        values = list(self.points.values())
        return values[-1] / values[0] if values[0] else math.inf

    @property
    def holds(self) -> bool:
        """Not worse than linear; a flat one does not rise."""
        return self.rise <= FLAT_MOST if self.flat else self.exponent <= LINEAR_MOST

    @property
    def verdict(self) -> str:
        """In words."""
        if self.flat:
            return "flat" if self.holds else f"NOT FLAT: {self.rise:.2f} times"
        return "at most linear" if self.holds else "WORSE THAN LINEAR"

    def as_json(self) -> dict[str, Any]:
        """Return the curve for the file of a run."""
        points = {str(size): value for size, value in self.points.items()}
        own = {"axis": self.axis, "name": self.name, "unit": self.unit, "flat": self.flat, "points": points}
        return own | {"exponent": self.exponent, "rise": self.rise, "holds": self.holds}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Return what `as_json` made. Raises KeyError, ValueError."""
        points = {int(size): float(value) for size, value in given["points"].items()}
        return cls(given["axis"], given["name"], given["unit"], points, given["flat"])


def slope(points: Mapping[int, float]) -> float:
    """Return the exponent e of the line cost = c * size ** e that fits best: least squares over the logarithms.

    Raises ValueError without two sizes, or for a size or cost that is not above 0.
    """
    if len(points) < 2:
        raise ValueError("a slope wants two sizes")
    across, up = [math.log(size) for size in points], [math.log(value) for value in points.values()]
    middle, height = fmean(across), fmean(up)
    spread = sum((x - middle) ** 2 for x in across)
    return sum((x - middle) * (y - height) for x, y in zip(across, up, strict=True)) / spread
