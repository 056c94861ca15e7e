"""The figures as an aligned text table, each with its target and whether it is met."""

from __future__ import annotations

from collections.abc import Sequence

from tests.benchmarks.figures import Figure, Row, Target

HEADS: tuple[str, ...] = ("figure", "way", "median", "rounds", "added", "ratio", "target", "")
NUMBERS = frozenset({2, 4, 5})  # right-aligned columns
GAP = "  "
SUBJECTS = {"value": "", "added": "added ", "ratio": "ratio "}


def number(value: float) -> str:
    """Return the number without an exponent. The larger it is, the fewer decimals it has."""
    size = abs(value)
    places = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:,.{places}f}"


def table(figures: Sequence[Figure]) -> str:
    """Return a header, and one line for each way of each figure."""
    lines = [HEADS]
    for figure in figures:
        lines += rows_of(figure)
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADS))]
    return "\n".join(_aligned(line, widths) for line in lines)


def rows_of(figure: Figure) -> list[tuple[str, ...]]:
    """Return the figure's lines: first the ways with results, then the broken ways with their reasons."""
    gaps = [""] * (len(HEADS) - 3)
    lines = [cells(figure, row) for row in figure.rows]
    lines += [("", way, *gaps, f"broken: {why}") for way, why in figure.broken.items()]
    return [(f"{figure.name}, {figure.unit}", *line[1:]) for line in lines[:1]] + lines[1:]


def cells(figure: Figure, row: Row) -> tuple[str, ...]:
    """Return a line's columns, without the figure's name, which only the figure's first line shows."""
    least, largest = row.spread
    return (
        "",
        row.way,
        number(row.value),
        f"{number(least)} .. {number(largest)}",
        f"{'+' if row.added >= 0 else ''}{number(row.added)}" if row.added is not None else "",
        number(row.ratio) if row.ratio is not None else "",
        *_verdict(figure, row),
    )


def _verdict(figure: Figure, row: Row) -> tuple[str, str]:
    judged = figure.judged(row)
    if figure.target is None or judged is None:
        return "", ""
    met, missed_by = judged
    return wanted(figure.target), "met" if met else f"MISSED by {missed_by:.0%}"


def wanted(target: Target) -> str:
    """Return the target in words."""
    return f"{SUBJECTS[target.subject]}{'>=' if target.at_least else '<='} {number(target.limit)}"


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        cell.rjust(width) if column in NUMBERS else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    )
    return GAP.join(padded).rstrip()
