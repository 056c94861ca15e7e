"""The savings of clients that share servers: the memory of all processes for 1, 5 and 20 clients, and the total calls
per second.

The direct way starts all servers again for each client.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import psutil

from tests.benchmarks.client import BrokenError, Client, Conversation
from tests.benchmarks.figures import OURS, Figure, Target
from tests.benchmarks.peers import until_listed
from tests.benchmarks.ways import DIRECT, Home, environment, fresh_home, gateway, through
from tests.benchmarks.workloads import Workload, real_ten, ten
from trayapp.wire.control import RECONNECT, SETTLE, SNAPSHOT, ControlClient
from trayapp.wire.rundir import run_dir

MIB = 1 << 20  # bytes
CLIENTS = (1, 5, 20)
REAL_CLIENTS = 5  # clients with ten real servers each, so the direct way has 50 server processes
PEER_CLIENTS = (5,)  # some peers start a large process for each client
SHARED_MOST = 0.25  # target, as a fraction of the direct way's memory
CONNECT_LIMIT_S = 120.0  # enough for ten real servers on a busy machine
SIZE, IN_FLIGHT = 100, 8  # characters per answer, and concurrent calls per client
ROUNDS, BOX_S, MOST_CALLS = 3, 0.7, 6000  # rounds, seconds per round, and the most calls per round by all clients
WARM_UP = 200  # calls per client before measuring, because interpreters specialize their code


@dataclass(frozen=True, slots=True)
class Place:
    """A place where clients connect to a workload.

    `connect` connects one client. It returns a conversation per server for the direct way, and only one for a gateway.
    The first conversation is with the server that has `tool`. `pids` are the processes that run without any client.
    """

    name: str
    connect: Callable[[], Sequence[Conversation]]
    tool: str
    pids: tuple[int, ...] = ()


class Reached(Protocol):
    """A running peer, as peers.py provides it."""

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that run without any client."""

    def connect(self) -> Conversation:
        """Return a client that has listed tools. Raises BrokenError."""

    def tool(self, server: str, tool: str) -> str:
        """Return the name under which clients see a server's tool."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place that can be opened for a workload. `foreign`: a failure is recorded, and the measurement continues."""

    name: str
    open: Callable[[Workload], AbstractContextManager[Place]]
    foreign: bool = True


@dataclass(frozen=True, slots=True)
class Weight:
    """Memory as PSS in MiB: memory that processes share is divided among them."""

    servers: float
    others: float  # gateway, shims

    @property
    def total(self) -> float:
        """The memory of all processes."""
        return self.servers + self.others


@contextmanager
def directly(work: Workload) -> Iterator[Place]:
    """Yield the direct way, in which each client starts all servers."""
    argvs = [work.argv, *(argv for name, argv in work.servers.items() if name != work.server)]
    names = [work.server, *(name for name in work.servers if name != work.server)]

    def connect() -> list[Conversation]:
        envs = ({**environment(), **work.env.get(name, {})} for name in names)
        return handshaken([Client(argv, env, foreign=True) for argv, env in zip(argvs, envs, strict=True)])

    yield Place(DIRECT, connect, work.tool)


@contextmanager
def ours(work: Workload) -> Iterator[Place]:
    """Start our gateway, connect all its servers, and yield the place."""
    with fresh_home() as home:
        home.write("servers.yaml", work.servers_yaml(idle_timeout=0))
        with gateway(home) as started:
            connect_all(home)
            way = through(home, tool=work.exposed)
            yield Place(OURS, lambda: handshaken([Client(way.argv, way.env)]), work.exposed, (started.pid,))


def reached(name: str, opened: Callable[[Workload, Path], AbstractContextManager[Reached]]) -> Site:
    """Return another gateway as a site."""

    @contextmanager
    def place(work: Workload) -> Iterator[Place]:
        with fresh_home() as folder, opened(work, folder.path) as reach:

            def connect() -> list[Conversation]:
                client = reach.connect()
                until_listed(client, work.tools)
                return [client]

            yield Place(name, connect, reach.tool(work.server, work.tool), reach.pids)

    return Site(name, place)


def connect_all(home: Home) -> None:
    """Connect all servers of the home's gateway. Raises BrokenError."""
    with ControlClient(run_dir(home.env), CONNECT_LIMIT_S) as control:
        control.call(SETTLE)  # waits until the first run has closed its connections for listing tools
        for server in control.call(SNAPSHOT)["servers"]:  # one by one: RECONNECT for all skips idle ones
            control.call(RECONNECT, {"server": server["name"]})
    home.await_states("connected")


def handshaken(conversations: list[Conversation]) -> list[Conversation]:
    """Shake hands and list the tools in all conversations. Return the conversations. Raises BrokenError."""
    try:
        for one in conversations:
            one.initialize()
            one.tools()
    except BaseException:
        for one in conversations:
            one.close()
        raise
    return conversations


def measure_sharing(peers: Sequence[Site], quick: bool, data: Path | None = None) -> Iterator[Figure | str]:
    """Measure light servers with real definitions for each number of clients, and then real servers. Raises
    BrokenError.
    """
    if sys.platform != "linux":
        yield "Only Linux says which memory processes share."
        return
    own = (Site(DIRECT, directly, foreign=False), Site(OURS, ours, foreign=False))
    with fresh_home() as scratch:
        work = ten(scratch.path / "lists", data)
        yield from compared(work, (*own, *peers), CLIENTS[:2] if quick else CLIENTS, with_calls=True)
    if quick:
        return
    with fresh_home() as scratch:
        try:
            work = real_ten(scratch.path)
        except LookupError as error:
            yield f"No real servers: {error}"
            return
        yield from compared(work, own, (REAL_CLIENTS,), with_calls=False)


def compared(work: Workload, sites: Sequence[Site], counts: Sequence[int], with_calls: bool) -> Iterator[Figure]:
    """Yield the figures of a workload. A foreign site's failure is recorded. Other failures raise BrokenError."""
    figures = {count: of_clients(work, count, with_calls) for count in counts}
    for site in sites:
        for count in PEER_CLIENTS if site.foreign else counts:
            try:
                with site.open(work) as place:
                    for figure, values in measured(place, work, count, figures[count]):
                        figure.rounds[site.name] = values
            except BrokenError as error:
                if not site.foreign:
                    raise
                for figure in figures[count]:
                    if site.name not in figure.rounds:
                        figure.fail(site.name, str(error))
    for some in figures.values():
        yield from some


def of_clients(work: Workload, count: int, with_calls: bool) -> list[Figure]:
    """Return empty figures for a number of clients."""
    who = f"{count} client{'s' if count > 1 else ''}, {work.name}"
    target = None if with_calls else Target("ratio", SHARED_MOST)  # null servers are lighter than any real server
    figures = [
        Figure(f"{who}: memory of all processes", "MiB", target=target),
        Figure(f"{who}: memory without the servers", "MiB", compared=False),
    ]
    return [*figures, Figure(f"{who}: {IN_FLIGHT} calls in flight each", "calls/s")] if with_calls else figures


def measured(
    place: Place, work: Workload, count: int, figures: Sequence[Figure]
) -> Iterator[tuple[Figure, list[float]]]:
    """Measure a place with `count` clients. Yield each figure with the values of its rounds. Raises BrokenError."""
    with crowd(place, count) as clients:
        weight = weigh([*place.pids, *(pid for many in clients for one in many for pid in one.pids)], work)
        yield figures[0], [weight.total]
        if place.name != DIRECT:
            yield figures[1], [weight.others]
        for figure in figures[2:]:
            speaking = [many[0] for many in clients]
            pace = rate_of(speaking, place.tool, IN_FLIGHT) / count
            calls = max(IN_FLIGHT, min(MOST_CALLS // count, int(BOX_S * pace)))
            rate_of(speaking, place.tool, min(WARM_UP, calls))
            yield figure, [rate_of(speaking, place.tool, calls) for _ in range(ROUNDS)]


@contextmanager
def crowd(place: Place, count: int) -> Iterator[list[Sequence[Conversation]]]:
    """Connect `count` clients, and close them after the block."""
    with ExitStack() as stack:
        clients = []
        for _ in range(count):
            many = place.connect()
            for one in many:
                stack.callback(one.close)
            clients.append(many)
        yield clients


def rate_of(clients: Sequence[Conversation], tool: str, calls: int) -> float:
    """Return the calls per second of all clients together. Each client makes `calls` calls, several of them at a time.
    Raises BrokenError.
    """
    failures: list[BrokenError] = []

    def work(client: Conversation) -> None:
        try:
            client.flood(tool, SIZE, calls, IN_FLIGHT)
        except BrokenError as error:
            failures.append(error)

    threads = [threading.Thread(target=partial(work, client)) for client in clients]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    if failures:
        raise failures[0]
    return calls * len(clients) / seconds


def weigh(roots: Sequence[int], work: Workload) -> Weight:
    """Return the memory of these processes and their descendants. Servers are recognized by their command lines."""
    argvs = set(work.servers.values())
    found: dict[int, tuple[float, bool]] = {}
    for root in roots:
        with suppress(psutil.NoSuchProcess):
            _weigh(psutil.Process(root), argvs, False, found)
    servers = sum(pss for pss, is_server in found.values() if is_server)
    return Weight(servers / MIB, sum(pss for pss, _ in found.values()) / MIB - servers / MIB)


def _weigh(
    process: psutil.Process, argvs: set[tuple[str, ...]], below: bool, found: dict[int, tuple[float, bool]]
) -> None:
    is_server = below or tuple(process.cmdline()) in argvs
    found[process.pid] = (process.memory_full_info().pss, is_server)
    for child in process.children():
        with suppress(psutil.NoSuchProcess):
            _weigh(child, argvs, is_server, found)
