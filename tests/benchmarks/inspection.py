"""The cost of inspecting definitions: of 10 KB, and in a first run (`python -m tests.benchmarks --only inspection`).

`python -m tests.benchmarks.inspection FILE` prints how many tools, instructions and servers of a catalog are held or
reported. FILE is a JSON list of {"server", "tools": [tool as its server lists it]}, or with
"offers": [{"kind", "item"}].
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from tests.benchmarks.figures import OURS, Figure, Target
from tests.benchmarks.first import until_listed
from tests.benchmarks.heaps import heaps
from tests.benchmarks.starts import MS
from tests.benchmarks.ways import fresh_home
from tests.benchmarks.workloads import ECHO, Workload, read_shelf, replayed, unique
from trayapp.gateway.exposure.approvals import Approvals
from trayapp.inspection.finding import Finding, is_held
from trayapp.inspection.inspect import inspect_text, inspect_tool
from trayapp.model.config import Settings
from trayapp.model.offer import Item, Offer
from trayapp.wire.jsonio import loads

WITHOUT, ROUNDS = "without inspection", 5
OFF: dict[str, Any] = {"suspicious": "off", "approve_changes": "off"}
SERVERS, TOOLS = 10, 500  # of the first run's workload
FIRST, JUDGED = Target("ratio", 1.05), Target("value", 5.0)


def figures(runs: int, data: Path | None = None) -> Iterator[Figure]:
    """Yield the figures for a 10 KB definition and for first runs. Raises BrokenError."""
    yield judged_figure()
    yield first_runs(runs, data)


def judged_figure() -> Figure:
    """Measure the processor time for the slowest definition of 10 KB, one value per round."""
    known = list(heaps())
    worst = Figure(f"a definition of 10 KB is judged, the slowest of {len(known)}", "ms", target=JUDGED)
    for _ in range(ROUNDS):
        worst.add(OURS, max(_milliseconds(item) for _, item in known))
    return worst


def _milliseconds(item: Item) -> float:
    """Return the least of several measurements, because other processes only add to the time."""
    return min(_taken(item) for _ in range(ROUNDS))


def _taken(item: Item) -> float:
    began = time.process_time()
    inspect_tool(item)
    return (time.process_time() - began) * MS


def first_runs(rounds: int, data: Path | None) -> Figure:
    """Measure how long a client takes from its spawn to its full tool list, alternately with and without inspection.

    No gateway runs at the spawn, and nothing is cached.
    """
    figure = Figure(f"first run, {SERVERS} servers, {TOOLS} tools: spawn -> all tools", "ms", target=FIRST)
    for number in range(rounds + 1):
        for way, settings in ((WITHOUT, OFF), (OURS, dict[str, Any]())):
            with fresh_home() as home:
                work = many(home.path / "lists", data)
                home.write("servers.yaml", work.servers_yaml(**settings))
                taken = until_listed(home, work)
                if number:  # skips the first run, which reads files into memory
                    figure.add(way, taken)
    return figure


def many(folder: Path, data: Path | None) -> Workload:
    """Return a workload of ten servers with fifty tools each, from real servers if there is data."""
    every, each = iter(unique(read_shelf(data))), TOOLS // SERVERS
    shelf = {f"server-{place}": [ECHO, *islice(every, each - 1)] for place in range(SERVERS)}
    return replayed(f"{SERVERS} servers, {TOOLS} tools", shelf, folder)


def main(file: str) -> None:
    """Print the findings in a catalog, and the processor time that inspections take."""
    catalog = [(entry["server"], offered(entry)) for entry in loads(Path(file).read_bytes())]
    judged = [(server, kind, item, findings_of(kind, item)) for server, offers in catalog for kind, item in offers]
    for kind in sorted({kind for _, kind, _, _ in judged}):
        those = [found for _, one, _, found in judged if one == kind]
        held = sum(map(is_held, those))
        print(f"{kind}: {len(those)}, {held} held, {sum(map(bool, those)) - held} told")
    servers = {server for server, _, _, found in judged if found}
    print(f"servers: {len({server for server, _ in catalog})}, {len(servers)} of them told or held anything")
    for server, _, item, found in judged:
        for one in found:
            print(f"  {one.severity:6} {server}/{item.get('name', '')}: {_line(one)}")
    for name, taken in sorted(((name, _milliseconds(item)) for name, item in heaps()), key=lambda one: -one[1])[:5]:
        print(f"10 KB, {name}: {taken:.1f} ms")
    offers = {
        str(at): Offer(tuple(item for kind, item in items if kind == "tool")) for at, (_, items) in enumerate(catalog)
    }
    with tempfile.TemporaryDirectory() as folder:
        print(f"judged at first sight, inspected before: {_ahead_ms(Path(folder), offers)}")
        print(f"judged at first sight: {_judged_ms(Path(folder), offers):.1f} ms")
        print(f"judged at a later start, pins read: {_judged_ms(Path(folder), offers):.1f} ms")


def offered(entry: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the kind and item of everything that a catalog entry offers."""
    return [(one["kind"], one["item"]) for one in entry.get("offers", ())] + [
        ("tool", tool) for tool in entry.get("tools", ())
    ]


def findings_of(kind: str, item: Any) -> tuple[Finding, ...]:
    """Return the findings in a tool, a prompt or instructions."""
    return inspect_text(item, kind) if isinstance(item, str) else inspect_tool(item)


def _line(one: Finding) -> str:
    return f"{one.code} in {one.where}: {one.evidence}"


def _judged_ms(folder: Path, offers: dict[str, Offer]) -> float:
    approvals = Approvals(folder, Settings, lambda server: ())
    began = time.process_time()
    for server, offer in offers.items():
        approvals.judge(server, offer)
    taken = time.process_time() - began
    approvals.pins.save()
    return taken * 1e3


def _ahead_ms(folder: Path, offers: dict[str, Offer]) -> str:
    """Return in words how long judging takes after an early inspection, in total and for the slowest server."""
    approvals = Approvals(folder, Settings, lambda server: ())
    taken = []
    for server, offer in offers.items():
        for _ in approvals.look_ahead(server, offer):
            pass
        began = time.process_time()
        approvals.judge(server, offer)
        taken.append((time.process_time() - began) * 1e3)
    return f"{sum(taken):.1f} ms left, {max(taken):.1f} ms at once"


if __name__ == "__main__":
    main(sys.argv[1])
