"""A whole gateway with a fake net and a fake clock, and clients that exchange frames with it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from tests.auth.places import MemoryEntries
from tests.fixtures.behaviour import tool
from tests.fixtures.clock import FakeClock, settle
from tests.fixtures.fake_transport import FakeNet, FakeServer
from tests.fixtures.secrets import no_secrets
from tests.patience import stretched
from trayapp.auth.accounts import Accounts
from trayapp.auth.grant import AccountKey
from trayapp.auth.os_keyring import ChunkedRecords
from trayapp.auth.vault import Vault
from trayapp.backends.clock import Clock
from trayapp.catalog.approval_store import FOLDER_NAME
from trayapp.catalog.cache import CacheEntry, save
from trayapp.gateway.client import FramePeer
from trayapp.gateway.control.accounts import AccountRequests
from trayapp.gateway.control.server import Control
from trayapp.gateway.exposure.served_tools import ServedOffer, ServedTools
from trayapp.gateway.gateway import Gateway, GatewayDependencies
from trayapp.gateway.scopes.projects import NOTHING, Look
from trayapp.gateway.services import BROADCAST_DELAY_S
from trayapp.gateway.sessions.session import Session
from trayapp.model.config import Config, ServerConfig, Settings, ToolSwitch, launch_hash
from trayapp.model.errors import Problem
from trayapp.model.lifecycle import State
from trayapp.model.offer import Item, Offer
from trayapp.wire.endpoint import Link, PendingConnections
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.jsonio import dumps, loads

ALL: dict[str, Any] = {"tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {}}
Message = dict[str, Any]
Switches = dict[str, dict[str, ToolSwitch]]


def server(name: str, **more: Any) -> ServerConfig:
    """Return a server entry with a command that exists."""
    return ServerConfig(name, command=sys.executable, **more)


def offer(*tools: str, **more: Any) -> Offer:
    """Return an offer of tools with these names."""
    return Offer(tuple(tool(name) for name in tools), capabilities=dict(ALL), protocol="2025-11-25", **more)


def served(offers: Mapping[str, Offer]) -> dict[str, ServedOffer]:
    """Return these offers, prepared for clients."""
    tools = ServedTools()
    return {name: tools.of(name, offer) for name, offer in offers.items()}


def serve(fake: FakeServer, **lists: tuple[Item, ...]) -> None:
    """Make a fake server list these items by kind. Prompts, resources and templates are empty unless given."""
    fake.capabilities = {**fake.capabilities, "prompts": {}, "resources": {}, "completions": {}, "logging": {}}
    for kind in ("prompts", "resources", "resourceTemplates", *({"tools"} & lists.keys())):
        method = "resources/templates/list" if kind == "resourceTemplates" else f"{kind}/list"

        async def answer(params: Message, kind: str = kind) -> Message:
            return {kind: list(lists.get(kind, ()))}

        fake.replies[method] = answer


def echo_of(fake: FakeServer, *methods: str) -> None:
    """Make a fake server answer these methods with the params of the request."""
    for method in methods:

        async def answer(params: Message) -> Message:
            return {"got": params}

        fake.replies[method] = answer


@dataclass
class Wire:
    """The other end of a dispatcher, which keeps the output as frames and as parsed messages."""

    dispatcher: FrameDispatcher | None = None
    link: Link | None = None  # only for a control connection
    heard: list[Message] = field(default_factory=list)
    frames: list[bytes] = field(default_factory=list)
    closed: bool = False
    written: anyio.Event = field(default_factory=anyio.Event)  # set by the next write

    def write(self, data: bytes) -> None:
        """Collect what the dispatcher writes."""
        self.written.set()
        for line in data.splitlines():
            self.frames.append(line)
            self.heard.append(loads(line))

    def close(self) -> None:
        """Note that the connection is closed."""
        self.closed = True

    def send(self, message: Message) -> None:
        """Send a message to the dispatcher."""
        assert self.dispatcher is not None
        self.dispatcher.feed(dumps({"jsonrpc": "2.0", **message}) + b"\n")

    def ask_only(self, number: int | str, method: str, params: Any = None) -> None:
        """Send a request without waiting for its answer."""
        self.send({"id": number, "method": method, **({} if params is None else {"params": params})})

    def tell(self, method: str, params: Message | None = None) -> None:
        """Send a notification."""
        self.send({"method": method, **({} if params is None else {"params": params})})

    def answers(self, number: int | str) -> list[Message]:
        """Return all answers with that id."""
        same = [m for m in self.heard if "method" not in m and m.get("id") == number]
        return [m for m in same if type(m["id"]) is type(number)]

    async def answer(self, number: int | str) -> Message:
        """Wait for the first answer with that id and return it."""
        with anyio.fail_after(stretched(10.0)):
            while not self.answers(number):
                if self.written.is_set():  # else another waiting task has already replaced it
                    self.written = anyio.Event()
                await self.written.wait()
                await settle()
        return self.answers(number)[0]

    async def ask(self, method: str, params: Any = None, number: int | str = 1) -> Message:
        """Send a request and return its whole answer. Earlier answers with that id are forgotten."""
        self.heard = [m for m in self.heard if m.get("id") != number]
        self.ask_only(number, method, params)
        return await self.answer(number)

    async def result(self, method: str, params: Any = None, number: int | str = 1) -> Any:
        """Send a request and return the `result` of its answer."""
        answer = await self.ask(method, params, number)
        assert "result" in answer, answer
        return answer["result"]

    async def error(self, method: str, params: Any = None, number: int | str = 1) -> Message:
        """Send a request and return the `error` of its answer."""
        answer = await self.ask(method, params, number)
        assert "error" in answer, answer
        error: Message = answer["error"]
        return error

    def told(self, method: str) -> list[Message]:
        """Return the params of the notifications with that method so far."""
        return [m.get("params", {}) for m in self.heard if m.get("method") == method]

    def list_changes(self) -> list[str]:
        """Return the kinds of the list_changed notifications so far."""
        methods = [m["method"] for m in self.heard if str(m.get("method")).endswith("/list_changed")]
        return [method.split("/")[1] for method in methods]


@dataclass
class Client(Wire):
    """One client session."""

    session: Session | None = None
    end: Callable[[], None] = lambda: None  # disconnects the client

    async def shake_hands(self, protocol: str = "2025-11-25", name: str = "tests") -> Message:
        """Perform the handshake and return the gateway's answer."""
        params = {"protocolVersion": protocol, "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
        result: Message = await self.result("initialize", params, "init")
        self.tell("notifications/initialized")
        return result

    async def call(self, name: str, number: int | str = 1, **arguments: Any) -> Message:
        """Call a tool and return the whole answer."""
        return await self.ask("tools/call", {"name": name, "arguments": arguments}, number)

    def call_only(self, name: str, number: int | str, **arguments: Any) -> None:
        """Call a tool without waiting for its answer."""
        self.ask_only(number, "tools/call", {"name": name, "arguments": arguments})

    async def names(self) -> list[str]:
        """Return the names of the listed tools."""
        return [item["name"] for item in (await self.result("tools/list", number="names"))["tools"]]


@dataclass
class BrokenClock:
    """A clock whose `now` raises while `broken` is true."""

    whole: FakeClock
    broken: bool = False

    def now(self) -> float:
        return self.whole.now() / (not self.broken)

    def time(self) -> float:
        return self.whole.time()

    async def sleep(self, seconds: float) -> None:
        await self.whole.sleep(seconds)

    async def beat(self, period_s: float, within_s: float = 0.0) -> None:
        await self.whole.beat(period_s, within_s)


class EmptyAccounts(Accounts):
    """Accounts without sign-ins, which start no thread to look for them."""

    async def look(self, keys: Iterable[AccountKey]) -> None:
        pass


class House:
    """A gateway with fake servers. `apply` has the effect of a saved servers.yaml."""

    def __init__(
        self, folder: Path, tasks: anyio.abc.TaskGroup, clock: Callable[[FakeClock], Clock] = lambda clock: clock
    ) -> None:
        self.net = FakeNet()
        self.clock = FakeClock()
        self.tasks = tasks
        self.folder = folder / "cache"
        self.written: list[Switches] = []
        self.write_failure: Exception | None = None
        self.reloads = 0
        self.look: Look = lambda folder, user: NOTHING
        self.config = Config(Settings(expose="tools"))
        vault = Vault(ChunkedRecords(MemoryEntries()))
        self.dependencies = GatewayDependencies(
            clock=clock(self.clock),
            environ={"PATH": "/nowhere"},
            keyring=no_secrets,
            open=self.net.open,
            stderr=lambda server, *, further: lambda data: None,
            cache_dir=self.folder,
            approved_dir=folder / FOLDER_NAME,
            state_dir=folder / "state",
            write_switches=self._write,
            look=lambda folder, user: self.look(folder, user),
            accounts=EmptyAccounts(vault, tasks, self.clock.time, self.clock.sleep),
        )
        self.gateway = Gateway(self.dependencies, tasks)
        self.gateway.services.given_names.load()

    def _write(self, switches: Switches) -> None:
        if self.write_failure is not None:
            raise self.write_failure
        self.written.append(switches)

    def apply(
        self, *servers: ServerConfig, settings: Settings | None = None, problems: tuple[Problem, ...] = ()
    ) -> None:
        """Configure exactly these servers."""
        entries = {entry.name: entry for entry in servers}
        self.config = Config(settings or self.config.settings, entries, problems)
        self.gateway.take_config(self.config)

    def cache(self, entry: ServerConfig, known: Offer, age_s: float = 0.0) -> None:
        """Save a cache entry, as an earlier run would have. Call this before `apply`."""
        save(self.folder, CacheEntry(entry.name, launch_hash(entry), self.clock.time() - age_s, known))

    def start(self) -> None:
        """Start serving."""
        self.gateway.start_serving()

    async def known(self, *servers: ServerConfig, settings: Settings | None = None) -> None:
        """Configure these servers, start, and wait until their lists have been read."""
        self.apply(*servers, settings=settings)
        self.start()
        await self.gateway.services.pool.settled()
        await self.gateway.intake.read_words_now()
        await self.gateway.services.writer.written()
        await self.told()

    async def starting(self) -> tuple[Client, anyio.Event]:
        """Start the gateway with a cached server `a`. Return a client, and the event that lets `a` start."""
        self.cache(server("a"), offer("echo"))
        gate = self.net["a"].hold_start()
        self.apply(server("a"))
        self.start()
        return await self.ready(), gate

    async def told(self) -> None:
        """Wait until changes have been broadcast."""
        await self.clock.pass_(BROADCAST_DELAY_S * 2)

    def client(self, lasting: bool = True, **options: Any) -> Client:
        """Return a connected client before its handshake. `options` are those in its first line."""
        client = Client()
        peer = FramePeer(client.write)
        client.session = session = self.gateway.new_session(peer, dict(options), "stdio", lasting=lasting)
        client.dispatcher = peer.dispatcher
        client.end = peer.dispatcher.close
        self.tasks.start_soon(self.gateway.serve, session)
        return client

    async def ready(self, protocol: str = "2025-11-25", name: str = "tests", **options: Any) -> Client:
        """Return a client that has completed the handshake."""
        client = self.client(**options)
        await client.shake_hands(protocol, name)
        await settle()
        return client

    def control(self) -> Wire:
        """Open a control connection and return the client's end."""
        wire = Wire()
        wire.link = as_link(wire)
        gateway = self.gateway
        accounts = AccountRequests(gateway.services, gateway.sign_ins, self.dependencies.environ, no_secrets)
        control = Control(gateway, accounts.handlers, wire.link, self._reload)
        wire.dispatcher = control.dispatcher
        self.tasks.start_soon(control.run)
        return wire

    async def _reload(self) -> None:
        self.reloads += 1

    def state(self, name: str) -> State:
        return self.gateway.services.pool.find(name).state

    def in_flight(self) -> dict[str, int]:
        """Return the number of calls in flight of each server that has any."""
        return {c.key: c.in_flight for c in self.gateway.services.pool if c.in_flight}


def as_link(wire: Wire) -> Link:
    """Return a Link without a socket, which writes to `wire`."""

    class Loose(Link):
        def write(self, data: bytes | memoryview) -> None:
            wire.write(bytes(data))

        def close(self) -> None:
            wire.close()

    return Loose(lambda hello, link: FrameDispatcher(link.write), "", PendingConnections())


@asynccontextmanager
async def house(
    folder: Path, clock: Callable[[FakeClock], Clock] = lambda clock: clock, within_s: float = 30
) -> AsyncIterator[House]:
    """Yield a gateway that ends with the test. A crash in one of its tasks fails the test.

    `clock`: makes the gateway's clock from the fake clock. `within_s`: the time limit of the test.
    """
    async with anyio.create_task_group() as tasks:
        made = House(folder, tasks, clock)
        try:
            with anyio.fail_after(within_s):
                yield made
        finally:
            tasks.cancel_scope.cancel()
