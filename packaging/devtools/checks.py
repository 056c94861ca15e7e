"""The checks: ruff, mypy and pytest in turn, with the time that each took."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from devtools.places import ROOT, VENV, script
from devtools.steps import FOREIGN_VARIABLES

SLOWEST = ("--durations=40", "--durations-min=3")  # list the slowest tests, to find out why a run is slow
# Tests mostly wait: seven processes keep two cores busy. The tests of a file share expensive fixtures.
# tests/conftest.py sets the order: xdist's own would begin with the files that have many quick tests.
IN_PARALLEL = ("--numprocesses=7", "--dist=loadfile", "--no-loadscope-reorder")
# The quick checks come first. All of them run even if one fails, so a single run shows every problem.
STATIC_CHECKS = (("ruff", "check"), ("ruff", "format", "--check"), ("mypy", "--strict"))


class Outcome(NamedTuple):
    """A finished check: its command line, exit code and duration."""

    name: str
    code: int
    seconds: float


def run_checks(pytest_args: Sequence[str], prepare: Callable[[], object]) -> int:
    """Run all checks, or pytest alone if there are arguments. Return 0 if all passed, else 1.

    `prepare` is called before pytest. It waits for what the tests need, and may raise StepFailed.
    """
    outcomes = [] if pytest_args else [_run_check(check) for check in STATIC_CHECKS]
    prepare()
    outcomes.append(_run_check(("pytest", *(pytest_args or (*IN_PARALLEL, *SLOWEST)))))
    print(flush=True)
    for outcome in outcomes:
        word = "passed" if outcome.code == 0 else f"FAILED (exit code {outcome.code})"
        print(f"{outcome.seconds:7.1f} s  {outcome.name}: {word}", flush=True)
    return 1 if any(outcome.code for outcome in outcomes) else 0


def _run_check(check: Sequence[str]) -> Outcome:
    name = " ".join(check)
    print(f"== {name}", flush=True)
    started = time.monotonic()
    environment = {key: value for key, value in os.environ.items() if key not in FOREIGN_VARIABLES}
    command = [str(script(VENV, "python")), "-m", *check]
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    return Outcome(name, code, time.monotonic() - started)
