"""`multi-mcp connect` and `multi-mcp disconnect`: write our entry into the files of AI tools, and remove it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

from trayapp.cli.edit import own_config, own_store
from trayapp.cli.options import FLOW, verb
from trayapp.cli.output import Table, agreed, at_terminal, note, print_json, print_table, say, say_hints
from trayapp.clients.connect import (
    MAIN,
    Change,
    ClientStatus,
    ForeignEntryError,
    OwnEntry,
    client_state,
    connect,
    disconnect,
    found_clients,
    plan_connect,
    plan_disconnect,
)
from trayapp.clients.context import ClientsContext, own_context, recorded_connection
from trayapp.clients.files import backup_of, shown_path
from trayapp.clients.imports import RestoredFile, put_back, recorded_moves
from trayapp.clients.table import BY_NAME, NAME, find_client
from trayapp.config.problems import nearest
from trayapp.model.errors import ExitCode, MultiMcpError, UsageError
from trayapp.model.redact import redacted
from trayapp.model.text import clean, one_line, shortened

_ENTRY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")  # server names that every tool accepts
LONGEST_LINE = 200  # columns of a diff's line: some programs write their whole file in one line
NEEDS = {
    "restart": "If {title} is running, restart it",
    "reload": "If {title} is running, reload its servers",
    "no": "",
}
Do = Callable[[str, ClientsContext], Change]


@verb(
    "connect",
    "multi-mcp connect cursor",
    "multi-mcp connect --all --dry-run",
    "multi-mcp connect cursor --profile office",
    "multi-mcp connect cursor --servers github --as github",
)
@click.argument("client", metavar="[CLIENT]", required=False)
@click.option("--all", "everyone", is_flag=True, help="All AI tools that are found here.")
@click.option("--profile", metavar="NAME", help="Show only what this profile of servers.yaml shows.")
@click.option("--servers", metavar="A,B", help="Show only these servers.")
@click.option("--as", "entry", metavar="ENTRY", default=NAME, help="Name of the entry; one tool can have several.")
@click.option("--replace", is_flag=True, help="Replace another server that has the same name as our entry.")
@click.option("--diff", is_flag=True, help="With --all: show each change line by line.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
def connect_verb(
    client: str | None,
    everyone: bool,
    profile: str | None,
    servers: str | None,
    entry: str,
    replace: bool,
    diff: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Point an AI tool at multi-mcp.

    Show the change to the tool's configuration, make it, and keep a backup beside the file. With neither CLIENT nor
    --all, list the AI tools on this computer and their state. With --profile or --servers, the tool sees only these
    servers. --as names the entry, so that one tool can have several.
    """
    context = own_context()
    if not _ENTRY_NAME.fullmatch(entry):
        hint = "Use a letter or digit, then at most 39 letters, digits, - or _"
        raise UsageError(f"{entry} is not a valid entry name", hint)
    own = OwnEntry(entry, _options(profile, servers))
    if client is None and not everyone:
        if own != MAIN:
            raise UsageError("Name an AI tool, or pass --all", "To list the AI tools: multi-mcp connect")
        return show(found_clients(context), context, as_json)
    names = _names(client, everyone, lambda state: own != MAIN or state.state != "connected", context)
    done, failed = connect_each(
        names, ReportStyle(dry_run, as_json, diff or not everyone), context, own, replace=replace
    )
    if as_json:
        print_json({"clients": done})
    return ExitCode.FAILED if failed else ExitCode.OK


def connect_each(
    names: Sequence[str], style: ReportStyle, context: ClientsContext, own: OwnEntry = MAIN, *, replace: bool = False
) -> tuple[list[dict[str, Any]], bool]:
    """Connect and report on each AI tool. Return one object per tool, and True if any failed. Raises MultiMcpError.

    `replace`: replace another server that has the name of our entry, instead of asking the user.
    """

    def do(name: str, context: ClientsContext) -> Change:
        carry_out = plan_connect if style.dry_run else connect
        try:
            return carry_out(name, context, own, replace=replace)
        except ForeignEntryError as error:
            if style.as_json or style.dry_run or not at_terminal() or not agreed(f"{error.title}. Replace it?"):
                raise
            return carry_out(name, context, own, replace=True)

    return _each(names, do, style, context)


def _options(profile: str | None, servers: str | None) -> tuple[str, ...] | None:
    """Return the options for `multi-mcp stdio`; None if none were given.

    Raises UsageError, StorageError, UnparsableError.
    """
    if profile is None and servers is None:
        return None
    config = own_config(own_store())
    options: list[str] = []
    if profile is not None:
        if profile not in config.settings.profiles:
            raise UsageError(f"No profile is named {profile}", _known(profile, config.settings.profiles, "profiles"))
        options += ["--profile", profile]
    if servers is not None:
        named = [name.strip() for name in servers.split(",") if name.strip()]
        missing = next((name for name in named if name not in config.servers), None)
        if not named or missing is not None:
            raise UsageError(f"No server is named {missing or servers}", _known(missing, config.servers, "servers"))
        options += ["--servers", ",".join(named)]
    return tuple(options)


def _known(name: str | None, known: Iterable[str], what: str) -> str:
    names = list(known)
    near = nearest(name or "", names)
    return f"Did you mean {near}?" if near else f"The {what} in servers.yaml: {', '.join(names) or 'none'}"


@verb(
    "disconnect", "multi-mcp disconnect cursor", "multi-mcp disconnect cursor --as github", "multi-mcp disconnect --all"
)
@click.argument("client", metavar="[CLIENT]", required=False)
@click.option("--all", "everyone", is_flag=True, help="All AI tools that are connected.")
@click.option("--as", "entry", metavar="ENTRY", help="Remove only the entry of that name.")
@click.option("--diff", is_flag=True, help="With --all: show each change line by line.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
def disconnect_verb(
    client: str | None, everyone: bool, entry: str | None, diff: bool, dry_run: bool, as_json: bool
) -> int:
    """Remove multi-mcp from an AI tool.

    Restores the tool's file byte for byte. If the file has changed since, only our entry is removed. With --all, every
    tool also gets back the servers that `import --move` removed from its file.
    """
    if client is None and not everyone:
        raise UsageError("Name an AI tool, or pass --all", "To list the AI tools: multi-mcp connect")
    context = own_context()

    def wanted(state: ClientStatus) -> bool:
        known = recorded_connection(context, state.name)
        has = entry is None or (known is not None and entry in known.entries)
        return state.state in ("connected", "drifted") and has

    def do(name: str, context: ClientsContext) -> Change:
        return (plan_disconnect if dry_run else disconnect)(name, context, entry)

    names = _names(client, everyone, wanted, context)
    moves = recorded_moves(context) if everyone and entry is None else []
    flow = FLOW in click.get_current_context().meta
    style = ReportStyle(dry_run, as_json, diff or not everyone, flow)
    done, failed = _each(names, do, style, context, quiet=bool(moves))
    back = put_back(context) if moves and not dry_run else []
    if as_json:
        restored = [str(each.move.file) for each in back if not each.why_not]
        print_json({"clients": done} | ({"restored": restored} if restored else {}))
    elif dry_run:
        files = (shown_path(move.file, context.machine.home) for move in moves)
        say(*(one_line(f"{file} would get its own servers back") for file in files))
    else:
        say(*restored_lines(back, context))
        moved = [move for move in recorded_moves(context) if client is not None and move.client == find_client(client)]
        if moved and entry is None:
            say_hints("Its own servers are still in multi-mcp; to put them back: multi-mcp import --undo")
    return ExitCode.FAILED if failed or any(each.why_not for each in back) else ExitCode.OK


@dataclass(frozen=True, slots=True)
class ReportStyle:
    """The form in which changes are reported.

    `diff`: show each changed line, not one line per tool. `flow`: this is a step of a longer flow, so print no hints.
    """

    dry_run: bool
    as_json: bool
    diff: bool
    flow: bool = False


def _names(
    client: str | None, everyone: bool, wanted: Callable[[ClientStatus], bool], context: ClientsContext
) -> list[str]:
    if client is not None and everyone:
        raise UsageError("Name one AI tool, or pass --all", "See: multi-mcp connect --help")
    if client is not None:
        return [client]
    return [state.name for state in found_clients(context) if wanted(state)]


def _each(
    names: Sequence[str], do: Do, style: ReportStyle, context: ClientsContext, *, quiet: bool = False
) -> tuple[list[dict[str, Any]], bool]:
    """Carry out `do` for each tool. Return one object per tool, and True if any failed.

    An object is the tool's state with `{"changed", "diff", "needs", "restores"}`. `needs`: what the user has to do, ""
    if nothing. `restores`: true if the file has its original bytes again. `quiet`: print nothing if there are no tools.

    A failure is reported as `{"name", "error"}` and does not stop the others. If there is only one tool, its error is
    raised.
    """
    done: list[dict[str, Any]] = []
    failed = False
    for name in names:
        try:
            change = do(name, context)
        except MultiMcpError as error:
            if len(names) == 1:
                raise
            failed = True
            done.append({"name": name, "error": {"title": error.title, "hint": error.hint, "code": error.code}})
            if not style.as_json:
                note(one_line(f"{BY_NAME[name].title}: {error}"))
            continue
        state = _state_json(client_state(name, context))
        diff = [redacted(line) for line in change.diff()]
        done.append(
            state | {"changed": change.changes, "diff": diff} | {"needs": _needs(change), "restores": change.restores}
        )
        if not style.as_json:
            say(*_lines(change, style, context))
    if not (names or style.as_json or quiet):
        say_hints("Nothing to do. See: multi-mcp connect")
    elif names and not (style.as_json or style.diff or style.flow):
        say("To see each changed line, add --diff")
    return done, failed


def _lines(change: Change, style: ReportStyle, context: ClientsContext) -> list[str]:
    """Return the lines that report a change, preceded by its diff if `style.diff` is True."""
    title, path = change.client.title, shown_path(change.file, context.machine.home)
    state = client_state(change.client.name, context)
    if not change.changes:
        off = f": {state.reason}" if state.state == "connected" and state.reason else ""
        return [f"{title} is {'already' if change.wanted == 'connected' else 'not'} connected ({path}){one_line(off)}"]
    difference = change.diff() if style.diff else []
    lines = [shortened(redacted(line), LONGEST_LINE) for text in difference for line in clean(text).splitlines()]
    if change.left:
        verb = "would be removed" if style.dry_run else "removed"
        return [*lines, f"{title}: entry {change.entry} {verb} ({path}). Still there: {', '.join(change.left)}"]
    if style.dry_run:
        return [*lines, f"{title} would be {change.wanted}" + ("" if style.diff else f": {path}")]
    named = f" as {change.entry}" if change.wanted == "connected" and change.entry != NAME else ""
    words = f"{title} {change.wanted}{named}: {path}"
    if change.wanted == "connected":
        kept = backup_of(change.file).name if change.keep and change.before is not None else ""
        words += f" (backup: {kept})" if kept else ""
        needs = [_needs(change), f"{state.reason}, and stays as it is" if state.reason else ""]
        return [*lines, words, *filter(None, needs)] if style.diff else [". ".join(filter(None, [words, *needs]))]
    if change.after is None:
        words += " (removed: it had no other content)"
    return [*lines, words + (" (as it was before)" if change.restores else "")]


def _needs(change: Change) -> str:
    """Return the steps left to the user before the tool sees its new entry; "" if there are none."""
    new = change.changes and change.wanted == "connected"
    return NEEDS[change.client.restart].format(title=change.client.title) if new else ""


def restored_lines(done: list[RestoredFile], context: ClientsContext) -> Iterator[str]:
    """Yield the outcome for each file that servers were moved out of."""
    for each in done:
        path = shown_path(each.move.file, context.machine.home)
        if each.why_not:
            backup = shown_path(each.move.backup, context.machine.home)
            yield one_line(f"{path} did not get its servers back: {each.why_not} (backup: {backup})")
        else:
            how = "as it was before" if each.whole else "changes since then are kept"
            yield one_line(f"{path} has its own servers again ({how})")


def _state_json(state: ClientStatus) -> dict[str, Any]:
    client = BY_NAME[state.name]
    known = {"profile": state.profile, "max_tools": client.max_tools, "max_name": client.max_name}
    return {
        "name": state.name, "title": state.title, "state": state.state, "file": str(state.file), "reason": state.reason,
        **{key: value for key, value in known.items() if value},
    }  # fmt: skip


def show(states: Sequence[ClientStatus], context: ClientsContext, as_json: bool) -> int:
    """Print the AI tools on this machine and their states. Return the exit code."""
    if as_json:
        print_json({"clients": [_state_json(state) for state in states]})
        return 0
    if not states:
        say("No known AI tool was found here", f"Known AI tools: {', '.join(BY_NAME)}")
        return 0
    rows: list[tuple[str, str, str]] = []
    for state in states:
        reason = f": {one_line(state.reason)}" if state.reason else ""
        limit = f" (takes at most {BY_NAME[state.name].max_tools} tools)" if BY_NAME[state.name].max_tools else ""
        file = one_line(shown_path(state.file, context.machine.home))
        rows.append((state.name, state.state, file + limit + reason))
    print_table(Table(("CLIENT", "STATE", "FILE"), rows, {"connected": "green", "drifted": "red"}, wraps=True))
    return 0
