"""Decide which servers run: the user's, those of projects with sessions, and per-session ones."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from trayapp.backends.connection import Connection
from trayapp.config.relative_paths import is_relative
from trayapp.gateway.scopes.projects import Projects, ProjectVisitor
from trayapp.gateway.scopes.view import View
from trayapp.gateway.services import Services
from trayapp.model.plan import Config, plan
from trayapp.model.servers import ServerConfig


class Viewer(ProjectVisitor, Hashable, Protocol):
    """Client session, as its servers see it."""

    lasting: bool  # False: it is a single request

    def follow(self, view: View) -> None:
        """Show that view to the client from now on."""


class Servers:
    """Servers of one gateway and the views of them: one for all sessions, and one for each project."""

    def __init__(
        self, services: Services, own: SessionServers, projects: Projects, sessions: Collection[Viewer]
    ) -> None:
        self._services = services
        self._projects = projects
        self._sessions = sessions
        self.own = own
        self.user = Config()  # the user's own
        self.shared = self.user  # with all servers of projects, by key
        self._whole = self.shared  # with the per-session ones, too
        self.view = View(services)  # of sessions without a project
        self._views: dict[Path, View] = {}  # of sessions with a project, by its folder

    # -- servers -------------------------------------------------------------------------------------------------

    def take(self, config: Config) -> None:
        """Run the user's own servers of `config`. Unchanged ones keep their process and their calls."""
        self.user = config
        self.view.take(config)
        self._renew()

    def take_projects(self) -> None:
        """Update the views of projects, and of their sessions, after projects came, went or changed."""
        if self._services.state() == "stopping":
            return  # no server starts any more
        overlays = self._projects.overlays
        self._views = {folder: self._views.get(folder) or self._new_view(folder) for folder in overlays}
        for folder, overlay in overlays.items():
            self._views[folder].take(overlay.config, overlay.own)
        for session in self._sessions:
            session.follow(self.view_of(session))
        self._renew()

    def _renew(self) -> None:
        """Run the servers of the user and of all projects with sessions."""
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
        """Run the shared servers and the per-session ones."""
        own = self.own.servers(self.shared.servers, self._sessions)
        old, self._whole = self._whole, replace(self.shared, servers={**self.shared.servers, **own})
        self._services.pool.apply(plan(old, self._whole), self._whole)

    # -- sessions ------------------------------------------------------------------------------------------------

    def connection_for(self, session: Viewer, connection: Connection) -> Connection:
        """Return the connection for a session's calls: its own with `scope: session`, else the shared one.

        A session that is a single request has no connections of its own: nobody could use one twice.
        """
        if connection.server.scope != "session" or not session.lasting:
            return connection
        key, new = self.own.take(session, connection.name)
        if new:
            self._run_for_sessions()
        return self._services.pool.find(key)

    def drop(self, session: Viewer) -> None:
        """End the per-session servers of a session that has ended."""
        if self.own.drop(session):
            self._run_for_sessions()

    # -- views ---------------------------------------------------------------------------------------------------

    def view_of(self, session: ProjectVisitor) -> View:
        """Return the view of a session's project, or the one for all."""
        overlay = self._projects.overlay_of(session)
        return self._views[overlay.folder] if overlay else self.view

    def view_with(self, key: str) -> View:
        """Return the view that a server belongs to: a project's, or the one for all."""
        return next((view for view in self._views.values() if view.owns(key)), self.view)

    def plain_name(self, key: str) -> str:
        """Return the name under which sessions see the server of that key."""
        return self.view_with(key).name_of(key) or key

    def _new_view(self, folder: Path) -> View:
        view = View(self._services, folder)
        view.first_lists.begin()
        return view

    def forget_catalogs(self) -> None:
        """Build every view's catalog again when it is next asked for."""
        for view in self._every_view():
            view.forget()

    def note_names(self) -> bool:
        """Keep the current exposed names. Return True if any of them is new."""
        new = [view.note_names() for view in self._every_view()]
        return any(new)

    def _every_view(self) -> list[View]:
        return [self.view, *self._views.values()]


@dataclass(slots=True)
class _Own:
    number: int
    keys: dict[str, str] = field(default_factory=dict)  # the server's key -> the session's own


class SessionServers:
    """Per-session server processes (`scope: session`), started by the session's first call.

    Each runs under a key of its own. Its lists are the shared server's, read once for all.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._sessions: WeakKeyDictionary[Viewer, _Own] = WeakKeyDictionary()
        self._shared: dict[str, str] = {}

    def take(self, session: Viewer, key: str) -> tuple[str, bool]:
        """Return the session's own key of that server, and True if it is new."""
        own = self._sessions.get(session)
        if own is None:
            self._sessions[session] = own = _Own(next(self._numbers))
        if key in own.keys:
            return own.keys[key], False
        own.keys[key] = mine = f"{key}#{own.number}"
        self._shared[mine] = key
        return mine, True

    def key(self, session: Viewer, key: str) -> str:
        """Return the key under which a session reaches a server: its own if it has one."""
        own = self._sessions.get(session)
        return own.keys.get(key, key) if own else key

    def shared_key(self, key: str) -> str:
        """Return the key of the shared server behind a per-session one; any other key unchanged."""
        return self._shared.get(key, key)

    def is_own(self, key: str) -> bool:
        """Return True if the connection with that key runs for one session alone."""
        return key in self._shared

    def drop(self, session: Viewer) -> bool:
        """Forget a session that has ended. Return True if it had servers of its own."""
        own = self._sessions.pop(session, None)
        for mine in own.keys.values() if own else ():
            self._shared.pop(mine, None)
        return own is not None

    def servers(self, shared: dict[str, ServerConfig], sessions: Iterable[Viewer]) -> dict[str, ServerConfig]:
        """Return all per-session servers by key, with the current configuration and their sessions' folders."""
        found: dict[str, ServerConfig] = {}
        for session in sessions:
            own = self._sessions.get(session)
            for key, mine in own.keys.items() if own else ():
                server = shared.get(key)
                if server is not None and server.scope == "session":
                    found[mine] = replace(server, name=mine, cwd=folder_of(server, session.cwd))
        return found


def folder_of(server: ServerConfig, said: Any) -> str | None:
    """Return the folder of a per-session server: its entry's, or the session's; joined if the entry's is relative.

    `said`: the folder in which the session's client runs. A root does not count: programs that the desktop starts run
    there.
    """
    folder = (
        said if isinstance(said, str) and Path(said).is_absolute() and Path(said) != Path(Path(said).anchor) else None
    )
    if server.cwd is None or folder is None or not is_relative(server.cwd):
        return server.cwd or folder
    return str(Path(folder, server.cwd))


def shared_form(server: ServerConfig) -> ServerConfig:
    """Return a server in its shared form. A per-session one is shared only for its lists."""
    return replace(server, lifecycle="lazy") if server.scope == "session" else server
