"""The token cost of the tools of 70 servers, and of ten real ones, listed in full or behind the tool `mcp`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.figures import OURS, Figure
from tests.benchmarks.ways import fresh_home, gateway
from tests.benchmarks.workloads import large, real_ten
from trayapp.catalog.tokens import tokens
from trayapp.wire.control import COSTS, SETTLE
from trayapp.wire.jsonio import dumps

ALL = "every tool listed"
TOOLS, SEARCH = f"{OURS}, expose: tools", f"{OURS}, expose: search"


def measure_listed(data: Path | None = None) -> Iterator[Figure]:
    """Measure the tokens at the start of a session and in the answer of one search. Raises BrokenError."""
    with fresh_home() as home:
        work = large(home.path / "lists", data)
        work.fill(home.path)
        with gateway(home), home.control() as control:
            costs = control.call(COSTS)
        begun, answer = Figure(f"{work.name}: listed at a start", "tokens"), Figure("one search's answer", "tokens")
        everything = sum(tokens(dumps(tool).decode()) for tools in work.shelf.values() for tool in tools)
        begun.add(ALL, everything)
        begun.add(TOOLS, costs["tools"]["tokens"])
        begun.add(SEARCH, costs["search"]["tokens"])
        answer.add(OURS, costs["search"]["answer_tokens"])
        yield from (begun, answer)


def measure_listed_by_real_servers() -> Iterator[Figure | str]:
    """Measure the tokens at the start of a session with ten real servers. Raises BrokenError."""
    with fresh_home() as scratch, fresh_home() as home:
        try:
            work = real_ten(scratch.path)
        except LookupError as error:
            yield f"No real servers: {error}"
            return
        home.write("servers.yaml", work.servers_yaml())
        with gateway(home), home.control() as control:
            control.call(SETTLE)
            costs = control.call(COSTS)
        begun = Figure(f"{work.name}, {costs['tools']['count']} tools: listed at a start", "tokens", compared=False)
        begun.add(TOOLS, costs["tools"]["tokens"])
        begun.add(SEARCH, costs["search"]["tokens"])
        yield begun
