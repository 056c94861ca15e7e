"""The user's configuration with a trusted project's file laid over it, entry by entry and field by field (PRODUCT 4).

Never here: files, trust (a Trusted is the proof of it), who gets to see the result.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from trayapp.config.command import Exists, path_exists
from trayapp.config.entry import Surroundings, read_entry
from trayapp.config.laid import merged_pair, user_pairs
from trayapp.config.parse import read_top, server_pairs
from trayapp.config.problems import Report, Unparsable
from trayapp.config.project import ProjectFile
from trayapp.config.spelling import is_servers_key
from trayapp.config.trust import Trusted
from trayapp.config.urls import has_variable
from trayapp.model.plan import Config
from trayapp.model.servers import ServerConfig, launch_settings


@dataclass(frozen=True, slots=True)
class Overlay:
    """What sessions of one project have. `config`: the user's settings, all servers, the project's problems.

    `named`: what the project's file names and can be used. `own`: those of them that only this project has, or that it
    starts in another way: never the user's shared processes.
    """

    folder: Path
    config: Config
    named: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()


def overlay(
    user: Config, trusted: Trusted, *, exists: Exists = path_exists, windows: bool = os.name == "nt"
) -> Overlay:
    """Lay the project's servers over `user`; a file that cannot be used as a whole changes nothing but the problems."""
    return preview(user, trusted.file, exists=exists, windows=windows)


def preview(
    user: Config, file: ProjectFile, *, exists: Exists = path_exists, windows: bool = os.name == "nt"
) -> Overlay:
    """What `overlay` would give if the file were trusted: to be shown to the user, never to be run."""
    name = str(file.path)
    report = Report(name)
    try:
        top = read_top(file.text(), name)
        above = server_pairs(top, name)
    except Unparsable as error:
        return Overlay(file.folder, replace(user, problems=(error.problem,)))
    for pair in top:
        if not is_servers_key(pair.name):
            report.add(pair.key, "Only servers count in a project's file", "The rest belongs into servers.yaml")
    surroundings = Surroundings(exists, windows)
    below = user_pairs(user, surroundings)
    servers = dict(user.servers)
    for key, pair in above.items():
        merged = merged_pair(below[key], pair, surroundings) if key in below else pair
        entry = read_entry(merged, report, surroundings)
        if entry is None:
            servers.pop(key, None)  # not the user's own: the project wants another one
        else:
            servers[key] = entry
    named = tuple(key for key in above if key in servers)
    own = frozenset(key for key in named if _is_own(user.servers.get(key), servers[key]))
    servers.update({key: _at_home(servers[key], file.folder) for key in own})
    return Overlay(file.folder, Config(user.settings, servers, report.sorted()), named, own)


def _is_own(user: ServerConfig | None, server: ServerConfig) -> bool:
    """Whether it needs a connection that the user's own server is not.

    Another lifecycle, idle_timeout or connect_timeout is no reason for a second process; they are about the one that
    there is, so the user's hold. Tools and request_timeout are the project's for its sessions.
    """
    if user is None or launch_settings(user) != launch_settings(server):
        return True
    return user.disabled and not server.disabled


def _at_home(server: ServerConfig, folder: Path) -> ServerConfig:
    """A process of the project's starts in the project's folder, or in the one that it names relative to that."""
    if server.command is None:
        return server
    cwd = server.cwd
    if cwd is None:
        return replace(server, cwd=str(folder))
    if cwd.startswith("~") or has_variable(cwd):
        return server
    return replace(server, cwd=str(folder / cwd))
