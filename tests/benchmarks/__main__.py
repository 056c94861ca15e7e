"""The command `python -m tests.benchmarks [--peers] [--quick] [--only PART,...]`.

It measures, and writes a report with plots. With `--summary`, it writes packaging/BENCHMARKS.md from the last run.
The exit code is 1 if a measurement broke, or if `--summary` finds no run. Otherwise, it is 0, whatever the figures are.
If one part breaks, the others are still measured.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tests.benchmarks.client import BrokenError
from tests.benchmarks.parts import PARTS, PEERS, Setup
from tests.benchmarks.run import FOLDER, Chapter, Measured, Run, machine
from tests.benchmarks.ways import has_script
from trayapp.model.errors import MultiMcpError


def main() -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="How fast and small multi-mcp is.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: some two minutes")
    parser.add_argument("--peers", action="store_true", help="other gateways too, installed from PyPI and npm")
    parser.add_argument("--only", metavar="PART,...", help=f"of {', '.join(PARTS)}; others stay as they were")
    parser.add_argument(
        "--behaviour", action="store_const", dest="only", const="behaviour", help="the same as --only behaviour"
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="catalog.json and queries.json of real servers")
    parser.add_argument(
        "--out", type=Path, default=FOLDER, metavar="FOLDER", help="where run.json, report and plots go"
    )
    parser.add_argument("--summary", action="store_true", help="measure nothing: write packaging/BENCHMARKS.md")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else [one for one in PARTS if options.peers or one != PEERS]
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}")
    signal.signal(signal.SIGTERM, leave)
    if options.summary:
        return summarize(options.out)
    if not has_script():
        print("multi-mcp is not installed beside this interpreter: its programs are started by their path")
    run = Run.after(options.out, options.quick) if options.only else Run.now(options.quick)
    return measure(run, names, Setup(options.quick, options.peers, options.data), options.out)


def measure(run: Run, names: Sequence[str], setup: Setup, out: Path) -> int:
    """Measure each part in turn, and save the results after each. Return 1 if a part broke, else 0."""
    broken = False
    for name in names:
        chapter = Chapter(name, PARTS[name].title)
        run.put(chapter)
        try:
            for measured in PARTS[name].measure(setup):
                chapter.measured.append(measured)
                progress(measured)
        except (BrokenError, MultiMcpError, OSError, LookupError) as error:
            chapter.broken, broken = str(error), True
            print(f"{name} broke: {error}", file=sys.stderr)
        run.save(out)
    run.end()
    publish(run, out)
    return int(broken)


def publish(run: Run, out: Path) -> None:
    """Write the report, with plots if they can be drawn, and print the figures."""
    from tests.benchmarks import report  # imported late, because its memory must not affect the measurements

    run.save(out)
    report.write(run, out)
    print(f"{report.as_text(run)}\n\n{run.seconds:.0f} s, {machine()}; the report is {out / report.NAME}")


def summarize(out: Path) -> int:
    """Write the summary of the last run. Return 1 if there is no run, else 0."""
    from tests.benchmarks import report

    try:
        run = Run.load(out)
    except FileNotFoundError:
        print(f"no run in {out}", file=sys.stderr)
        return 1
    report.write(run, out)
    print(f"written: {report.write_summary(run)}")
    return 0


def progress(measured: Measured) -> None:
    """Print what was just measured, if stderr is a terminal."""
    if sys.stderr.isatty():
        print(measured if isinstance(measured, str) else f"{measured.name}, {measured.unit}", file=sys.stderr)


def leave(number: int, frame: FrameType | None) -> NoReturn:
    """Exit on SIGTERM as on Ctrl-C, so that all started processes are ended."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
