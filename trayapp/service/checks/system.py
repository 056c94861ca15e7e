"""The check of the Python interpreter that runs us."""

from __future__ import annotations

from trayapp.service.checks.finding import CheckContext, CheckResult

OLDEST_PYTHON = (3, 11)


def python_version(world: CheckContext) -> list[CheckResult]:
    """Report whether we support this Python version."""
    version = ".".join(map(str, world.python))
    if world.python[:2] >= OLDEST_PYTHON:
        return [CheckResult("version.python", "ok", f"Python {version}")]
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return [
        CheckResult("version.python", "problem", f"Python {version} is too old", f"Install Python {oldest} or newer")
    ]
