"""What verbs have in common: the --json option, the example in their help, the gateway that they ask.

Never here: printing, one verb's own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from trayapp.service.reach import reach
from trayapp.wire.control import DEFAULT_TIMEOUT_S, ControlClient, ControlError
from trayapp.wire.rundir import run_dir

Function = TypeVar("Function", bound=Callable[..., Any])

DISCOVERY_TIMEOUT_S = 120.0  # servers that are not known yet, a project's for instance, are started first


def json_option(function: Function) -> Function:
    """Adds `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(function)


def project_option(function: Function) -> Function:
    """Adds `project`: without it a verb speaks of the user's own servers, wherever it is called."""
    kind = click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path)
    help_text = "What a session in this folder would see, its trusted project's servers included."
    return click.option("--project", metavar="DIR", type=kind, help=help_text)(function)


def of_project(project: Path | None) -> dict[str, str]:
    """The member of a request that names it."""
    return {} if project is None else {"project": str(project)}


def examples(*lines: str) -> str:
    """The last words of a verb's help."""
    return "\b\n" + "\n".join(f"{'Example: ' if n == 0 else '         '}{line}" for n, line in enumerate(lines))


def gateway(timeout: float | None = DEFAULT_TIMEOUT_S) -> ControlClient:
    """A connection to this user's gateway; `timeout` in seconds for each answer. Raises NoGatewayError."""
    return reach(run_dir(os.environ), timeout)


def ask(
    method: str,
    params: dict[str, Any] | None = None,
    timeout: float | None = DEFAULT_TIMEOUT_S,
    heard: Callable[[str], None] | None = None,
) -> Any:
    """One control request; `heard` gets the gateway's notes on its answer. Raises NoGatewayError, ControlError."""
    with gateway(timeout) as client:
        return client.call(method, params, heard)


def as_error(error: dict[str, Any]) -> ControlError:
    """An error that stands inside an answer, `{"title", "hint", "code", "exit_code"}`, as an exception."""
    code, exit_code = error.get("code", "failed"), int(error.get("exit_code", 1))
    return ControlError(error["title"], error.get("hint", ""), code, exit_code)
