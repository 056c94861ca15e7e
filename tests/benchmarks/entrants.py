"""The entrants of a comparison: the direct way, our gateway, and every peer, each started for a workload on demand.

If an entrant breaks, the figure shows the reason, and the entrant is restarted for the next figure.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.benchmarks.calls import without_collections
from tests.benchmarks.client import BrokenError, Conversation
from tests.benchmarks.figures import OURS, Figure
from tests.benchmarks.peers import HOST, Entries, Peer, Reach, Shape, free_port, present, running
from tests.benchmarks.sharing import connect_all
from tests.benchmarks.ways import DIRECT, environment, fresh_home, gateway
from tests.benchmarks.workloads import Workload
from trayapp.gateway.http.port import TOKEN_NAME
from trayapp.service.command_line import shim_command

WARM_UP, WARM_UP_S = 200, 1.0  # calls, and the seconds that they may take
WORDS = 160  # most characters of a reason, for one line of a table
CHANCES = 2  # failed starts in a row after which an entrant is not tried again
BREAKS = (BrokenError, OSError, psutil.Error, ValueError, LookupError)  # raised when a peer ends or answers wrongly

Open = Callable[[Workload, Path], AbstractContextManager[Reach]]


@dataclass(frozen=True, slots=True)
class Entrant:
    """A participant. `gathers` is True if it serves several servers at one address or starts all of them itself."""

    name: str
    shape: Shape
    open: Open
    gathers: bool = True

    @property
    def foreign(self) -> bool:
        """True if it may break, unlike the direct way and our gateway, with which it is compared."""
        return not self.name.startswith((DIRECT, OURS))

    @property
    def spawned(self) -> bool:
        """True if the client starts a process for it."""
        return self.shape in ("stdio", "shim")


def entrants(with_peers: bool = True) -> list[Entrant]:
    """Return the direct way, our gateway and the installed peers, in this order."""
    own = [
        Entrant(DIRECT, "stdio", _direct, gathers=False),
        Entrant(OURS, "shim", _ours),
        Entrant(f"{OURS}, HTTP", "http", _ours_http),
    ]
    return own + [_of(peer) for peer in (present() if with_peers else [])]


def _of(peer: Peer) -> Entrant:
    def opened(work: Workload, folder: Path) -> AbstractContextManager[Reach]:
        entries: Entries = work.entries()
        return running(peer, entries, folder)

    return Entrant(peer.name, peer.shape, opened, peer.gathers)


@contextmanager
def _direct(work: Workload, folder: Path) -> Iterator[Reach]:
    yield Reach(DIRECT, "stdio", work.argv, environment(), "", lambda server, tool: tool)


@contextmanager
def _ours(work: Workload, folder: Path) -> Iterator[Reach]:
    with fresh_home() as home:
        home.write("servers.yaml", work.servers_yaml(idle_timeout=0))
        with gateway(home) as started:
            connect_all(home)
            yield Reach(OURS, "shim", tuple(shim_command()), home.env, "", _exposed, (started.pid,))


@contextmanager
def _ours_http(work: Workload, folder: Path) -> Iterator[Reach]:
    port = free_port()
    with fresh_home() as home:
        home.write("servers.yaml", work.servers_yaml(idle_timeout=0, http={"port": port}))
        with gateway(home) as started:
            connect_all(home)
            headers = {"Authorization": f"Bearer {(home.path / TOKEN_NAME).read_text().strip()}"}
            url = f"http://{HOST}:{port}/mcp"
            yield Reach(f"{OURS}, HTTP", "http", (), home.env, url, _exposed, (started.pid,), headers)


def _exposed(server: str, tool: str) -> str:
    return f"{server}_{tool}"


@dataclass
class Standing:
    """An entrant that is started on first use, and again after it breaks."""

    entrant: Entrant
    work: Workload
    folder: Path
    _stack: ExitStack = field(default_factory=ExitStack)
    _reach: Reach | None = None
    _client: Conversation | None = None
    _failures: list[str] = field(default_factory=list)
    paces: dict[str, float] = field(default_factory=dict)  # seconds per call in the last round, by measurement

    @property
    def name(self) -> str:
        """The entrant's name in rows."""
        return self.entrant.name

    def reach(self) -> Reach:
        """Return access to the entrant, starting it if necessary. Raises the exceptions in BREAKS."""
        if self._reach is None:
            if len(self._failures) >= CHANCES:
                raise BrokenError(self._failures[-1])
            try:
                self._reach = self._stack.enter_context(self.entrant.open(self.work, self.folder))
            except BREAKS as error:
                self._failures.append(str(error))
                raise
            self._failures.clear()
        return self._reach

    def client(self) -> tuple[Conversation, str]:
        """Return a warmed-up client and the name of the tool to call. Raises the exceptions in BREAKS."""
        reach = self.reach()
        if self._client is None:
            self._client = self._stack.enter_context(reach.connect())
            warm(self._client, reach.tool(self.work.server, self.work.tool))
        return self._client, reach.tool(self.work.server, self.work.tool)

    def drop(self) -> None:
        """End the entrant and its client."""
        stack, self._stack, self._reach, self._client = self._stack, ExitStack(), None, None
        stack.close()


def warm(client: Conversation, tool: str) -> None:
    """Make some calls, so that interpreters specialize their code and buffers grow. Raises BrokenError."""
    until = time.monotonic() + WARM_UP_S
    for _ in range(WARM_UP):
        client.timed(tool, 100, 1)
        if time.monotonic() > until:
            break


@contextmanager
def standing(all_of_them: Sequence[Entrant], work: Workload, folder: Path) -> Iterator[list[Standing]]:
    """Yield all entrants, not yet started. All end with the block."""
    those = [Standing(one, work, folder / str(place)) for place, one in enumerate(all_of_them)]
    with ExitStack() as stack:
        for one in those:
            stack.callback(one.drop)
        yield those


Measure = Callable[[Standing], Mapping[str, float]]  # figure name -> value of one round


def turns(those: Sequence[Standing], figures: Sequence[Figure], rounds: int, measure: Measure) -> None:
    """Measure the entrants alternately: one value per figure, round and entrant. A broken peer gets a reason instead.

    Raises the exceptions in BREAKS if the direct way or our gateway breaks.
    """
    by_name = {figure.name: figure for figure in figures}
    for _ in range(rounds):
        for one in those:
            if any(one.name in figure.broken for figure in figures):
                continue
            try:
                with without_collections():
                    for name, value in measure(one).items():
                        by_name[name].add(one.name, value)
            except BREAKS as error:
                if not one.entrant.foreign:
                    raise
                one.drop()
                for figure in figures:
                    figure.fail(one.name, why(error))


def why(error: Exception) -> str:
    """Return a short reason. If the error quotes a frame, return only the frame's message."""
    said = str(error) or type(error).__name__
    found = re.search(r'"(?:text|message)":\s*"((?:[^"\\]|\\.)+)"', said)
    return " ".join((found[1] if found else said).split())[:WORDS]
