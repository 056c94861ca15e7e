"""Functions that run our own verbs as separate processes, for the panel and the tray."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from trayapp.config.programs import own_environment
from trayapp.model.errors import MultiMcpError
from trayapp.service.command_line import NO_WINDOW, own_command
from trayapp.service.gateway_launch import FROM_ANYWHERE

FINISHES_S = 1.0  # limit of the wait for running verbs, which may be writing a file, when this process ends

_running: set[subprocess.Popen[bytes]] = set()


def run_verb(argv: Sequence[str], environ: Mapping[str, str], timeout_s: float, typed: bytes = b"") -> Any:
    """Run `multi-mcp ARGV --json` with `typed` on its stdin. Return its parsed output, or None if it is not JSON.

    Raises MultiMcpError if the verb cannot start, fails or does not end in time. If possible, the error has the verb's
    own title and hint.
    """
    name = " ".join(["multi-mcp", *argv])
    try:
        process = subprocess.Popen(
            [*own_command(), *argv, "--json"],
            env=own_environment(environ),
            cwd=FROM_ANYWHERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            creationflags=NO_WINDOW,
            start_new_session=True,  # so _kill also reaches the verb's child processes, such as npm
        )
    except OSError as error:
        raise MultiMcpError(f"Cannot start {name}: {error.strerror}", "Install multi-mcp again") from None
    with process:
        _running.add(process)
        try:
            output, _ = process.communicate(typed, timeout_s)
        except subprocess.TimeoutExpired:
            raise MultiMcpError(f"{name} did not end within {timeout_s:g} s", f"Try it in a terminal: {name}") from None
        finally:
            _kill(process)
            _running.discard(process)
    try:
        answer = json.loads(output)
    except ValueError:
        answer = None
    # A list is an answer despite an error code, because doctor exits with one if it finds a problem.
    if process.returncode == 0 or isinstance(answer, list):
        return answer
    failure = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(failure, dict) and failure.get("title"):
        raise MultiMcpError(str(failure["title"]), str(failure.get("hint", "")), str(failure.get("field", "")))
    raise MultiMcpError(f"{name} failed (exit code {process.returncode})", f"Try it in a terminal: {name}")


def end_verbs() -> None:
    """Wait up to FINISHES_S for the running verbs, then kill the rest. Call this before this process ends. Blocks."""
    end = time.monotonic() + FINISHES_S
    for process in tuple(_running):
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, end - time.monotonic()))
        _kill(process)
        process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a verb, unless it has ended. On POSIX, also kill the processes that it started."""
    if process.poll() is not None:
        return
    if os.name == "posix":
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
