"""`multi-mcp` without a verb: the app. Until there is an icon, that is the gateway here, with its live status.

Never here: the words of the status (status_view), what a gateway does.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import click

from trayapp.cli import status_view as view
from trayapp.cli.options import examples, gateway
from trayapp.cli.output import is_terminal, say
from trayapp.cli.start import run_here
from trayapp.cli.status import live
from trayapp.model.errors import NoGatewayError

LAST_WORDS_S = 2.0  # for the display to end after the gateway did


@click.command("tray", epilog=examples("multi-mcp"))
def tray_verb() -> int:
    """Run the app; the same as no verb at all.

    The gateway runs here, with its status, until Ctrl-C.
    """
    return run_app()


def run_app() -> int:
    """The gateway in this process, its status from a thread beside it; the exit code."""
    display = threading.Thread(target=show, name="status", daemon=True)
    code = run_here(False, display.start)
    if display.ident is not None:
        display.join(LAST_WORDS_S)
    return code


def show() -> None:
    """Show the state of the gateway of this process until it ends."""
    try:
        with gateway(timeout=None) as client:
            if is_terminal(sys.stdout):
                live(client.watch())
            else:
                for line in plain_lines(client.watch()):
                    say(line)
    except (NoGatewayError, OSError):
        return  # it ended, or nobody looks any more: the gateway goes on without a display


def plain_lines(snapshots: Iterator[dict[str, Any]]) -> Iterator[str]:
    """For a pipe: a line when it is ready, one for each change of the sum and for each new problem."""
    told: set[str] = set()
    for snapshot in snapshots:
        fresh = [line for line in [_ready_line(snapshot), *_troubles(snapshot)] if line not in told]
        yield from fresh
        told = {_ready_line(snapshot), *_troubles(snapshot)}


def _ready_line(snapshot: dict[str, Any]) -> str:
    return f"Gateway ready, {view.summary(snapshot)}"


def _troubles(snapshot: dict[str, Any]) -> list[str]:
    failed = [server for server in snapshot["servers"] if server["error"] is not None]
    return [view.failure(server) for server in failed] + view.problem_lines(snapshot)[1:]
