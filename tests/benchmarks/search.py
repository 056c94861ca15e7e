"""`python -m tests.benchmarks.search [--catalog FILE --queries FILE]` measures how well and how fast tools are found.

A catalog is a JSON list of `{"server", "title"?, "tools": [as in tools/list]}`. Queries are a JSON list of `{"query",
"tools": [names]}`. Without files, those that `given` finds are used.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.figures import Figure, Target
from tests.benchmarks.table import table
from tests.benchmarks.workloads import CATALOG, QUERIES, data_file
from tests.catalog import shelf
from trayapp.catalog.describe import compact
from trayapp.catalog.search.index import Entry, SearchIndex
from trayapp.catalog.tokens import tokens

Catalog = dict[str, list[Entry]]
Queries = Sequence[tuple[str, Sequence[str]]]

OURS = "ours"
LARGE = 10_000  # tools
ROUNDS = 5
LINE = 140  # characters of a description in an answer
RANKS = (1, 5, 10)
KEPT = 0.85  # the fraction of words that copies of a description keep, so that copies have different scores


@dataclass(frozen=True, slots=True)
class Quality:
    """Over all queries: the fraction with a right tool among the first 1, 5 and 10, and the mean reciprocal rank."""

    recall: dict[int, float]
    mrr: float


def load(catalog: Path, queries: Path) -> tuple[Catalog, Queries]:
    """Read a catalog and queries from their files. Raises OSError, ValueError, KeyError."""
    servers: Catalog = {}
    for given in json.loads(catalog.read_text(encoding="utf-8")):
        name, title = given["server"], given.get("title", "")
        servers[name] = [Entry(name, t["name"], f"{name}_{t['name']}", t, title) for t in given["tools"]]
    return servers, [(given["query"], given["tools"]) for given in json.loads(queries.read_text(encoding="utf-8"))]


def given(data: Path | None = None) -> tuple[Catalog, Queries]:
    """Return the catalog and queries from `data`, by default the folder beside the checkout.

    If either file is missing, return the tests' own shelf.
    """
    catalog, queries = data_file(CATALOG, data), data_file(QUERIES, data)
    return load(catalog, queries) if catalog and queries else (shelf.entries(), shelf.QUESTIONS)


def indexed(catalog: Catalog) -> SearchIndex:
    """Return an index of a catalog."""
    index = SearchIndex()
    for server, entries in catalog.items():
        index.update(server, entries)
    return index


def quality(index: SearchIndex, queries: Queries) -> Quality:
    """Return the quality of the answers to the queries."""
    return quality_of([rank(index, words, wanted) for words, wanted in queries])


def quality_of(ranks: Sequence[int]) -> Quality:
    """Return the quality, given the rank of the first right tool for each query."""
    recall = {most: sum(place <= most for place in ranks) / len(ranks) for most in RANKS}
    return Quality(recall, sum(1 / place for place in ranks if place <= RANKS[-1]) / len(ranks))


def rank(index: SearchIndex, words: str, wanted: Sequence[str]) -> int:
    """Return the rank of the first right tool, from 1. If there is none, return one more than the last rank that
    counts.
    """
    found = [hit.name for hit in index.search(words, limit=RANKS[-1])]
    return next((place for place, name in enumerate(found, 1) if name in wanted), RANKS[-1] + 1)


def answer_tokens(index: SearchIndex, catalog: Catalog, queries: Queries) -> list[float]:
    """Return the estimated tokens of the answer to each query, including the parameters of tools."""
    tools = {entry.key: entry.tool for entries in catalog.values() for entry in entries}
    answers = [[(hit, tools[hit.key]) for hit in index.search(words)] for words, _ in queries]
    return [tokens("\n".join(f"{hit.exposed_name}{compact(t)}\n  {line(t)}" for hit, t in hits)) for hits in answers]


def line(tool: Any) -> str:
    """Return the first line of a description, as an answer shows it."""
    description = tool.get("description")
    return description.strip().split("\n")[0][:LINE] if isinstance(description, str) else ""


def enlarged(catalog: Catalog, tools: int) -> Catalog:
    """Return a catalog of `tools` tools: copies of the servers with some words of the descriptions replaced.

    Every run makes the same catalog.
    """
    chance = random.Random(1)
    entries = [entry for inner in catalog.values() for entry in inner]
    words = [word for entry in entries for word in str(entry.tool.get("description") or "").split()]
    large: Catalog = {}
    for number in range(tools):
        entry, copy = entries[number % len(entries)], number // len(entries)
        given = str(entry.tool.get("description") or "").split() if copy else []
        other = " ".join(word if chance.random() < KEPT else chance.choice(words) for word in given)
        tool = {**entry.tool, "description": other} if copy else entry.tool
        server = f"{entry.server}-{copy}"
        large.setdefault(server, []).append(Entry(server, entry.name, f"{server}_{entry.name}", tool))
    return large


def milliseconds(index: SearchIndex, queries: Queries) -> list[float]:
    """Return the median time per query in milliseconds, for each round."""
    return [median(_timed(index, words) for words, _ in queries) for _ in range(ROUNDS)]


def _timed(index: SearchIndex, words: str) -> float:
    start = time.perf_counter()
    index.search(words)
    return (time.perf_counter() - start) * 1000


def figures(catalog: Catalog, queries: Queries, large: int) -> list[Figure]:
    """Measure the quality and speed of the search. The targets are for a catalog of about 500 real tools."""
    size = sum(map(len, catalog.values()))
    builds, index = [], SearchIndex()
    for _ in range(ROUNDS):
        start = time.perf_counter()
        index = indexed(catalog)
        builds.append((time.perf_counter() - start) * 1000)
    found = quality(index, queries)
    start = time.perf_counter()
    many = indexed(enlarged(catalog, large))
    large_ms = (time.perf_counter() - start) * 1000
    return [
        *(_figure(f"recall@{most}", "of the queries", [found.recall[most]], 0.92 if most == 5 else None, True)
          for most in RANKS),
        _figure("MRR", "1/rank", [found.mrr], None),
        _figure("answer, median", "tokens", [median(answer_tokens(index, catalog, queries))], 700),
        _figure(f"index of {size} tools", "ms", builds, 150),
        _figure(f"query among {size} tools", "ms", milliseconds(index, queries), 3),
        _figure(f"index of {large} tools", "ms", [large_ms], None),
        _figure(f"query among {large} tools", "ms", milliseconds(many, queries), 15),
    ]  # fmt: skip


def _figure(name: str, unit: str, rounds: list[float], limit: float | None, at_least: bool = False) -> Figure:
    target = Target("value", limit, at_least) if limit is not None else None
    return Figure(name, unit, {OURS: rounds}, target)


def main() -> int:
    """Measure the search and print the figures. Return 0 even if targets are missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.search", description=__doc__)
    parser.add_argument("--catalog", type=Path, metavar="FILE", help="servers with their tools")
    parser.add_argument("--queries", type=Path, metavar="FILE", help="questions with the tools that answer them")
    parser.add_argument("--large", type=int, default=LARGE, metavar="N", help="tools of the large catalog")
    parser.add_argument(
        "--misses", action="store_true", help="print the queries without a right tool among the first 5"
    )
    options = parser.parse_args()
    if (options.catalog is None) != (options.queries is None):
        parser.error("--catalog and --queries go together")
    catalog, queries = load(options.catalog, options.queries) if options.catalog else given()
    print(table(figures(catalog, queries, options.large)))
    if options.misses:
        index = indexed(catalog)
        missed = [(words, wanted) for words, wanted in queries if rank(index, words, wanted) > 5]
        print("\n".join(f"{words!r}: {', '.join(wanted)}" for words, wanted in missed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
