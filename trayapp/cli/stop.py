"""`multi-mcp stop`: tell the gateway to end, and wait for it.

Never here: killing anything.
"""

from __future__ import annotations

import os

import click

from trayapp.cli.options import ask, examples, json_option
from trayapp.cli.output import print_json, say, waiting
from trayapp.model.errors import MultiMcpError
from trayapp.service.gateway_launch import GONE_TIMEOUT_S, await_gone
from trayapp.wire.control import SNAPSHOT, STOP


@click.command("stop", epilog=examples("multi-mcp stop"))
@json_option
def stop_verb(as_json: bool) -> None:
    """Stop the gateway and all its servers.

    While the tray runs, this pauses it: calls fail until you choose Resume there or run `multi-mcp start`.
    Without a tray, the next call of an AI tool starts the gateway again.
    """
    with waiting("Stopping", quiet=as_json):
        pid = stop()
    if as_json:
        print_json({"stopped": pid})
    else:
        say(f"Stopped the gateway (process {pid})")


def stop() -> int:
    """Stop this user's gateway, wait for its end, and return the process id that it had.

    Raises NoGatewayError, and MultiMcpError if it still runs after GONE_TIMEOUT_S.
    """
    pid = int(ask(SNAPSHOT)["gateway"]["pid"])
    ask(STOP)
    if not await_gone(pid):
        how = f"taskkill /F /PID {pid}" if os.name == "nt" else f"kill -9 {pid}"
        what = f"The gateway (process {pid}) did not end within {GONE_TIMEOUT_S:g} s"
        raise MultiMcpError(what, f"End it with: {how}")
    return pid
