"""`multi-mcp setup`: the first run as one flow, and its undo.

Never here: the steps themselves (import_servers, connect).
"""

from __future__ import annotations

import shlex
import sys

import click

from trayapp.cli.connect import ReportStyle, connect_each, disconnect_verb
from trayapp.cli.import_servers import asked_numbers, import_verb
from trayapp.cli.options import FLOW, examples
from trayapp.cli.output import Table, is_terminal, print_table, say, say_hints
from trayapp.cli.undo import undo_imports
from trayapp.clients.connect import found_clients
from trayapp.clients.context import ClientsContext, own_context
from trayapp.clients.imports import recorded_moves
from trayapp.clients.places import shown_path
from trayapp.model.errors import ExitCode, UsageError
from trayapp.model.text import count, one_line
from trayapp.service.command_line import shim_command, typed_command

QUESTION = "which MCP servers do you have?"


@click.command("setup", epilog=examples("multi-mcp setup", "multi-mcp setup --undo"))
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
    if undo:
        return _undo(click_context, dry_run)
    if not (yes or dry_run or is_terminal(sys.stdin)):
        raise UsageError("Cannot ask for confirmation (no terminal)", "Pass --yes to proceed or --dry-run to preview")
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
    say("", "3 of 3: try it", *_next_steps(context))
    return ExitCode.FAILED if failed else ExitCode.OK


def _chosen(context: ClientsContext, *, ask: bool) -> list[str]:
    """Return the names of the AI tools to connect, as chosen by the user if they are asked."""
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
    """Return a warning if servers left the AI tools' files and no AI tool is connected; nothing otherwise."""
    if _connected(context) or not recorded_moves(context):
        return []
    program = typed_command()
    return [
        "Your AI tools do not have the imported servers now, because none is connected",
        f"Connect them: {program} setup",
        f"Put the servers back: {program} setup --undo",
    ]


def _next_steps(context: ClientsContext) -> list[str]:
    if warning := _without_servers(context):
        return warning
    connected = _connected(context)
    tool, program = connected[0] if connected else "your AI tool", typed_command()
    return [
        f"Restart {tool} and ask: {QUESTION}",
        f"See it here: {program} panel. New servers may need a minute to install",
        f"Start it at login: {program} autostart on",
        f"To undo it all: {program} setup --undo",
    ]


def _undo(click_context: click.Context, dry_run: bool) -> int:
    """Undo in reverse order: remove our entries, then put the servers back that the files held before."""
    codes = [
        click_context.invoke(disconnect_verb, everyone=True, dry_run=dry_run),
        undo_imports(dry_run, as_json=False),
    ]
    say_hints("If the gateway still runs, stop it with: multi-mcp stop")
    say_hints("To remove what is left, see: multi-mcp help install")
    return ExitCode.FAILED if any(codes) else ExitCode.OK
