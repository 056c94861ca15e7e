"""The pool of all server connections: starts servers, reads missing lists, and applies plans.

`apply` changes the pool without awaiting, and leaves the I/O to tasks. The life of one connection is in `connection`.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import anyio
import anyio.abc

from trayapp.backends.connection import GATEWAY_STOPPED, Connection, Observer
from trayapp.backends.context import BackendContext
from trayapp.model.config import STARTS_AT_ONCE, Config, Confine, Plan
from trayapp.model.errors import ServerBackoffError, ServerError, ServerNotFoundError, SignInWantedError
from trayapp.model.lifecycle import RECONNECT_FIRST_S, State, reconnect_waits

if TYPE_CHECKING:
    from trayapp.backends.trial import ConfineTrial, PackageUpdates

log = logging.getLogger(__name__)

AT_ONCE = 10  # limit on simultaneous automatic starts and discoveries


class Pool:
    """The connections of one configuration. They run in `tasks`, whose cancellation ends every server."""

    def __init__(self, context: BackendContext, observer: Observer, tasks: anyio.abc.TaskGroup) -> None:
        self._context = context
        self._observer = observer
        self._tasks = tasks
        self._connections: dict[str, Connection] = {}
        self._keepers: dict[str, anyio.CancelScope] = {}
        self._resting: set[anyio.CancelScope] = set()  # the waits of keepers for their next attempts
        self._opened: list[Connection] = []  # connections opened by refreshes in progress, one entry per refresh
        self._starting = anyio.CapacityLimiter(AT_ONCE)
        self.ended_calls = Counter[str]()  # server -> number of calls on its former connections
        self.discovering: set[str] = set()  # servers whose lists are being read for the first time
        self._settled = anyio.Event()
        self._settled.set()

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._connections.values())

    def get(self, name: str) -> Connection | None:
        return self._connections.get(name)

    def find(self, name: str) -> Connection:
        """Return the server's connection. Raises ServerNotFoundError."""
        if (connection := self.get(name)) is None:
            raise ServerNotFoundError(name, sorted({each.name for each in self}))
        return connection

    def apply(self, plan: Plan, config: Config) -> None:
        """Change the servers to those of `config`. Unchanged servers keep their process and their calls."""
        leaving = [self._connections[name] for name in (*plan.removed, *plan.relaunched) if name in self._connections]
        for name in (*plan.added, *plan.relaunched):
            self._connections[name] = Connection(config.servers[name], self._context, self._observer, self._tasks, name)
        self._connections = {name: self._connections[name] for name in config.servers if name in self._connections}
        names = {server.name for server in config.servers.values()}
        for connection in leaving:
            self.ended_calls[connection.name] += connection.calls
            self._stop_keeping(connection.key)
            connection.retire()
        self.ended_calls = Counter({name: calls for name, calls in self.ended_calls.items() if name in names})
        for name in self._connections if plan.settings_changed else plan.adjusted:
            connection, server = self._connections[name], config.servers[name]
            before = connection.server
            connection.adjust(server)
            if server.disabled != before.disabled:
                self._tasks.start_soon(connection.follow_switch)
            if (server.disabled, server.lifecycle) != (before.disabled, before.lifecycle):
                self._start_if_wanted(connection)  # no other adjustment starts a server or ends a backoff
        for name in (*plan.added, *plan.relaunched):
            self._start_if_wanted(self._connections[name])

    def _start_if_wanted(self, connection: Connection) -> None:
        server = connection.server
        self._stop_keeping(connection.key)
        if server.disabled:
            return
        if server.lifecycle == "eager":
            self._tasks.start_soon(self.connect, connection)
        elif "keep-alive" in server.lifecycle:
            self._keepers[connection.key] = scope = anyio.CancelScope()
            self._tasks.start_soon(self._keep, connection, scope)

    async def connect(self, connection: Connection) -> None:
        """Connect once there is a network route, at most AT_ONCE servers at a time. Only log a failure."""
        await connection.reachable()
        async with self._starting:
            try:
                await connection.ensure(explicit=True)
            except ServerError as error:
                log.info("%s", error)

    async def _keep(self, connection: Connection, scope: anyio.CancelScope) -> None:
        """Keep a server connected, with growing waits between attempts, until cancelled or a sign-in is required.

        Unless the lifecycle starts the server immediately, wait for its first call.
        """
        with scope:
            if connection.server.lifecycle not in STARTS_AT_ONCE:
                await connection.used.wait()
            waits = _fresh_waits()
            while True:
                if await self._hold(connection) or await self._rest(max(next(waits), connection.wait_asked_s)):
                    waits = _fresh_waits()

    async def _rest(self, seconds: float) -> bool:
        """Wait `seconds` for the next attempt. Return True if `probe` ended the wait early."""
        with anyio.CancelScope() as scope:
            self._resting.add(scope)
            try:
                await self._context.clock.sleep(seconds)
            finally:
                self._resting.discard(scope)
        return scope.cancelled_caught

    async def _hold(self, connection: Connection) -> bool:
        """Connect and wait until the connection ends. Return True if it lasted RECONNECT_FIRST_S or a probe dropped it.

        Return False otherwise, or if connecting failed. If a sign-in is required, wait until cancelled.
        """
        await connection.reachable()
        try:
            async with self._starting:
                await connection.ensure(explicit=connection.state is not State.NEEDS_AUTH)
        except SignInWantedError:
            await anyio.sleep_forever()  # a manual reconnect starts a new keeper
        except ServerError:
            return False
        since = self._context.clock.now()
        await connection.dropped()
        return connection.silent or self._context.clock.now() - since >= RECONNECT_FIRST_S

    def _stop_keeping(self, name: str) -> None:
        if (scope := self._keepers.pop(name, None)) is not None:
            scope.cancel()

    # -- discovery, refresh, reconnect ---------------------------------------------------------------------------

    def discover(self, names: Iterable[str]) -> None:
        """Start reading the lists of the named servers in the background, at most AT_ONCE at a time."""
        fresh = [name for name in names if name not in self.discovering and name in self._connections]
        if not fresh:
            return
        if self._settled.is_set():
            self._settled = anyio.Event()
        self.discovering.update(fresh)
        for name in fresh:
            self._tasks.start_soon(self._discover, name)

    async def settled(self) -> None:
        """Wait until no discovery is in progress."""
        await self._settled.wait()

    async def _discover(self, name: str) -> None:
        """Read the lists of the server that has this name now. Read again if it was replaced meanwhile."""
        asked = None
        try:
            async with self._starting:
                while (connection := self.get(name)) is not None and connection is not asked:
                    asked = connection
                    try:
                        await self.refresh(connection, explicit=False)
                    except ServerBackoffError:
                        pass  # the failure was logged when it happened; saving servers.yaml does not end the backoff
                    except ServerError as error:
                        log.info("Discovery: %s", error)
        finally:
            self.discovering.discard(name)
            if not self.discovering:
                self._settled.set()

    async def refresh(self, connection: Connection, *, explicit: bool = True) -> None:
        """Read a server's lists now. If this opened the connection and no call or lifecycle needs it, close it again.

        Raises ServerError.
        """
        opened = connection.live is None or connection in self._opened
        calls = connection.calls
        if opened:
            self._opened.append(connection)
        try:
            await connection.fetch(explicit=explicit)
        finally:
            if opened:
                self._opened.remove(connection)
                used = connection.calls != calls or connection.in_flight or connection in self._opened
                stays = used or connection.server.lifecycle in STARTS_AT_ONCE
                if not stays and connection.live is not None:
                    await connection.close()

    async def reconnect(self, connection: Connection) -> None:
        """Close a connection and open a new one, ignoring the backoff. Raises ServerError."""
        await connection.close()
        self._start_if_wanted(connection)
        await connection.ensure(explicit=True)

    async def try_confined(self, connection: Connection, confine: Confine) -> ConfineTrial:
        """Run the server confined, in processes separate from its connection, and return the result."""
        from trayapp.backends.trial import try_confined  # only one command needs it

        return await try_confined(connection.server, self._context, confine)

    @cached_property
    def updates(self) -> PackageUpdates:
        """Return the PackageUpdates of this pool, created at the first use."""
        from trayapp.backends.trial import PackageUpdates  # only two verbs need it

        return PackageUpdates(self._context)

    def probe(self) -> None:
        """Probe every live connection, and end the waits of keepers. Call this after a sleep or a network change."""
        for connection in self:
            if connection.live is not None:
                self._tasks.start_soon(connection.probe)
        for scope in self._resting:
            scope.cancel()

    async def stop(self) -> None:
        """Close all servers simultaneously, and wait until they have ended."""
        async with anyio.create_task_group() as tasks:
            for connection in self:
                self._stop_keeping(connection.key)
                connection.retire(GATEWAY_STOPPED)
                tasks.start_soon(connection.close)


def _fresh_waits() -> Iterator[float]:
    return reconnect_waits(random.uniform(-1, 1))
