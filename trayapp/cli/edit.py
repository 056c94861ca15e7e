"""This user's servers.yaml, for all verbs: read it, change it, and tell a running gateway to reload it.

Also the verbs `multi-mcp enable`, `disable` and `edit`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase

import click

from trayapp.cli.options import ask, verb
from trayapp.cli.output import is_terminal, note, print_result, say
from trayapp.config import edits
from trayapp.config.layers.overlay import lay_over
from trayapp.config.layers.project import TRUST_NAME, TrustStore
from trayapp.config.paths import find_paths
from trayapp.config.problems import nearest
from trayapp.config.read.parse import parse
from trayapp.config.store import ConfigStore, sample_text
from trayapp.model.config import Config, Settings
from trayapp.model.errors import (
    MultiMcpError,
    NoGatewayError,
    ServerNotFoundError,
    StorageError,
    ToolNotFoundError,
    UsageError,
)
from trayapp.model.text import one_line
from trayapp.service.desktop_programs import edit_in_terminal, open_file
from trayapp.wire.control import LIST, RELOAD, ControlError


def own_store() -> ConfigStore:
    """Return this user's servers.yaml. A missing one starts as the commented sample with the bundled server."""
    return ConfigStore(find_paths(os.environ).config_file, first_text=sample_text)


def own_trust() -> TrustStore:
    """Return the approvals of project files and of commands for secrets."""
    return TrustStore(find_paths(os.environ).config_file.with_name(TRUST_NAME))


def own_config(store: ConfigStore) -> Config:
    """Return the configuration in the file, merged over its imports. Blocks. Raises StorageError, UnparsableError."""
    return config_of(store.read() or "", str(store.path))


def own_settings() -> Settings:
    """Return this user's settings; the default ones if the file is unreadable. Raises UnparsableError."""
    try:
        return own_config(own_store()).settings
    except StorageError:
        return Settings()


def config_of(text: str, file: str) -> Config:
    """Return the configuration in the text of `file`, merged over its imports. Blocks. Raises UnparsableError."""
    return with_imports(parse(text, file), file)


def with_imports(config: Config, file: str) -> Config:
    """Return a configuration, parsed from `file`, merged over its imports. Blocks."""
    if not config.settings.imports:
        return config
    from trayapp.clients.servers import ClientLayers  # takes 30 ms; most files have no imports

    return lay_over(config, ClientLayers().read(config.settings.imports, file), file)


TARGET = "SERVER[/TOOL-GLOB]"


@verb("enable", "multi-mcp enable github", "multi-mcp enable 'github/search_*'")
@click.argument("target", metavar=TARGET)
def enable_verb(target: str, as_json: bool) -> None:
    """Enable a server, or only its tools that match TOOL-GLOB."""
    switch(target, True, as_json)


@verb("disable", "multi-mcp disable github", "multi-mcp disable 'github/delete_*'")
@click.argument("target", metavar=TARGET)
def disable_verb(target: str, as_json: bool) -> None:
    """Disable a server, or only its tools that match TOOL-GLOB.

    Clients no longer see them, and calls to them are refused.
    """
    switch(target, False, as_json)


@verb("edit", "multi-mcp edit", json=False)
@click.option("--path", "only_path", is_flag=True, help="Only print where the file is.")
def edit_verb(only_path: bool) -> int:
    """Open servers.yaml.

    On a terminal it opens in $VISUAL or $EDITOR, otherwise in your usual program for such files. Saved changes take
    effect immediately.
    """
    store = own_store()
    if only_path:
        say(str(store.path))
        return 0
    store.create()
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if editor and is_terminal(sys.stdin) and is_terminal(sys.stdout):
        return edit_in_terminal(store.path, editor, os.environ)
    open_file(store.path, os.environ)
    say(f"Opened {store.path}")
    return 0


def switch(target: str, enabled: bool, as_json: bool) -> None:
    """Enable or disable the target in servers.yaml, tell a running gateway, and print what changed.

    Raises UsageError, UnparsableError, ServerNotFoundError, ToolNotFoundError, StorageError, FileChangedError,
    ControlError.
    """
    server, slash, glob = target.partition("/")
    if slash and not glob:
        raise UsageError(f"{target} has no tool name", f"For the whole server, write: {server}")
    store = own_store()
    found = found_tools(server) if glob else {}
    changed: list[str] = []

    def change(text: str) -> str:
        """Return the changed text. `text` is the file as it is now: another process may have just edited it."""
        config = config_of(text, str(store.path))
        known = written_servers(config)
        if server not in known:
            raise no_such_server(server, known)
        switched = switch_tools(text, config, server, glob, found, enabled) if glob else None
        after, changed[:] = switched or switch_server(text, config, server, enabled)
        return after

    store.edit(change)
    if changed:
        tell_gateway()
    word = "Enabled" if enabled else "Disabled"
    lines = [f"{word} {name}" for name in changed] or ["Nothing to change"]
    print_result(as_json, {"enabled": enabled, "changed": changed}, *lines)
    if enabled and glob and not (changed or as_json):
        note(*left_out(server, glob))


def left_out(server: str, glob: str) -> list[str]:
    """Ask a running gateway which tools that match `glob` a pattern or their disabled server hides.

    Return at most one note.
    """
    hidden: list[str] = []
    with suppress(NoGatewayError, ControlError):
        rows = {row["name"]: row for row in ask(LIST, {"server": server})}
        names = fitting({name: row["exposed_name"] or name for name, row in rows.items()}, glob)
        shut = [rows[name] for name in names if not rows[name]["enabled"]]
        hidden = [row["name"] for row in shut if not row["stale"] and row["withheld"] is None]
    why = f"check include_tools, exclude_tools and disabled of {server} in servers.yaml"
    return [one_line(f"Clients still do not see {', '.join(hidden)}: {why}")] if hidden else []


def switch_server(text: str, config: Config, server: str, enabled: bool) -> tuple[str, list[str]]:
    """Switch the whole server. Return the new text and what changed.

    A server that comes only from an import gets an entry in servers.yaml that overrides the import.
    """
    if server not in config.foreign:
        after = edits.set_server_enabled(text, server, enabled)
    elif config.servers[server].disabled == enabled:
        after = edits.add_server(text, server, {"disabled": not enabled})
    else:
        after = text
    return after, [server] if after != text else []


def switch_tools(
    text: str, config: Config, server: str, glob: str, found: Mapping[str, str], enabled: bool
) -> tuple[str, list[str]]:
    """Switch the tools that match the glob. Return the new text and what changed, as SERVER/TOOL.

    `found` is what `found_tools` returns. Raises ToolNotFoundError if no tool matches.
    """
    entry = config.servers.get(server)
    known = {**{name: name for name in (entry.tools if entry else None) or {}}, **found}
    names = fitting(known, glob)
    if not names:
        raise no_such_tool(server, glob, known)
    differing = [name for name in names if is_enabled(config, server, name) != enabled]
    if differing and server in config.foreign:
        text = edits.add_server(text, server, {"tools": {name: {"enabled": enabled} for name in differing}})
    elif differing:
        brief = config.settings.write_tools == "switched" and config.servers[server].new_tools == "enabled"
        text = edits.set_tools_enabled(text, server, differing, enabled, brief=brief)
    return text, [f"{server}/{name}" for name in differing]


def fitting(known: Mapping[str, str], glob: str) -> list[str]:
    """Return the tools whose own or exposed name matches the glob.

    If none matches, hyphens and underscores count as equal, as in `exclude_tools`.
    """
    literal = [name for name, exposed in known.items() if fnmatchcase(name, glob) or fnmatchcase(exposed, glob)]
    folded = {name: (name.replace("-", "_"), exposed.replace("-", "_")) for name, exposed in known.items()}
    loose = glob.replace("-", "_")
    return literal or [name for name, forms in folded.items() if any(fnmatchcase(form, loose) for form in forms)]


def found_tools(server: str) -> dict[str, str]:
    """Ask a running gateway for the server's tools. Return own name -> exposed name, or own name if not exposed.

    Return {} if no gateway runs or if it does not have the server.
    """
    with suppress(NoGatewayError, ControlError):
        return {row["name"]: row["exposed_name"] or row["name"] for row in ask(LIST, {"server": server})}
    return {}


def is_enabled(config: Config, server: str, tool: str) -> bool:
    """Return True if the file enables a tool, explicitly or by default."""
    entry = config.servers.get(server)
    if entry is None or entry.tools is None:
        return True
    settings = entry.tools.get(tool)
    return settings.enabled if settings else entry.new_tools == "enabled"


def written_servers(config: Config) -> list[str]:
    """Return the names of all servers in the file, invalid entries included."""
    return [*config.servers, *(problem.server for problem in config.problems if problem.server)]


def no_such_server(server: str, known: list[str]) -> ServerNotFoundError:
    """Return the error for a server that does not exist, with the nearest name."""
    error = ServerNotFoundError(server, known)
    if near := nearest(server, known):
        error.hint = f"Did you mean {near}?"
    return error


def no_such_tool(server: str, glob: str, known: Collection[str]) -> MultiMcpError:
    """Return the error for a glob that matches no tool, with the nearest name."""
    near = nearest("".join(letter for letter in glob if letter not in "*?[]"), known)
    error = ToolNotFoundError(glob, [near] if near else [])
    error.title = f"No tool of {server} is named {glob}"
    if not known:
        error.hint = "Its tools are not known yet; start the gateway first: multi-mcp start"
    elif not error.suggestions:
        error.hint = f"See: multi-mcp list {server}"
    return error


def tell_gateway() -> None:
    """Have a running gateway reload the file now, instead of at its next check."""
    with suppress(NoGatewayError):
        ask(RELOAD)
