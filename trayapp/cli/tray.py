"""`multi-mcp`, `tray`, `quit` and `autostart`: the tray app.

Without a desktop, `multi-mcp` runs the gateway in this process and shows its live status.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from trayapp.cli import status as view
from trayapp.cli.options import gateway, next_step, verb
from trayapp.cli.output import as_typed, is_terminal, note, print_result, say
from trayapp.cli.run_gateway import run_here
from trayapp.model.errors import NoGatewayError
from trayapp.service.autostart import find_autostart
from trayapp.service.command_line import tray_command, typed_command

NO_DESKTOP = "No desktop was found, so there is no tray icon. The gateway runs here. To stop it, press Ctrl-C"
DISPLAY_END_S = 2.0  # the longest wait for the display to stop after the gateway


@verb("tray", "multi-mcp", json=False)
@click.option("--autostart", is_flag=True, hidden=True, help="Started at login: nothing is printed.")
def tray_verb(autostart: bool) -> int:
    """Run the tray app.

    Shows the state of your servers, and restarts the gateway if it ends.
    Where nothing shows tray icons, it runs without one.
    """
    return run_tray_here(autostart)


@verb("quit", "multi-mcp quit")
def quit_verb(as_json: bool) -> int:
    """Quit the tray app and the gateway that it started.

    Meant for desktops that show its icon without a menu, or not at all. A connected AI tool
    starts the gateway again when it needs one.
    """
    from trayapp.tray.start import quit_tray

    process = quit_tray(os.environ)
    line = f"The tray app is quitting (process {process})" if process else "The tray app is quitting"
    if process is None:
        line = as_typed("The tray app is not running. To stop the gateway: multi-mcp stop")
    print_result(as_json, {"quit": process}, line)
    return 0


@verb("autostart", "multi-mcp autostart on")
@click.argument("what", type=click.Choice(["on", "off", "status"]), default="status")
def autostart_verb(what: str, as_json: bool) -> None:
    """Turn start at login on or off, or show its state.

    The desktop's own settings can also turn it off.
    """
    switch = find_autostart(os.environ, tray_command())
    if what != "status":
        switch.turn(what == "on")
    is_on, where = switch.entry.is_on(), switch.entry.where
    lines = ["The tray starts at login", where] if is_on else ["The tray does not start at login"]
    print_result(as_json, {"autostart": is_on, "entry": where}, *lines)


def run_app(autostart: bool) -> int:
    """Run `multi-mcp` without a verb and return its exit code. Raises AlreadyRunningError, StorageError.

    On a desktop or with `autostart`, run the tray app. Without a desktop (ssh, a container), nobody would see an icon,
    so run the gateway in this process and show its live status. `multi-mcp tray` runs the tray app even there.
    """
    return run_tray_here(autostart) if autostart or has_desktop(os.environ) else run_gateway_here()


def has_desktop(environ: Mapping[str, str]) -> bool:
    """Return True if a desktop may show an icon, now or later.

    On Linux, this needs a display or a session bus. On other systems, the answer is always True.
    """
    if sys.platform != "linux":
        return True
    runtime = environ.get("XDG_RUNTIME_DIR")
    named = any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"))
    return named or bool(runtime and Path(runtime, "bus").exists())


def run_tray_here(autostart: bool) -> int:
    """Run the tray app in this process and return its exit code. Raises StorageError."""
    from trayapp.tray.start import run_tray

    return run_tray(os.environ, autostart=autostart, say=(lambda *_: None) if sys.stdout is None or autostart else say)


def run_gateway_here() -> int:
    """Run the gateway in this process, print its status in a thread, and return the exit code."""
    display = threading.Thread(target=show, name="status", daemon=True)
    code = run_here(False, display.start)
    if display.ident is not None:
        display.join(DISPLAY_END_S)
        note("The gateway has stopped")
    return code


def show() -> None:
    """Print the status of this process's gateway until the gateway ends or stdout is closed."""
    try:
        with gateway(timeout=None) as client:
            say(NO_DESKTOP)
            if is_terminal(sys.stdout):
                view.live(client.watch(), next_step())
            else:
                say(f"First time? In another terminal: {typed_command()} setup")
                for line in plain_lines(client.watch(asks=False)):
                    say(line)
    except (NoGatewayError, OSError):
        return  # the gateway ended, or stdout was closed; the gateway then continues without a display


def plain_lines(snapshots: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines to print on a pipe: the first summary, and each later summary, error or problem that is new."""
    printed: set[str] = set()
    for snapshot in snapshots:
        failures = [view.failure(server) for server in snapshot["servers"] if server["error"] is not None]
        lines = [f"Gateway ready, {view.summary_line(snapshot)}", *failures, *view.problem_lines(snapshot)[1:]]
        yield from (line for line in lines if line not in printed)
        printed = set(lines)
