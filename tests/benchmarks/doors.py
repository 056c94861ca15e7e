"""Where a client comes in, and what is there for it: at the servers themselves, at ours.

A further gateway is one more `Stage`.
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

HTTP_WAIT_S = 5.0  # from the gateway's first answer to its HTTP port

MARK = "MULTI_MCP_BENCHMARK"  # in the environment of all that belongs to one stage
HOME = "MULTI_MCP_HOME"  # of all that belongs to a gateway of ours


@dataclass(frozen=True, slots=True)
class Door:
    """What a client starts, or where it connects to."""

    kind: Kind
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> str:
        """Return the door for another process."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str) -> Door:
        """Return the door that the other process had."""
        members = json.loads(text)
        return cls(Kind(**members.pop("kind")), tuple(members.pop("argv")), **members)


@asynccontextmanager
async def client_at(door: Door) -> AsyncIterator[Conversation]:
    """Yield a client that has said nothing yet."""
    if door.kind.carrier == "stdio":
        async with client_of(door.argv, door.env, Path.cwd(), None) as client:
            yield client
    else:
        async with http_client(door.url, door.kind.version, door.headers, sse=door.kind.carrier == "sse") as other:
            yield other


class Place(Protocol):
    """A stage that is set. `began`: when the first process of the way was started (time.perf_counter)."""

    began: float

    def door(self, kind: Kind, backend: Backend) -> Door | None:
        """Return where a client of that kind finds that server; None where the way does not offer that. May block."""

    def exposed(self, backend: Backend, tool: str) -> str | None:
        """Return that tool's name for a client; None: whatever listed name ends with it."""

    def state(self, backend: Backend) -> str | None:
        """Return what is said of a server; None where nothing is."""

    def left(self) -> list[str]:
        """Return what is still there of clients that have gone, in words."""

    def renew(self, backend: Backend) -> None:
        """Restart what is in front of a server whose row was red, unless it recovers by itself."""


class Stage(Protocol):
    """One of the ways that are compared, with the kinds of clients and servers that it is for."""

    @property
    def name(self) -> str:
        """For tables."""

    @property
    def gathers(self) -> bool:
        """Several servers behind one door."""

    @property
    def clients(self) -> tuple[Kind, ...]:
        """Kinds that it takes."""

    @property
    def servers(self) -> tuple[Kind, ...]:
        """Kinds that it takes."""

    def set(self, backends: Sequence[Backend], together: bool = False) -> AbstractContextManager[Place]:
        """These servers behind it, as new: nothing is known of them. `together`: all behind one door.

        Raises BrokenError.
        """


def marked(name: str, value: str) -> list[psutil.Process]:
    """Return every process with that variable."""
    return [process for process in psutil.process_iter() if _has(process, name, value)]


def _has(process: psutil.Process, name: str, value: str) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(name) == value
    except (psutil.Error, OSError):
        return False


def in_words(processes: Sequence[psutil.Process]) -> list[str]:
    """Return what they are."""
    words = []
    for process in processes:
        try:
            words.append(f"process {process.pid} ({' '.join(process.cmdline())[-60:]})")
        except psutil.Error:
            continue
    return words


# -- at the servers themselves ---------------------------------------------------------------------------------------


@dataclass
class DirectPlace:
    """See Place."""

    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    began: float = field(default_factory=time.perf_counter)

    def door(self, kind: Kind, backend: Backend) -> Door | None:
        """Describe how the server speaks."""
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
        """Each client has its own."""


@dataclass
class Direct:
    """The client starts the server by itself, or connects to it."""

    name: str = DIRECT
    gathers: bool = False
    clients: tuple[Kind, ...] = KINDS
    servers: tuple[Kind, ...] = KINDS

    @contextmanager
    def set(self, backends: Sequence[Backend], together: bool = False) -> Iterator[Place]:
        """See Stage."""
        yield DirectPlace()


# -- at ours ---------------------------------------------------------------------------------------------------------


def _http_url(home: Home) -> str:
    """Return the address of the HTTP port, which the gateway opens a moment after it answers. Raises BrokenError."""
    deadline = time.monotonic() + HTTP_WAIT_S
    while not (url := home.snapshot()["gateway"]["http_url"]):
        if time.monotonic() > deadline:
            raise BrokenError("the gateway opened no HTTP port")
        time.sleep(0.01)
    return str(url)


@dataclass
class OurPlace:
    """See Place."""

    home: Home
    env: Mapping[str, str]
    url: str
    pid: int
    began: float

    def door(self, kind: Kind, backend: Backend) -> Door | None:
        """Return every kind, for every server."""
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
        """Sessions, and processes that are neither the gateway's nor its servers'."""
        sessions = self.home.snapshot()["gateway"]["sessions"]
        below = {self.pid, *(process.pid for process in psutil.Process(self.pid).children(recursive=True))}
        others = [p for p in marked(HOME, self.env[HOME]) if p.pid not in below and not self._is_guardian(p)]
        return [f"a session over {session['transport']}" for session in sessions] + in_words(others)

    def renew(self, backend: Backend) -> None:
        """It has to help itself."""

    def _is_guardian(self, process: psutil.Process) -> bool:
        """Return True for the guardian, which waits for the end of the gateway."""
        return any(f"backends-{self.pid}-" in word for word in process.cmdline())


@dataclass
class Ours:
    """A gateway in a home of its own."""

    name: str = OURS
    gathers: bool = True
    clients: tuple[Kind, ...] = KINDS
    servers: tuple[Kind, ...] = KINDS

    @contextmanager
    def set(self, backends: Sequence[Backend], together: bool = False) -> Iterator[Place]:
        """See Stage."""
        with fresh_home() as home:
            settings = {"expose": "tools", "idle_timeout": 0, "http": {"enabled": True, "port": 0}}
            servers = {backend.name: backend.entry for backend in backends}
            home.write("servers.yaml", json.dumps({"settings": settings, "servers": servers}))
            began = time.perf_counter()
            with gateway(home) as started:
                yield OurPlace(home, home.env, _http_url(home), started.pid, began)
