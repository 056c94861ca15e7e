"""`python -m tests.benchmarks.growth [SIZES]` measures the gateway's CPU time per tool, in a first and a later start.

Each server is a real process with twenty tools. The default sizes are 500, 1,000 and 2,000 tools. A figure that rises
with the size shows work that grows faster than the catalog.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread
import psutil

from tests.benchmarks.catalog import tool
from tests.benchmarks.exposure import EACH, OURS, SIZES
from tests.benchmarks.figures import Figure
from tests.benchmarks.table import table
from tests.e2e.gateway import Gateway
from tests.fixtures import replay_server
from trayapp.wire.control import SETTLE, ControlClient

MS = 1000.0  # milliseconds per second
LONGEST_S = 300.0  # limit of a first run with 100 servers on a busy machine


def figures(sizes: Sequence[int] = SIZES) -> list[Figure]:
    """Return the CPU milliseconds per tool for each size, of a first run and of a later start."""
    return [figure for size in sizes for figure in _of(size)]


def _of(size: int) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        home.mkdir()
        gateway = Gateway(home)
        gateway.write(_servers(Path(folder, "catalog.json"), size), defer_above=size)
        taken = {"first run": anyio.run(_started, gateway, True), "later start": anyio.run(_started, gateway, False)}
    return [Figure(f"{size} tools: {what}", "ms a tool", {OURS: [ms / size]}) for what, ms in taken.items()]


def _servers(catalog: Path, size: int) -> dict[str, dict[str, list[str]]]:
    names = [f"service-{place:03d}" for place in range(size // EACH)]
    lines = [json.dumps({"server": name, "tools": [tool(name, number) for number in range(EACH)]}) for name in names]
    catalog.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    program = [sys.executable, "-S", replay_server.__file__, str(catalog)]
    return {name: {"command": [*program, name]} for name in names}


async def _started(gateway: Gateway, first: bool) -> float:
    """Run the gateway until a client has its list and, if `first`, all servers are known. Return its CPU time in ms."""
    gateway.start()
    async with gateway.client() as client:
        if first:
            await anyio.to_thread.run_sync(_settled, gateway.run)
        await client.tools()
        spent = psutil.Process(gateway.pid).cpu_times()
    gateway.stop()
    return (spent.user + spent.system) * MS


def _settled(run: str) -> None:
    with ControlClient(run, LONGEST_S) as control:
        control.call(SETTLE, {})


def main() -> int:
    """Measure and print the figures. Always return 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.growth", description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, metavar="TOOLS")
    print(table(figures(parser.parse_args().sizes)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
