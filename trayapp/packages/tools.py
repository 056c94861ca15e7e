"""Run the package tools of the user (npm, uv, docker), with the settings and registries that they have.

Never here: what is asked of them.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from trayapp.model.errors import MultiMcpError
from trayapp.model.redact import redacted
from trayapp.model.text import one_line

LIMIT_S = 300.0  # a large package over a slow line
REASON_LARGEST = 300  # characters of what a tool said


class ToolError(MultiMcpError):
    """A package tool is missing or failed. `said`: its last words."""

    code = "package_tool"

    def __init__(self, title: str, hint: str = "", said: str = "") -> None:
        super().__init__(title, hint)
        self.said = said


@dataclass(frozen=True, slots=True)
class Tools:
    """The package tools as a server's process would find them."""

    env: Mapping[str, str] = field(repr=False)

    def find(self, name: str) -> str | None:
        """Return the path of a tool, None where there is none."""
        return shutil.which(name, path=self.env.get("PATH"))

    def run(self, name: str, *args: str, cwd: Path | None = None, limit_s: float = LIMIT_S) -> str:
        """Return what a tool prints. Raises ToolError."""
        program = name if Path(name).is_absolute() else self.find(name)
        if program is None:
            raise ToolError(f"{name} is not installed", f"Install {name}, then try again")
        try:
            process = subprocess.Popen(
                [program, *args],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env=dict(self.env),
                start_new_session=sys.platform != "win32",
            )
        except OSError as error:
            raise ToolError(f"Cannot run {name}: {error.strerror}", "") from None
        try:
            output, errors = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            _end(process)
            raise ToolError(f"{name} took longer than {limit_s:g} s", "Try again later") from None
        if process.returncode:
            said = (errors.strip() or output.strip()).decode("utf-8", "replace")
            raise ToolError(f"{name} failed: {_reason(said)}", "", said)
        return output.decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _reason(said: str) -> str:
    """Return the lines of a tool's output that say why it failed."""
    lines = [line.removeprefix("npm error").strip() for line in said.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("A complete log", "/"))]
    return one_line(redacted("; ".join(kept[:4])))[:REASON_LARGEST]
