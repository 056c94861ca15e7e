"""`multi-mcp setup`: import servers and connect AI tools in one flow, and undo both."""

from __future__ import annotations

import os
import shlex
import time
from contextlib import suppress
from typing import Any

import click

from trayapp.cli.connect import ReportStyle, connect_each, disconnect_verb
from trayapp.cli.import_servers import asked_numbers, import_verb, undo_imports
from trayapp.cli.options import FLOW, STARTS, ask, verb
from trayapp.cli.output import Table, note, print_table, require_answers, say, say_hints
from trayapp.cli.status import failure
from trayapp.clients.connect import found_clients
from trayapp.clients.context import ClientsContext, own_context
from trayapp.clients.files import backup_of, shown_path
from trayapp.clients.imports import recorded_moves
from trayapp.config.paths import find_paths
from trayapp.model.errors import ExitCode, NoGatewayError
from trayapp.model.text import count, one_line
from trayapp.service.command_line import shim_command, typed_command
from trayapp.wire.control import SETTLE, SNAPSHOT, ControlClient
from trayapp.wire.rundir import run_dir

QUESTION = "which MCP servers do you have?"
SERVERS_S = 90.0  # the longest wait for new servers to start: npx and uvx may download their packages first
STEP_S = 1.0  # pause between two checks of servers that are still starting


@verb("setup", "multi-mcp setup", "multi-mcp setup --undo", json=False)
@click.option("--yes", is_flag=True, help="Import all servers and connect all AI tools, without asking.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--undo", is_flag=True, help="Put everything back as it was.")
@click.pass_context
def setup_verb(click_context: click.Context, yes: bool, dry_run: bool, undo: bool) -> int:
    """Set everything up: import your AI tools' servers, then connect the tools.

    Shows each step before doing it. Moves the servers out of the AI tools' files, so that each runs only once. `--undo`
    restores every file byte for byte.
    """
    click_context.meta[FLOW] = True
    starts = click_context.meta.pop(STARTS, False)  # only the last step needs a gateway
    if undo:
        return _undo(click_context, dry_run)
    if not (yes or dry_run):
        require_answers()
    say("1 of 3: the servers that your AI tools have")
    click_context.invoke(import_verb, move=True, yes=yes, dry_run=dry_run)
    say("", "2 of 3: your AI tools")
    context = own_context()
    try:
        chosen = _chosen(context, ask=not (yes or dry_run))
    except click.Abort:
        say("", *_without_servers(context))
        raise
    failed = (
        bool(chosen) and connect_each(chosen, ReportStyle(dry_run, as_json=False, diff=False, flow=True), context)[1]
    )
    say("", "3 of 3: try it")
    if starts and not dry_run:
        click_context.meta[STARTS] = True
        _show_servers()
    if warning := _without_servers(context):
        say(*warning)
    else:
        connected = _connected(context)
        tool, program = connected[0] if connected else "your AI tool", typed_command()
        say(
            f"Restart {tool} and ask: {QUESTION}",
            f"See it here: {program} panel",
            f"Start it at login: {program} autostart on",
            f"To undo it all: {program} setup --undo",
        )
    return ExitCode.FAILED if failed else ExitCode.OK


def _chosen(context: ClientsContext, *, ask: bool) -> list[str]:
    """Print the AI tools that are not connected, and return the names of those to connect.

    `ask`: let the user choose; otherwise, return all of them.
    """
    states = found_clients(context)
    new = [state for state in states if state.state != "connected"]
    if not states:
        command = shlex.join(shim_command())
        say(f"No known AI tool was found. Configure this command as an MCP server in yours: {one_line(command)}")
    elif not new:
        say(f"All are connected: {one_line(', '.join(state.title for state in states))}")
    else:
        rows = [
            (str(number), state.title, one_line(shown_path(state.file, context.machine.home)))
            for number, state in enumerate(new, 1)
        ]
        print_table(Table(("", "AI TOOL", "FILE"), rows, wraps=True))
        if ask:
            numbers = asked_numbers(f"Connect {count(len(new), 'AI tool')}?", len(new))
            return [new[number - 1].name for number in numbers]
    return [state.name for state in new]


def _connected(context: ClientsContext) -> list[str]:
    return [state.title for state in found_clients(context) if state.state == "connected"]


def _without_servers(context: ClientsContext) -> list[str]:
    """Return a warning, as lines, if servers left the AI tools' files and no AI tool is connected; otherwise []."""
    if _connected(context) or not recorded_moves(context):
        return []
    program = typed_command()
    return [
        "No AI tool is connected, so your AI tools do not have the imported servers now",
        f"Connect them: {program} setup",
        f"Put the servers back: {program} setup --undo",
    ]


def _show_servers() -> None:
    """Start the gateway, and print each server once its tools are known or it has failed.

    Stop waiting for the others after SERVERS_S seconds or at Ctrl-C.
    """
    say("Starting your servers. New ones may take a minute to install (press Ctrl-C to skip this)")
    latest = time.monotonic() + SERVERS_S
    printed: set[str] = set()
    try:
        ask(SNAPSHOT)  # starts the gateway
        while True:
            is_over = False  # True once no server is being asked for its tools
            with suppress(NoGatewayError), ControlClient(run_dir(os.environ), STEP_S) as client:
                client.call(SETTLE)
                is_over = True
            servers = ask(SNAPSHOT)["servers"]
            lines = {server["name"]: _outcome(server, is_over) for server in servers if server["state"] != "disabled"}
            say_hints(*(line for name, line in lines.items() if line and name not in printed))
            printed |= {name for name, line in lines.items() if line}
            left = [one_line(name) for name in lines if name not in printed]
            if not left or is_over:
                return
            if time.monotonic() > latest:
                note(f"Still starting: {', '.join(left)}. See: multi-mcp status")
                return
    except NoGatewayError as error:
        note(one_line(f"{error.title}. {error.hint}"))
    except KeyboardInterrupt:
        note("Skipped. To see your servers: multi-mcp status")


def _outcome(server: dict[str, Any], is_over: bool) -> str:
    """Return a line with the number of a server's tools, or why it does not work; "" if neither is known yet.

    `is_over`: the gateway has finished listing tools, so a server without any has 0 tools.
    """
    name, tools = one_line(server["name"]), server["tools"]["enabled"]
    if server["error"] is not None:
        return failure(server)
    if server["state"] == "needs_auth":
        return f"{name}: needs sign-in: multi-mcp auth {name}"
    return f"{name}: {count(tools, 'tool')}" if tools or is_over else ""


def _undo(click_context: click.Context, dry_run: bool) -> int:
    """Remove our entries from the AI tools' files, put their own servers back, and print what stays on this machine.

    Return the exit code. With `dry_run`, only print what would be done.
    """
    context = own_context()
    backups = [backup_of(state.file) for state in found_clients(context)]
    backups += [move.backup for move in recorded_moves(context)]
    codes = [
        click_context.invoke(disconnect_verb, everyone=True, dry_run=dry_run),
        undo_imports(dry_run, as_json=False),
    ]
    if not dry_run:  # print what stays: backups of files that changed since, multi-mcp's own files, the gateway
        paths, home = find_paths(os.environ), context.machine.home
        own = (paths.config_file.parent, paths.cache_dir, paths.log_dir, paths.state_dir)
        outer = [path for path in dict.fromkeys(own) if path.exists() and not set(path.parents) & set(own)]
        rows = [f"{shown_path(path, home)} (multi-mcp's own)" for path in outer]
        left = [shown_path(path, home) for path in backups if path.exists()]
        rows += [f"{path} (a backup, as this file has changed since)" for path in left]
        with suppress(NoGatewayError), ControlClient(run_dir(os.environ), STEP_S):
            rows.append("the gateway, which still runs; to stop it: multi-mcp stop")
        if rows:
            say_hints("Left in place:", *(f"  {one_line(row)}" for row in rows))
    say_hints("To remove multi-mcp itself, see: multi-mcp help install")
    return ExitCode.FAILED if any(codes) else ExitCode.OK
