"""`multi-mcp trust`: show the user what a project's file starts, and approve exactly that content.

Never here: how approvals are stored (config/layers/trust), what they allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from trayapp.cli.confirmation import require_person
from trayapp.cli.edit import tell_gateway
from trayapp.cli.options import examples, json_option
from trayapp.cli.output import escape_unprintable, print_json, say
from trayapp.cli.servers_file import own_config, own_store, own_trust
from trayapp.cli.shown_server import environment_lines, gets, loading_code, secret_lines, starts
from trayapp.config.interpolate import secret_commands
from trayapp.config.layers.overlay import Overlay, preview
from trayapp.config.layers.project import PROJECT_FILES, ProjectFile, project_file_in, read_project
from trayapp.config.layers.trust import TrustStore
from trayapp.config.problems import UnparsableError
from trayapp.model.errors import MultiMcpError, UsageError
from trayapp.model.plan import Config
from trayapp.model.servers import ServerConfig
from trayapp.model.status import problem_json
from trayapp.model.text import one_line


@click.command("trust", epilog=examples("multi-mcp trust .", "multi-mcp trust ~/src/shop --yes"))
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Approve without asking.")
@click.option("--revoke", is_flag=True, help="Revoke an approval.")
@json_option
def trust_verb(folder: Path, yes: bool, revoke: bool, as_json: bool) -> int:
    """Approve the servers of a project.

    DIR is the folder that holds a .multi-mcp.yaml or .mcp.json. Such a file says which programs sessions in that folder
    start. It is ignored until you approve it here, and again after every change. With --json and without --yes: only
    show.
    """
    store = own_trust()
    place = folder.expanduser().resolve()
    if revoke:
        return _revoke(store, place, as_json)
    file = _file_in(place)
    laid = preview(_user_config(), file)
    if not as_json:
        say(*_lines(file, laid))
    can_ask = (yes or not as_json) and require_person("trust a project")
    if yes or (not as_json and _agreed(can_ask)):
        commands = [one for name in laid.named for one in secret_commands(laid.config.servers[name])]
        if commands:
            store.approve_commands(commands)
        if store.approve(file) or commands:
            tell_gateway()
        if not as_json:
            say(f"Trusted: {one_line(str(file.path))}")
    trusted = store.check(file) is not None
    if as_json:
        print_json(_as_json(file, laid, trusted))
    return 0 if trusted or as_json else 1


def _file_in(folder: Path) -> ProjectFile:
    path = project_file_in(folder)
    file = read_project(path) if path else None
    if file is None:
        raise MultiMcpError(f"{folder} has no {' and no '.join(PROJECT_FILES)}", "Name the folder that holds the file")
    return file


def _user_config() -> Config:
    """Return the user's configuration, below the project's; an empty one if servers.yaml cannot be parsed."""
    try:
        return own_config(own_store())
    except UnparsableError:
        return Config()


def _agreed(can_ask: bool) -> bool:
    """Ask the user to trust the file. Raises UsageError if nobody can answer."""
    if not can_ask:
        raise UsageError("Cannot ask for confirmation (no terminal)", "Look at the servers above; then pass --yes")
    return click.confirm("Trust this file to start these programs and to use the secrets shown above?", default=False)


def _revoke(store: TrustStore, folder: Path, as_json: bool) -> int:
    revoked = [str(path) for path in store.paths() if path.parent == folder and store.revoke(path)]
    if revoked:
        tell_gateway()
    if as_json:
        print_json({"revoked": revoked})
    else:
        say(*(f"No longer trusted: {one_line(path)}" for path in revoked) if revoked else ("Nothing to revoke",))
    return 0


def _lines(file: ProjectFile, laid: Overlay) -> Iterator[str]:
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
    yield from environment_lines(server)
    yield from secret_lines(server)
    if server.disabled:
        yield "disabled"


def _as_json(file: ProjectFile, laid: Overlay, trusted: bool) -> dict[str, Any]:
    """Return `{"file", "trusted", "servers": [{"name", "command", "url", "env", ...}], "problems"}`."""
    servers = [_server_json(laid.config.servers[name], name in laid.own, file) for name in laid.named]
    problems = [problem_json(problem) for problem in laid.config.problems]
    return {"file": str(file.path), "trusted": trusted, "servers": servers, "problems": problems}


def _server_json(server: ServerConfig, own: bool, file: ProjectFile) -> dict[str, Any]:
    """Return one server: `{"name", "command", "url", "env", "headers", "own", ...}`.

    `env` and `headers` hold names only, as a value may be a secret. Present if not empty: `cwd` (if not the project's
    folder), `loads_code` (variables that load code, with values), `secrets` and `variables` (the user's own), `scripts`
    (programs of the project).
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
