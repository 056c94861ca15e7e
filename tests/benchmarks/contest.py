"""A comparison of multi-mcp with other gateways on identical work: calls, starts and memory.

Slow gateways get fewer calls per round, so that their rounds take no longer than those of fast ones.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from tests.benchmarks.calls import IN_FLIGHT, LARGE, MIDDLE, MS, SMALL
from tests.benchmarks.entrants import Entrant, Standing, entrants, standing, turns
from tests.benchmarks.figures import OURS, Figure, percentile
from tests.benchmarks.first import spawned_alone
from tests.benchmarks.first import until_listed as first_run
from tests.benchmarks.peers import Reach, missing, until_listed
from tests.benchmarks.sharing import weigh
from tests.benchmarks.starts import BARE, bare_start
from tests.benchmarks.ways import DIRECT, fresh_home, through
from tests.benchmarks.workloads import Workload, ten, trivial

SIZES = {"100 B": SMALL, "100 KB": MIDDLE, "1 MB": LARGE}
PERCENTS = (50, 99)
FEW = 5  # fewest calls in a round
FIRST_PACE_S = 0.01  # assumed duration of a call before the first measurement


@dataclass(frozen=True, slots=True)
class Effort:
    """The number of rounds of each kind, and the size of a round.

    `box_s` is the approximate duration of a round of calls. `calls` limits the calls of a latency round, and `flood`
    those of a throughput round.
    """

    rounds: int
    starts: int
    cold: int
    box_s: float
    calls: int
    flood: int


FULL = Effort(rounds=5, starts=5, cold=3, box_s=0.3, calls=1000, flood=8000)
QUICK = Effort(rounds=3, starts=2, cold=1, box_s=0.15, calls=300, flood=2000)


def measure_peers(quick: bool, data: Path | None = None) -> Iterator[Figure | str]:
    """Yield all figures, then the missing peers with reasons.

    Raises BrokenError or OSError if the direct way or our gateway breaks.
    """
    effort, everyone = QUICK if quick else FULL, entrants()
    with fresh_home() as scratch:
        one, more = trivial(scratch.path / "lists"), ten(scratch.path / "more", data)
        with standing(everyone, one, scratch.path / "calls") as those:
            yield from call_figures(those, effort)
        for work in (one, more):
            able = [each for each in everyone if each.spawned and (each.gathers or work is one)]
            yield from work_figures(able, work, effort, scratch.path / str(work.tools))
    yield from (f"{name}: {why}" for name, why in missing().items())


def work_figures(able: Sequence[Entrant], work: Workload, effort: Effort, folder: Path) -> Iterator[Figure]:
    """Yield the figures for starts and memory with the servers of `work`."""
    with standing(able, work, folder) as those:
        yield from start_figures(those, effort)
        if sys.platform == "linux":
            yield from memory_figures(those)
    yield cold_figure(able, work, effort, folder / "cold")


# -- calls -----------------------------------------------------------------------------------------------------------


def call_figures(those: Sequence[Standing], effort: Effort) -> Iterator[Figure]:
    """Yield the time per call by answer size, then the calls per second by number in flight."""
    for label, size in SIZES.items():
        figures = [Figure(f"call {label}, p{percent}", "ms") for percent in PERCENTS]
        turns(those, figures, effort.rounds, partial(latency, label, size, effort))
        yield from figures
    for in_flight in IN_FLIGHT:
        figure = Figure(f"{in_flight} in flight", "calls/s")
        turns(those, (figure,), effort.rounds, partial(rate, figure.name, in_flight, effort))
        yield figure


def latency(label: str, size: int, effort: Effort, one: Standing) -> dict[str, float]:
    """Return the median and 99th percentile of one round. With fewer than 100 calls, the latter is the slowest call."""
    client, tool = one.client()
    pace = one.paces.get(label) or median(client.timed(tool, size, 3))
    seconds = client.timed(tool, size, boxed(effort.box_s, pace, FEW, effort.calls))
    one.paces[label] = median(seconds)
    return {f"call {label}, p{percent}": percentile(seconds, percent) * MS for percent in PERCENTS}


def rate(name: str, in_flight: int, effort: Effort, one: Standing) -> dict[str, float]:
    """Return the calls per second of one round."""
    client, tool = one.client()
    pace = one.paces.get(name) or one.paces.get("100 B", FIRST_PACE_S)
    calls = boxed(effort.box_s, pace, max(FEW, in_flight), effort.flood)
    rate = client.flood(tool, SMALL, calls, in_flight)
    one.paces[name] = 1 / rate
    return {name: rate}


def boxed(box_s: float, pace_s: float, least: int, most: int) -> int:
    """Return how many calls of `pace_s` seconds fit into `box_s`, at least `least` and at most `most`."""
    return max(least, min(most, int(box_s / pace_s)))


# -- starts ----------------------------------------------------------------------------------------------------------


def start_figures(those: Sequence[Standing], effort: Effort) -> Iterator[Figure]:
    """Yield the start-up figures of what a client spawns, alternating with a bare interpreter.

    An entrant's gateway, if it has one, is already running.
    """
    about = f"gateway runs, {those[0].work.name}: spawn ->"
    figures = [Figure(f"{about} {until}", "ms") for until in ("initialize", "tools/list")]
    for _ in range(effort.starts):
        bare = bare_start()
        for figure in figures:
            figure.add(BARE, bare)
        turns(those, figures, 1, partial(started, about))
    yield from figures


def started(about: str, one: Standing) -> dict[str, float]:
    """Measure one start, and return its values by figure."""
    initialized, listed = spawn(one.reach(), one.work)
    return {f"{about} initialize": initialized, f"{about} tools/list": listed}


def spawn(reach: Reach, work: Workload) -> tuple[float, float]:
    """Return how long the initialize answer and the full tool list take after the spawn, in ms. Raises BrokenError."""
    start = time.perf_counter()
    with reach.opened() as client:
        client.initialize()
        initialized = time.perf_counter() - start
        until_listed(client, work.tools)
        return initialized * MS, (time.perf_counter() - start) * MS


def cold_figure(able: Sequence[Entrant], work: Workload, effort: Effort, folder: Path) -> Figure:
    """Measure cold starts, in which the client also starts the gateway.

    Ours is measured with cached servers and on a first run.
    """
    figure = Figure(f"nothing runs, {work.name}: spawn -> tools/list", "ms", compared=False)
    with standing([one for one in able if one.foreign], work, folder) as those:
        for number in range(effort.cold):
            figure.add(OURS, cold_ours(work))
            figure.add(f"{OURS}, first run", first_run_of(work))
            turns(those, (figure,), 1, partial(cold, figure.name, folder / str(number)))
    return figure


def cold(name: str, folder: Path, one: Standing) -> dict[str, float]:
    """Measure one cold start of a peer."""
    start = time.perf_counter()
    with one.entrant.open(one.work, folder / one.name.replace("/", " ")) as reach, reach.opened() as client:
        client.initialize()
        until_listed(client, one.work.tools)
        return {name: (time.perf_counter() - start) * MS}


def cold_ours(work: Workload) -> float:
    """Measure one start of our gateway in a home filled by a first run, in milliseconds."""
    with fresh_home() as home:
        work.fill(home.path)
        return spawned_alone(home, through(home, tool=work.exposed))[1]


def first_run_of(work: Workload) -> float:
    """Measure one start of our gateway in a home with only the servers' names and commands, in milliseconds."""
    with fresh_home() as home:
        home.write("servers.yaml", work.servers_yaml())
        return first_run(home, work)


# -- memory ----------------------------------------------------------------------------------------------------------


def memory_figures(those: Sequence[Standing]) -> Iterator[Figure]:
    """Yield the memory use with one client that has listed all tools and made some calls."""
    own, servers = (
        Figure(f"1 client, {those[0].work.name}: memory {what}", "MiB", compared=False)
        for what in ("without the servers", "of the servers")
    )
    turns([one for one in those if one.name != DIRECT], (own, servers), 1, partial(weights, own.name, servers.name))
    yield from (own, servers)


def weights(own: str, servers: str, one: Standing) -> dict[str, float]:
    """Return the PSS in MiB of the servers, and of everything else."""
    client, _ = one.client()  # a client that has made some calls
    until_listed(client, one.work.tools)
    weight = weigh([*one.reach().pids, *client.pids], one.work)
    return {own: weight.others, servers: weight.servers}
