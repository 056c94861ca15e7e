"""The types of checks and their results, and the runner: all checks run in parallel, isolated, with a time limit."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trayapp.config.paths import Paths
from trayapp.model.config import Config
from trayapp.model.errors import MultiMcpError

log = logging.getLogger(__name__)

FindingState = Literal["ok", "note", "problem"]
CHECK_LIMIT_S = 2.0  # for one check; all checks start at once


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the report. `code` is stable. `remedy`: what to do about a note or a problem, "" = nothing."""

    code: str
    state: FindingState
    message: str
    remedy: str = ""


def as_parsed(config: Config, file: str) -> Config:
    """Return the configuration unchanged, without the servers of `settings.imports`."""
    return config


@dataclass(frozen=True, slots=True)
class CheckContext:
    """The environment of the checks. `run`: the runtime folder.

    `lay`: adds the imported servers to a configuration parsed from a file. The caller supplies it, because this
    package must not import the code for clients' files.
    """

    environ: Mapping[str, str]
    paths: Paths
    run: str
    platform: str = sys.platform
    python: tuple[int, int, int] = sys.version_info[:3]
    lay: Callable[[Config, str], Config] = as_parsed


Look = Callable[[CheckContext], Sequence[CheckResult]]


@dataclass(frozen=True, slots=True)
class Check:
    """One check, which returns any number of results. `code`: the code of the result if the check itself fails."""

    code: str
    look: Look


def run_checks(checks: Sequence[Check], context: CheckContext, limit_s: float = CHECK_LIMIT_S) -> list[CheckResult]:
    """Run all checks. Return their results, in order. A check that fails or exceeds `limit_s` counts as a problem."""
    end = time.monotonic() + limit_s
    runs = [_Run(check, context) for check in checks]
    return [finding for run in runs for finding in run.result(max(0.0, end - time.monotonic()), limit_s)]


class _Run:
    """One check in its own thread. A hung thread is abandoned, because a blocked mount or socket cannot be canceled."""

    def __init__(self, check: Check, context: CheckContext) -> None:
        self._check = check
        self._world = context
        self._found: Sequence[CheckResult] | None = None
        self._thread = threading.Thread(target=self._look, name=f"check {check.code}", daemon=True)
        self._thread.start()

    def result(self, wait_s: float, limit_s: float) -> Sequence[CheckResult]:
        """Return the results of the check, or a problem if it does not end within `wait_s` seconds."""
        self._thread.join(wait_s)
        if self._found is not None:
            return self._found
        what = f"The check did not end within {limit_s:g} s"
        return [
            CheckResult(self._check.code, "problem", what, "Check for a disk, a network folder or a program that hangs")
        ]

    def _look(self) -> None:
        """Run the check. This is the exception boundary: any error becomes a problem of this check."""
        code = self._check.code
        try:
            self._found = self._check.look(self._world)
        except MultiMcpError as error:
            self._found = [CheckResult(code, "problem", error.title, error.hint)]
        except OSError as error:
            what = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
            self._found = [CheckResult(code, "problem", what, "Check the owner and permissions of that path")]
        except Exception as error:  # a bug in one check must not hide the results of the others
            log.debug("Unexpected error in the check %s", code, exc_info=True)
            what = f"The check failed: {type(error).__name__}"
            self._found = [CheckResult(code, "problem", what, "Report this with the version of multi-mcp")]
