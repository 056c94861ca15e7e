"""The processor time and wake-ups of an idle gateway with ten servers."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.benchmarks.figures import OURS, Figure, Target
from tests.benchmarks.ways import fresh_home, gateway, through
from tests.benchmarks.workloads import sized

MIB = 1 << 20  # bytes
SERVERS = 10
SETTLE_S = 3.0  # enough for the work after a start or a change to end
SOON_IDLE_MIN = 0.005  # in minutes, so short that unused servers close soon
UNFOUND = {"port": 0}  # a random port, because one stray connection would load all the HTTP code
LINUX = sys.platform == "linux"


def measure_idle(seconds: float) -> Iterator[Figure]:
    """Yield the gateway's figures with one client: with all servers connected, then with all closed as idle.

    Raises BrokenError.
    """
    with fresh_home() as home:
        work = sized(home.path / "lists", SERVERS, SERVERS)
        home.write("servers.yaml", work.servers_yaml(idle_timeout=0, http=UNFOUND))
        with gateway(home) as started:
            home.settle()
            with through(home, tool=work.exposed).connect() as client:
                for name in work.servers:
                    client.timed(f"{name}_{work.tool}", 100, 1)
                yield from watched(started.pid, seconds, f"{SERVERS} servers connected")
                home.write("servers.yaml", work.servers_yaml(idle_timeout=SOON_IDLE_MIN, http=UNFOUND))
                home.await_states("idle")
                yield from watched(started.pid, seconds, f"{SERVERS} servers idle")


def watched(pid: int, seconds: float, when: str) -> Iterator[Figure]:
    """Yield the share of one core in percent, and the wake-ups per second."""
    time.sleep(SETTLE_S)
    meter = Meter(pid)
    time.sleep(seconds)
    share = Figure(f"gateway idle, {when}", "% of a core", target=Target("value", 0.05))
    share.add(OURS, meter.percent())
    switches = Figure(f"gateway idle, {when}", "wake-ups/s", target=Target("value", 1.0))
    switches.add(OURS, meter.wake_ups())
    yield from (share, switches)


class Meter:
    """A meter of a process's CPU time and wake-ups. Linux counts wake-ups by thread, other systems in total."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._began, self._used, self._woken = time.perf_counter(), cpu_s(pid), wake_ups(pid)

    def percent(self) -> float:
        """Return the share of one core in percent."""
        return (cpu_s(self._pid) - self._used) / (time.perf_counter() - self._began) * 100

    def wake_ups(self) -> float:
        """Return the wake-ups per second, without those of threads that have ended."""
        woken = wake_ups(self._pid).items()
        count = sum(now - self._woken.get(thread, 0) for thread, now in woken)
        return count / (time.perf_counter() - self._began)


def cpu_s(pid: int) -> float:
    """Return a process's processor seconds, including those of ended threads. Linux counts them in nanoseconds."""
    if LINUX:
        return time.clock_gettime((~pid << 3) | 2)  # clock_getcpuclockid(3)
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def wake_ups(pid: int) -> dict[str, int]:
    """Return the voluntary context switches so far, by thread on Linux and in total elsewhere."""
    if not LINUX:
        return {"": int(psutil.Process(pid).num_ctx_switches().voluntary)}
    label = "voluntary_ctxt_switches:"
    counts = {}
    for task in tasks(pid):
        lines = (task / "status").read_text().splitlines()
        counts[task.name] = sum(int(line.split()[1]) for line in lines if line.startswith(label))
    return counts


def tasks(pid: int) -> list[Path]:
    """Return the folders of a process's threads."""
    return list(Path(f"/proc/{pid}/task").iterdir())
