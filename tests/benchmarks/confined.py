"""What confinement costs a server: its start until the first answer, and a call; in turns with the same one free."""

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

MS = 1000.0  # in a second
CALLS = 200  # of one server
CALL = {"name": "echo", "arguments": {"size": 100}}
WAYS: dict[str, Confining] = {"not confined": False, f"{OURS}, confined": Confine()}


def measure_confined(rounds: int) -> Iterator[Measured]:
    """Spawn to the first call answered, and the calls after it."""
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
            del values[0]  # the first confined start loads what confines
        yield figure


async def spawned(confine: Confining) -> tuple[float, float]:
    """Return the milliseconds from the spawn of a server to its first answer, and of a call."""
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
