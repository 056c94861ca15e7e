"""Which servers run: the user's, those of projects with sessions, those that single sessions have for themselves.

Never here: how one runs (backends), what sessions see of it (view), what a project's files say (projects).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trayapp.backends.connection import Connection
from trayapp.gateway.own import OwnServers, shared_form
from trayapp.gateway.projects import Visiting
from trayapp.gateway.view import View
from trayapp.model.plan import Config, plan

if TYPE_CHECKING:
    from trayapp.gateway.core import Gateway
    from trayapp.gateway.frontend import Session


class Running:
    """Of one gateway, with the views that its servers are seen through: everybody's, and one for each project."""

    def __init__(self, gateway: Gateway, own: OwnServers) -> None:
        self._gateway = gateway
        self._own = own
        self.shared = gateway.config  # with all servers of projects, by key
        self._whole = self.shared  # and those that sessions have for themselves
        self.view = View(gateway)  # of sessions that belong to no project
        self._views: dict[Path, View] = {}  # of those that do

    # -- servers -------------------------------------------------------------------------------------------------

    def take(self, config: Config) -> None:
        """The user's own servers are those of `config` from now on."""
        self.view.take(config)
        self._renew()

    def take_projects(self) -> None:
        """Projects came, went or became others: each gets its view, each session the one of its project."""
        gateway = self._gateway
        if gateway.state == "stopping":
            return  # nothing is started any more
        overlays = gateway.projects.overlays
        self._views = {folder: self._views.get(folder) or self._new_view(folder) for folder in overlays}
        for folder, laid in overlays.items():
            self._views[folder].take(laid.config, laid.own)
        for session in gateway.sessions:
            session.view = self.view_of(session)
        self._renew()

    def _renew(self) -> None:
        """Make the servers that run those of the user and of all projects with sessions."""
        gateway, config = self._gateway, self._gateway.config
        own = {key: server for view in self._views.values() for key, server in view.own_servers().items()}
        shared = {key: shared_form(server) for key, server in {**config.servers, **own}.items()}
        before, self.shared = self.shared.servers, replace(config, servers=shared)
        self._run_for_sessions()
        gateway.prepared.keep(frozenset(shared))
        gateway.approvals.keep(frozenset(shared))
        self.forget_exposures()
        gateway.offers.load([name for name in shared if name not in before])
        if gateway.state == "running":
            gateway.pool.discover(gateway.offers.missing())
        gateway.changed()

    def _run_for_sessions(self) -> None:
        """Make what runs what all share and what sessions have for themselves."""
        own = self._own.servers(self.shared.servers, self._gateway.sessions)
        old, self._whole = self._whole, replace(self.shared, servers={**self.shared.servers, **own})
        self._gateway.pool.apply(plan(old, self._whole), self._whole)

    # -- sessions ------------------------------------------------------------------------------------------------

    def connection_of(self, session: Session, connection: Connection) -> Connection:
        """The one that a session's calls of a server go to: its own with `scope: session`, else the shared one.

        A session that is one request has none of its own: nothing would be left to use it twice.
        """
        if connection.server.scope != "session" or not session.lasting:
            return connection
        key, new = self._own.take(session, connection.name)
        if new:
            self._run_for_sessions()
        return self._gateway.pool.find(key)

    def drop(self, session: Session) -> None:
        """A session has ended, and what it had for itself ends with it."""
        if self._own.drop(session):
            self._run_for_sessions()

    # -- views ---------------------------------------------------------------------------------------------------

    def view_of(self, session: Visiting) -> View:
        """What a session of its project sees, or of none."""
        laid_over = self._gateway.projects.overlay_of(session)
        return self._views[laid_over.folder] if laid_over else self.view

    def view_with(self, key: str) -> View:
        """The view that a server belongs to: a project's own, or everybody's."""
        return next((view for view in self._views.values() if view.owns(key)), self.view)

    def plain_name(self, key: str) -> str:
        """Return the name under which sessions see the server of that key."""
        return self.view_with(key).name_of(key) or key

    def _new_view(self, folder: Path) -> View:
        view = View(self._gateway, folder)
        view.await_first_lists()
        return view

    def forget_exposures(self) -> None:
        """Something that every view's catalog was made from is another now."""
        for view in self._every_view():
            view.forget()

    def note_names(self) -> bool:
        """Keep the names that clients see; True if any of them is new."""
        new = [view.note_names() for view in self._every_view()]
        return any(new)

    def _every_view(self) -> list[View]:
        return [self.view, *self._views.values()]
