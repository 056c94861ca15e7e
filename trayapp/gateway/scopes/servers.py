"""Decide which servers run: the user's servers, those of projects with sessions, and per-session ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol
from weakref import WeakValueDictionary

from trayapp.backends.clock import first_of
from trayapp.backends.connection import Connection
from trayapp.gateway.client import ClientSession
from trayapp.gateway.scopes.connection_keys import ConnectionKeys
from trayapp.gateway.scopes.projects import Projects, ProjectSession
from trayapp.gateway.scopes.sharing import PROVE_S, Sharing, Topic
from trayapp.gateway.scopes.view import View
from trayapp.gateway.services import Services
from trayapp.model.config import Config, ServerConfig, plan
from trayapp.model.errors import ServerError
from trayapp.model.lifecycle import State

log = logging.getLogger(__name__)


class ConnectedSession(ClientSession, Protocol):
    """The part of a client session that Servers uses."""

    def follow(self, view: View) -> None:
        """Switch the session to `view`."""


class Servers:
    """The servers of one gateway and the views of them: one for sessions without a project, one for each project."""

    def __init__(
        self,
        services: Services,
        own: ConnectionKeys,
        sharing: Sharing,
        projects: Projects,
        sessions: Collection[ConnectedSession],
    ) -> None:
        self._services = services
        self._projects = projects
        self._sessions = sessions
        self.own = own
        self.sharing = sharing
        self.user = Config()  # the user's own servers
        self.shared = self.user  # the user's servers and those of all projects, by key
        self._whole = self.shared  # `shared`, and the further connections of all servers
        self._asks = False  # True once clients are served. From then on, servers with unknown tools are asked for them
        self.view = View(services)  # for sessions without a project
        self._views: dict[Path, View] = {}  # for sessions with a project, by the project's folder
        self._turns: WeakValueDictionary[tuple[Connection, Topic | None], asyncio.Lock] = WeakValueDictionary()

    # -- servers -------------------------------------------------------------------------------------------------

    def take(self, config: Config) -> None:
        """Run the user's own servers of `config`, and stop removed ones. Unchanged ones keep their process."""
        self.user = config
        self.view.take(config)
        self._renew()

    def take_projects(self) -> None:
        """Update the projects' views, servers and sessions after projects were added, removed or changed."""
        if self._services.state() == "stopping":
            return  # no more servers are started
        overlays = self._projects.overlays
        old, self._views = self._views, {}
        for folder, overlay in overlays.items():
            self._views[folder] = view = old.get(folder) or View(self._services, folder)
            if folder not in old:
                view.first_list_delay.begin()
            view.take(overlay.config, overlay.own)
        for session in self._sessions:
            session.follow(self.view_of(session))
        self._renew()

    def _renew(self) -> None:
        """Run the servers of the user and of all projects with sessions. Stop all others and forget their state."""
        services = self._services
        own = {key: server for view in self._views.values() for key, server in view.own_servers().items()}
        shared = {key: shared_form(server) for key, server in {**self.user.servers, **own}.items()}
        self.shared = replace(self.user, servers=shared)
        services.listings.take_config(self.shared)
        self._run_further()
        services.served_tools.keep(frozenset(shared))
        services.approvals.keep(frozenset(shared))
        self.sharing.forget(shared)
        self.forget_catalogs()
        if self._asks:
            services.pool.discover(services.listings.missing())
        services.changes.changed()

    def ask_unknown(self) -> None:
        """Read the lists of servers whose tools are unknown, now and after each change of the configuration."""
        self._asks = True
        self._services.pool.discover(self._services.listings.missing())

    def _run_further(self) -> None:
        """Run the first connections of all servers and the further ones."""
        own = self.own.servers(self.shared.servers)
        old, self._whole = self._whole, replace(self.shared, servers={**self.shared.servers, **own})
        self._services.pool.apply(plan(old, self._whole), self._whole)

    # -- sessions ------------------------------------------------------------------------------------------------

    def connection_for(
        self, session: ConnectedSession, first: Connection, topic: Topic | None = None, *, alone: bool = False
    ) -> Connection | None:
        """Return the connection for a session's requests, connected or not, and record that the session uses it.

        Return None while no connection is free. `first`: the server's first connection. `alone`: see Sharing.key_for.
        """
        key = self.sharing.key_for(session, first, topic, alone=alone)
        if key is None:
            return None
        self.own.use(session, first.key, key)
        if key == first.key:
            return first
        return self.further(key) or first

    def further(self, key: str) -> Connection | None:
        """Return a server's further connection by its key, created if needed, or None if the server is gone."""
        if self._services.pool.get(key) is None:
            self._run_further()
        return self._services.pool.get(key)

    async def connected(self, session: ConnectedSession, first: Connection, topic: Topic | None) -> Connection:
        """Connect a server, wait until a session's request may be sent, and return the connection. Raises ServerError.

        The caller must send the request before it awaits anything else.
        """
        began, alone, sharing = self._services.clock.now(), False, self.sharing
        while True:
            connection = self.connection_for(session, first, topic, alone=alone)
            if connection is None:
                sharing.make_room(first)
                await self._wait(PROVE_S)  # wait for the end of a request that has a connection to itself
                continue
            if not connection.is_up:
                if not await self._up(session, connection):
                    continue
                began = self._services.clock.now()  # a slow start does not count as waiting for a call
            if connection is not self.connection_for(session, first, topic, alone=alone):
                continue  # the server uses the other era, or has asked a question in the meantime
            if self._left_s(session, connection, topic, began) > 0:
                # Only one request of a topic waits at a time, because its call, once sent, delays the other requests.
                async with self._turns.setdefault((connection, topic), asyncio.Lock()):
                    left = self._left_s(session, connection, topic, began)
                    if left > 0 and connection is self.connection_for(session, first, topic, alone=alone):
                        await self._wait(left, connection)
                continue
            wait = sharing.wait(session, connection, topic)
            if wait is None or not wait.proves or not _may_leave(session, connection):
                return connection
            alone = True

    def _left_s(self, session: ConnectedSession, connection: Connection, topic: Topic | None, began: float) -> float:
        """Return how many more seconds a request has to wait. `began`: the clock's time when its wait began."""
        wait, waited_s = self.sharing.wait(session, connection, topic), self._services.clock.now() - began
        if wait is None:
            return 0.0
        leaves = wait.proves and _may_leave(session, connection)
        return PROVE_S - waited_s if leaves else min(wait.left_s, wait.most_s - waited_s)

    async def _up(self, session: ConnectedSession, connection: Connection) -> bool:
        """Connect, and return True. Return False if a connection for one era failed, so that this era is now bridged.

        Raises ServerError.
        """
        if connection.state is not State.CONNECTING:
            self.sharing.capabilities.wanted_by(session, connection.key)
        try:
            await connection.up()
        except ServerError as error:
            if not self.sharing.note_failure(connection.key):
                raise
            log.info("Cannot connect %s in one protocol era, so its clients are bridged: %s", connection.name, error)
            return False
        return True

    async def _wait(self, seconds: float, connection: Connection | None = None) -> None:
        """Wait until sharing changes, a call on the connection (if given) ends, or `seconds` have passed."""
        ended = [connection.next_end().wait] if connection is not None else []
        await first_of(self.sharing.changed.wait, *ended, partial(self._services.clock.sleep, seconds))

    def drop(self, session: ConnectedSession) -> None:
        """Close the connections that were reserved for a session that has ended."""
        if self.own.drop(session):
            self._run_further()
        if not session.lasting:
            self.sharing.tell()  # a waiting request may use the connection that only this one used

    # -- views ---------------------------------------------------------------------------------------------------

    def view_of(self, session: ProjectSession) -> View:
        """Return the view of a session's project, or the view for sessions without a project."""
        overlay = self._projects.of(session).overlay
        return self._views[overlay.folder] if overlay else self.view

    def view_with(self, key: str) -> View:
        """Return the view that a server belongs to: a project's, or the view for sessions without a project."""
        return next((view for view in self._views.values() if view.owns(key)), self.view)

    def plain_name(self, key: str) -> str:
        """Return the name under which sessions see the server with that key."""
        return self.view_with(key).name_of(key) or key

    def forget_catalogs(self) -> None:
        """Drop the catalog of every view. Each is built again when it is next requested."""
        for view in self._every_view():
            view.forget()

    def note_names(self) -> bool:
        """Store the exposed names of all views. Return True if any of them is new."""
        new = [view.note_names() for view in self._every_view()]
        return any(new)

    def _every_view(self) -> list[View]:
        return [self.view, *self._views.values()]


def _may_leave(session: ConnectedSession, connection: Connection) -> bool:
    """Return True if the session may use another connection, because none of its calls has left state on this one."""
    return session.lasting and connection.key not in session.called_servers


def shared_form(server: ServerConfig) -> ServerConfig:
    """Return the entry for a server's shared connection. Per-session servers use it for lists and single requests."""
    return replace(server, lifecycle="lazy") if server.scope == "session" else server
