"""What the processes cost while nobody asks them anything: processor time, wake-ups, memory.

Never here: calls, starts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.benchmarks.figures import OURS, Figure, Target
from tests.benchmarks.ways import Home, Way

MIB = 1 << 20  # bytes
SETTLE_S = 1.0  # what the last request or change set off is over by then
SOON_IDLE_MIN = 0.005  # minutes until an unused server is closed: at once, for the second half
LINUX = sys.platform == "linux"


def measure_idle(home: Home, way: Way, pid: int, seconds: float) -> Iterator[Figure]:
    """The gateway with one client: its server connected, then closed for being idle; then all that is resident."""
    with way.connect() as client:
        client.timed(way.tool, 100, 10)
        home.await_state("connected")
        yield from watched(pid, seconds, "1 server connected")
        home.configure(SOON_IDLE_MIN)
        home.await_state("idle")
        yield from watched(pid, seconds, "none connected")
        yield from resident(pid, "gateway")
        yield from resident(client.process.pid, "shim")


def watched(pid: int, seconds: float, when: str) -> Iterator[Figure]:
    """Per cent of one core, and how often it gave the processor up by itself, each second."""
    time.sleep(SETTLE_S)
    start, used, woken = time.perf_counter(), cpu_s(pid), wake_ups(pid)
    time.sleep(seconds)
    used, woken, passed = cpu_s(pid) - used, wake_ups(pid) - woken, time.perf_counter() - start
    share = Figure(f"gateway idle, {when}", "% of a core", target=Target("value", 0.5))
    share.add(OURS, used / passed * 100)
    yield share
    switches = Figure(f"gateway idle, {when}", "wake-ups/s")
    switches.add(OURS, woken / passed)
    yield switches


def resident(pid: int, whose: str) -> Iterator[Figure]:
    """Memory of one process: all of it, and with what it shares with others divided among them (Linux only)."""
    process = psutil.Process(pid)
    whole = Figure(f"{whose} resident, RSS", "MiB")
    whole.add(OURS, process.memory_info().rss / MIB)
    yield whole
    if LINUX:
        share = Figure(f"{whose} resident, PSS", "MiB")
        share.add(OURS, process.memory_full_info().pss / MIB)
        yield share


def cpu_s(pid: int) -> float:
    """Processor seconds of a process and its threads: on Linux to the nanosecond, elsewhere to the clock's tick."""
    if LINUX:
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks(pid)) / 1e9
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def wake_ups(pid: int) -> int:
    """Voluntary context switches of a process and its threads: each is a wait that something ended."""
    if not LINUX:
        return int(psutil.Process(pid).num_ctx_switches().voluntary)
    label = "voluntary_ctxt_switches:"
    lines = (line for task in tasks(pid) for line in (task / "status").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith(label))


def tasks(pid: int) -> list[Path]:
    """The folders of a process's threads."""
    return list(Path(f"/proc/{pid}/task").iterdir())
