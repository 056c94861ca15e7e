"""The memory use with 300 tools: at first, after many calls, with many clients, and with HTTP in use.

The servers' memory is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from tests.benchmarks.client import Client
from tests.benchmarks.figures import OURS, Figure, Target
from tests.benchmarks.http_client import HttpClient
from tests.benchmarks.idle import UNFOUND
from tests.benchmarks.sizes import SIZE, WARM_UP, memory, rest
from tests.benchmarks.ways import Home, Way, fresh_home, gateway, through
from tests.benchmarks.workloads import Workload, ten
from trayapp.gateway.http.port import TOKEN_NAME

CALLS, CLIENTS, QUICK_CLIENTS = 5_000, 20, 5


def measure_memory(quick: bool, data: Path | None = None) -> Iterator[Figure]:
    """Yield all memory figures of one gateway after its first run. Raises BrokenError."""
    with fresh_home() as home:
        work = ten(home.path / "lists", data)
        home.write("servers.yaml", work.servers_yaml(idle_timeout=0, http=UNFOUND))
        with gateway(home) as started:
            home.settle()
            with through(home, tool=work.exposed).connect() as client:
                yield from of_gateway(home, work, started.pid, client, QUICK_CLIENTS if quick else CLIENTS)


def of_gateway(home: Home, work: Workload, pid: int, client: Client, clients: int) -> Iterator[Figure]:
    """Yield the memory figures in MiB, measured one after the other."""
    client.timed(work.exposed, SIZE, WARM_UP)
    alone = resident(pid, client)
    yield figure(f"gateway and one shim, {work.tools} tools", alone, 48)
    client.timed(work.exposed, SIZE, CALLS)
    yield figure(f"more after {CALLS:,} calls", resident(pid, client) - alone, 2)
    yield figure(f"each of {clients} clients more", further(through(home, tool=work.exposed), pid, client, clients), 5)
    with over_http(home) as other:
        other.initialize()
        other.timed(work.exposed, SIZE, len(other.tools()))
        yield figure("gateway and one shim, HTTP in use", resident(pid, client), 60)


def further(way: Way, pid: int, client: Client, clients: int) -> float:
    """Return the memory in MiB that each further client adds, in shim and gateway, after its first calls."""
    before = resident(pid, client)
    with ExitStack() as stack:
        others = [stack.enter_context(way.connect()) for _ in range(clients)]
        for other in others:
            other.timed(way.tool, SIZE, WARM_UP)
        return (resident(pid, client, *others) - before) / clients


def over_http(home: Home) -> HttpClient:
    """Return a client connected to the gateway's HTTP port."""
    token = (home.path / TOKEN_NAME).read_text(encoding="ascii").strip()
    return HttpClient(home.snapshot()["gateway"]["http_url"], {"Authorization": f"Bearer {token}"})


def resident(pid: int, *clients: Client) -> float:
    """Let the gateway become idle, then return its memory and that of these clients' shims, in MiB."""
    rest(pid)
    return memory(pid, *(client.process.pid for client in clients))


def figure(name: str, mib: float, limit: float) -> Figure:
    """Return a figure with one round of our way."""
    found = Figure(name, "MiB", target=Target("value", limit))
    found.add(OURS, mib)
    return found
