"""Sequential and concurrent calls, measured for every way in turn."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

import psutil

from tests.benchmarks.client import Client
from tests.benchmarks.figures import Figure, Target, percentile
from tests.benchmarks.ways import Way

MS = 1000.0  # milliseconds per second
SMALL, PARSED, MIDDLE, LARGE = 100, 50_000, 100_000, 1 << 20  # characters of text (wire/framing parses up to 64 KiB)
IN_FLIGHT = (1, 8, 64)


@dataclass(frozen=True, slots=True)
class Effort:
    """The numbers of rounds, and of calls per way and round.

    Small calls are spread over more rounds, because their speed varies threefold. For seconds at a time, the scheduler
    keeps two processes on one core or on two.
    """

    rounds: int
    small_rounds: int
    small: int
    middle: int
    large: int
    flood: int  # calls of a round with 8 or 64 in flight


FULL = Effort(rounds=9, small_rounds=45, small=200, middle=150, large=25, flood=12_000)
QUICK = Effort(rounds=4, small_rounds=16, small=100, middle=40, large=10, flood=5_000)
WARM_UP = 200  # calls before measuring, in which interpreters specialize code and buffers grow


def measure_calls(ways: Sequence[Way], effort: Effort) -> Iterator[Figure]:
    """Yield the time per call by answer size, and the calls per second by number in flight. Raises BrokenError."""
    small = (
        Figure("call 100 B, p50", "ms", target=Target("ratio", 3.2)),
        Figure("call 100 B, p99", "ms", target=Target("ratio", 4.0)),
    )
    on_one_core = (Figure("call 100 B, all processes on one core, p50", "ms"),)
    parsed = (Figure("call 50 KB, p50", "ms"),)
    middle = (Figure("call 100 KB, p50", "ms"), Figure("call 100 KB, p99", "ms"))
    large = (Figure("call 1 MB, p50", "ms", target=Target("ratio", 2.0)),)
    with connected(ways) as clients:
        turns = partial(in_turns, ways, clients, effort.rounds)
        small_turns = partial(in_turns, ways, clients, effort.small_rounds)
        small_turns(partial(latency, small, SMALL, effort.small))
        yield from small
        if sys.platform == "linux":
            with one_core():
                small_turns(partial(latency, on_one_core, SMALL, effort.small))
            yield from on_one_core
        for figures, size, calls in (
            (parsed, PARSED, effort.middle),
            (middle, MIDDLE, effort.middle),
            (large, LARGE, effort.large),
        ):
            turns(partial(latency, figures, size, calls))
            yield from figures
        for in_flight in IN_FLIGHT:
            target = Target("ratio", 1 / 3, at_least=True) if in_flight == max(IN_FLIGHT) else None
            figure = Figure(f"{in_flight} in flight", "calls/s", target=target)
            turns(partial(rate, figure, effort.flood if in_flight > 1 else effort.flood // 6, in_flight))
            yield figure


@contextmanager
def connected(ways: Sequence[Way]) -> Iterator[Mapping[str, Client]]:
    """Yield a warmed-up client for each way. Its processes end with the block."""
    with ExitStack() as stack:
        clients = {way.name: stack.enter_context(way.connect()) for way in ways}
        for way in ways:
            clients[way.name].timed(way.tool, SMALL, WARM_UP)
            clients[way.name].timed(way.tool, LARGE, 2)
        yield clients


@contextmanager
def one_core() -> Iterator[None]:
    """Pin this process and its descendants to one core, to measure the total processor cost of a call."""
    everybody = [psutil.Process(), *psutil.Process().children(recursive=True)]
    before = dict[int, set[int]]()
    try:
        for thread in [thread.id for process in everybody for thread in process.threads()]:
            with suppress(ProcessLookupError):  # the thread may have just ended
                before[thread] = os.sched_getaffinity(thread)
                os.sched_setaffinity(thread, {min(before[thread])})
        yield
    finally:
        for thread, cores in before.items():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread, cores)


def in_turns(
    ways: Sequence[Way], clients: Mapping[str, Client], rounds: int, measure: Callable[[Way, Client], None]
) -> None:
    """Measure the ways alternately, so that other work on the machine affects all of them alike."""
    for _ in range(rounds):
        for way in ways:
            with without_collections():
                measure(way, clients[way.name])


@contextmanager
def without_collections() -> Iterator[None]:
    """Prevent garbage collections in this process, which would add to a way's time."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def latency(figures: Sequence[Figure], size: int, calls: int, way: Way, client: Client) -> None:
    """Measure one round: the median and, if there is a second figure, the 99th percentile."""
    seconds = client.timed(way.tool, size, calls)
    for figure, percent in zip(figures, (50, 99), strict=False):
        figure.add(way.name, percentile(seconds, percent) * MS)


def rate(figure: Figure, calls: int, in_flight: int, way: Way, client: Client) -> None:
    """Measure one round of calls per second."""
    figure.add(way.name, client.flood(way.tool, SMALL, calls, in_flight))
