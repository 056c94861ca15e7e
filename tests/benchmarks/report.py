"""A run in Markdown: the full report with its plots, and packaging/BENCHMARKS.md, the summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.benchmarks.curves import Curve
from tests.benchmarks.figures import OURS, Figure, Row
from tests.benchmarks.run import ROOT, Chapter, Run
from tests.benchmarks.table import HEADS, number, rows_of, table, wanted

NAME = "report.md"
SUMMARY = ROOT / "packaging" / "BENCHMARKS.md"
NOTES = "## Notes"  # everything below this heading is written by hand and kept
MET = "met"
BASES = ("direct", "python -c pass")  # ways that ours and the peers are compared with

INTRODUCTION = """\
`python -m tests.benchmarks --peers` lets a direct connection to a server, multi-mcp and other gateways do the same work
in turns, on one machine. `--summary` then writes this page. Figures are medians. "Ratio" and "added" compare with the
direct connection (or with the start of a bare interpreter), pair by pair in the same round. After a run, all figures,
their spread and the plots are in `.cache/benchmarks`."""


def write(run: Run, folder: Path) -> None:
    """Write the report and its plots. Raises OSError."""
    from tests.benchmarks import plots  # imported late: matplotlib takes a second to load, and some machines lack it

    pictures = plots.draw(run, folder)
    (folder / NAME).write_text(as_markdown(run, pictures), encoding="utf-8")


def write_summary(run: Run, file: Path = SUMMARY) -> Path:
    """Write the summary, keep the file's notes, and return the file. Raises OSError."""
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    notes = before[before.index(NOTES) :] if NOTES in before else f"{NOTES}\n"
    file.write_text(f"{summary(run)}\n{notes}", encoding="utf-8")
    return file


# -- the report ------------------------------------------------------------------------------------------------------


def as_text(run: Run) -> str:
    """Return the report for a terminal."""
    parts = [f"multi-mcp {run.program}, {run.machine}", table(list(run.figures))]
    lines = [f"{curve.axis}: {curve.name}, {curve.unit}: {values(curve)}: {judged(curve)}" for curve in run.curves]
    broken = [f"{chapter.title} broke: {chapter.broken}" for chapter in run.chapters if chapter.broken]
    broken += [f"{chapter.title}: {note}" for chapter in run.chapters for note in chapter.notes]
    return "\n\n".join(filter(None, [*parts, "\n".join(lines), "\n".join(broken)]))


def as_markdown(run: Run, pictures: dict[str, list[str]]) -> str:
    """Return the full report. `pictures`: file names by chapter."""
    parts = ["# Benchmarks", about(run), "## Targets", targets(run), *images(pictures.get("", []))]
    for chapter in run.chapters:
        parts += [f"## {chapter.title}", *chapter_parts(chapter), *images(pictures.get(chapter.name, []))]
    return "\n\n".join(part for part in parts if part) + "\n"


def chapter_parts(chapter: Chapter) -> Iterator[str]:
    """Yield why the chapter broke, its tables, and its notes."""
    if chapter.broken:
        yield f"**Broke:** {chapter.broken}"
    if chapter.figures:
        yield markdown(HEADS, [line for figure in chapter.figures for line in rows_of(figure)])
    if chapter.curves:
        yield curve_table(chapter.curves)
    yield from chapter.notes


def images(names: Sequence[str]) -> list[str]:
    """Return the plots as Markdown images."""
    return [f"![{name.removesuffix('.png')}]({name})" for name in names]


# -- the summary -----------------------------------------------------------------------------------------------------


def summary(run: Run) -> str:
    """Return the summary: targets, comparisons, growth, and the figures in which others are ahead."""
    parts = ["# Benchmarks", INTRODUCTION, about(run), "## Targets", targets(run)]
    for chapter in run.chapters:
        if said := [text for text in (side_by_side(chapter.figures), *chapter.notes) if text]:
            parts += [f"## {chapter.title}", *said]
    parts += ["## Growth", curve_table(list(run.curves))] if any(run.curves) else []
    parts += ["## Where another way is ahead", lost(run)]
    return "\n\n".join(part for part in parts if part) + "\n"


def about(run: Run) -> str:
    """Return when and where the run was measured, and which chapters broke."""
    quick = " A quick run: few rounds." if run.quick else ""
    broken = "".join(f" {chapter.title} broke: {chapter.broken}." for chapter in run.chapters if chapter.broken)
    return f"{run.days}, multi-mcp {run.program}; {run.machine}.{quick}{broken}"


def targets(run: Run) -> str:
    """Return how many targets are met, and a table of our figures with targets, or "" if there are none."""
    rows = [
        (f"{figure.name}, {figure.unit}", row.way, number(row.value), against(row), wanted(figure.target), verdict)
        for figure in run.figures
        for row in figure.rows
        if figure.target is not None and (verdict := in_words(figure, row))
    ]
    met = sum(row[-1] == MET for row in rows)
    heads = ("figure", "way", "median", "against the base", "target", "")
    return f"{met} of {len(rows)} are met.\n\n{markdown(heads, rows)}" if rows else ""


def in_words(figure: Figure, row: Row) -> str:
    """Return in words whether the row meets its target, or "" if it has none."""
    judgement = figure.judged(row)
    if judgement is None:
        return ""
    met, missed_by = judgement
    return MET if met else f"**missed by {missed_by:.0%}**"


def against(row: Row) -> str:
    """Return the ratio to the base and the difference in words, or "" without a base."""
    if row.ratio is None or row.added is None:
        return ""
    return f"x {number(row.ratio)}, {'+' if row.added >= 0 else ''}{number(row.added)}"


def side_by_side(figures: Sequence[Figure]) -> str:
    """Return a table for each base, with a line per figure and a column per way. Skip figures with only one way."""
    tables: dict[str, list[Figure]] = {}
    for figure in figures:
        if len(figure.rounds) > 1:
            tables.setdefault(next(iter(figure.rounds)), []).append(figure)
    return "\n\n".join(beside(some) for some in tables.values())


def beside(figures: Sequence[Figure]) -> str:
    """Return a table with a line per figure and a column per way."""
    ways = list(dict.fromkeys(way for figure in figures for way in (*figure.rounds, *figure.broken)))
    rows = []
    for figure in figures:
        found = {row.way: number(row.value) for row in figure.rows} | dict.fromkeys(figure.broken, "broken")
        rows.append((f"{figure.name}, {figure.unit}", *(found.get(way, "") for way in ways)))
    return markdown(("", *ways), rows)


def lost(run: Run) -> str:
    """Return the figures in which a peer is ahead of us, and by how much."""
    lines = [
        f"- {figure.name}: {row.way} {number(row.value)} {figure.unit}, {OURS} {number(own.value)}{by_times(own, row)}"
        for figure in run.figures
        for own, row in behind(figure)
    ]
    return "\n".join(lines) if lines else "In none of the figures of this run."


def by_times(own: Row, row: Row) -> str:
    """Return in words how many times better the peer is, or "" if a value is 0."""
    least, most = sorted((own.value, row.value))
    return f": {number(most / least)} times" if least > 0 else ""


def behind(figure: Figure) -> Iterator[tuple[Row, Row]]:
    """Yield our row together with each peer's row that has a better median."""
    rows = {row.way: row for row in figure.rows}
    own = rows.get(OURS)
    sign = -1 if figure.more_is_better else 1
    if own is not None:
        yield from (
            (own, row)
            for way, row in rows.items()
            if not way.startswith((OURS, *BASES)) and sign * row.value < sign * own.value
        )


# -- curves and tables -----------------------------------------------------------------------------------------------


def curve_table(curves: Sequence[Curve]) -> str:
    """Return a table with a line per curve."""
    rows = [(curve.axis, f"{curve.name}, {curve.unit}", values(curve), judged(curve)) for curve in curves]
    return markdown(("as these grow", "cost", "size: cost", "growth"), rows)


def values(curve: Curve) -> str:
    """Return the curve's points in words."""
    return ", ".join(f"{size:,}: {number(value)}" for size, value in curve.points.items())


def judged(curve: Curve) -> str:
    """Return the exponent of the growth and the verdict, in bold if the curve fails."""
    verdict = curve.verdict if curve.holds else f"**{curve.verdict}**"
    return f"size ^ {curve.exponent:.2f}, {verdict}"


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table. Escape the pipes in cells."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
