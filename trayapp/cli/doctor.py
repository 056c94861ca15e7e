"""`multi-mcp doctor`: report what is wrong on this machine and what to do about it, with or without a gateway."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace

import click

from trayapp.cli.edit import with_imports
from trayapp.cli.options import verb
from trayapp.cli.output import has_colors, print_json, say_hints, waiting
from trayapp.clients.connect import CLIENT_CHECKS
from trayapp.config.paths import find_paths
from trayapp.model.errors import ExitCode
from trayapp.model.redact import redacted
from trayapp.model.text import count, one_line
from trayapp.service.checks import CHECKS
from trayapp.service.checks.check import CheckContext, CheckResult, run_checks
from trayapp.wire.rundir import run_dir

COLORS = {"ok": "green", "note": "yellow", "problem": "red"}
STATE_COLUMNS = max(map(len, COLORS))


@verb("doctor", "multi-mcp doctor")
def doctor_verb(as_json: bool) -> int:
    """Find problems and say how to fix them.

    Works with and without a running gateway. The exit code is 1 if there is
    a problem. A note is not a problem.
    """
    context = CheckContext(dict(os.environ), find_paths(os.environ), run_dir(os.environ), lay=with_imports)
    with waiting("Checking", quiet=as_json):
        findings = [fit(finding) for finding in run_checks((*CHECKS, *CLIENT_CHECKS), context)]
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        say_hints(*lines(findings, colored=has_colors(sys.stdout, os.environ)), styled=True)
    return ExitCode.FAILED if any(finding.state == "problem" for finding in findings) else ExitCode.OK


def fit(finding: CheckResult) -> CheckResult:
    """Return a finding that is safe to print: each text on one line, without control sequences or secrets."""
    return replace(finding, message=redacted(one_line(finding.message)), remedy=redacted(one_line(finding.remedy)))


def lines(findings: Sequence[CheckResult], *, colored: bool = False) -> list[str]:
    """Return a line for each finding, with its remedy on the next line, and the totals at the end."""
    columns = max((len(finding.code) for finding in findings), default=0)
    out: list[str] = []
    for finding in findings:
        state = finding.state.ljust(STATE_COLUMNS)
        state = click.style(state, fg=COLORS[finding.state]) if colored else state
        out.append(f"{state}  {finding.code.ljust(columns)}  {finding.message}")
        if finding.remedy and finding.state != "ok":
            out.append(f"{'':{STATE_COLUMNS + columns + 4}}{finding.remedy}")
    return [*out, "", total(findings)]


def total(findings: Sequence[CheckResult]) -> str:
    """Return the totals, such as `1 problem, 2 notes`, or `All is well`."""
    states = [finding.state for finding in findings]
    parts = [count(states.count(state), state) for state in ("problem", "note") if state in states]
    return ", ".join(parts) or "All is well"
