"""How many tools of a catalog are flagged, and what judging them costs: `python -m tests.benchmarks.inspection FILE`.

FILE: a JSON list of {"server", "tools": [tool as its server lists it]}. Never here: asserting anything.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from trayapp.gateway.exposure.approvals import Approvals
from trayapp.inspection.finding import Finding
from trayapp.inspection.inspect import inspect_tool
from trayapp.model.offer import Offer
from trayapp.model.settings import Settings
from trayapp.wire.jsonio import loads


def main(file: str) -> None:
    """Print what is found and how much of a processor it takes, whatever else runs."""
    catalog: list[dict[str, Any]] = loads(Path(file).read_bytes())
    found = [
        (entry["server"], item["name"], one)
        for entry in catalog
        for item in entry["tools"]
        for one in inspect_tool(item)
    ]
    tools = sum(len(entry["tools"]) for entry in catalog)
    print(f"{tools} tools of {len(catalog)} servers: {dict(Counter(one.severity for _, _, one in found))}")
    for server, name, one in found:
        print(f"  {one.severity:6} {server}/{name}: {_line(one)}")
    offers = {str(at): Offer(tuple(entry["tools"])) for at, entry in enumerate(catalog)}
    with tempfile.TemporaryDirectory() as folder:
        print(f"judged at first sight, in a thread but for the smallest: {_ahead_ms(Path(folder), offers)}")
        print(f"judged at first sight: {_judged_ms(Path(folder), offers):.1f} ms")
        print(f"judged at a later start, pins read: {_judged_ms(Path(folder), offers):.1f} ms")


def _line(one: Finding) -> str:
    return f"{one.code} in {one.where}: {one.evidence}"


def _judged_ms(folder: Path, offers: dict[str, Offer]) -> float:
    approvals = Approvals(folder, Settings, lambda server: ())
    began = time.process_time()
    for server, offer in offers.items():
        approvals.judge(server, offer)
    taken = time.process_time() - began
    approvals.save()
    return taken * 1e3


def _ahead_ms(folder: Path, offers: dict[str, Offer]) -> str:
    """What is left for the gateway's own thread, and the longest that one server takes of it."""
    approvals = Approvals(folder, Settings, lambda server: ())
    taken = []
    for server, offer in offers.items():
        if approvals.takes_long(offer):
            approvals.look_ahead(server, offer)
        began = time.process_time()
        approvals.judge(server, offer)
        taken.append((time.process_time() - began) * 1e3)
    return f"{sum(taken):.1f} ms left, {max(taken):.1f} ms at once"


if __name__ == "__main__":
    main(sys.argv[1])
