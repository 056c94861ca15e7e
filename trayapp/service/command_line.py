"""The command lines of our own processes: the program itself, the gateway, the tray, the shim, the sample server.

Keep the imports few: the shim loads this module to start a gateway.
"""

# No pathlib: its import would take longer than this whole module
# ruff: noqa: PTH100, PTH118, PTH120

from __future__ import annotations

import os
import sys

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SAMPLE_VERB = "sample-server"  # runs the sample server in a packaged program, which has no Python interpreter
# The programs of a packaged multi-mcp, all in one folder (packaging/multi-mcp.spec).
WHOLE, TRAY, SHIM = "multi-mcp", "multi-mcp-tray", "multi-mcp-shim"

NO_WINDOW = 0x08000000 if os.name == "nt" else 0  # CREATE_NO_WINDOW: child processes open no console window


def is_frozen() -> bool:
    """Return True if this is a packaged program, which has no Python interpreter to call."""
    return bool(getattr(sys, "frozen", False))


def own_command() -> list[str]:
    """Return the program and the first arguments that run multi-mcp from any working folder.

    Running a file is 5 ms faster than `-m`, and imports nothing from the working folder.
    """
    return [program(WHOLE)] if is_frozen() else [sys.executable, os.path.join(PACKAGE, "__main__.py")]


def typed_command() -> str:
    """Return the words that a user types to run this program: `multi-mcp`, or its path if it is not on the PATH."""
    import shlex  # imported late, like the next two: the shim needs none of these
    import shutil
    from pathlib import Path

    typed = Path(sys.argv[0])
    return shlex.quote(str(typed)) if typed.stem == WHOLE and shutil.which(WHOLE) is None else WHOLE


def program(name: str) -> str:
    """Return the path of the packaged program `name`, or of the running program if `name` is not in its folder."""
    beside = os.path.join(os.path.dirname(sys.executable), name + (".exe" if os.name == "nt" else ""))
    return beside if os.access(beside, os.X_OK) else sys.executable


def gateway_command(*, linger: bool) -> list[str]:
    """Return the command that runs a gateway. With `linger`, it ends some time after its last session."""
    return [*own_command(), "start", *(["--linger"] if linger else [])]


def tray_command() -> list[str]:
    """Return the command that starts the tray at login. It is absolute, survives updates, and opens no console."""
    words = ["tray", "--autostart"]
    if is_frozen():
        return [program(TRAY), *words]
    windowless = os.path.join(os.path.dirname(sys.executable), "pythonw.exe")
    if os.name == "nt" and os.access(windowless, os.X_OK):
        return [windowless, os.path.join(PACKAGE, "__main__.py"), *words]
    return [*_installed_command(), *words]


def shim_command() -> list[str]:
    """Return the command line of the shim for a client's configuration. It is absolute and survives updates.

    If there is an installed script beside the interpreter, the command runs it, because users know its name.
    """
    return [program(SHIM), "stdio"] if is_frozen() else [*_installed_command(), "stdio"]


def _installed_command() -> list[str]:
    script = os.path.join(os.path.dirname(sys.executable), WHOLE + (".exe" if os.name == "nt" else ""))
    return [script] if os.access(script, os.X_OK) else own_command()


def kill_command(pid: int) -> str:
    """Return the command that a user types to kill a process."""
    return f"taskkill /F /PID {pid}" if os.name == "nt" else f"kill -9 {pid}"


def sample_command() -> list[str]:
    """Return the command that runs the bundled sample server. Without `site` (-S), it starts in half the time."""
    if is_frozen():
        return [program(SHIM), SAMPLE_VERB]
    return [sys.executable, "-I", "-S", os.path.join(PACKAGE, "samples", "server.py")]
