"""Run our own verb command line as a separate process, for the tray, which holds no configuration itself."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from trayapp.config.programs import own_environment
from trayapp.model.errors import MultiMcpError
from trayapp.service.command_line import NO_WINDOW, own_command
from trayapp.service.gateway_launch import FROM_ANYWHERE


def run_verb(argv: Sequence[str], environ: Mapping[str, str], timeout_s: float, typed: bytes = b"") -> Any:
    """Run `multi-mcp ARGV --json` with `typed` on its stdin. Return its parsed output, None if it is not JSON.

    Raises MultiMcpError with the verb's own title and hint, or if it cannot start, fails or does not end in time.
    """
    name = " ".join(["multi-mcp", *argv])
    try:
        done = subprocess.run(
            [*own_command(), *argv, "--json"],
            env=own_environment(environ),
            cwd=FROM_ANYWHERE,
            input=typed,
            capture_output=True,
            timeout=timeout_s,
            check=False,
            creationflags=NO_WINDOW,
        )
    except subprocess.TimeoutExpired:
        raise MultiMcpError(f"{name} did not end within {timeout_s:g} s", f"Try it in a terminal: {name}") from None
    except OSError as error:
        raise MultiMcpError(f"Cannot start {name}: {error.strerror}", "Install multi-mcp again") from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = None
    # Findings count as an answer: doctor exits with an error if it finds a problem.
    if done.returncode == 0 or isinstance(answer, list):
        return answer
    failure = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(failure, dict) and failure.get("title"):
        raise MultiMcpError(str(failure["title"]), str(failure.get("hint", "")), str(failure.get("field", "")))
    raise MultiMcpError(f"{name} failed (exit code {done.returncode})", f"Try it in a terminal: {name}")
