"""The growth of costs (start, list, call, search, memory) with the number of tools, servers and sessions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Self

LINEAR_MOST = 1.15  # largest exponent that counts as linear, with an allowance for noise
FLAT_MOST = 1.25  # largest rise that counts as flat, with an allowance for noise
FITTED_LEAST = 3  # fewest points in a fit
GROWN_LEAST = 1.5  # multiple of the cost at the smallest size, below which growth may be noise


@dataclass(slots=True)
class Curve:
    """One cost at increasing sizes. `points` maps size to cost. A `flat` curve should not grow at all."""

    axis: str  # the growing quantity, such as "tools"
    name: str  # the cost, such as "start"
    unit: str
    points: dict[int, float] = field(default_factory=dict)
    flat: bool = False

    @property
    def exponent(self) -> float:
        """The exponent of the size in a fit over the upper half of the sizes.

        The fit uses the cost above that of the smallest size, because fixed costs hide the growth.
        If too few sizes cost clearly more, the fit uses the whole cost.
        """
        sizes = list(self.points)
        upper = sizes[min(len(sizes) // 2, max(0, len(sizes) - FITTED_LEAST)) :]
        fixed = self.points[sizes[0]]
        above = {size: self.points[size] - fixed for size in upper if self.points[size] >= fixed * GROWN_LEAST}
        return slope(above if len(above) > 1 else {size: self.points[size] for size in upper})

    @property
    def rise(self) -> float:
        """The cost at the largest size, as a multiple of the cost at the smallest size."""
        values = list(self.points.values())
        return values[-1] / values[0] if values[0] else math.inf

    @property
    def holds(self) -> bool:
        """True if the cost grows at most linearly, or not at all if the curve should be flat."""
        return self.rise <= FLAT_MOST if self.flat else self.exponent <= LINEAR_MOST

    @property
    def verdict(self) -> str:
        """The result in words, in capitals if the curve does not hold."""
        if self.flat:
            return "flat" if self.holds else f"NOT FLAT: {self.rise:.2f} times"
        return "at most linear" if self.holds else "WORSE THAN LINEAR"

    def as_json(self) -> dict[str, Any]:
        """Return the curve as a JSON object for the file of a benchmark run."""
        points = {str(size): value for size, value in self.points.items()}
        own = {"axis": self.axis, "name": self.name, "unit": self.unit, "flat": self.flat, "points": points}
        return own | {"exponent": self.exponent, "rise": self.rise, "holds": self.holds}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Restore a curve from the result of `as_json`. Raises KeyError, ValueError."""
        points = {int(size): float(value) for size, value in given["points"].items()}
        return cls(given["axis"], given["name"], given["unit"], points, given["flat"])


def slope(points: Mapping[int, float]) -> float:
    """Return the exponent e of the best fit cost = c * size ** e, by least squares over the logarithms.

    Raises ValueError for fewer than two sizes, and for a size or cost that is not positive.
    """
    if len(points) < 2:
        raise ValueError("a slope wants two sizes")
    across, up = [math.log(size) for size in points], [math.log(value) for value in points.values()]
    middle, height = fmean(across), fmean(up)
    spread = sum((x - middle) ** 2 for x in across)
    return sum((x - middle) * (y - height) for x, y in zip(across, up, strict=True)) / spread
