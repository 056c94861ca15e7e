"""The time that `multi-mcp approve --all --yes` takes after every tool of many servers has changed."""

from __future__ import annotations

import subprocess
import time

from tests.benchmarks import catalog
from tests.benchmarks.client import BrokenError
from tests.benchmarks.figures import OURS, Figure, Target
from tests.benchmarks.ways import Home, fresh_home, gateway
from tests.benchmarks.workloads import ECHO, Workload, replayed
from trayapp.catalog import approval_store
from trayapp.catalog.approval_store import Pin, definition_hash, pinned
from trayapp.cli.output import UNATTENDED
from trayapp.config.paths import find_paths
from trayapp.service.command_line import own_command

SERVERS, TOOLS = 60, 1_300
MOST_S = 2.0
PATIENCE_S = 60.0


def measure_approving(rounds: int) -> Figure:
    """Measure how long the command takes from its spawn to its end. Raises BrokenError unless it approves all tools."""
    figure = Figure(f"approve --all --yes, {SERVERS} servers, {TOOLS:,} tools", "s", target=Target("value", MOST_S))
    for _ in range(rounds):
        with fresh_home() as home:
            work = _changed(home)
            with gateway(home):
                figure.add(OURS, _approved(home, work.tools))
    return figure


def _approved(home: Home, tools: int) -> float:
    began = time.perf_counter()
    argv = [*own_command(), "approve", "--all", "--yes"]
    done = subprocess.run(
        argv, env={**home.env, UNATTENDED: "1"}, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    taken = time.perf_counter() - began
    if done.returncode or done.stdout.count("\nApproved: ") != tools:
        raise BrokenError(f"approve ends with {done.returncode}: {(done.stdout + done.stderr)[-300:]}")
    return taken


def _changed(home: Home) -> Workload:
    """Fill a home in which every tool's description differs from the approved one. Return the workload."""
    each = [(at + 1) * TOOLS // SERVERS - at * TOOLS // SERVERS for at in range(SERVERS)]
    shelf = {
        f"server-{at:02d}": [ECHO, *(catalog.tool(f"server-{at:02d}", number) for number in range(count - 1))]
        for at, count in enumerate(each)
    }
    work = replayed("approving", shelf, home.path / "lists")
    work.fill(home.path)
    folder = find_paths(home.env).config_file.with_name(approval_store.FOLDER_NAME)
    for server, tools in shelf.items():
        earlier = [{**tool, "description": f"Earlier: {tool['description']}"} for tool in tools]
        pins = {str(tool["name"]): Pin(definition_hash(tool), pinned(tool)) for tool in earlier}
        approval_store.save(folder, server, pins)
    return work
