"""The growth curves: start, list, call, search and memory for 10 to 10,000 tools, 1 to 200 servers and 1 to 100
sessions.

Each size has its own gateway with a full cache, as after a first run. List, call and search are measured as CPU time of
the gateway and the shim, so the client's own work does not count. Other load on the machine only makes values larger,
so the least of several measurements counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import psutil

from tests.benchmarks.client import Client, request
from tests.benchmarks.curves import Curve
from tests.benchmarks.idle import LINUX, MIB, cpu_s
from tests.benchmarks.starts import MS, cold_start
from tests.benchmarks.ways import Home, Way, fresh_home, gateway, through
from tests.benchmarks.workloads import Workload, sized

TOOLS = (10, 30, 100, 300, 1_000, 3_000, 10_000)
SERVERS = (1, 2, 5, 10, 20, 50, 100, 200)
SESSIONS = (1, 2, 5, 10, 20, 50, 100)
QUICK_TOOLS, QUICK_SERVERS, QUICK_SESSIONS = (10, 300, 3_000), (1, 10, 50), (1, 5, 20)
AMONG = 10  # servers, while tools or sessions grow
EACH = 10  # tools per server, while servers grow
STARTS, LISTS, SEARCHES = 3, 8, 15
ROUNDS, CALLS = 4, 150  # the fastest round's mean counts
REST_S, RESTED_S, REST_LIMIT_S = 0.1, 0.002, 20.0  # polling interval, most CPU time in it at rest, longest wait
WARM_UP = 200  # calls
WORDS = "close the issues of a repository"
LIST = request(0, "tools/list", {})
SIZE = 100  # characters per answer

Points = dict[str, tuple[str, float]]  # cost -> (unit, value)


def measure_curves(quick: bool) -> Iterator[Curve]:
    """Yield the curves of every axis. Raises BrokenError."""
    yield from curves("tools", QUICK_TOOLS if quick else TOOLS, of_tools)
    yield from curves("servers", QUICK_SERVERS if quick else SERVERS, of_servers)
    yield from curves("sessions", QUICK_SESSIONS if quick else SESSIONS, of_sessions)


def curves(axis: str, sizes: Sequence[int], measure: Callable[[int], Points]) -> list[Curve]:
    """Run `measure` for each size, and return a curve for each cost."""
    found: dict[str, Curve] = {}
    for size in sizes:
        for name, (unit, value) in measure(size).items():
            curve = found.setdefault(name, Curve(axis, name, unit, flat=name == "call"))
            curve.points[size] = value
    return list(found.values())


def of_tools(tools: int) -> Points:
    """Measure ten servers with `tools` tools in all, and one session."""
    with fresh_home() as home:
        work = filled(home, AMONG, tools)
        start = min(cold_start(home, AMONG, tools) for _ in range(STARTS))
        with gateway(home) as started, through(home, tool=work.exposed).connect() as client:
            costs = asked(client, work, started.pid)
            return {"start": ("ms", start), **costs, "memory": ("MiB", memory(started.pid))}


def of_servers(servers: int) -> Points:
    """Measure `servers` running servers, and one session."""
    with fresh_home() as home:
        work = filled(home, servers, servers * EACH)
        start = min(cold_start(home, servers, servers * EACH) for _ in range(STARTS))
        with gateway(home) as started, through(home, tool=work.exposed).connect() as client:
            for name in work.servers:
                client.timed(f"{name}_{work.tool}", SIZE, 1)
            costs = asked(client, work, started.pid)
            return {"start": ("ms", start), **costs, "memory": ("MiB", memory(started.pid))}


def of_sessions(sessions: int) -> Points:
    """Measure the costs with `sessions` sessions. The start is that of one more client, until its tools are listed."""
    with fresh_home() as home:
        work = filled(home, AMONG, 300)
        with gateway(home) as started, ExitStack() as stack:
            way = through(home, tool=work.exposed)
            clients = [stack.enter_context(way.connect()) for _ in range(sessions)]
            for client in clients:
                client.timed(work.exposed, SIZE, 1)
            costs = asked(clients[0], work, started.pid)
            weight = memory(started.pid, *(client.process.pid for client in clients))
            return {"start": ("ms", min(one_more(way) for _ in range(STARTS))), **costs, "memory": ("MiB", weight)}


def filled(home: Home, servers: int, tools: int) -> Workload:
    """Fill the home with a workload whose servers start with their first call and keep running. Return the workload."""
    work = sized(home.path / "lists", servers, tools)
    work.fill(home.path, idle_timeout=0)
    return work


def asked(client: Client, work: Workload, pid: int) -> Points:
    """Measure list, call and search in milliseconds of CPU time, after the gateway has come to rest."""
    pids = (pid, *client.pids)
    search(client)  # the first search builds the index
    rest(pid)
    client.timed(work.exposed, SIZE, WARM_UP)
    calls = (spent(pids, lambda: client.timed(work.exposed, SIZE, CALLS)) / CALLS for _ in range(ROUNDS))
    return {
        "list": ("ms", min(spent(pids, lambda: client.exchange(LIST)) for _ in range(LISTS))),
        "call": ("ms", min(calls)),
        "search": ("ms", min(spent(pids, lambda: search(client)) for _ in range(SEARCHES))),
    }


def rest(pid: int) -> None:
    """Wait until the gateway is at rest after a start or a connection, or until the time limit."""
    until, before = time.monotonic() + REST_LIMIT_S, cpu_s(pid)
    while time.monotonic() < until:
        time.sleep(REST_S)
        if (now := cpu_s(pid)) - before < RESTED_S:
            return
        before = now


def search(client: Client) -> None:
    """Search once with the tool `mcp`, which can be called even if it is not listed. Raises BrokenError."""
    client.ask("tools/call", {"name": "mcp", "arguments": {"search": WORDS}})


def one_more(way: Way) -> float:
    """Return the milliseconds that an additional client takes from its spawn until it has listed its tools."""
    start = time.perf_counter()
    with way.connect():
        return (time.perf_counter() - start) * MS


def spent(pids: Sequence[int], work: Callable[[], object]) -> float:
    """Do the work. Return the milliseconds of CPU time that the processes used meanwhile."""
    before = sum(map(cpu_s, pids))
    work()
    return (sum(map(cpu_s, pids)) - before) * MS


def memory(*pids: int) -> float:
    """Return the memory of these processes without their servers, in MiB. On Linux, shared memory is divided among its
    users.
    """
    processes = [psutil.Process(pid) for pid in pids]
    used = [p.memory_full_info().pss if LINUX else p.memory_info().rss for p in processes]
    return float(sum(used)) / MIB
