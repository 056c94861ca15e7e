"""The command lines of our own processes: the program itself, the gateway, the shim, the sample server.

Never here: starting any of them. Imports stay few: the shim comes here to start a gateway.
"""

# pathlib costs the shim more than all of this
# ruff: noqa: PTH100, PTH118, PTH120

from __future__ import annotations

import os
import sys

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SAMPLE_VERB = "sample-server"  # how a frozen program, which has no interpreter to run a file, runs the sample server
# The programs of a packaged multi-mcp, in one folder (packaging/multi-mcp.spec).
WHOLE, TRAY, SHIM = "multi-mcp", "multi-mcp-tray", "multi-mcp-shim"

NO_WINDOW = 0x08000000 if os.name == "nt" else 0  # CREATE_NO_WINDOW: a child of ours brings no console window


def is_frozen() -> bool:
    """Whether this is a packaged program without an interpreter of its own."""
    return bool(getattr(sys, "frozen", False))


def own_command() -> list[str]:
    """Program and first arguments that run multi-mcp, from any working folder.

    By path and not by `-m`: that is 5 ms quicker, and takes no module out of the folder that it is started in.
    """
    return [program(WHOLE)] if is_frozen() else [sys.executable, os.path.join(PACKAGE, "__main__.py")]


def program(name: str) -> str:
    """Path of one of the packaged programs; of ourselves where there is no such one beside us."""
    beside = os.path.join(os.path.dirname(sys.executable), name + (".exe" if os.name == "nt" else ""))
    return beside if os.access(beside, os.X_OK) else sys.executable


def gateway_command(*, linger: bool) -> list[str]:
    """Runs a gateway; with `linger` one that ends by itself some time after its last session."""
    return [*own_command(), "start", *(["--linger"] if linger else [])]


def tray_command() -> list[str]:
    """What is to be started at login: absolute, the same after an update, and without a console window on Windows."""
    words = ["tray", "--autostart"]
    if is_frozen():
        return [program(TRAY), *words]
    folder, ending = os.path.dirname(sys.executable), ".exe" if os.name == "nt" else ""
    windowless = os.path.join(folder, "pythonw.exe")
    if os.name == "nt" and os.access(windowless, os.X_OK):
        return [windowless, os.path.join(PACKAGE, "__main__.py"), *words]
    script = os.path.join(folder, f"multi-mcp{ending}")
    return [script, *words] if os.access(script, os.X_OK) else [*own_command(), *words]


def shim_command() -> list[str]:
    """What a client's configuration should hold, program first: absolute, and the same after every start.

    The script that the installation put beside the interpreter where there is one: it is what people know. Of a
    packaged program the small one, in the folder that an update replaces in place.
    """
    if is_frozen():
        return [program(SHIM), "stdio"]
    script = os.path.join(os.path.dirname(sys.executable), "multi-mcp.exe" if os.name == "nt" else "multi-mcp")
    if os.access(script, os.X_OK):
        return [script, "stdio"]
    return [*own_command(), "stdio"]


def sample_file() -> str:
    """Path of the sample server's program."""
    return os.path.join(PACKAGE, "samples", "server.py")


def sample_command() -> list[str]:
    """Runs the bundled sample server. Without site and environment: it needs neither, and is up in half the time."""
    return [program(SHIM), SAMPLE_VERB] if is_frozen() else [sys.executable, "-I", "-S", sample_file()]
