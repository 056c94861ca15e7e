"""The verbs `approve`, `inspect` and `trust`: decisions on changed or suspicious tools and on projects' servers.

The approval of a project file covers exactly the content that was shown.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from textwrap import wrap
from typing import Any

import click

from trayapp.cli.edit import own_config, own_store, own_trust, tell_gateway
from trayapp.cli.options import ask, verb
from trayapp.cli.output import Table, is_terminal, print_json, print_result, print_table, require_person, say
from trayapp.cli.shown_server import (
    environment_lines,
    gets,
    loading_code,
    rule_lines,
    secret_lines,
    spelling_lines,
    starts,
)
from trayapp.config.interpolate import secret_commands
from trayapp.config.layers.overlay import Overlay, preview
from trayapp.config.layers.project import PROJECT_FILES, ProjectFile, project_file_in, read_project
from trayapp.config.problems import UnparsableError
from trayapp.model.config import Config, ServerConfig
from trayapp.model.errors import MultiMcpError, UsageError, problem_json
from trayapp.model.text import clean, count, escape_unprintable, one_line, width
from trayapp.wire.control import APPROVALS, APPROVE, INSPECT, RECONNECT

INSPECT_TIMEOUT_S = 120.0  # enough to inspect thousands of tools
SHOWN_FIRST = 40  # lines of a difference; the rest is shown on request
SCHEMAS = ("inputSchema:", "outputSchema:")  # headings of a definition's schemas, which few people read

Row = dict[str, Any]
STYLES = {"high": "bold red", "medium": "yellow"}


@verb("approve", "multi-mcp approve", "multi-mcp approve github/create_issue")
@click.argument("what", metavar="[SERVER[/TOOL]]", required=False)
@click.option("--all", "all_", is_flag=True, help="Approve everything that waits, for all servers, without asking.")
@click.option("--yes", is_flag=True, help="Approve without asking.")
@click.option("--keep", is_flag=True, help="Keep the old definition of SERVER/TOOL, which changed.")
def approve_verb(what: str | None, all_: bool, yes: bool, keep: bool, as_json: bool) -> int:
    """Show changed or suspicious tools and commands that fetch secrets, and approve them.

    A tool that changed or hides text is held back until you approve it. A tool that reads like an instruction to a
    model still works, but is reported until you approve it. You approve exactly what was shown. A tool that changes in
    the meantime has to be approved again. With --json, nothing is approved unless you pass --yes.
    """
    if all_ and what:
        raise UsageError("--all and a server cannot be combined", "Pass only one of them")
    server, _, tool = (what or "").partition("/")
    if keep:
        return _keep(server, tool, as_json)
    commands = {} if tool else _unapproved_commands(server)
    commands_approved = _settle_commands(commands, agreed=yes or all_, as_json=as_json) if commands else False
    waiting = ask(APPROVALS, {"server": server or None, "tool": tool or None})
    rows: list[Row] = waiting["rows"]
    number = len(rows)
    if not as_json:
        say(*(_lines(rows) if rows else [] if commands else ["Nothing waits for approval"]))
    decides = bool(number) and (yes or all_ or not as_json)
    can_ask = decides and require_person("approve a tool")
    agreed = decides and (yes or all_ or _confirm_approval(number, rows, can_ask))
    done: dict[str, Any] = {"approved": [], "missed": []}
    if agreed:
        done = ask(APPROVE, {"tools": _decided(rows)})
    if as_json:
        listed = [{"server": name, "command": command} for name, found in commands.items() for command in found]
        print_json({"waiting": rows, "commands": listed, "commands_approved": commands_approved, **done})
    elif agreed:
        say(*(f"Approved: {_path(row)}" for row in done["approved"]))
        say(*(f"Not approved: {_path(row)} changed again before the approval" for row in done["missed"]))
        lasts = "The approval lasts only until the gateway stops"
        say(*(one_line(f"{problem}. {lasts}") for problem in done.get("problems", ())))
    elif number:
        say(*(f"Not approved: {_path(row)}. {_meanwhile(row)}" for row in rows))
        if number == 1:
            say(f"To disable it: multi-mcp disable {shlex.quote(_path(rows[0]))}")
    refused = (number and not agreed) or (commands and not commands_approved)
    return 1 if done["missed"] or done.get("problems") or (refused and not as_json) else 0


def _keep(server: str, tool: str, as_json: bool) -> int:
    """Keep the old definition of one tool that changed, and return the exit code. Raises UsageError if `tool` is ""."""
    if not tool:
        raise UsageError("Name the tool that keeps its old definition", "Write: multi-mcp approve --keep SERVER/TOOL")
    require_person("keep the old definition")
    rows = ask(APPROVALS, {"server": server, "tool": tool})["rows"]
    done = ask(APPROVE, {"tools": _decided(rows), "keep": True})
    kept, missed, problems = done["approved"], done["missed"], done.get("problems", [])
    lines = [f"Kept the old definition: {server}/{tool}" for _ in kept]
    lines += [*(f"{server}/{tool} has no old definition" for _ in missed), *problems]
    print_result(as_json, {"kept": kept, "missed": missed, "problems": problems}, *map(one_line, lines))
    return 1 if missed or problems else 0


def _decided(rows: list[Row]) -> list[Row]:
    return [{member: row[member] for member in ("server", "tool", "hash")} for row in rows]


def _unapproved_commands(server: str) -> dict[str, list[str]]:
    """Return the unapproved commands that fetch secrets, by server. `server`: the only one to check, or "" for all."""
    try:
        config = own_config(own_store())
    except MultiMcpError:
        return {}  # problems of servers.yaml are reported elsewhere
    return own_trust().unapproved(entry for name, entry in config.servers.items() if server in ("", name))


def _settle_commands(commands: Mapping[str, list[str]], *, agreed: bool, as_json: bool) -> bool:
    """Show the commands unless `as_json`, get them approved, and restart their servers. Return True if approved.

    `agreed`: approve them without asking. With `as_json` alone, nothing is approved. Raises UsageError if nobody can
    decide.
    """
    if not as_json:
        for name, found in commands.items():
            say(
                f"{one_line(name)} runs these commands to get secrets:",
                *(f"    {escape_unprintable(command)}" for command in found),
                "",
            )
    if as_json and not agreed:
        return False
    can_ask = require_person("approve a command")
    if not agreed:
        if not can_ask:
            raise UsageError("Cannot ask for confirmation (no terminal)", "Review the commands above, then pass --yes")
        if not click.confirm("Run these commands now and whenever their servers start?", default=False):
            return False
    own_trust().approve_commands(command for found in commands.values() for command in found)
    for name in commands:
        ask(RECONNECT, {"server": name}, timeout=None)
    if not as_json:
        say("Approved")
    return True


def _confirm_approval(number: int, rows: list[Row], can_ask: bool) -> bool:
    """Ask for approval of the tools, and show them in full on request. Raises UsageError if nobody can answer."""
    if not can_ask:
        raise UsageError("Cannot ask for confirmation (no terminal)", "Review the tools above, then pass --yes")
    question = f"Approve {'it' if number == 1 else f'these {number}'}? [y/N/d = details]"
    while (answer := click.prompt(question, default="n", show_default=False).strip().lower()) == "d":
        say(*_lines(rows, whole=True))
    return answer in ("y", "yes")


def _lines(rows: list[Row], *, whole: bool = False) -> Iterator[str]:
    """Yield the lines about each tool: its difference, what clients get until it is approved, and why it waits."""
    for row in rows:
        yield f"{_path(row)}:"
        lines: list[str] = row["difference"]
        if not whole:  # only the first lines, without the schemas of a new tool
            schemas = (at for at, line in enumerate(lines) if line in SCHEMAS and not row["changed"])
            lines = lines[: next(schemas, len(lines))][:SHOWN_FIRST]
        yield from _wrapped(lines, "    ")
        if len(row["difference"]) > len(lines):
            yield f"    ({count(len(row['difference']) - len(lines), 'more line')} of its definition)"
        yield f"  {_meanwhile(row)}"
        reasons = [] if row["findings"] else [one_line(row["reason"])]
        for found in row["findings"]:  # `It hides a step (description): "Do >not tell< the user."`
            evidence, marked = found["evidence"], found.get("marked") or ""
            shown = evidence.replace(marked, f">{marked}<", 1) if marked and marked != evidence else evidence
            what = f"{found.get('reason') or found['code']} ({found['where']})"
            reasons.append(one_line(what + (f': "{shown}"' if shown else "")))
        yield from _wrapped(reasons, "  ")
        yield ""


def _wrapped(lines: Iterable[str], indent: str) -> Iterator[str]:
    """Yield cleaned lines, wrapped to the terminal's width if stdout is a terminal."""
    columns = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else 0
    for line in lines:
        text = f"{indent}{clean(line)}"
        yield from wrap(text, columns, subsequent_indent=f"{indent}  ") if 0 < columns < width(text) else [text]


def _meanwhile(row: Row) -> str:
    if not row["held"]:
        return "Clients can use it. This notice stays until you approve it."
    if not row["served"]:
        return "No client sees it until you approve it."
    return (
        "Clients get the new definition, which you have not approved."
        if row["as_now"]
        else "Clients get the definition that you approved before."
    )


def _path(row: Row) -> str:
    return one_line(f"{row['server']}/{row['tool']}")


@verb("inspect", "multi-mcp inspect", "multi-mcp inspect github --json")
@click.argument("server", required=False)
def inspect_verb(server: str | None, as_json: bool) -> None:
    """Check the tools of all servers, or of SERVER, for hidden text and instructions to the model.

    Nothing is sent anywhere. Tools with high-severity findings are held back until you approve them.
    """
    found = ask(INSPECT, {"server": server}, INSPECT_TIMEOUT_S)
    rows: list[Row] = sorted(found["rows"], key=lambda row: row["severity"])
    if as_json:
        print_json(rows)
        return
    if rows:
        cells = [
            (_path(row), row["severity"], one_line(row.get("reason") or row["code"]), one_line(row["evidence"]))
            for row in rows
        ]
        print_table(Table(("TOOL", "SEVERITY", "FINDING", "TEXT"), cells, STYLES, wraps=True))
    say(f"{count(found['tools'], 'tool')} checked, {count(len(rows), 'finding')}")


@verb("trust", "multi-mcp trust .", "multi-mcp trust ~/src/shop --yes")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Approve without asking.")
@click.option("--revoke", is_flag=True, help="Revoke an approval.")
def trust_verb(folder: Path, yes: bool, revoke: bool, as_json: bool) -> int:
    """Approve the servers of a project.

    DIR is the folder that contains a .multi-mcp.yaml or .mcp.json. Such a file says which programs are started for
    sessions in that folder. It is ignored until you approve it here, and again after every change. With --json,
    nothing is approved unless you pass --yes.
    """
    store = own_trust()
    place = folder.expanduser().resolve()
    if revoke:
        revoked = [str(path) for path in store.paths() if path.parent == place and store.revoke(path)]
        if revoked:
            tell_gateway()
        lines = [f"No longer trusted: {one_line(path)}" for path in revoked] or ["Nothing to revoke"]
        print_result(as_json, {"revoked": revoked}, *lines)
        return 0
    path = project_file_in(place)
    file = read_project(path) if path else None
    if file is None:
        raise MultiMcpError(
            f"{place} has no {' and no '.join(PROJECT_FILES)}", "Pass the folder that contains the file"
        )
    below = Config()
    with suppress(UnparsableError):
        below = own_config(own_store())
    laid = preview(below, file)
    if not as_json:
        say(*_trust_lines(file, laid))
    can_ask = (yes or not as_json) and require_person("trust a project")
    trusts = yes
    if not yes and not as_json:
        if not can_ask:
            raise UsageError("Cannot ask for confirmation (no terminal)", "Review the servers above, then pass --yes")
        uses_secrets = any(any(secret_lines(laid.config.servers[name])) for name in laid.named)
        more = " and to use the secrets shown above" if uses_secrets else ""
        trusts = click.confirm(f"Trust this file to start these programs{more}?", default=False)
    if trusts:
        commands = [one for name in laid.named for one in secret_commands(laid.config.servers[name])]
        if commands:
            store.approve_commands(commands)
        if store.approve(file) or commands:
            tell_gateway()
        if not as_json:
            say(f"Trusted: {one_line(str(file.path))}")
    trusted = store.check(file) is not None
    if as_json:
        servers = [_server_json(laid.config.servers[name], name in laid.own, file) for name in laid.named]
        problems = [problem_json(problem) for problem in laid.config.problems]
        print_json({"file": str(file.path), "trusted": trusted, "servers": servers, "problems": problems})
    return 0 if trusted or as_json else 1


def _trust_lines(file: ProjectFile, laid: Overlay) -> Iterator[str]:
    """Yield the file, each server with every fact that decides what it does, and the file's problems."""
    yield escape_unprintable(str(file.path))
    for name in laid.named:
        server = laid.config.servers[name]
        yield f"  {escape_unprintable(name)}: {starts(server)}"
        for remark in _remarks(server, laid):
            yield f"    {remark}"
        for script in file.scripts:
            if script.server == name:
                yield f"    runs {escape_unprintable(script.name)}, whose content is approved with this file"
    for problem in laid.config.problems:
        yield f"  line {problem.line}: {one_line(problem.message)}"
    if not laid.named:
        yield "  No servers"


def _remarks(server: ServerConfig, laid: Overlay) -> Iterator[str]:
    if server.name not in laid.own:
        yield "your own server, started as in servers.yaml"
    if server.command is not None and server.cwd not in (None, str(laid.folder)):
        yield f"in the folder {escape_unprintable(str(server.cwd))}"
    yield from spelling_lines(server)
    yield from environment_lines(server)
    yield from secret_lines(server)
    yield from rule_lines(server)
    if server.disabled:
        yield "disabled"


def _server_json(server: ServerConfig, own: bool, file: ProjectFile) -> dict[str, Any]:
    """Return one server: `{"name", "command", "url", "env", "headers", "own", ...}`.

    `own`: False if the user already has this server and the project starts it the same way. `env` and `headers` hold
    only names, since a value may be a secret. The other members are present if not empty:

    - `cwd`: the working folder, if it is not the project's folder
    - `loads_code`: variables that load code, with their values
    - `secrets`, `variables`: the names of keyring secrets and of the user's variables that the entry refers to
    - `scripts`: programs of the project
    """
    command = [server.command, *server.args] if server.command is not None else None
    names = {"env": list(server.env), "headers": list(server.headers)}
    secrets, variables = gets(server)
    more = {
        "cwd": server.cwd if server.command is not None and server.cwd != str(file.folder) else None,
        "loads_code": loading_code(server.env),
        "secrets": secrets,
        "variables": variables,
        "scripts": [script.name for script in file.scripts if script.server == server.name],
    }
    given = {key: value for key, value in more.items() if value}
    return {"name": server.name, "command": command, "url": server.url, **names, "own": own, **given}
