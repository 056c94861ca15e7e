"""Searches through the shim: how long an answer takes, and how many tokens it has."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.benchmarks.client import Client
from tests.benchmarks.figures import OURS, Figure, Target, percentile
from tests.benchmarks.search import Catalog, Queries, enlarged, given, indexed
from tests.benchmarks.search_rules import REAL, sets
from tests.benchmarks.starts import MS
from tests.benchmarks.ways import fresh_home, gateway, through
from tests.benchmarks.workloads import ECHO, Shelf, replayed, unique
from trayapp.catalog.tokens import tokens

TOOLS, SERVERS, ROUNDS = 2_000, 20, 3
INSIDE, OUTSIDE, TOKENS = Target("value", 10.0), Target("value", 15.0), Target("value", 700.0)


def measure_searches(data: Path | None = None) -> Iterator[Figure]:
    """Yield the figures of searches in the index and through the shim. Raises BrokenError."""
    catalog, queries = given(data)
    large = enlarged(catalog, TOOLS)
    yield inside(large, queries)
    tools = unique(_shelf(large))
    each = len(tools) // SERVERS
    shelf = {f"server-{at}": [ECHO, *tools[at * each : (at + 1) * each]] for at in range(SERVERS)}
    outside = Figure(f"query among {TOOLS} tools through the shim, p95", "ms", target=OUTSIDE)
    for taken, _ in searched(shelf, [words for words, _ in queries], ROUNDS):
        outside.add(OURS, percentile(taken, 95))
    yield outside
    real = [one for one in sets(data) if one.name != "development"]
    if real:
        first, *others = _shelf(real[0].catalog).items()
        words = [asked for one in real for asked, _ in one.rows]
        ((_, texts),) = searched({first[0]: [ECHO, *first[1]], **dict(others)}, words, 1)
        longest = Figure(f"answer among the tools of {REAL}, p99 of {len(words)} queries", "tokens", target=TOKENS)
        longest.add(OURS, percentile([tokens(text) for text in texts], 99))
        yield longest


def inside(catalog: Catalog, queries: Queries) -> Figure:
    """Measure searches in the index alone, as the gateway runs them."""
    index = indexed(catalog)
    figure = Figure(f"query among {TOOLS} tools, p95", "ms", target=INSIDE)
    for number in range(ROUNDS + 1):
        taken = []
        for words, _ in queries:
            began = time.perf_counter()
            index.search(words)
            taken.append((time.perf_counter() - began) * MS)
        if number:  # the first round also reads the documents
            figure.add(OURS, percentile(taken, 95))
    return figure


def searched(shelf: Shelf, words: Sequence[str], rounds: int) -> Iterator[tuple[list[float], list[str]]]:
    """Yield the times of the answers in milliseconds, and their texts, for each round after a warm-up round."""
    with fresh_home() as home:
        work = replayed("searched", shelf, home.path / "lists")
        work.fill(home.path, expose="search")
        with gateway(home):
            way = through(home)
            with Client(way.argv, way.env) as client:
                client.initialize()
                client.tools()
                for number in range(rounds + 1):
                    taken, texts = [], []
                    for asked in words:
                        began = time.perf_counter()
                        result = client.ask("tools/call", {"name": "mcp", "arguments": {"search": asked}})
                        taken.append((time.perf_counter() - began) * MS)
                        texts.append(str(result["content"][0]["text"]))
                    if number:
                        yield taken, texts


def _shelf(catalog: Catalog) -> Mapping[str, list[dict[str, object]]]:
    return {server: [dict(entry.tool) for entry in entries] for server, entries in catalog.items()}
