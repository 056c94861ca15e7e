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

from trayapp.catalog.inspect import Finding, inspect_tool
from trayapp.gateway.approvals import Approvals
from trayapp.gateway.results import Results
from trayapp.model.offer import Offer
from trayapp.wire.jsonio import dumps, loads
from trayapp.wire.messages import Reply

RESULTS = 20_000


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
    print(f"looking at a small result: {_looked_us():.2f} us")


def _line(one: Finding) -> str:
    return f"{one.code} in {one.where}: {one.evidence}"


def _judged_ms(folder: Path, offers: dict[str, Offer]) -> float:
    approvals = Approvals(folder, lambda: "ask", lambda server: ())
    began = time.process_time()
    for server, offer in offers.items():
        approvals.judge(server, offer)
    taken = time.process_time() - began
    approvals.save()
    return taken * 1e3


def _ahead_ms(folder: Path, offers: dict[str, Offer]) -> str:
    """What is left for the gateway's own thread, and the longest that one server takes of it."""
    approvals = Approvals(folder, lambda: "ask", lambda server: ())
    taken = []
    for server, offer in offers.items():
        if approvals.takes_long(offer):
            approvals.look_ahead(server, offer)
        began = time.process_time()
        approvals.judge(server, offer)
        taken.append((time.process_time() - began) * 1e3)
    return f"{sum(taken):.1f} ms left, {max(taken):.1f} ms at once"


def _looked_us() -> float:
    results = Results(lambda: None)
    reply = Reply.of_result_json(dumps({"content": [{"type": "text", "text": "The answer is 42, as far as we know."}]}))
    began = time.process_time()
    for _ in range(RESULTS):
        results.look("s", reply)
    return (time.process_time() - began) / RESULTS * 1e6


if __name__ == "__main__":
    main(sys.argv[1])
