"""The user's configuration with a trusted project's file merged over it, entry by entry and field by field (PRODUCT 4).

A TrustedFile is the proof of trust.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from trayapp.config.layers.entries import HTTP_FIELDS, merged_pair, user_pairs
from trayapp.config.layers.project import ProjectFile
from trayapp.config.layers.trust import TrustedFile
from trayapp.config.problems import Report, UnparsableError
from trayapp.config.read.command import Exists, path_exists
from trayapp.config.read.entry import EntryContext, read_entry
from trayapp.config.read.parse import read_top, server_pairs
from trayapp.config.read.spelling import field_of, is_servers_key
from trayapp.config.urls import has_variable
from trayapp.config.yaml.nodes import Mapping, Pair, pairs
from trayapp.model.plan import Config
from trayapp.model.servers import ServerConfig, launch_settings


@dataclass(frozen=True, slots=True)
class Overlay:
    """Configuration for the sessions of one project: the user's settings, all servers, the project's problems.

    `named`: usable servers of the project's file. `own`: those that only this project has or that it starts
    differently. They never use the user's shared processes.
    """

    folder: Path
    config: Config
    named: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()


def overlay(
    user: Config, trusted: TrustedFile, *, exists: Exists = path_exists, windows: bool = os.name == "nt"
) -> Overlay:
    """Merge the project's servers over `user`. A file that cannot be used as a whole only adds its problems."""
    return preview(user, trusted.file, exists=exists, windows=windows)


def preview(
    user: Config, file: ProjectFile, *, exists: Exists = path_exists, windows: bool = os.name == "nt"
) -> Overlay:
    """Return what `overlay` would return for a trusted file, only to be shown to the user, never to be run."""
    name = str(file.path)
    report = Report(name)
    try:
        top = read_top(file.text(), name)
        above = server_pairs(top, name)
    except UnparsableError as error:
        return Overlay(file.folder, replace(user, problems=(error.problem,)))
    for pair in top:
        if not is_servers_key(pair.name):
            report.add(pair.key, "Only servers count in a project's file", "The rest belongs in servers.yaml")
    surroundings = EntryContext(exists, windows, in_project=True)
    below = user_pairs(user, surroundings)
    servers = dict(user.servers)
    for key, pair in above.items():
        lower = below.get(key)
        merged = merged_pair(lower, pair, surroundings) if lower else pair
        entry = read_entry(merged, Report(name), surroundings)
        if lower and _starts_another(user.servers.get(key), entry):
            merged = merged_pair(_without_private(lower), pair, surroundings)
        entry = read_entry(merged, report, surroundings)
        if entry is None:
            servers.pop(key, None)  # not the user's own entry: the project wants a different one
        else:
            if _has_ask(pair):
                report.add(pair.key, f"{key}: ask does not count in a project's file", "Set it in servers.yaml")
            servers[key] = _asking_as(user.servers.get(key), entry)
    named = tuple(key for key in above if key in servers)
    own = frozenset(key for key in named if _is_own(user.servers.get(key), servers[key]))
    moved = [key for key in own if _says(above[key], _LAUNCH) or key not in user.servers]
    servers.update({key: _at_home(servers[key], file.folder) for key in moved})
    return Overlay(file.folder, Config(user.settings, servers, report.sorted()), named, own)


# Fields of a user's entry that are meant only for its own program or address
_PRIVATE = (HTTP_FIELDS | frozenset(("env", "cwd"))) - {"url", "type"}
_LAUNCH = frozenset(("command", "args", "env", "cwd"))  # a project's entry without these keeps the user's folder


def _starts_another(user: ServerConfig | None, server: ServerConfig | None) -> bool:
    """Return True if the merged entry starts or reaches something other than the user's own."""
    if user is None or server is None:
        return True
    return (user.command, user.args, user.cwd, user.url) != (server.command, server.args, server.cwd, server.url)


def _without_private(lower: Pair) -> Pair:
    """Return the user's entry without what only its own program or address may get: environment, headers, tokens."""
    if not isinstance(lower.value, Mapping):
        return lower
    kept = [(pair.key, pair.value) for pair in pairs(lower.value) if field_of(pair.name) not in _PRIVATE]
    return replace(lower, value=replace(lower.value, pairs=kept))


def _says(entry: Pair, wanted: frozenset[str]) -> bool:
    """Return True if an entry has any of these fields."""
    return isinstance(entry.value, Mapping) and any(field_of(pair.name) in wanted for pair in pairs(entry.value))


def _has_ask(entry: Pair) -> bool:
    if not isinstance(entry.value, Mapping):
        return False
    fields = {field_of(pair.name): pair.value for pair in pairs(entry.value)}
    tools = fields.get("tools")
    inside = [tool.value for tool in pairs(tools)] if isinstance(tools, Mapping) else []
    return "ask" in fields or any(
        inner.name == "ask" for tool in inside if isinstance(tool, Mapping) for inner in pairs(tool)
    )


def _asking_as(user: ServerConfig | None, server: ServerConfig) -> ServerConfig:
    """Return a project's server with the user's own `ask`: a cloned file may not weaken it."""
    said = {name: switch.ask for name, switch in ((user.tools if user else None) or {}).items()}
    own = server.tools
    tools = own and {name: replace(switch, ask=said.get(name)) for name, switch in own.items()}
    return replace(server, ask=user.ask if user else None, tools=tools)


def _is_own(user: ServerConfig | None, server: ServerConfig) -> bool:
    """Return True if it needs its own connection, apart from the user's server.

    A different lifecycle, idle_timeout or connect_timeout does not justify a second process. They apply to the existing
    one, so the user's values hold. Tools and request_timeout come from the project, for its sessions.
    """
    if user is None or launch_settings(user) != launch_settings(server):
        return True
    return user.disabled and not server.disabled


def _at_home(server: ServerConfig, folder: Path) -> ServerConfig:
    """Return the server with its cwd in the project: the project's folder, or a path relative to it.

    A cwd with `~` or a variable stays.
    """
    if server.command is None:
        return server
    cwd = server.cwd
    if cwd is None:
        return replace(server, cwd=str(folder))
    if cwd.startswith("~") or has_variable(cwd):
        return server
    return replace(server, cwd=str(folder / cwd))
