"""The peers as stages. Each is tested with one server behind it, and peers that gather servers also with several.

Clients and servers are of the older era. Peers that accept URLs are also tested with HTTP servers.
"""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.benchmarks.backends import OLDER, STDIO, Backend, Carrier, Kind
from tests.benchmarks.doors import MARK, Direct, Door, Ours, Place, Stage, in_words, marked
from tests.benchmarks.peers import Peer, Reach, descendants, present, running
from tests.benchmarks.ways import SHORT_TMP

CARRIERS: dict[str, Carrier] = {"stdio": "stdio", "shim": "stdio", "http": "http", "sse": "sse"}
GATHERED = (STDIO, Kind("http", OLDER), Kind("sse", OLDER))


def entry_of(backend: Backend) -> dict[str, Any]:
    """Return the server's entry for `mcpServers`."""
    if backend.url is not None:
        kind = "sse" if backend.kind.carrier == "sse" else "http"
        return {"url": backend.url, "type": kind, "transport": kind}
    command, *arguments = backend.argv
    return {"command": command, "args": arguments}


@dataclass
class PeerPlace:
    """A peer in front of servers. Each server has its own gateway unless the peer gathers them, so a failure affects
    only one server's row.
    """

    peer: Peer
    gathered: Sequence[Backend]
    folder: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    began: float = field(default_factory=time.perf_counter)
    reaches: dict[str, Reach] = field(default_factory=dict)
    stacks: dict[str, ExitStack] = field(default_factory=dict)

    def door(self, kind: Kind, backend: Backend) -> Door | None:
        """Return the peer's door, after starting the peer for the server's first client. Raises BrokenError."""
        reach = self._reach(backend)
        return Door(kind, reach.argv, reach.env, reach.url, reach.headers)

    def _reach(self, backend: Backend) -> Reach:
        name = "" if self.gathered else backend.name
        if name not in self.reaches:
            entries = {one.name: entry_of(one) for one in self.gathered or [backend]}
            started = running(self.peer, entries, self.folder / (name or "all"), {MARK: self.mark})
            self.stacks[name] = stack = ExitStack()
            self.reaches[name] = stack.enter_context(started)
        return self.reaches[name]

    def renew(self, backend: Backend) -> None:
        """Close the server's gateway, so that its next client starts another."""
        name = "" if self.gathered else backend.name
        if self.reaches.pop(name, None) is not None:
            self.stacks[name].close()

    def close(self) -> None:
        """End the gateways, and kill all processes that they left behind."""
        for stack in self.stacks.values():
            stack.close()
        for process in marked(MARK, self.mark):
            end(process)

    def exposed(self, backend: Backend, tool: str) -> str | None:
        return self._reach(backend).tool(backend.name, tool)

    def state(self, backend: Backend) -> str | None:
        return None

    def left(self) -> list[str]:
        """Return descriptions of the processes that belong to no running gateway."""
        pids = {pid for reach in self.reaches.values() for pid in reach.pids}
        own = pids | {process.pid for pid in pids for process in descendants(pid)}
        return in_words([process for process in marked(MARK, self.mark) if process.pid not in own])


@dataclass
class PeerStage:
    """A peer as one of the ways that are compared."""

    peer: Peer

    @property
    def name(self) -> str:
        return self.peer.name

    @property
    def gathers(self) -> bool:
        return self.peer.gathers

    @property
    def clients(self) -> tuple[Kind, ...]:
        return (Kind(CARRIERS[self.peer.shape], OLDER),)

    @property
    def servers(self) -> tuple[Kind, ...]:
        return GATHERED if self.peer.gathers else (STDIO,)

    @contextmanager
    def set(self, backends: Sequence[Backend], together: bool = False) -> Iterator[Place]:
        """Yield the place in which the peer's gateways will be started."""
        with tempfile.TemporaryDirectory(dir=SHORT_TMP, ignore_cleanup_errors=True) as folder:
            place = PeerPlace(self.peer, backends if together else (), Path(folder))
            try:
                yield place
            finally:
                place.close()


def own() -> list[Stage]:
    """Return the direct way and our gateway."""
    return [Direct(), Ours()]


def peers() -> list[Stage]:
    """Return a stage for each peer whose packages are installed."""
    return [PeerStage(peer) for peer in present()]


def end(process: psutil.Process) -> None:
    """Kill a process that a peer left behind."""
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return
