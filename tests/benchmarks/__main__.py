"""`python -m tests.benchmarks [--quick] [--json FILE]`: measure, print a table, say which targets are met.

Exit code 0 whatever the figures say, 1 when a measurement broke. Never here: how anything is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tests.benchmarks import calls
from tests.benchmarks.calls import measure_calls
from tests.benchmarks.client import BrokenError
from tests.benchmarks.figures import OURS, Figure
from tests.benchmarks.idle import measure_idle
from tests.benchmarks.starts import measure_cold_starts, measure_shims
from tests.benchmarks.table import table
from tests.benchmarks.tray import measure_tray
from tests.benchmarks.ways import direct, fresh_home, gateway, has_script, isolated_shim, through
from trayapp import __version__
from trayapp.model.errors import MultiMcpError

SPAWN_PAIRS, IDLE_S, COLD_STARTS, CHANGES = 30, 20.0, 7, 10
QUICK_SPAWN_PAIRS, QUICK_IDLE_S, QUICK_COLD_STARTS, QUICK_CHANGES = 10, 5.0, 3, 3


def main() -> int:
    """Run all of it; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="How fast and small multi-mcp is.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: under half a minute")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every round of every figure there")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, leave)
    print(f"multi-mcp {__version__}, {machine()}")
    if not has_script():
        print("multi-mcp is not installed beside this interpreter: its programs are started by their path")
    start, figures = time.perf_counter(), []
    try:
        for figure in measure(options.quick):
            figures.append(figure)
            progress(figure)
    except (BrokenError, MultiMcpError, OSError) as error:
        print(f"broken: {error}", file=sys.stderr)
        return 1
    print(f"\n{table(figures)}\n\n{time.perf_counter() - start:.0f} s, at the end {machine()}")
    if options.json:
        write_json(options.json, figures, options.quick)
    return 0


def measure(quick: bool) -> Iterator[Figure]:
    """Everything, in turn; no process is left when it ends, whatever way. Raises BrokenError."""
    with fresh_home() as home:
        home.configure()
        with gateway(home):
            home.settle()
            ours = through(home)
            yield from measure_calls((direct(), ours), calls.QUICK if quick else calls.FULL)
            shims = (ours, through(home, f"{OURS}, -I -S", isolated_shim()))
            yield from measure_shims(shims, QUICK_SPAWN_PAIRS if quick else SPAWN_PAIRS)
    starts, changes = (QUICK_COLD_STARTS, QUICK_CHANGES) if quick else (COLD_STARTS, CHANGES)
    yield from measure_cold_starts(starts)
    seconds = QUICK_IDLE_S if quick else IDLE_S
    yield from measure_idle(seconds)
    yield from measure_tray(starts, changes, seconds)


def machine() -> str:
    """What the figures depend on, and how busy it is."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{python}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores{load}"


def progress(figure: Figure) -> None:
    """On a terminal, say what has just been measured."""
    if sys.stderr.isatty():
        print(f"{figure.name}, {figure.unit}", file=sys.stderr)


def write_json(path: Path, figures: list[Figure], quick: bool) -> None:
    """All that was measured, for comparing runs."""
    facts = {"version": 1, "program": __version__, "at": time.time(), "machine": machine(), "quick": quick}
    path.write_text(json.dumps(facts | {"figures": [figure.as_json() for figure in figures]}, indent=1))


def leave(number: int, frame: FrameType | None) -> NoReturn:
    """Told to end: as after Ctrl-C, every process of ours is ended first."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
