"""`python -m tests.benchmarks.exposure` measures how long lists take to build, for 500, 1,000 and 2,000 tools.

Each server has twenty tools. No process is started.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

from tests.benchmarks.catalog import tool
from tests.benchmarks.figures import Figure, Target
from tests.benchmarks.table import table
from trayapp.catalog.cache import CacheEntry, with_sound
from trayapp.gateway.exposure.catalog import Catalog
from trayapp.gateway.exposure.exposure import Choice, Exposure
from trayapp.gateway.exposure.list_results import ListResults
from trayapp.gateway.exposure.search import ToolSearch
from trayapp.gateway.exposure.served_tools import ServedOffer, ServedTools
from trayapp.model.config import Config, ServerConfig, Settings, ToolSwitch
from trayapp.model.offer import Offer

OURS = "ours"
EACH = 20  # tools per server
SIZES = (500, 1_000, 2_000)  # tools in total
ROUNDS = 5
LIST_MOST_MS = 50.0

Offers = dict[str, Offer]


def offers(tools: int) -> Offers:
    """Return offers of `tools` tools in total, EACH per server."""
    names = [f"service-{place:03d}" for place in range(tools // EACH)]
    return {name: Offer(tuple(tool(name, number) for number in range(EACH)), capabilities={}) for name in names}


def config(known: Offers) -> Config:
    """Return the configuration that a first run writes, with a switch for each tool."""
    switches = {str(item["name"]): ToolSwitch() for offer in known.values() for item in offer.tools}
    return Config(Settings(), {name: ServerConfig(name, command="x", tools=switches) for name in known})


def figures(sizes: Sequence[int] = SIZES, rounds: int = ROUNDS) -> list[Figure]:
    """Return the figures for each size: lists at several moments, and the first search."""
    return [figure for size in sizes for figure in _of(size, rounds)]


def served(offers: dict[str, Offer], tools: ServedTools) -> dict[str, ServedOffer]:
    """Return the offers prepared for clients."""
    return {name: tools.of(name, offer) for name, offer in offers.items()}


def _of(size: int, rounds: int) -> list[Figure]:
    known = offers(size)
    marked = {name: with_sound(CacheEntry(name, "", 0.0, offer)).sound or frozenset() for name, offer in known.items()}

    def sound(name: str, offer: Offer) -> frozenset[int]:
        return marked[name] if offer is known[name] else frozenset()  # only the cached offers are marked, as at a start

    configured, changed = config(known), known | {"service-001": Offer(known["service-001"].tools[1:], capabilities={})}
    taken: dict[str, list[float]] = {}

    def timed(what: str, work: Callable[[], object]) -> None:
        start = time.perf_counter()
        work()
        taken.setdefault(what, []).append((time.perf_counter() - start) * 1000)

    def one_round() -> None:
        prepared = ServedTools(sound=sound)
        before, after = (Catalog(configured, served(now, prepared)) for now in (known, changed))
        timed(
            "the one tool's list",
            lambda: ListResults(Exposure(Catalog(configured, served(known, ServedTools())))).result("tools"),
        )
        timed("first list after a start", lambda: ListResults(Exposure(before, Choice("tools"))).result("tools"))
        timed("list after a change", lambda: ListResults(Exposure(after, Choice("tools"))).result("tools"))
        timed(
            "list of a filtered session",
            lambda: ListResults(Exposure(after, Choice("tools", exclude=("x*",)))).result("tools"),
        )
        timed("first search", lambda: ToolSearch().search(Exposure(before), "search", server=None, limit=8))

    for _ in range(rounds):
        one_round()
    target = Target("value", LIST_MOST_MS)
    return [
        Figure(f"{size} tools: {what}", "ms", {OURS: values}, None if "search" in what else target)
        for what, values in taken.items()
    ]


def main() -> int:
    """Measure and print the figures. Always return 0."""
    argparse.ArgumentParser(prog="python -m tests.benchmarks.exposure", description=__doc__).parse_args()
    print(table(figures()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
