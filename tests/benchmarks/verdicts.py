"""The behavior tests' rows as Markdown: all ways compared, failures, and how long each behavior takes with ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from tests.benchmarks.backends import Kind
from tests.benchmarks.behaviour import ORDER, Row
from tests.benchmarks.figures import OURS
from tests.benchmarks.table import number

MS = 1000.0
NOT_OFFERED = "–"


def markdown(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the tables and the list of failures, each as one text."""
    yield verdicts(rows)
    if said := reds(rows):
        yield said
    yield timings([row for row in rows if row.way == OURS])


def verdicts(rows: Sequence[Row]) -> str:
    """Return a table with a line per way and a column per behavior. Each cell counts the green pairs of transports."""
    ways = dict.fromkeys(row.way for row in rows)
    lines = [(way, *(green(of(rows, way, name)) for name in ORDER)) for way in ways]
    return table(("green on how many pairs of transports", *ORDER), lines)


def green(rows: Sequence[Row]) -> str:
    """Return a count like 25/25, in bold unless all are green. Return a dash if the way lacks the feature."""
    offered = [row for row in rows if row.verdict != "not offered"]
    good = sum(row.verdict == "green" for row in offered)
    if not offered:
        return NOT_OFFERED
    return f"{good}/{len(offered)}" if good == len(offered) else f"**{good}/{len(offered)}**"


def reds(rows: Sequence[Row]) -> str:
    """Return a list item for each way and behavior with a red row, quoting its first red row."""
    lines = []
    for way in dict.fromkeys(row.way for row in rows):
        for name in ORDER:
            found = [row for row in of(rows, way, name) if row.verdict == "red"]
            if found:
                lines.append(f"- {way}, {name}: {found[0].seen} ({found[0].client} to {found[0].server})")
    return "\n".join(lines)


def timings(rows: Sequence[Row]) -> str:
    """Return a table of how long each behavior takes with ours, in milliseconds: medians over all kinds of servers."""
    clients = dict.fromkeys(row.client for row in rows)
    lines = [(str(client), *(took(rows, client, name) for name in ORDER)) for client in clients]
    return table(("ours, ms by the client's transport", *ORDER), lines)


def took(rows: Sequence[Row], client: Kind, name: str) -> str:
    """Return the median in milliseconds, or "" if nothing was measured."""
    seconds = [
        row.seconds for row in rows if row.client == client and row.behaviour == name and row.seconds is not None
    ]
    return number(median(seconds) * MS) if seconds else ""


def of(rows: Sequence[Row], way: str, name: str) -> list[Row]:
    """Return the rows of one way and one behavior."""
    return [row for row in rows if (row.way, row.behaviour) == (way, name)]


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    from tests.benchmarks.report import markdown as of_report  # imported late: only needed after measuring

    return of_report(heads, lines)
