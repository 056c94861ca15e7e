"""What the tools of 70 servers cost a model's context: each listed, or one tool that finds them.

Never here: how well they are found (search), how long lists take (exposure).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.figures import OURS, Figure
from tests.benchmarks.ways import fresh_home, gateway
from tests.benchmarks.workloads import large
from trayapp.catalog.tokens import tokens
from trayapp.wire.control import COSTS
from trayapp.wire.jsonio import dumps

ALL = "every tool listed"


def measure_listed(data: Path | None = None) -> Iterator[Figure]:
    """Tokens of what a session begins with, and of one search. Raises BrokenError."""
    with fresh_home() as home:
        work = large(home.path / "lists", data)
        work.fill(home.path)
        with gateway(home), home.control() as control:
            costs = control.call(COSTS)
        begun, answer = Figure(f"{work.name}: listed at a start", "tokens"), Figure("one search's answer", "tokens")
        everything = sum(tokens(dumps(tool).decode()) for tools in work.shelf.values() for tool in tools)
        begun.add(ALL, everything)
        begun.add(f"{OURS}, expose: tools", costs["tools"]["tokens"])
        begun.add(f"{OURS}, expose: search", costs["search"]["tokens"])
        answer.add(OURS, costs["search"]["answer_tokens"])
        yield from (begun, answer)
