"""The parts of a benchmark run. Each part uses fresh homes, and its processes end with it, even if it fails.

To add a part, add a line to PARTS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.benchmarks import calls, exposure, inspection, search, search_rules
from tests.benchmarks.approving import measure_approving
from tests.benchmarks.calls import measure_calls
from tests.benchmarks.confined import measure_confined
from tests.benchmarks.contest import measure_peers
from tests.benchmarks.entrants import entrants
from tests.benchmarks.figures import OURS
from tests.benchmarks.first import measure_first_lists
from tests.benchmarks.idle import measure_idle
from tests.benchmarks.listed import measure_listed, measure_listed_by_real_servers
from tests.benchmarks.memory import measure_memory
from tests.benchmarks.panel import measure_panel
from tests.benchmarks.run import Measured
from tests.benchmarks.searched import measure_searches
from tests.benchmarks.sharing import measure_sharing, reached
from tests.benchmarks.sizes import measure_curves
from tests.benchmarks.starts import measure_cold_starts, measure_shims
from tests.benchmarks.tray import measure_tray
from tests.benchmarks.ways import direct, fresh_home, gateway, isolated_shim, through

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setup:
    """The benchmarks' options. `data`: a folder with catalog.json and queries.json of real servers."""

    quick: bool = False
    peers: bool = False
    data: Path | None = None

    def of(self, whole: T, quick: T) -> T:
        """Return `quick` for a quick run, and `whole` otherwise."""
        return quick if self.quick else whole

    @property
    def idle_s(self) -> float:
        """The time for which an idle process is watched, in seconds.

        The gateway's regular checks run every 5, 10 or 15 s and coincide every 30 s. A shorter time, as in a quick
        run, includes too many or too few of them.
        """
        return 5.0 if self.quick else 30.0


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the report, and the function that measures it."""

    title: str
    measure: Callable[[Setup], Iterator[Measured]]


def calls_part(setup: Setup) -> Iterator[Measured]:
    """Yield the figures of calls, directly and through the gateway, and of shim starts."""
    with fresh_home() as home:
        home.configure()
        with gateway(home):
            home.settle()
            way = through(home)
            yield from measure_calls((direct(), way), calls.QUICK if setup.quick else calls.FULL)
            shims = (way, through(home, f"{OURS}, -I -S", isolated_shim()))
            yield from measure_shims(shims, setup.of(30, 10))


def starts_part(setup: Setup) -> Iterator[Measured]:
    """Yield the times until a client gets its first lists, and the start times of the gateway."""
    yield from measure_first_lists(setup.of(9, 3), setup.of(30, 10), setup.of(5, 2), setup.data)
    yield from measure_cold_starts(setup.of(7, 3))


def confined_part(setup: Setup) -> Iterator[Measured]:
    """Yield the costs of confinement."""
    yield from measure_confined(setup.of(30, 10))


def panel_part(setup: Setup) -> Iterator[Measured]:
    """Yield the figures of the panel in a browser, and of the history."""
    yield from measure_panel(setup.of(9, 3), setup.of(10_000, 1_000), setup.of(20, 3), setup.data)


def sharing_part(setup: Setup) -> Iterator[Measured]:
    """Yield the savings of many clients that share servers."""
    those = entrants() if setup.peers and not setup.quick else []
    peers = [reached(one.name, one.open) for one in those if one.foreign and one.gathers]
    yield from measure_sharing(peers, setup.quick, setup.data)


def peers_part(setup: Setup) -> Iterator[Measured]:
    """Yield the figures that compare our gateway with others."""
    yield from measure_peers(setup.quick, setup.data)


def sizes_part(setup: Setup) -> Iterator[Measured]:
    """Yield the growth curves."""
    yield from measure_curves(setup.quick)


def tools_part(setup: Setup) -> Iterator[Measured]:
    """Yield the time, size and quality of lists and searches."""
    yield from measure_listed(setup.data)
    if not setup.quick:
        yield from measure_listed_by_real_servers()
    yield from search.figures(*search.given(setup.data), large=setup.of(search.LARGE, 2_000))
    yield from measure_searches(setup.data)
    yield from search_rules.notes(setup.data)
    yield from exposure.figures(setup.of(exposure.SIZES, exposure.SIZES[:1]), setup.of(exposure.ROUNDS, 3))


def inspection_part(setup: Setup) -> Iterator[Measured]:
    """Yield the costs of inspecting and approving definitions."""
    yield from inspection.figures(setup.of(25, 3), setup.data)
    yield measure_approving(setup.of(5, 2))


def memory_part(setup: Setup) -> Iterator[Measured]:
    """Yield the memory use of the gateway and its shims."""
    yield from measure_memory(setup.quick, setup.data)


def idle_part(setup: Setup) -> Iterator[Measured]:
    """Yield the processor use and wake-ups of an idle gateway."""
    yield from measure_idle(setup.idle_s)


def tray_part(setup: Setup) -> Iterator[Measured]:
    """Yield the tray's figures."""
    yield from measure_tray(setup.of(7, 3), setup.of(10, 3), setup.idle_s)


def behaviour_part(setup: Setup) -> Iterator[Measured]:
    """Yield tables of how each way handles failures and server requests, on each transport."""
    import anyio

    from tests.benchmarks import behaviour, peer_stages, verdicts  # imported late, because they load slowly

    others = peer_stages.peers() if setup.peers else []
    yield from verdicts.markdown(anyio.run(behaviour.rows, peer_stages.own(), others))


PEERS = "peers"  # the part that needs --peers
PARTS = {
    "calls": Part("Calls", calls_part),
    "starts": Part("Starts", starts_part),
    "confined": Part("Confined servers", confined_part),
    "panel": Part("The panel and the history", panel_part),
    PEERS: Part("Beside other gateways", peers_part),
    "sharing": Part("Many clients", sharing_part),
    "tools": Part("Lists and search", tools_part),
    "inspection": Part("Inspection", inspection_part),
    "curves": Part("Growth", sizes_part),
    "memory": Part("Memory", memory_part),
    "idle": Part("Idle", idle_part),
    "tray": Part("Tray", tray_part),
    "behaviour": Part("Behaviour", behaviour_part),
}
