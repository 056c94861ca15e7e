"""`python -m tests.benchmarks.packaged [FOLDER] [ROUNDS]` compares the packaged program with its limits.

FOLDER holds the three programs. By default, it is the folder that `packaging/dev.py test tests/packaged` builds. Shim
and tray are measured alternately with those of the checkout.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.benchmarks.figures import OURS, Figure, Target
from tests.benchmarks.starts import MS, spawned
from tests.benchmarks.table import table
from tests.benchmarks.tray import tray
from tests.benchmarks.ways import fresh_home, gateway, through

BUNDLE = Path(__file__).resolve().parents[2] / ".cache" / "packaged" / "work" / "out" / "multi-mcp"
CHECKOUT = "checkout"
ROUNDS = 15
MIB = 1 << 20


def measure(bundle: Path, rounds: int) -> list[Figure]:
    """Measure the shim until initialize is answered, the tray until its icon is registered, and the folder's size."""
    return [shims(bundle, rounds), trays(bundle, rounds), size(bundle)]


def shims(bundle: Path, rounds: int) -> Figure:
    """Measure starts of shims while the gateway runs."""
    figure = Figure("shim: spawn -> initialize", "ms", target=Target("value", 60))
    with fresh_home() as home:
        home.configure()
        with gateway(home):
            home.settle()
            ways = (through(home, CHECKOUT), through(home, OURS, (str(bundle / "multi-mcp-shim"), "stdio")))
            for number in range(rounds + 1):
                for way in ways:
                    initialized, _ = spawned(way)
                    if number:  # skips the first start, which reads files into memory
                        figure.add(way.name, initialized)
    return figure


def trays(bundle: Path, rounds: int) -> Figure:
    """Measure starts of trays on a separate session bus, with a minimal panel."""
    figure = Figure("tray: spawn -> registered", "ms", target=Target("value", 600))
    with fresh_home() as home:
        home.configure()
        for number in range(rounds + 1):
            for name, program in ((CHECKOUT, ()), (OURS, (str(bundle / "multi-mcp-tray"),))):
                with tray(home, program) as running:
                    if number:
                        figure.add(name, running.seconds * MS)
    return figure


def size(bundle: Path) -> Figure:
    """Measure the total size of the folder's files."""
    figure = Figure("installed", "MiB", target=Target("value", 70))
    figure.add(OURS, sum(path.lstat().st_size for path in bundle.rglob("*") if path.is_file()) / MIB)
    return figure


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else BUNDLE
    print(table(measure(folder, int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS)))
