"""`multi-mcp start` and `stop`: turn this process into the gateway, start one in the background, or end it.

Other programs run the verbs `stdio` and `sample-server` (hidden). `stdio` is defined only for its help, because the
program's entry point passes it on to the shim. `sample-server` is for packaged programs, which cannot run a file of
Python code.
"""

from __future__ import annotations

import os
import runpy
from contextlib import suppress

import click

from trayapp.cli.options import ask, say_next_step, start_gateway, verb
from trayapp.cli.output import note, print_result, waiting
from trayapp.cli.run_gateway import run_start
from trayapp.model.errors import AlreadyRunningError, MultiMcpError, NoGatewayError
from trayapp.service.command_line import kill_command
from trayapp.service.gateway_launch import GONE_TIMEOUT_S, await_gone
from trayapp.wire.control import SNAPSHOT, STOP, connect
from trayapp.wire.greeting import Hello, read_endpoint
from trayapp.wire.rundir import run_dir


@verb("start", "multi-mcp start --detach", json=False)
@click.option("--detach", is_flag=True, help="Run in the background; return once it is ready.")
@click.option("--linger", is_flag=True, hidden=True, help="End some minutes after the last client disconnects.")
def start_verb(detach: bool, linger: bool) -> int:
    """Start the gateway.

    It runs here until Ctrl-C, or with --detach in the background until it is
    stopped. Each user has one gateway.
    """
    if not detach:
        return run_start(linger)
    note(f"Gateway ready (process {run_detached(linger)})")
    say_next_step()
    return 0


def run_detached(linger: bool) -> int:
    """Start a gateway in the background, wait until it answers, and return its process id.

    Raises AlreadyRunningError, NoGatewayError.
    """
    run = run_dir(os.environ)
    with suppress(NoGatewayError):
        connect(run, Hello("control")).close()
        endpoint = read_endpoint(run)
        raise AlreadyRunningError(endpoint.pid if endpoint else 0)
    started = start_gateway(run, linger=linger)
    pid = int(ask(SNAPSHOT)["gateway"]["pid"])
    if not is_below(started, pid):
        raise AlreadyRunningError(pid)  # another process has started a gateway first, so ours ends by itself
    return pid


def is_below(ours: int, pid: int) -> bool:
    """Return True if process `pid` is process `ours` or a descendant of it.

    It is a descendant on Windows, where the launcher of a virtual environment starts another Python.
    """
    import psutil

    try:
        return pid == ours or any(parent.pid == ours for parent in psutil.Process(pid).parents())
    except psutil.Error:  # the process has already ended
        return False


@verb("stop", "multi-mcp stop")
def stop_verb(as_json: bool) -> None:
    """Stop the gateway and all its servers.

    While the tray runs, this pauses it: calls fail until you choose Resume there or run `multi-mcp start`.
    Without a tray, the next call of an AI tool starts the gateway again.
    """
    with waiting("Stopping", quiet=as_json):
        pid = int(ask(SNAPSHOT)["gateway"]["pid"])
        ask(STOP)
        if not await_gone(pid):
            what = f"The gateway (process {pid}) did not end within {GONE_TIMEOUT_S:g} s"
            raise MultiMcpError(what, f"End it with: {kill_command(pid)}")
    print_result(as_json, {"stopped": pid}, f"Stopped the gateway (process {pid})")


SAMPLE_MODULE = "trayapp.samples.server"  # named as a module, because a packaged program has no source files


@verb("stdio", "multi-mcp stdio --servers github,files", json=False)
@click.option(
    "--expose", type=click.Choice(["auto", "tools", "search"]), help="List all tools, or one that finds them."
)
@click.option("--servers", metavar="A,B", help="Show only these servers.")
@click.option("--profile", metavar="NAME", help="Show only this profile of servers.yaml.")
def stdio_verb(expose: str | None, servers: str | None, profile: str | None) -> None:
    """Connect an AI tool: its configuration runs this.

    Speaks MCP on stdin and stdout. Starts the gateway if none is running.
    """


@verb("sample-server", json=False)
def sample_server_verb() -> None:
    """Run the bundled sample server on stdin and stdout."""
    runpy.run_module(SAMPLE_MODULE, run_name="__main__")
