"""Which servers run: the user's, those of projects with sessions, those that single sessions have for themselves.

Never here: how one runs (backends), what sessions see of it (view), what a project's files say (projects).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from trayapp.backends.connection import Connection
from trayapp.config.relative_paths import is_relative
from trayapp.gateway.scopes.projects import Projects, Visiting
from trayapp.gateway.scopes.view import View
from trayapp.gateway.services import Services
from trayapp.model.plan import Config, plan
from trayapp.model.servers import ServerConfig


class Viewer(Visiting, Hashable, Protocol):
    """A client's session, as its servers see it."""

    lasting: bool  # else it is one request

    def follow(self, view: View) -> None:
        """See that view from now on."""


class Servers:
    """The servers of one gateway, with the views that they are seen through: everybody's, and one for each project."""

    def __init__(
        self, services: Services, own: SessionServers, projects: Projects, sessions: Collection[Viewer]
    ) -> None:
        self._services = services
        self._projects = projects
        self._sessions = sessions
        self.own = own
        self.user = Config()  # the user's own
        self.shared = self.user  # with all servers of projects, by key
        self._whole = self.shared  # and those that sessions have for themselves
        self.view = View(services)  # of sessions that belong to no project
        self._views: dict[Path, View] = {}  # of those that do

    # -- servers -------------------------------------------------------------------------------------------------

    def take(self, config: Config) -> None:
        """Make the user's own servers those of `config`; untouched ones keep their process and their calls."""
        self.user = config
        self.view.take(config)
        self._renew()

    def take_projects(self) -> None:
        """Give each project its view, and each session the one of its project, after projects came, went or changed."""
        if self._services.state() == "stopping":
            return  # nothing is started any more
        overlays = self._projects.overlays
        self._views = {folder: self._views.get(folder) or self._new_view(folder) for folder in overlays}
        for folder, overlay in overlays.items():
            self._views[folder].take(overlay.config, overlay.own)
        for session in self._sessions:
            session.follow(self.view_of(session))
        self._renew()

    def _renew(self) -> None:
        """Make the servers that run those of the user and of all projects with sessions."""
        services = self._services
        own = {key: server for view in self._views.values() for key, server in view.own_servers().items()}
        shared = {key: shared_form(server) for key, server in {**self.user.servers, **own}.items()}
        before, self.shared = self.shared.servers, replace(self.user, servers=shared)
        self._run_for_sessions()
        services.served_tools.keep(frozenset(shared))
        services.approvals.keep(frozenset(shared))
        self.forget_catalogs()
        services.listings.load([name for name in shared if name not in before])
        if services.state() == "running":
            services.pool.discover(services.listings.missing())
        services.changes.changed()

    def _run_for_sessions(self) -> None:
        """Run what all share and what sessions have for themselves."""
        own = self.own.servers(self.shared.servers, self._sessions)
        old, self._whole = self._whole, replace(self.shared, servers={**self.shared.servers, **own})
        self._services.pool.apply(plan(old, self._whole), self._whole)

    # -- sessions ------------------------------------------------------------------------------------------------

    def connection_for(self, session: Viewer, connection: Connection) -> Connection:
        """Return the connection that a session's calls go to: its own with `scope: session`, else the shared one.

        A session that is one request has none of its own: nothing would be left to use it twice.
        """
        if connection.server.scope != "session" or not session.lasting:
            return connection
        key, new = self.own.take(session, connection.name)
        if new:
            self._run_for_sessions()
        return self._services.pool.find(key)

    def drop(self, session: Viewer) -> None:
        """End what a session that has ended had for itself."""
        if self.own.drop(session):
            self._run_for_sessions()

    # -- views ---------------------------------------------------------------------------------------------------

    def view_of(self, session: Visiting) -> View:
        """Return the view of a session's project, or everybody's."""
        overlay = self._projects.overlay_of(session)
        return self._views[overlay.folder] if overlay else self.view

    def view_with(self, key: str) -> View:
        """Return the view that a server belongs to: a project's own, or everybody's."""
        return next((view for view in self._views.values() if view.owns(key)), self.view)

    def plain_name(self, key: str) -> str:
        """Return the name under which sessions see the server of that key."""
        return self.view_with(key).name_of(key) or key

    def _new_view(self, folder: Path) -> View:
        view = View(self._services, folder)
        view.first_lists.begin()
        return view

    def forget_catalogs(self) -> None:
        """Make every view's catalog anew: what it was made from has changed."""
        for view in self._every_view():
            view.forget()

    def note_names(self) -> bool:
        """Keep the names that clients see; return True if any of them is new."""
        new = [view.note_names() for view in self._every_view()]
        return any(new)

    def _every_view(self) -> list[View]:
        return [self.view, *self._views.values()]


@dataclass(slots=True)
class _Own:
    number: int
    keys: dict[str, str] = field(default_factory=dict)  # the server's key -> the session's own


class SessionServers:
    """Servers with `scope: session`: a process for each client session, started by the session's first call.

    Each runs under a key of its own; its lists are the shared server's, read once for all.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._sessions: WeakKeyDictionary[Viewer, _Own] = WeakKeyDictionary()
        self._shared: dict[str, str] = {}

    def take(self, session: Viewer, key: str) -> tuple[str, bool]:
        """Return the key under which the session has that server for itself, and whether it is new."""
        own = self._sessions.get(session)
        if own is None:
            self._sessions[session] = own = _Own(next(self._numbers))
        if key in own.keys:
            return own.keys[key], False
        own.keys[key] = mine = f"{key}#{own.number}"
        self._shared[mine] = key
        return mine, True

    def key(self, session: Viewer, key: str) -> str:
        """Return the key under which a session reaches a server: its own, where it has one."""
        own = self._sessions.get(session)
        return own.keys.get(key, key) if own else key

    def shared_key(self, key: str) -> str:
        """Return the key of the server that a session has for itself; of others their own."""
        return self._shared.get(key, key)

    def is_own(self, key: str) -> bool:
        """Return True if what runs under that key runs for one session alone."""
        return key in self._shared

    def drop(self, session: Viewer) -> bool:
        """Forget a session that has ended; return True if it had any."""
        own = self._sessions.pop(session, None)
        for mine in own.keys.values() if own else ():
            self._shared.pop(mine, None)
        return own is not None

    def servers(self, shared: dict[str, ServerConfig], sessions: Iterable[Viewer]) -> dict[str, ServerConfig]:
        """Return all of them by key, as the configuration has them now, in their sessions' folders."""
        found: dict[str, ServerConfig] = {}
        for session in sessions:
            own = self._sessions.get(session)
            for key, mine in own.keys.items() if own else ():
                server = shared.get(key)
                if server is not None and server.scope == "session":
                    found[mine] = replace(server, name=mine, cwd=folder_of(server, session.cwd))
        return found


def folder_of(server: ServerConfig, said: Any) -> str | None:
    """Return the folder of a session's own server: that of its entry, else the session's; both joined if relative.

    `said`: where the session's client runs. A root is no folder that one works in: programs that the desktop starts
    run there.
    """
    folder = (
        said if isinstance(said, str) and Path(said).is_absolute() and Path(said) != Path(Path(said).anchor) else None
    )
    if server.cwd is None or folder is None or not is_relative(server.cwd):
        return server.cwd or folder
    return str(Path(folder, server.cwd))


def shared_form(server: ServerConfig) -> ServerConfig:
    """Return a server as all share it: one that each session has for itself is only asked for its lists."""
    return replace(server, lifecycle="lazy") if server.scope == "session" else server
