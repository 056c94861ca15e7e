"""Start times from a spawn to an answer: of the shim while the gateway runs, and of the gateway."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from tests.benchmarks.catalog import SERVERS, TOOLS, write_catalog
from tests.benchmarks.client import BrokenError, Client, limit
from tests.benchmarks.figures import OURS, Figure, Target
from tests.benchmarks.ways import Home, Way, environment, fresh_home, gateway

MS = 1000.0  # milliseconds per second
BARE = "python -c pass"


def measure_shims(ways: Sequence[Way], pairs: int) -> Iterator[Figure]:
    """Measure the time from a client's spawn to the answers of initialize and tools/list, beside a bare interpreter.

    Raises BrokenError.
    """
    first = Figure("spawn -> initialize", "ms", target=Target("ratio", 2.0))
    listed = Figure("spawn -> tools/list", "ms")
    for _ in range(pairs + 1):
        bare = bare_start()
        first.add(BARE, bare)
        listed.add(BARE, bare)
        for way in ways:
            initialized, all_listed = spawned(way)
            first.add(way.name, initialized)
            listed.add(way.name, all_listed)
    for figure in (first, listed):
        for values in figure.rounds.values():
            del values[0]  # the first round reads files from disk and may write bytecode
        yield figure


def bare_start() -> float:
    """Return how long a bare interpreter takes to start and exit, in milliseconds."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", "pass"], env=environment(), stdin=subprocess.DEVNULL)
    with limit(process):
        code = process.wait()  # a timeout would make wait() poll every few milliseconds
    seconds = time.perf_counter() - start
    if code != 0:
        raise BrokenError(f"a bare interpreter ends with {code}")
    return seconds * MS


def spawned(way: Way) -> tuple[float, float]:
    """Spawn the way's process. Return the milliseconds until initialize and until tools/list were answered."""
    start = time.perf_counter()
    with Client(way.argv, way.env) as client:
        client.initialize()
        initialized = time.perf_counter() - start
        if way.tool not in client.tools():
            raise BrokenError(f"{way.name} does not list {way.tool}")
        return initialized * MS, (time.perf_counter() - start) * MS


def measure_cold_starts(rounds: int) -> Iterator[Figure]:
    """Measure the time from the spawn of `multi-mcp start` to its first answer, with one server and with a large cached
    catalog.
    """
    with ExitStack() as stack:
        one, many = stack.enter_context(fresh_home()), stack.enter_context(fresh_home())
        one.configure()
        with gateway(one):
            one.settle()  # the first run writes the cache
        write_catalog(many.path)
        few = Figure("gateway cold start, 1 server", "ms")
        full = Figure(f"gateway cold start, {SERVERS} servers", "ms")
        for _ in range(rounds):
            few.add(OURS, cold_start(one, 1, 1))
            full.add(OURS, cold_start(many, SERVERS, TOOLS))
        yield from (few, full)


def cold_start(home: Home, servers: int, tools: int) -> float:
    """Return the milliseconds until the gateway's first snapshot. Raises BrokenError if it lacks a server or a tool, or
    if it shows a running server.
    """
    with gateway(home) as started:
        rows = started.snapshot["servers"]
        found = (len(rows), sum(row["tools"]["total"] for row in rows), [row["name"] for row in rows if row["pid"]])
        if found != (servers, tools, []):
            raise BrokenError(f"the gateway knows {found} (servers, tools, running), not {servers} and {tools}")
        return started.seconds * MS
