"""The doors through which clients connect: directly to the servers, or to our gateway.

Other gateways implement `Stage` in peer_stages.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

import psutil

from tests.benchmarks.backends import KINDS, Backend, Kind
from tests.benchmarks.client import BrokenError
from tests.benchmarks.figures import OURS
from tests.benchmarks.ways import DIRECT, Home, environment, fresh_home, gateway
from tests.e2e.client import Conversation, client_of
from tests.e2e.http_client import http_client
from trayapp.gateway.http.port import TOKEN_NAME
from trayapp.service.command_line import shim_command

HTTP_WAIT_S = 5.0  # longest wait for the HTTP port after the gateway's first answer

MARK = "MULTI_MCP_BENCHMARK"  # variable in the environment of every process of a stage
HOME = "MULTI_MCP_HOME"  # variable in the environment of every process of our gateway


@dataclass(frozen=True, slots=True)
class Door:
    """The command that a client starts, or the URL that it connects to."""

    kind: Kind
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> str:
        """Return the door as JSON, to pass it to another process."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str) -> Door:
        """Restore a door from the result of `as_json`."""
        members = json.loads(text)
        return cls(Kind(**members.pop("kind")), tuple(members.pop("argv")), **members)


@asynccontextmanager
async def client_at(door: Door) -> AsyncIterator[Conversation]:
    """Yield a client that has sent no message yet."""
    if door.kind.carrier == "stdio":
        async with client_of(door.argv, door.env, Path.cwd(), None) as client:
            yield client
    else:
        async with http_client(door.url, door.kind.version, door.headers, sse=door.kind.carrier == "sse") as other:
            yield other


class Place(Protocol):
    """A running stage. `began` is the time (time.perf_counter) at which its first process started."""

    began: float

    def door(self, kind: Kind, backend: Backend) -> Door | None:
        """Return the door to a server for a kind of client, or None if the way does not offer it. May block."""

    def exposed(self, backend: Backend, tool: str) -> str | None:
        """Return the name under which clients see the tool, or None if only the end of the name is known."""

    def state(self, backend: Backend) -> str | None:
        """Return the server's reported state, or None if the way reports none."""

    def left(self) -> list[str]:
        """Return descriptions of what remains of ended clients."""

    def renew(self, backend: Backend) -> None:
        """Reset the way after a red row for the server, unless the way must recover by itself."""


class Stage(Protocol):
    """A way to be compared, with the kinds of clients and servers that it supports."""

    @property
    def name(self) -> str:
        """The way's name in tables."""

    @property
    def gathers(self) -> bool:
        """True if one door leads to several servers."""

    @property
    def clients(self) -> tuple[Kind, ...]:
        """The kinds of clients that the way supports."""

    @property
    def servers(self) -> tuple[Kind, ...]:
        """The kinds of servers that the way supports."""

    def set(self, backends: Sequence[Backend], together: bool = False) -> AbstractContextManager[Place]:
        """Start the way with these servers and without data from earlier runs.

        If `together` is True, one door leads to all of them. Raises BrokenError.
        """


def marked(name: str, value: str) -> list[psutil.Process]:
    """Return every process whose environment variable `name` has the value `value`."""
    return [process for process in psutil.process_iter() if _has(process, name, value)]


def _has(process: psutil.Process, name: str, value: str) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(name) == value
    except (psutil.Error, OSError):
        return False


def in_words(processes: Sequence[psutil.Process]) -> list[str]:
    """Return a description of each process."""
    words = []
    for process in processes:
        try:
            words.append(f"process {process.pid} ({' '.join(process.cmdline())[-60:]})")
        except psutil.Error:
            continue
    return words


# -- direct connections ----------------------------------------------------------------------------------------------


@dataclass
class DirectPlace:
    """A place where clients connect directly to the servers."""

    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    began: float = field(default_factory=time.perf_counter)

    def door(self, kind: Kind, backend: Backend) -> Door | None:
        """Return the server's own door, or None for clients of another kind."""
        if kind != backend.kind:
            return None
        return Door(kind, backend.argv, {**environment(), MARK: self.mark}, backend.url or "")

    def exposed(self, backend: Backend, tool: str) -> str | None:
        return tool

    def state(self, backend: Backend) -> str | None:
        return None

    def left(self) -> list[str]:
        return in_words(marked(MARK, self.mark))

    def renew(self, backend: Backend) -> None:
        """Do nothing, because no gateway is in front of the server."""


@dataclass
class Direct:
    """The direct way: clients start the servers or connect to them without a gateway."""

    name: str = DIRECT
    gathers: bool = False
    clients: tuple[Kind, ...] = KINDS
    servers: tuple[Kind, ...] = KINDS

    @contextmanager
    def set(self, backends: Sequence[Backend], together: bool = False) -> Iterator[Place]:
        yield DirectPlace()


# -- our gateway -----------------------------------------------------------------------------------------------------


def _http_url(home: Home) -> str:
    """Wait for the HTTP port, which opens after the gateway's first answer. Return its URL. Raises BrokenError."""
    deadline = time.monotonic() + HTTP_WAIT_S
    while not (url := home.snapshot()["gateway"]["http_url"]):
        if time.monotonic() > deadline:
            raise BrokenError("the gateway opened no HTTP port")
        time.sleep(0.01)
    return str(url)


@dataclass
class OurPlace:
    """A place where clients connect to our gateway."""

    home: Home
    env: Mapping[str, str]
    url: str
    pid: int
    began: float

    def door(self, kind: Kind, backend: Backend) -> Door | None:
        """Return a door to our gateway, which supports every kind of client for every server."""
        if kind.carrier == "stdio":
            return Door(kind, tuple(shim_command()), self.env)
        headers = {"Authorization": f"Bearer {(self.home.path / TOKEN_NAME).read_text().strip()}"}
        return Door(kind, url=self.url if kind.carrier == "http" else self.url.replace("/mcp", "/sse"), headers=headers)

    def exposed(self, backend: Backend, tool: str) -> str | None:
        return f"{backend.name}_{tool}"

    def state(self, backend: Backend) -> str | None:
        states = {row["name"]: str(row["state"]) for row in self.home.snapshot()["servers"]}
        return states[backend.name]

    def left(self) -> list[str]:
        """Describe remaining sessions, and processes that belong to neither the gateway nor its servers."""
        sessions = self.home.snapshot()["gateway"]["sessions"]
        below = {self.pid, *(process.pid for process in psutil.Process(self.pid).children(recursive=True))}
        others = [p for p in marked(HOME, self.env[HOME]) if p.pid not in below and not self._is_guardian(p)]
        return [f"a session over {session['transport']}" for session in sessions] + in_words(others)

    def renew(self, backend: Backend) -> None:
        """Do nothing, because our gateway must recover by itself."""

    def _is_guardian(self, process: psutil.Process) -> bool:
        """True for the guardian, which waits for the gateway's end."""
        return any(f"backends-{self.pid}-" in word for word in process.cmdline())


@dataclass
class Ours:
    """Our gateway, in a separate home."""

    name: str = OURS
    gathers: bool = True
    clients: tuple[Kind, ...] = KINDS
    servers: tuple[Kind, ...] = KINDS

    @contextmanager
    def set(self, backends: Sequence[Backend], together: bool = False) -> Iterator[Place]:
        with fresh_home() as home:
            settings = {"expose": "tools", "idle_timeout": 0, "http": {"enabled": True, "port": 0}}
            servers = {backend.name: backend.entry for backend in backends}
            home.write("servers.yaml", json.dumps({"settings": settings, "servers": servers}))
            began = time.perf_counter()
            with gateway(home) as started:
                yield OurPlace(home, home.env, _http_url(home), started.pid, began)
