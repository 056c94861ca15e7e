"""Plots of a run: distances from the targets, bars for figures with several ways, and growth curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from typing import Any, TypeVar

from matplotlib import rc_context
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, NullFormatter

from tests.benchmarks.curves import Curve
from tests.benchmarks.figures import OURS, Figure, Row
from tests.benchmarks.report import BASES
from tests.benchmarks.run import Run
from tests.benchmarks.table import number

T = TypeVar("T")
STYLE: dict[str, Any] = {
    "font.size": 9, "axes.titlesize": 9.5, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True,
    "grid.color": "#e6e6e6", "grid.linewidth": 0.7, "axes.edgecolor": "#8c8c8c", "figure.dpi": 120,
}  # fmt: skip
OWN, BASE, PEER, BAD, INK = "#1769c4", "#4a4a4a", "#b5bcc6", "#c62828", "#333333"
ACROSS, PANEL_WIDE, BAR_HIGH, PANEL_LEAST = 2, 6.2, 0.27, 1.0  # panels per row, then sizes in inches
REASON_MOST = 60  # characters
LOG_FROM = 12.0  # largest / smallest value: above this, a linear axis hides the small values
CUT = 4.0  # times the limit: a longer bar would dwarf the others
MANY_DECADES = 50.0  # largest / smallest value
LABEL_ROOM = 1.55  # axis length / longest bar, to leave room for its number


def draw(run: Run, folder: Path) -> dict[str, list[str]]:
    """Write PNG files into the folder. Return their names by chapter, with "" for the targets. Raises OSError."""
    pictures: dict[str, list[str]] = {}

    def keep(chapter: str, name: str, canvas: Canvas) -> None:
        canvas.savefig(folder / name, bbox_inches="tight", facecolor="white")
        pictures.setdefault(chapter, []).append(name)

    with rc_context(STYLE):
        if judged := [(figure, row) for figure in run.figures for row in figure.rows if figure.judged(row)]:
            keep("", "targets.png", distances(judged))
        for chapter in run.chapters:
            if several := [figure for figure in chapter.figures if len(figure.rounds) > 1]:
                keep(chapter.name, f"{chapter.name}.png", bars(several))
            for axis in dict.fromkeys(curve.axis for curve in chapter.curves):
                name = f"{chapter.name}-{axis}.png"
                keep(chapter.name, name, growth([curve for curve in chapter.curves if curve.axis == axis]))
    return pictures


# -- targets ---------------------------------------------------------------------------------------------------------


def distances(judged: Sequence[tuple[Figure, Row]]) -> Canvas:
    """Return a chart of each figure as a fraction of its target's limit. Targets are met by fractions up to 1."""
    canvas = Canvas(figsize=(11, 0.9 + 0.26 * len(judged)))
    axes = canvas.subplots()
    parts = [part_of_limit(figure, row) for figure, row in judged]
    places = range(len(judged))
    axes.barh(
        places, [min(part, CUT) for part in parts], color=[BAD if part > 1 else OWN for part in parts], height=0.62
    )
    axes.axvline(1, color=INK, linewidth=1.2)
    axes.set_yticks(places, [f"{figure.name}{'' if row.way == OURS else f' ({row.way})'}" for figure, row in judged])
    axes.invert_yaxis()
    axes.set_xlim(0, min(max(*parts, 1.0), CUT) * 1.45)
    for place, part, (figure, row) in zip(places, parts, judged, strict=True):
        said = f" {against_limit(figure, row)}"
        axes.text(min(max(part, 1.0), CUT), place, said, va="center", fontsize=8, color=BAD if part > 1 else INK)
    axes.set_xlabel("of the limit (1 = just met; left of it is better)")
    axes.set_title("How far from the targets")
    axes.grid(axis="y", visible=False)
    return canvas


def against_limit(figure: Figure, row: Row) -> str:
    """Return the measured value and the limit in words."""
    assert figure.target is not None
    value = row.of(figure.target.subject)
    assert value is not None
    unit = "times the base" if figure.target.subject == "ratio" else figure.unit
    bound = "at least" if figure.target.at_least else "at most"
    return f"{number(value)} {unit}, wanted {bound} {number(figure.target.limit)}"


def part_of_limit(figure: Figure, row: Row) -> float:
    """Return measured / limit, or limit / measured if the limit is a minimum."""
    assert figure.target is not None
    value = max(row.of(figure.target.subject) or 0.0, 1e-9)
    return figure.target.limit / value if figure.target.at_least else value / figure.target.limit


# -- bars ------------------------------------------------------------------------------------------------------------


def bars(figures: Sequence[Figure]) -> Canvas:
    """Return a panel for each figure, with a bar for each way. Ours is colored, the base dark, and peers light."""
    lines = [list(figures[at : at + ACROSS]) for at in range(0, len(figures), ACROSS)]
    heights = [PANEL_LEAST + BAR_HIGH * max(len(f.rounds) + len(f.broken) for f in line) for line in lines]
    across = min(ACROSS, len(figures))
    canvas = Canvas(figsize=(PANEL_WIDE * across, sum(heights)), layout="constrained")
    grid = canvas.subplots(len(lines), across, squeeze=False, height_ratios=heights)
    fill(grid, figures, panel)
    return canvas


def fill(grid: Any, shown: Sequence[T], show: Callable[[Any, T], None]) -> None:
    """Draw a panel for each item, and hide the unused panels."""
    for place, axes in enumerate(grid.flat):
        if place < len(shown):
            show(axes, shown[place])
        else:
            axes.set_visible(False)


def panel(axes: Any, figure: Figure) -> None:
    rows = figure.rows
    values = [row.value for row in rows]
    places = range(len(rows))
    axes.barh(places, values, color=[color(row.way) for row in rows], height=0.68)
    for place, row in zip(places, rows, strict=True):
        axes.plot(row.spread, (place, place), color=INK, linewidth=0.9, alpha=0.55)
        least = max(row.value, row.spread[1])
        weight = "bold" if row.way.startswith(OURS) else "normal"
        axes.text(least, place, f"  {number(row.value)}{times(row)}", va="center", fontsize=8, fontweight=weight)
    across = axes.get_yaxis_transform()  # x is a fraction of the axis, even on a logarithmic scale
    for place, why in enumerate(figure.broken.values(), len(rows)):
        axes.text(0.01, place, f"broken: {why[:REASON_MOST]}", va="center", fontsize=8, color=BAD, transform=across)
    ways = [*(row.way for row in rows), *figure.broken]
    axes.set_yticks(range(len(ways)), ways)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    better = "more is better" if figure.more_is_better else "less is better"
    axes.set_title(figure.name)
    axes.set_xlabel(f"{figure.unit} ({better})", fontsize=8)
    scale(axes, [value for row in rows for value in (row.value, *row.spread)])


def times(row: Row) -> str:
    """Return the ratio to the base in words, or "" without a base."""
    return f"  (x {number(row.ratio)})" if row.ratio is not None else ""


def scale(axes: Any, values: Sequence[float]) -> None:
    """Make the axis logarithmic if the values differ widely. Leave room for the numbers."""
    least, most = min(values), max(values)
    if least > 0 and most / least > LOG_FROM:
        axes.set_xscale("log")
        axes.set_xlim(least / 2, most * (most / least) ** 0.42)
        plain(axes.xaxis, most / least)
    else:
        axes.set_xlim(0, most * LABEL_ROOM or 1)
        axes.xaxis.set_major_formatter(as_written)


def color(way: str) -> str:
    """Return the color of our ways, of bases or of peers."""
    return OWN if way.startswith(OURS) else BASE if way.startswith(BASES) else PEER


# -- curves ----------------------------------------------------------------------------------------------------------


def growth(curves: Sequence[Curve]) -> Canvas:
    """Return a panel for each cost, with logarithmic axes. A dotted line shows linear growth."""
    down = ceil(len(curves) / 3)
    canvas = Canvas(figsize=(11.5, 3.1 * down), layout="constrained")
    grid = canvas.subplots(down, 3, squeeze=False)
    fill(grid, curves, line)
    return canvas


def line(axes: Any, curve: Curve) -> None:
    """Draw a curve, with a dotted line for linear growth."""
    sizes, values = list(curve.points), list(curve.points.values())
    axes.plot(sizes, values, color=OWN if curve.holds else BAD, marker="o", markersize=4, linewidth=1.6)
    axes.plot(sizes, [values[-1] * size / sizes[-1] for size in sizes], ":", color="#9a9a9a", linewidth=1.1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(min(values) / 2.5, max(values) * 2.5)
    plain(axes.xaxis, sizes[-1] / sizes[0])
    plain(axes.yaxis, max(values) / min(values))
    for size, value in ((sizes[0], values[0]), (sizes[-1], values[-1])):
        axes.annotate(number(value), (size, value), (0, 6), textcoords="offset points", ha="center", fontsize=8)
    axes.set_title(f"{curve.name}: size^{curve.exponent:.2f}, {curve.verdict}", color=INK if curve.holds else BAD)
    axes.set_xlabel(curve.axis)
    axes.set_ylabel(curve.unit)


def plain(axis: Any, span: float) -> None:
    """Write numbers without powers of ten. Add ticks if the axis spans few decades."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if span < MANY_DECADES else (1,)))
    axis.set_major_formatter(as_written)
    axis.set_minor_formatter(NullFormatter())


def as_written(value: float, _: int) -> str:
    return f"{value:,.10g}"
