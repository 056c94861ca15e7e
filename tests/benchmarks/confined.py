"""The cost of confinement for a server's start and calls, compared with the same server unconfined."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import anyio

from tests.backends.world import real_connection
from tests.benchmarks import null_server
from tests.benchmarks.figures import OURS, Figure, Target
from tests.benchmarks.run import Measured
from trayapp.confinement.start import NoMechanismError, choose_mechanism
from trayapp.model.config import Confine, Confining, ServerConfig

MS = 1000.0  # milliseconds per second
CALLS = 200  # calls to each started server
CALL = {"name": "echo", "arguments": {"size": 100}}
WAYS: dict[str, Confining] = {"not confined": False, f"{OURS}, confined": Confine()}


def measure_confined(rounds: int) -> Iterator[Measured]:
    """Measure the time from a server's spawn to its first answer, and the time of further calls."""
    try:
        yield f"Confined by {choose_mechanism(True, False)}."
    except NoMechanismError as error:
        yield f"Servers cannot be confined here: {error.reason}"
        return
    first = Figure("start of a server until its first answer", "ms", target=Target("added", 5.0))
    call = Figure("call of a server, 100 B", "ms", target=Target("ratio", 1.1))
    for _ in range(rounds + 1):
        for way, confine in WAYS.items():
            started, called = anyio.run(spawned, confine)
            first.add(way, started)
            call.add(way, called)
    for figure in (first, call):
        for values in figure.rounds.values():
            del values[0]  # the first confined start also loads the confining code
        yield figure


async def spawned(confine: Confining) -> tuple[float, float]:
    """Return how long a server takes from its spawn to its first answer, and how long a call takes, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        args = ("-I", "-S", str(Path(null_server.__file__)))
        server = ServerConfig("null", command=sys.executable, args=args, cwd=folder, confine=confine)
        start = time.perf_counter()
        async with real_connection(server, environ={"MULTI_MCP_HOME": f"{folder}/home"}) as (connection, _):
            await connection.request("tools/call", CALL)
            started = time.perf_counter()
            for _ in range(CALLS):
                await connection.request("tools/call", CALL)
            return (started - start) * MS, (time.perf_counter() - started) / CALLS * MS
