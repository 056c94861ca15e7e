"""A bench with a pool over a fake network and a fake clock, and an observer that records its events."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio

from tests.fixtures.clock import FakeClock, settle
from tests.fixtures.fake_transport import FakeNet
from tests.fixtures.secrets import no_secrets
from trayapp.backends.clock import SystemClock
from trayapp.backends.confinements import Confinements
from trayapp.backends.connect import open_transport
from trayapp.backends.connection import Connection
from trayapp.backends.context import BackendContext
from trayapp.backends.pool import Pool
from trayapp.model.config import Config, ServerConfig, Settings, plan
from trayapp.model.lifecycle import State
from trayapp.model.offer import Offer
from trayapp.wire.messages import METHOD_NOT_FOUND, Call, Params, RpcError


class NoTracker:
    """A ProcessTracker that tracks nothing, because these tests end their servers themselves."""

    def environment(self) -> dict[str, str]:
        return {}

    def spawning(self, environment: dict[str, str]) -> AbstractContextManager[None]:
        return nullcontext()

    def adopt(self, pid: int, environment: dict[str, str]) -> None:
        pass

    def finish(self, pid: int) -> None:
        pass

    def close(self) -> None:
        pass


open_untracked = partial(open_transport, tracker=NoTracker())


@dataclass
class Ear:
    """An Observer (backends.connection) that records events. `crash` names the events whose handler raises."""

    states: list[tuple[str, State]] = field(default_factory=list)
    offers: list[tuple[str, Offer]] = field(default_factory=list)
    told: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    crash: set[tuple[str, str]] = field(default_factory=set)  # pairs of server and event or state

    def state_changed(self, connection: Connection) -> None:
        self.states.append((connection.name, connection.state))
        self._crash(connection, connection.state.value)

    def offer_fetched(self, connection: Connection, offer: Offer) -> None:
        self._crash(connection, "offer")
        self.offers.append((connection.name, offer))

    def notified(self, connection: Connection, method: str, params: Params, about: Call | None) -> None:
        self._crash(connection, "notified")
        self.told.append((connection.name, method, dict(params or {})))

    async def asked(self, connection: Connection, method: str, params: Params, about: Call | None) -> dict[str, Any]:
        raise RpcError(METHOD_NOT_FOUND, f"{method} is not supported by this client")

    def known(self, name: str) -> bool:
        """True if the server's lists have been read."""
        return any(server == name for server, _ in self.offers)

    def _crash(self, connection: Connection, event: str) -> None:
        if (connection.name, event) in self.crash:
            raise ZeroDivisionError(f"broken on purpose at {event}")


class Bench:
    """A pool over fakes. `apply` has the effect of saving servers.yaml."""

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self.net = FakeNet()
        self.clock = FakeClock()
        self.ear = Ear()
        self.config = Config(Settings())
        self.hints: dict[str, str] = {}
        self.wants_offers = False
        self.routed = anyio.Event()  # set while there is a network route, unset in offline tests
        self.routed.set()
        context = BackendContext(
            clock=self.clock,
            settings=lambda: self.config.settings,
            environ={"PATH": "/nowhere"},
            keyring=no_secrets,
            open=self.net.open,
            stderr=lambda name: lambda data: None,
            hint=lambda name: self.hints.get(name, "2025-11-25"),
            wants_offer=lambda name: self.wants_offers and not self.ear.known(name),
            route=lambda: self.routed.wait(),
        )
        self.pool = Pool(context, self.ear, tasks)

    def apply(self, *servers: ServerConfig, settings: Settings | None = None) -> None:
        """Configure exactly these servers."""
        new = Config(settings or self.config.settings, {server.name: server for server in servers})
        old, self.config = self.config, new
        self.pool.apply(plan(old, new), new)

    def state(self, name: str) -> State:
        return self.pool.find(name).state

    async def states(self, name: str, state: State) -> None:
        """Wait until the server is in `state`."""
        await self.wait(lambda: self.state(name) is state)

    @staticmethod
    async def wait(condition: Callable[[], Any]) -> None:
        """Let other tasks run until the condition holds. Fail if it does not hold after 50 rounds."""
        for _ in range(50):
            if condition():
                return
            await settle()
        assert condition()


def server(name: str, **more: Any) -> ServerConfig:
    """Return a server entry whose program exists."""
    return ServerConfig(name, command=sys.executable, **more)


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    """Yield a bench that ends with the block. A crash in any of its tasks fails the test."""
    async with anyio.create_task_group() as tasks:
        made = Bench(tasks)
        try:
            with anyio.fail_after(30):
                yield made
        finally:
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def real_connection(
    config: ServerConfig,
    *,
    hint: str = "2025-11-25",
    stderr: bytearray | None = None,
    environ: Mapping[str, str] | None = None,
    confinements: Confinements | None = None,
    **more: Any,
) -> AsyncIterator[tuple[Connection, Ear]]:
    """Yield a Connection that starts real processes, and its observer. Close it at the end. `more` holds settings."""
    ear, kept = Ear(), bytearray() if stderr is None else stderr
    async with anyio.create_task_group() as tasks:
        context = BackendContext(
            clock=SystemClock(),
            settings=lambda: Settings(**more),
            environ=dict(os.environ) if environ is None else environ,
            keyring=no_secrets,
            open=open_untracked,
            stderr=lambda name: kept.extend,
            hint=lambda name: hint,
            wants_offer=lambda name: False,
            confinements=confinements or Confinements(),
        )
        connection = Connection(config, context, ear, tasks)
        try:
            with anyio.fail_after(40):
                yield connection, ear
        finally:
            with anyio.CancelScope(shield=True):
                await connection.close()
            tasks.cancel_scope.cancel()
