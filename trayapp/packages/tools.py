"""The user's package tools (npm, uv, docker), run with the user's own settings and registries."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from trayapp.model.errors import MultiMcpError
from trayapp.model.redact import redacted
from trayapp.model.text import one_line

T = TypeVar("T")

HIDDEN = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # no console window on Windows
LIMIT_S = 300.0  # enough for a large package over a slow connection
REASON_LARGEST = 300  # characters of a tool's output in an error's title
UNLOCK = "To start it without a locked version, set lock: false for the server"
NO_NODE = ("node is not on the PATH", "Install Node.js (https://nodejs.org), or correct the PATH")


class ToolError(MultiMcpError):
    """Raised if a package tool is missing, fails or is stopped. `output`: what a failed tool printed."""

    code = "package_tool"

    def __init__(self, title: str, hint: str = "", output: str = "") -> None:
        super().__init__(title, hint)
        self.output = output


@dataclass(frozen=True, slots=True)
class Tools:
    """The package tools that a server's process would find. Use one instance for each piece of work, in any thread."""

    env: Mapping[str, str] = field(repr=False)
    _running: set[subprocess.Popen[bytes]] = field(default_factory=set, repr=False, compare=False)
    _stopped: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)

    def run(self, name: str, *args: str, cwd: Path | None = None) -> str:
        """Run a tool, wait until it exits, and return its stdout. Raises ToolError, also after LIMIT_S."""
        path = self.env.get("PATH")
        if name == "npm" and shutil.which("node", path=path) is None:  # npm comes with node, and needs it to run
            raise ToolError(*NO_NODE)
        if (program := shutil.which(name, path=path)) is None:
            raise ToolError(f"{name} is not installed", f"Install {name}. {UNLOCK}")
        try:
            process = subprocess.Popen(
                [program, *args],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env=dict(self.env),
                start_new_session=sys.platform != "win32",
                creationflags=HIDDEN,
            )
        except OSError as error:
            raise ToolError(f"Cannot run {name}: {error.strerror}", "") from None
        self._running.add(process)
        try:
            if self._stopped.is_set():
                _kill(process)
            output, errors = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.communicate()
            raise ToolError(f"{name} took longer than {LIMIT_S:g} s", "Try again later") from None
        finally:
            self._running.discard(process)
        if self._stopped.is_set():
            raise ToolError(f"{name} was stopped", "Try again")
        if process.returncode:
            text = (errors.strip() or output.strip()).decode("utf-8", "replace")
            lines = [line.removeprefix("npm error").strip() for line in text.splitlines()]
            kept = [line for line in lines if line and not line.startswith(("A complete log", "/"))] or lines
            reason = one_line(redacted("; ".join(kept[:4])))[:REASON_LARGEST]
            raise ToolError(f"{name} failed: {reason}", "", text)
        return output.decode("utf-8", "replace")

    def stop(self) -> None:
        """Kill the running tools, and any tool that is started later."""
        self._stopped.set()
        for process in tuple(self._running):
            _kill(process)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do blocking work with these tools in a thread, and return its result. If cancelled, stop the tools."""
        import anyio.to_thread  # imported here: the gateway has already loaded it, and commands do not need it

        try:
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        except anyio.get_cancelled_exc_class():
            self.stop()
            raise


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    with suppress(OSError):
        if sys.platform == "win32":
            words = ["taskkill", "/T", "/F", "/PID", str(process.pid)]
            subprocess.run(words, check=False, capture_output=True, creationflags=HIDDEN)
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
