"""The types of checks and results, and the runner. Checks run in parallel, isolated, and with a time limit."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trayapp.config.paths import Paths
from trayapp.model.config import Config
from trayapp.model.errors import MultiMcpError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the report. `code` is a stable name. `remedy` is the action that the user can take, or ""."""

    code: str
    state: Literal["ok", "note", "problem"]
    message: str
    remedy: str = ""


def ok(code: str, message: str) -> CheckResult:
    return CheckResult(code, "ok", message)


def note(code: str, message: str, remedy: str = "") -> CheckResult:
    return CheckResult(code, "note", message, remedy)


def problem(code: str, message: str, remedy: str) -> CheckResult:
    return CheckResult(code, "problem", message, remedy)


@dataclass(frozen=True, slots=True)
class CheckContext:
    """The environment of the checks. `run` is the runtime folder.

    `lay` adds the imported servers to a configuration parsed from a file. The caller supplies it, because this
    package must not import the code for clients' files.
    """

    environ: Mapping[str, str]
    paths: Paths
    run: str
    platform: str = sys.platform
    python: tuple[int, int, int] = sys.version_info[:3]
    lay: Callable[[Config, str], Config] = lambda config, file: config

    @property
    def home(self) -> str:
        return self.environ.get("HOME") or str(Path.home())


@dataclass(frozen=True, slots=True)
class Check:
    """One check, which returns any number of results. `code` is the code of the result if the check itself fails."""

    code: str
    look: Callable[[CheckContext], Sequence[CheckResult]]


def run_checks(checks: Sequence[Check], context: CheckContext, limit_s: float = 2.0) -> list[CheckResult]:
    """Run all checks in parallel and return their results in order. A check that fails or hangs becomes a problem.

    Each check has its own thread. After `limit_s` seconds, a hung thread is abandoned, because a blocked mount or
    socket cannot be cancelled.
    """
    found: dict[Check, Sequence[CheckResult]] = {}

    def run(check: Check) -> None:
        found[check] = _results(check, context)

    threads = [threading.Thread(target=run, args=(one,), name=f"check {one.code}", daemon=True) for one in checks]
    for thread in threads:
        thread.start()
    end = time.monotonic() + limit_s
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    late = f"The check did not end within {limit_s:g} s", "Check for a disk, a network folder or a program that hangs"
    return [result for check in checks for result in found.get(check, [problem(check.code, *late)])]


def _results(check: Check, context: CheckContext) -> Sequence[CheckResult]:
    """Run the check and return its results. Exception boundary: any error becomes a problem with the check's code."""
    try:
        return check.look(context)
    except MultiMcpError as error:
        return [problem(check.code, error.title, error.hint)]
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
        return [problem(check.code, what, "Check the owner and permissions of that path")]
    except Exception as error:  # a bug in one check must not hide the results of the others
        log.debug("Unexpected error in the check %s", check.code, exc_info=True)
        what = f"The check failed: {type(error).__name__}"
        return [problem(check.code, what, "Report this error together with the version of multi-mcp")]
