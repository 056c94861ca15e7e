"""The time until a new client lists its tools: without a gateway, with one, and beside a server that hangs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.benchmarks.client import BrokenError, Client
from tests.benchmarks.figures import OURS, Figure, Target
from tests.benchmarks.starts import BARE, MS, bare_start, spawned
from tests.benchmarks.ways import Home, Way, fresh_home, gateway, through
from tests.benchmarks.workloads import Workload, large, ten
from trayapp.service.gateway_launch import await_gone
from trayapp.wire import control

COLD_MOST_MS, WARM_MOST, HUNG_MOST_MS = 300, 1.6, 1000
PATIENCE_S = 20.0  # longest wait for tools that should appear immediately
LOOK_S = 0.005  # pause between two tools/list requests
STUCK = (sys.executable, "-I", "-S", "-c", "import os\nwhile os.read(0, 65536): pass")  # never answers


def measure_first_lists(cold: int, warm: int, hung: int, data: Path | None = None) -> Iterator[Figure]:
    """Yield the cold, warm and hung figures, each over its number of rounds. Raises BrokenError."""
    yield from cold_lists(cold, data)
    yield from warm_lists(warm, data)
    yield hung_lists(hung, data)


def cold_lists(rounds: int, data: Path | None) -> Iterator[Figure]:
    """Measure starts with a full cache and no gateway, in which the client's command starts the gateway."""
    with fresh_home() as home:
        work = large(home.path / "lists", data)
        work.fill(home.path)
        way = through(home, tool=work.exposed)
        first = Figure(f"no gateway, {work.name}: spawn -> initialize", "ms")
        listed = Figure(f"no gateway, {work.name}: spawn -> tools/list", "ms", target=Target("value", COLD_MOST_MS))
        spawned_alone(home, way)  # a warm-up: files are not yet in memory and bytecode may be missing
        for _ in range(rounds):
            listed.add(BARE, bare_start())  # shows how fast the machine is, because the limit is in milliseconds
            initialized, all_listed = spawned_alone(home, way)
            first.add(OURS, initialized)
            listed.add(OURS, all_listed)
        yield from (first, listed)


def spawned_alone(home: Home, way: Way) -> tuple[float, float]:
    """Measure as `spawned` does, then end the gateway that it started."""
    try:
        return spawned(way)
    finally:
        stop(home)


def warm_lists(rounds: int, data: Path | None) -> Iterator[Figure]:
    """Measure starts with a running gateway, alternating with a bare interpreter."""
    with fresh_home() as home:
        work = ten(home.path / "lists", data)
        work.fill(home.path)
        with gateway(home):
            way = through(home, tool=work.exposed)
            target = Target("ratio", WARM_MOST)
            listed = Figure(f"gateway runs, {work.name}: spawn -> tools/list", "ms", target=target)
            for _ in range(rounds):
                listed.add(BARE, bare_start())
                listed.add(OURS, spawned(way)[1])
        yield listed


def hung_lists(rounds: int, data: Path | None) -> Figure:
    """Measure a first run beside a server that never answers, until the tools of all other servers are listed."""
    figure: Figure | None = None
    for _ in range(rounds):
        with fresh_home() as home:
            work = ten(home.path / "lists", data)
            broken = replace(work, servers={"stuck": STUCK, **work.servers})
            home.write("servers.yaml", broken.servers_yaml())
            name = f"first run, {work.name}, one more hangs: spawn -> the others' tools"
            figure = figure or Figure(name, "ms", target=Target("value", HUNG_MOST_MS))
            figure.add(OURS, until_listed(home, work))
    assert figure is not None
    return figure


def until_listed(home: Home, work: Workload) -> float:
    """Return the milliseconds from spawning the shim until all tools are listed. Then end the gateway."""
    way = through(home)
    start = time.perf_counter()
    try:
        with Client(way.argv, way.env) as client:
            client.initialize()
            client.tools()
            while (found := len(client.ask("tools/list", {})["tools"])) < work.tools:
                if time.perf_counter() - start > PATIENCE_S:
                    raise BrokenError(f"{found} of {work.tools} tools are listed after {PATIENCE_S:g} s")
                time.sleep(LOOK_S)
            return (time.perf_counter() - start) * MS
    finally:
        stop(home)


def stop(home: Home) -> None:
    """End the gateway that a client has started. Raises MultiMcpError if no gateway answers."""
    with home.control() as running:
        pid = running.call(control.SNAPSHOT)["gateway"]["pid"]
        running.call(control.STOP)
    await_gone(pid)
