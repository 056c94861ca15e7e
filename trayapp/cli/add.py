"""`multi-mcp add` and `multi-mcp remove`: add or remove one server in servers.yaml or in the project's own file."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal

import click

from trayapp.cli.edit import no_such_server, own_config, own_store, own_trust, tell_gateway, written_servers
from trayapp.cli.options import DISCOVERY_TIMEOUT_S, ask, list_command, of_project, verb
from trayapp.cli.output import at_terminal, note, print_json, say, say_hints, waiting
from trayapp.cli.secret import keep_all, keeps_secrets, may_keep
from trayapp.cli.shown_server import decisive_lines, unlocked
from trayapp.cli.source import Answers, add_source, preview_source, read_form
from trayapp.clients import project_file
from trayapp.clients.conversion import with_own_browser
from trayapp.clients.files import Machine, shown_path
from trayapp.clients.imports import writing_fault
from trayapp.clients.secrets import secrets_of, without_secrets
from trayapp.config.layers.project import find_project, read_project
from trayapp.config.paths import find_paths
from trayapp.config.problems import UnparsableError, shown
from trayapp.config.programs import WHY
from trayapp.config.read.command import relative_paths
from trayapp.config.read.entry import name_fault, read_one
from trayapp.config.urls import exposure, name_of_url, unsafe_url, unsafe_url_hint
from trayapp.model.config import Config
from trayapp.model.errors import MultiMcpError, NoGatewayError, UsageError
from trayapp.model.text import count, one_line
from trayapp.service.command_line import PACKAGE
from trayapp.service.secrets import secret_names
from trayapp.wire.control import APPROVALS, LIST, REFRESH

Scope = Literal["global", "project"]
SCOPES = ("global", "project")
INDENT = "  "
NAME_LINES = 4
EXAMPLE = "multi-mcp add files -- npx -y my-files-server ~/Documents"


@verb("add", EXAMPLE, "multi-mcp add docs --url https://mcp.example.com/mcp", "multi-mcp add npm:my-files-server")
@click.argument("name", metavar="[NAME | WHAT]", required=False)
@click.argument("command", nargs=-1, metavar="[-- CMD ...]", type=click.UNPROCESSED)
@click.option("--url", help="Address of a server on the web.")
@click.option("--account", metavar="NAME", help="With --url: use a separate sign-in at that address.")
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable for its environment.")
@click.option("--header", multiple=True, metavar="NAME:VALUE", help="A header to send with each request.")
@click.option("--as", "called", metavar="NAME", help="Name of the server that WHAT describes.")
@click.option("--set", "values", multiple=True, metavar="NAME=VALUE", help="A value that WHAT does not set.")
@click.option("--way", type=int, metavar="NUMBER", help="Which way to run it, if --dry-run shows several.")
@click.option("--yes", is_flag=True, help="Add what WHAT describes without asking.")
@click.option("--dry-run", is_flag=True, help="Only show what WHAT would run.")
@click.option("--form", is_flag=True, hidden=True, help="Read WHAT and the answers from stdin, as JSON.")
@click.option("--confine", is_flag=True, help="Confine its program to its own folders; see multi-mcp confine.")
@click.option("--scope", type=click.Choice(SCOPES), help="Where to write it; see above.")
@click.option(
    "--keyring/--clear", "hide", default=None, help="Put secrets into the keyring, or leave them as they are."
)
def add_verb(
    name: str | None,
    command: tuple[str, ...],
    url: str | None,
    account: str | None,
    env: tuple[str, ...],
    header: tuple[str, ...],
    called: str | None,
    values: tuple[str, ...],
    way: int | None,
    yes: bool,
    dry_run: bool,
    form: bool,
    confine: bool,
    scope: Scope | None,
    hide: bool | None,
    as_json: bool,
) -> None:
    """Add a server, and try it.

    WHAT describes a server: a snippet of any AI tool's configuration, a command line (npx ..., claude mcp add ...), an
    install link, an address or a server.json. It can also be a package (npm:, pypi:, oci:), a name from the registry
    (see multi-mcp find) or a bundle (.mcpb). Pass a file with one of these, or - to paste one. You see what it would
    run before anything starts.

    With --url, you can omit NAME: it is then taken from the address. The server runs in the current folder, or in your
    home folder if the current folder is multi-mcp's own. --scope global writes it into servers.yaml. --scope project
    writes it into the current project's file (.multi-mcp.yaml or .mcp.json), and only sessions there see it. Without
    --scope, it goes into the project's file if there is one, otherwise into servers.yaml.
    """
    if form:
        what, answers = read_form(sys.stdin.read())
        if dry_run:
            preview_source(what, as_json=as_json, here=False)
        else:
            add_source(what, answers, partial(_add, "global", True, as_json, confine, anywhere=True))
        return
    if scope is None:  # the home folder is not a project
        project = find_project(Path.cwd(), Machine().home)
        scope = "global" if project is None or project.parent == Machine().home.resolve() else "project"
    if name and not command and not url and dry_run:
        preview_source(name, as_json=as_json)
        return
    if dry_run:
        raise UsageError("--dry-run works only with WHAT, not with a command or --url", "See: multi-mcp add --help")
    if name and not command and not url:
        add_source(
            name,
            Answers(_pairs(values, "=", "--set"), yes, called, hide, way=way, as_json=as_json),
            partial(_add, scope, hide, as_json, confine),
        )
        return
    if not name:
        if not url:
            raise UsageError("Give a name and a command, or --url", f"For example: {EXAMPLE}")
        _check_url(url)
        name = name_of_url(url)
    if command and scope == "global" and Path(command[0]).name != command[0] and Path(command[0]).is_file():
        # The gateway runs in another folder. Keep symlinks: the target of one in a .venv is a different program.
        command = (str(Path(command[0]).absolute()), *command[1:])
    more: dict[str, Any] = ({"account": account} if account else {}) | ({"confine": True} if confine else {})
    entry = _entry(name, command, url, _pairs(env, "=", "--env"), _pairs(header, ":", "--header"), more)
    note(*map(one_line, filter(None, (exposure(url or ""), unlocked(entry)))))
    _add(scope, hide, as_json, confine, name, entry)


def _add(
    scope: Scope,
    hide: bool | None,
    as_json: bool,
    confine: bool,
    name: str,
    entry: dict[str, Any],
    *,
    anywhere: bool = False,
) -> None:
    """Write a server's entry, then try the server. `anywhere`: the request has no folder, so write no `cwd`."""
    if confine and "command" in entry:
        entry.setdefault("confine", True)
    folder, home = Path.cwd(), Machine().home
    path = project_file.project_file_for(folder, home) if scope == "project" else own_store().path
    proposed = with_own_browser(entry) if path.suffix != ".json" else entry  # other tools read a .mcp.json, too
    browser, entry = proposed is not entry, proposed
    runs_here = not anywhere and "command" in entry and "cwd" not in entry and entry.get("scope") != "session"
    checkout = Path(PACKAGE).parent
    if runs_here and folder.resolve().is_relative_to(checkout.resolve()) and (checkout / "pyproject.toml").is_file():
        server, _ = read_one(name, entry)
        if scope == "global" and not (server and server.command and relative_paths(server.command, server.args)):
            folder = home  # a new user runs this in our own checkout: no server should run there
    if runs_here and scope == "global":
        entry = entry | {"cwd": shown_path(folder, home)}
    elif runs_here and (below := folder.resolve()) != path.parent and below.is_relative_to(path.parent):
        entry = entry | {"cwd": str(below.relative_to(path.parent))}  # without `cwd`, it runs in the project's folder
    entry = _without_secrets(name, entry, hide, asks=at_terminal() and not as_json)
    if scope == "project":
        project_file.add_server(path, name, entry, own_trust())
    else:
        store = own_store()
        store.add_server(name, entry)
    tell_gateway()
    seen = scope == "global" or project_file_is_trusted(path)
    if not as_json:
        sees = ""
        if scope == "project" and seen:
            sees = f". Sessions in {shown_path(path.parent, home)} see it. To list it: {list_command(path.parent)}"
        elif scope == "project":
            sees = f". The file is not trusted yet: multi-mcp trust {shlex.quote(str(path.parent))}"
        say_hints(one_line(f"Added {name} to {shown_path(path, home)}{sees}"))
        server, _ = read_one(name, entry)
        say(*(f"  {line}" for line in decisive_lines(server)) if server else ())
        if scope == "global" and runs_unconfined(entry):
            words = f"multi-mcp confine {shlex.quote(name)} --try"
            say_hints(f"  {one_line(f'Not confined. To see what it would need: {words}')}")
        note(*([f"{WHY}, so each gets its own (scope: session). To share one, set scope: shared"] if browser else []))
    trial = try_server(name, path.parent if scope == "project" else None, quiet=as_json) if seen else None
    if as_json:
        tried = {} if trial is None else {"tools": trial.tools, **({"error": trial.why} if trial.why else {})}
        print_json({"name": name, "scope": scope, "file": str(path), "entry": entry, **tried})
    elif trial is not None:
        (note if trial.tools is None else say_hints)(trial.line(name))
        say(*trial.name_lines())


def runs_unconfined(entry: Mapping[str, Any]) -> bool:
    """Return True if an entry of servers.yaml has a command, no `confine` key, and no confinement from the settings.

    Always False on Windows, which cannot confine programs.
    """
    if "command" not in entry or "confine" in entry or sys.platform == "win32":
        return False
    return not own_config(own_store()).settings.confine


def _without_secrets(name: str, entry: dict[str, Any], hide: bool | None, *, asks: bool) -> dict[str, Any]:
    """Move the entry's secrets to the keyring, unless the user declines or the keyring cannot keep them.

    Return the entry with references in their place. If `asks` is False, print a note about the secrets that stay in
    clear text.
    """
    found = secrets_of(name, entry)
    if not found:
        return entry
    unasked = hide is None and not asks  # keep the secrets that can be kept, and report the others
    if keeps_secrets() if unasked else may_keep([secret.name for secret in found], hide, asks):
        try:
            taken = secret_names()
        except MultiMcpError:
            taken = []
        entry = without_secrets(name, entry, taken, keep_all(secrets_of(name, entry, taken), insist=hide is True))
    left = secrets_of(name, entry)
    if left and not asks:
        names = ", ".join(secret.name for secret in left)
        hint = "to move them to the keyring, pass --keyring"
        note(one_line(f"{count(len(left), 'secret')} in clear text ({names}); {hint}"))
    return entry


def _check_url(url: str) -> None:
    fault = unsafe_url(url, asks=True)
    if fault is not None:
        raise UsageError(f"The url {fault}", unsafe_url_hint(url))


def project_file_is_trusted(path: Path) -> bool:
    """Return True if sessions see the current content of a project's file."""
    file = read_project(path)
    return file is not None and own_trust().check(file) is not None


def _pairs(words: Sequence[str], mark: str, option: str) -> dict[str, str]:
    split = [word.partition(mark) for word in words]
    wrong = next((word for word, (name, found, _) in zip(words, split, strict=True) if not (name and found)), None)
    if wrong is not None:
        raise UsageError(f"{option} takes NAME{mark}VALUE", "See: multi-mcp add --help")
    return {name.strip(): value.strip() if mark == ":" else value for name, _, value in split}


def _entry(
    name: str,
    command: Sequence[str],
    url: str | None,
    env: dict[str, str],
    headers: dict[str, str],
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the entry to write. `more`: further keys, copied unchanged. Raises UsageError for an unusable entry."""
    if bool(command) == bool(url):
        raise UsageError("Give either a command or --url", f"For example: {EXAMPLE}")
    if url:
        _check_url(url)
    entry: dict[str, Any] = {"url": url} if url else {"command": command[0], "args": list(command[1:])}
    if command and not entry["args"]:
        entry = {"command": [command[0]]}  # a list, so that a path with spaces is not split
    entry |= {"env": env} if env else {}
    entry |= {"headers": headers} if headers else {}
    entry |= more
    fault = name_fault(name) or ("A server's name cannot contain spaces" if len(name.split()) != 1 else None)
    _, problems = read_one(name, entry, in_project=True)
    if fault or problems:
        raise UsageError(fault or problems[0].message, "See: multi-mcp add --help")
    if fault := writing_fault(name, entry):
        raise UsageError(f"{shown(name)} cannot be added: {fault}", "See: multi-mcp add --help")
    return entry


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of trying a server.

    `tools`: number of tools, None if the server does not work. `why` and `hint` then hold the reason and the remedy.
    `found`: number of tools that wait for approval. `names`: the tools' names.
    """

    tools: int | None
    why: str = ""
    hint: str = ""
    found: int = 0
    names: tuple[str, ...] = ()

    def line(self, name: str) -> str:
        """Return the outcome in one line."""
        if self.tools is not None:
            look = f"; {self.found} waiting for approval: multi-mcp approve {name}" if self.found else ""
            return one_line(f"{name}: {count(self.tools, 'tool')}{look}")
        return one_line(f"{name} does not work yet: {self.why}{f'. {self.hint}' if self.hint else ''}")

    def name_lines(self) -> list[str]:
        """Return the names of the tools, wrapped to the terminal's width, in at most NAME_LINES lines."""
        lines = wrap(
            ", ".join(map(one_line, self.names)), shutil.get_terminal_size().columns - len(INDENT),
            initial_indent=INDENT, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        left = sum(line.count(",") for line in lines[NAME_LINES - 1 :]) + 1 if len(lines) > NAME_LINES else 0
        return [*lines[: NAME_LINES - 1], f"{INDENT}... and {left} more"] if left else lines


def try_server(name: str, project: Path | None, *, quiet: bool) -> Trial | None:
    """Have the gateway ask a server for its tools, and return the result; None if no gateway runs.

    `project`: folder of the project that has the server; None for the user's own server.
    """
    notes: list[str] = []
    found = 0
    try:
        with waiting(f"Trying {name}", quiet=quiet):
            if project is None:
                outcome: dict[str, Any] = ask(REFRESH, {"server": name}, DISCOVERY_TIMEOUT_S)["servers"][name]
                if outcome["error"] is not None:
                    return Trial(None, outcome["error"]["title"], outcome["error"].get("hint", ""))
                found = len(ask(APPROVALS, {"server": name, "tool": None})["rows"])
            rows = ask(LIST, {"server": name} | of_project(project), DISCOVERY_TIMEOUT_S, notes.append)
    except NoGatewayError:
        return None
    except MultiMcpError as error:
        return Trial(None, error.title, error.hint)
    if notes and not rows:
        return Trial(None, "; ".join(notes))
    return Trial(len(rows), found=found, names=tuple(row["name"] for row in rows))


# --- remove


@verb("remove", "multi-mcp remove files", "multi-mcp remove files --scope project")
@click.argument("name")
@click.option("--scope", type=click.Choice(SCOPES), help="Where to remove it, if more than one file has it.")
def remove_verb(name: str, scope: Scope | None, as_json: bool) -> None:
    """Remove a server from servers.yaml, or from the project's own .multi-mcp.yaml.

    Other tools use .mcp.json too, so a server is removed from there only with --scope project.
    """
    store, home = own_store(), Machine().home
    project = project_file.project_file_for(Path.cwd(), home)
    config = own_config(store)
    chosen = scope or _owner(name, config, project, store.path)
    gone = False
    if chosen == "project":
        gone = project_file.remove_server(project, name, own_trust())
    else:
        store.remove_server(name)
    path = project if chosen == "project" else store.path
    tell_gateway()
    if name not in own_config(store).servers:
        _unlock(name)
    if as_json:
        print_json({"name": name, "scope": chosen, "file": str(path)})
    else:
        file = own_config(store).foreign.get(name) if chosen == "global" else None
        left = f"; the one in {file} applies again. To hide it: multi-mcp disable {name}" if file else ""
        say_hints(one_line(f"Removed {name} from {shown_path(path, home)}{left}"))
        note(*([f"{shown_path(path, home)} had no other content, so it was removed, too"] if gone else []))


def _unlock(name: str) -> None:
    """Remove the locks and packages of a server that was removed. Print a note on failure."""
    paths = find_paths(os.environ)
    if not paths.lock_file.is_file():
        return
    from trayapp.packages.lock_file import LockFile
    from trayapp.packages.locks import Locks

    try:
        locks = Locks(LockFile(paths.lock_file), paths.packages_dir)
        locks.file.remove(name)
        locks.clean()
    except MultiMcpError as error:
        note(one_line(f"{error.title}. {error.hint}"))


def _owner(name: str, config: Config, project: Path, own: Path) -> Scope:
    """Return the scope of the one file that has the server, if we may edit that file.

    Raises UsageError, which names the files, if several have the server, or if only a file of other programs has it.
    Raises ServerNotFoundError if no file has it.
    """
    known = written_servers(config)
    in_own = name in known and name not in config.foreign
    in_project = project_file.has_server(project, name)
    if in_own and in_project:
        raise UsageError(f"{shown(name)} is in {own} and in {project}", "Choose one: --scope global or --scope project")
    if in_own:
        return "global"
    if in_project and project.suffix != ".json":
        return "project"
    if in_project:
        hint = f"Other tools read it too. To remove it there: multi-mcp remove {name} --scope project"
        raise UsageError(f"{shown(name)} is in {project}, the project's own file", hint)
    if name in config.foreign:
        hint = f"Remove it there, or hide it here with: multi-mcp disable {name}"
        raise UsageError(f"{shown(name)} is in {config.foreign[name]}, which settings.imports lists", hint)
    with suppress(UnparsableError):
        known += project_file.read_config(project).servers
    raise no_such_server(name, known)
